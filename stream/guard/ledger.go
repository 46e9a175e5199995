package guard

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/claims"
	"signalbox/stream/response"
)

// maxTold is the maximum number of failed claims in a summary.
const maxTold = 100

// ledger keeps the claims of one answer, from their text to the consequences of their verdicts.
// Everything except its desk is for one goroutine.
type ledger struct {
	rules
	job     Job
	checker Checker
	pool    *pool
	desk    *desk
	seed    maphash.Seed
	act     func(*record) // marks a claim
	late    bool          // verdicts are applied only when all are known

	lanes    []*lane
	pending  []*record // submitted to the desk, in the order of their deadlines
	batch    []task    // to be submitted
	verdicts [check.Contradicted + 1]int
	report   []*record   // failed claims for the summary
	several  bool        // each choice is an answer that ends by itself
	many     bool        // there is more than one choice
	acted    map[int]int // failed claims that were acted on, per answer
	falls    []int       // choices that end here, if they are separate answers
	cutting  bool        // everything ends here
	unreads  int         // parts of the answer that could not be read
	out      Outcome
}

func newLedger(g *Guard, job Job) ledger {
	l := ledger{rules: job.Policy.rules(job.MayAnnotate), job: job, checker: g.checker, pool: g.pool, seed: maphash.MakeSeed()}
	if job.Checker != nil {
		l.checker = job.Checker
	}
	l.desk = newDesk(g.pool, l.checker, job.Evidence, job.Question)
	return l
}

// lane returns the lane of a text, the newest if there are several.
func (l *ledger) lane(d *response.Delta, part int) *lane {
	for _, ln := range slices.Backward(l.lanes) {
		if ln.choice == d.Choice && ln.part == part && ln.kind == d.Kind {
			return ln
		}
	}
	return l.newLane(d, part)
}

func (l *ledger) newLane(d *response.Delta, part int) *lane {
	ln := newLane(d, part, l.seed, l.job.Checker == nil)
	l.lanes = append(l.lanes, ln)
	return ln
}

// checked reports whether texts of a kind are checked.
func (l *ledger) checked(k response.Kind) bool {
	return k == response.Text || k == response.Reasoning && l.Reasoning
}

// close ends the texts of a choice.
func (l *ledger) close(choice int) {
	for _, ln := range l.lanes {
		if !ln.closed && (choice == response.Everything || ln.choice == choice) {
			l.enter(ln, ln.close())
		}
	}
}

// abandon ends the texts of a choice that stops in the middle.
func (l *ledger) abandon(choice int) {
	for _, ln := range l.lanes {
		if !ln.closed && (choice == response.Everything || ln.choice == choice) {
			l.enterHalf(ln)
		}
	}
}

// enterHalf processes the last claims of a text that stops in the middle. An unfinished claim is
// not checked, because half of it may mean something else than all of it.
func (l *ledger) enterHalf(ln *lane) {
	if h, ok := l.enterFinished(ln); ok {
		l.leave(h.record, h.asked, h.record.since)
	}
}

// enterFinished ends a text and processes its last claims. An unfinished one is only recorded and
// returned.
func (l *ledger) enterFinished(ln *lane) (h half, ok bool) {
	list := ln.close()
	n := len(list)
	if n == 0 || !list[n-1].Unfinished || list[n-1].Kind == claims.Code {
		l.enter(ln, list)
		return half{}, false
	}
	if l.enter(ln, list[:n-1]); l.fallen(ln.choice) {
		return half{}, false
	}
	r, asked := l.admit(ln, list[n-1], time.Now())
	return half{r, asked}, true
}

// leave leaves a claim unchecked, unless the answer has its own checker, which may look for
// something other than truth.
func (l *ledger) leave(r *record, asked check.Claim, now time.Time) {
	if r.half = true; l.job.Checker != nil {
		asked.Unfinished = true
		l.judge(r, asked, now)
		return
	}
	l.decide(r, check.Result{Verdict: check.Unchecked, Source: -1}, now)
}

// settled reports whether all claims so far have a verdict.
func (l *ledger) settled() bool {
	return !slices.ContainsFunc(l.lanes, func(ln *lane) bool { return len(ln.open) > 0 })
}

// enter processes the next claims of a lane. Those that need no model are decided at once.
func (l *ledger) enter(ln *lane, list []claims.Claim) {
	if len(list) == 0 {
		return
	}
	now := time.Now()
	for _, c := range list {
		if l.fallen(ln.choice) {
			return
		}
		if c.Kind == claims.Code {
			ln.before = ""
			continue
		}
		r, asked := l.admit(ln, c, now)
		l.judge(r, asked, now)
	}
}

// judge gets the verdict on a claim, at once if no model is needed.
func (l *ledger) judge(r *record, asked check.Claim, now time.Time) {
	result, final := l.checker.Quick(l.job.Evidence, asked)
	if final {
		l.decide(r, result, time.Now())
		return
	}
	r.fallback = result
	l.batch = append(l.batch, task{record: r, claim: asked, fallback: result, since: now, deadline: r.deadline})
}

// admit records a claim of a lane, and returns what a checker is asked.
func (l *ledger) admit(ln *lane, c claims.Claim, now time.Time) (*record, check.Claim) {
	l.out.Claims++
	r := &record{lane: ln, claim: c, since: now, deadline: now.Add(l.MaxHold)}
	ln.entered++
	ln.open = append(ln.open, r)
	asked := check.ClaimOf(&r.claim, ln.before)
	asked.Question = l.job.Question
	ln.before = asked.Text
	return r, asked
}

// send submits the claims that a model has to read.
func (l *ledger) send() {
	if len(l.batch) == 0 {
		return
	}
	n := l.desk.submit(l.batch)
	now := time.Now()
	for i, t := range l.batch {
		if i < n {
			l.pending = append(l.pending, t.record)
		} else {
			l.shed(t.record, now)
		}
	}
	clear(l.batch)
	l.batch = l.batch[:0]
}

// receive processes verdicts that have arrived.
func (l *ledger) receive(list []reply) {
	now := time.Now()
	for _, r := range list {
		switch {
		case r.record.decided:
		case r.shed:
			l.shed(r.record, now)
		default:
			l.decide(r.record, r.result, now)
		}
	}
}

// expire sheds claims whose deadline has passed.
func (l *ledger) expire(now time.Time) {
	for {
		deadline, ok := l.deadline()
		if !ok || deadline.After(now) {
			return
		}
		l.shed(l.pending[0], now)
	}
}

// deadline returns the deadline of the claim that has waited longest; ok is false if none is
// waiting.
func (l *ledger) deadline() (t time.Time, ok bool) {
	n := 0
	for n < len(l.pending) && l.pending[n].decided {
		n++
	}
	if n > 0 {
		rest := copy(l.pending, l.pending[n:])
		clear(l.pending[rest:])
		l.pending = l.pending[:rest]
	}
	if len(l.pending) == 0 {
		return time.Time{}, false
	}
	return l.pending[0].deadline, true
}

// shed decides on a claim without a model.
func (l *ledger) shed(r *record, now time.Time) {
	l.out.Shed++
	l.pool.observer.Action(Shed)
	r.lost = true
	l.decide(r, r.fallback, now)
}

// decide records a verdict and applies it.
func (l *ledger) decide(r *record, result check.Result, now time.Time) {
	r.decided, r.result = true, result
	r.lost = r.lost || result.Err != nil
	r.failed = l.ActOn.Has(result.Verdict)
	l.verdicts[min(int(result.Verdict), len(l.verdicts)-1)]++
	if r.failed {
		l.out.Failed++
	}
	l.pool.observer.Claim(result.Verdict, now.Sub(r.since))
	if l.late {
		return
	}
	if l.Mode != Hold {
		l.follow(r)
	}
	l.pass(r.lane)
}

// pass advances over the claims that have a verdict, as have all before them.
func (l *ledger) pass(ln *lane) {
	for len(ln.open) > 0 && ln.open[0].decided && !l.fallen(ln.choice) {
		first := ln.open[0]
		ln.open[0] = nil
		ln.open = ln.open[1:]
		ln.passed++
		if l.Mode == Hold {
			ln.clear = first.claim.Bytes.Start
			l.follow(first)
		}
	}
}

// fallen reports whether a choice has been ended.
func (l *ledger) fallen(choice int) bool { return l.cutting || slices.Contains(l.falls, choice) }

// fall ends the answer of a choice.
func (l *ledger) fall(choice int) {
	if l.several {
		l.falls = append(l.falls, choice)
		return
	}
	l.cutting = true
}

// follow applies a verdict.
func (l *ledger) follow(r *record) {
	if l.fallen(r.lane.choice) {
		return
	}
	if r.failed && len(l.report) < maxTold {
		l.report = append(l.report, r)
	}
	switch {
	case l.fatal(r):
		l.fall(r.lane.choice)
	case r.half && l.Mode == Hold && l.blocks(r.result.Verdict):
		r.lane.refuse(stretch{r.claim.Bytes, true})
	case !r.failed:
	case l.Mode == Hold:
		r.lane.refuse(stretch{r.claim.Bytes, false})
		l.pool.observer.Action(Replaced)
	case l.Mode == Annotate:
		l.pool.observer.Action(Marked)
		l.act(r)
	default:
	}
}

// fatal reports whether a claim ends its answer.
func (l *ledger) fatal(r *record) bool {
	if r.failed && l.Mode > Observe {
		answer := response.Everything
		if l.several {
			answer = r.lane.choice
		}
		if l.acted == nil {
			l.acted = make(map[int]int, 1)
		}
		l.acted[answer]++
		if l.ends(l.acted[answer]) || l.Mode == Hold && (r.lane.formed() || l.breaks(r)) {
			return true
		}
	}
	return r.lost && l.blocks(r.result.Verdict)
}

// breaks reports whether replacing a claim by the marker would break JSON within the text: the
// claim is a value of its own or more than a part of one string, or the marker contains characters
// that need escapes.
func (l *ledger) breaks(r *record) bool {
	return r.claim.Place == claims.Inside && (r.claim.Kind == claims.Value ||
		strings.Contains(r.claim.Text, `"`) || strings.ContainsAny(l.Marker, `"\`))
}

// unread records a part of the answer that cannot be read and may say anything. It counts as an
// unchecked claim.
func (l *ledger) unread() {
	l.unreads++
	l.out.Claims++
	l.verdicts[check.Unchecked]++
	l.pool.observer.Claim(check.Unchecked, 0)
	l.pool.observer.Action(Unreadable)
	l.cutting = l.cutting || l.blocks(check.Unchecked)
}

// finish ends the ledger. In mode Observe, the last claims of a complete answer are still checked.
func (l *ledger) finish(err error) {
	if err == nil && l.Mode == Observe {
		l.receive(l.desk.leave())
	} else {
		l.desk.close()
	}
	if l.out.Mode = l.Mode; l.job.idle() {
		l.out.Mode = Off
	}
	l.out.Verdict = l.verdict()
	l.out.Pending = l.out.Claims
	for _, n := range l.verdicts {
		l.out.Pending -= n
	}
}

// verdict returns the verdict on the answer so far. An answer that could not be read completely is
// never supported.
func (l *ledger) verdict() check.Verdict {
	var list []check.Verdict
	for v, n := range l.verdicts {
		if n > 0 {
			list = append(list, check.Verdict(v))
		}
	}
	v := check.Overall(list)
	if l.unreads > 0 && v == check.Supported {
		return check.Unchecked
	}
	return v
}

// rejected reports whether the answer so far is unsupported, in a mode that acts on it.
func (l *ledger) rejected() bool { return l.Mode > Observe && l.verdict() == check.Unsupported }
