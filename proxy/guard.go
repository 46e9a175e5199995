package proxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/telemetry"
	"signalbox/proxy/redact"
	"signalbox/rules"
	"signalbox/stream/check"
	"signalbox/stream/guard"
	"signalbox/stream/sse"
)

// Claims judges the claims of answers.
type Claims struct {
	// Checker reads claims. nil stands for one that compares numbers alone.
	Checker *check.Checker
	// Lacking says, in words for /readyz, why no model reads claims; empty when one does, as far as is known. It is called
	// for each answer that is checked, from many goroutines. nil says that no model is there.
	Lacking func() string
	// Wanted: the section or some route turns the guard on, so that /readyz tells what it lacks.
	Wanted bool
}

// watch is the guard of a state. Its workers start with the first answer that is checked.
type watch struct {
	opts    GuardOptions
	policy  guard.Policy // with the mode of the section
	claims  Claims
	metrics *telemetry.Metrics

	once  sync.Once
	guard *guard.Guard

	// verifying holds a value for each text that is verified now. A full one makes the next wait, as long as its client does.
	verifying chan struct{}
}

// newWatch checks the options and makes a guard that has no workers yet.
func newWatch(o GuardOptions, c Claims, m *telemetry.Metrics) (*watch, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if c.Checker == nil {
		numbers, err := check.New(check.Options{})
		if err != nil {
			return nil, err
		}
		c.Checker = numbers
	}
	if c.Lacking == nil {
		c.Lacking = func() string { return "no model judges claims: the guard compares numbers alone" }
	}
	return &watch{opts: o, policy: o.policy(), claims: c, metrics: m, verifying: make(chan struct{}, o.verifiers())}, nil
}

// policy translates options that are valid.
func (o GuardOptions) policy() guard.Policy {
	p := guard.Policy{
		Failures: o.Failures, Marker: o.Marker, MaxHold: time.Duration(o.MaxHold), Reasoning: o.Reasoning,
	}
	p.Mode, _ = guard.ParseMode(o.Mode)
	p.MarkerAs, _ = guard.ParseMarkerAs(o.MarkerAs)
	p.OnUnchecked, _ = guard.ParseOnUnchecked(o.OnUnchecked)
	for _, name := range o.ActOn {
		v, _ := check.ParseVerdict(name)
		p.ActOn |= guard.VerdictsOf(v)
	}
	return p
}

// verifiers is how many texts are verified at once: half of the cores, or of the workers that the section
// names, so that answers on their way find one.
func (o GuardOptions) verifiers() int {
	return max(1, cmp.Or(o.Workers, runtime.GOMAXPROCS(0))/2)
}

// engine starts the workers at the first call. After close it is nil.
func (w *watch) engine() *guard.Guard {
	w.once.Do(func() {
		w.guard = guard.New(w.claims.Checker, guard.Options{Workers: w.opts.Workers, Queue: w.opts.Queue, Observer: observer{w.metrics}})
	})
	return w.guard
}

// close ends the workers, if there are any.
func (w *watch) close() {
	w.once.Do(func() {})
	if w.guard != nil {
		w.guard.Close()
	}
}

// observer counts what the guard finds and does.
type observer struct{ metrics *telemetry.Metrics }

// Claim implements guard.Observer.
func (o observer) Claim(v check.Verdict, took time.Duration) {
	o.metrics.GuardClaim(v.String())
	o.metrics.GuardCheck(took)
}

// Action implements guard.Observer.
func (o observer) Action(a guard.Action) { o.metrics.GuardAction(a.String()) }

// What the header for degraded answers says of the guard.
const (
	lackGrounding = "grounding" // no model judges claims
	lackEvidence  = "evidence"  // some of it was too long to be read
)

// actionSkipped counts an answer of a route with a guard that nothing was there to check against.
const actionSkipped = "skipped"

// Guard says how answers are checked, and by what; without it the guard is off where nobody asks for it,
// and compares numbers alone. Call it before the state is served from. Errors name the option.
func (st *State) Guard(o GuardOptions, c Claims) error {
	w, err := newWatch(o, c, st.watch.metrics)
	if err != nil {
		return err
	}
	st.watch = w
	return nil
}

// Close ends the workers of the guard and waits for them, and for the answers that are being kept. Call it when Idle is
// closed, and not twice.
func (st *State) Close() {
	st.watch.close()
	st.caching.close()
	for _, m := range st.models {
		m.CloseIdle()
	}
}

// mode is how the answer to a decided request is guarded: as the route says, or the section where it says
// nothing, and more strictly when the client asks for it. An answer that is no text is not guarded.
func (d *decision) mode() guard.Mode {
	if d.Action == nil || d.Action.Verb != rules.Use || d.request.API == openai.Other {
		return guard.Off
	}
	mode := d.state.watch.policy.Mode
	if d.Action.Guard != "" {
		mode, _ = guard.ParseMode(d.Action.Guard)
	}
	asked, _ := guard.ParseMode(d.request.Extras.Guard)
	return guard.Stricter(mode, asked)
}

// applies is the mode that holds for the answer. Where a form has to be kept the operator may have
// set a stricter one in place of annotate; never is it a looser one, for the client asks for the
// form.
func (d *decision) applies() guard.Mode {
	mode := d.mode()
	if mode != guard.Annotate || !formed(d.request) {
		return mode
	}
	// report is no mode: it leaves annotate.
	instead, _ := guard.ParseMode(d.state.watch.opts.Structured)
	return guard.Stricter(mode, instead)
}

// policyFor is the policy of a request in a mode. A client that asks for terminate gets what is stricter than
// any mode it may have loosened: the answer ends at its first claim that fails.
func (w *watch) policyFor(req *openai.Request, mode guard.Mode) guard.Policy {
	p := w.policy
	p.Mode, p.Summary = mode, req.Extras.Guard != ""
	if mode == guard.Terminate && req.Extras.Guard == mode.String() {
		p.Failures = 1
	}
	return p
}

// guarding is how one answer is checked. nil stands for not at all.
type guarding struct {
	engine *guard.Guard
	job    guard.Job
}

// summarises reports whether the guard tells its verdicts in the answer.
func (g *guarding) summarises() bool {
	return g != nil && (g.job.Policy.Summary || g.job.Policy.Mode > guard.Observe)
}

// arm prepares the check of the answer to a request. It sets the header and the words for what is missing.
func (o *outcome) arm(h http.Header) error {
	mode := o.applies()
	if mode == guard.Off {
		return nil
	}
	st, req := o.state, o.req
	g := st.watch.opts.gather(req, o.contexts)
	if g.cut {
		o.lacking = append(o.lacking, lackEvidence)
	}
	found, err := g.prepare()
	if err != nil {
		return err
	}
	if found.Empty() {
		o.skip(h)
		return nil
	}
	if st.watch.claims.Lacking() != "" {
		o.lacking = append(o.lacking, lackGrounding)
	}
	h["X-Signalbox-Guard"] = []string{mode.String()}
	o.guarding = &guarding{
		engine: st.watch.engine(),
		job:    guard.Job{Evidence: found, Question: question(req), Policy: st.watch.policyFor(req, mode), MayAnnotate: !formed(req)},
	}
	if o.contexts.named() {
		o.guarding.job.Origin = g.origin
	}
	return nil
}

// skip says that the answer goes out unchecked.
func (o *outcome) skip(h http.Header) {
	o.guarding = nil
	h["X-Signalbox-Guard"] = []string{guardUnknown}
	o.state.watch.metrics.GuardAction(actionSkipped)
}

// misses is errUncheckable of an answer that must not pass, since it cannot be checked; nil when it can, or may.
func (o *outcome) misses(u *upstream, h http.Header) error {
	if !u.good() || u.plain() && (u.events || isJSON(u.header)) {
		return nil
	}
	return o.forgo(h)
}

// forgo gives up the check of an answer; the error is errUncheckable when the answer must not pass then.
func (o *outcome) forgo(h http.Header) error {
	if o.guarding == nil {
		return nil
	}
	if p := &o.guarding.job.Policy; p.OnUnchecked == guard.Block && p.Mode > guard.Observe {
		return errUncheckable
	}
	o.skip(h)
	return nil
}

// check checks a whole answer. Without a guard the body stays as it is; so does one that cannot be read,
// unless what is unchecked must not pass.
func (o *outcome) check(ctx context.Context, body []byte, h http.Header) (out []byte, err error) {
	g := o.guarding
	if g == nil {
		return body, nil
	}
	out, o.guarded, err = g.engine.Body(ctx, body, g.job)
	switch {
	case ctx.Err() != nil:
		return nil, errClientGone
	case errors.Is(err, guard.ErrOpaque):
		return nil, errUncheckable
	case err != nil:
		return nil, err
	case o.guarded.State == sse.Failed:
		o.skip(h)
	}
	return out, nil
}

// copyChecked passes a stream on through the guard. Values that were hidden from the model are put back
// before the check: the evidence has them as they are, and places in the text are those that the client
// sees.
func (u *upstream) copyChecked(ctx context.Context, w *reply, o *outcome, t *meter) error {
	if err := w.send(nil, time.Now()); err != nil { // the first text may have to wait for its verdict
		return clientError(err)
	}
	src := &checkedSource{u: u, t: t, restore: o.vault.Stream()}
	var (
		err error
		cut *cutError
	)
	var dst guard.Sink = checkedSink{w}
	if s := o.saver(); s != nil {
		dst = savingSink{ctx: ctx, w: w, s: s}
	}
	o.guarded, err = o.guarding.engine.Copy(ctx, src, dst, o.guarding.job)
	u.told = o.guarded.State == sse.Failed
	switch {
	case err == nil && !o.guarded.Cut:
		u.drain(w)
		return nil
	case err == nil, errors.Is(err, errClientGone), errors.Is(err, errClientStalled), errors.As(err, &cut):
		return err
	case errors.Is(err, guard.ErrNoEnd):
		err = errNoEnd
	}
	return &cutError{err}
}

// checkedSource reads an upstream's stream in whole events, and counts what is in them. Hidden values are
// put back.
type checkedSource struct {
	u       *upstream
	t       *meter
	restore *redact.Stream
	ended   bool // what was held back behind the last event has been read
}

// Read implements guard.Source.
func (s *checkedSource) Read() ([]byte, error) {
	u, f := s.u, s.u.flow
	for {
		if out := u.take(); len(out) > 0 {
			u.watch.expect(0) // the time that the client takes is not the upstream's
			u.fresh = true
			s.t.chunk(f, out, time.Now())
			if out = s.restore.Feed(out); len(out) > 0 {
				return out, nil
			}
		}
		switch {
		case f.done:
			return s.rest()
		case f.ended:
			return nil, &cutError{f.err}
		}
		u.advance(u.model.gap)
	}
}

// rest returns what was held back, and then the end.
func (s *checkedSource) rest() ([]byte, error) {
	if rest := s.restore.Rest(); !s.ended && len(rest) > 0 {
		s.ended = true
		return rest, nil
	}
	return nil, io.EOF
}

// Cancel implements guard.Source.
func (s *checkedSource) Cancel() { s.u.watch.cancel() }

// checkedSink sends what the guard lets go.
type checkedSink struct{ w *reply }

// Write implements guard.Sink.
func (s checkedSink) Write(b []byte) error {
	if err := s.w.send(b, time.Now()); err != nil {
		return clientError(err)
	}
	return nil
}
