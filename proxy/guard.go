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
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/fault"
	"signalbox/proxy/redact"
	"signalbox/rules"
	"signalbox/stream/check"
	"signalbox/stream/guard"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// Claims judges the claims of answers.
type Claims struct {
	// Checker reads claims. nil stands for one that compares numbers alone.
	Checker *check.Checker
	// Lacking says, in words for /readyz, why no model reads claims; empty when one does, as far as
	// is known. It is called for each answer that is checked, from many goroutines. nil says that
	// no model is there.
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

	// verifying holds a value for each text that is verified now. A full one makes the next wait,
	// as long as its client does.
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

// verifiers is how many texts are verified at once: half of the cores, or of the workers that the
// section names, so that answers on their way find one.
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

// Guard says how answers are checked, and by what; without it the guard is off where nobody asks
// for it, and compares numbers alone. Call it before the state is served from. Errors name the
// option.
func (st *State) Guard(o GuardOptions, c Claims) error {
	w, err := newWatch(o, c, st.watch.metrics)
	if err != nil {
		return err
	}
	st.watch = w
	return nil
}

// Close ends the workers of the guard and waits for them, and for the answers that are being kept.
// Call it when Idle is closed, and not twice.
func (st *State) Close() {
	st.watch.close()
	st.copies.close()
	st.caching.close()
	for _, m := range st.models {
		m.CloseIdle()
	}
}

// mode is how the answer to a decided request is guarded: as the route says, or the section where
// it says nothing, and more strictly when the client asks for it. An answer that is no text is not
// guarded.
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

// policyFor is the policy of a request in a mode. A client that asks for terminate gets what is
// stricter than any mode it may have loosened: the answer ends at its first claim that fails.
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

// arm prepares the check of the answer to a request. It sets the header and the words for what is
// missing.
func (o *exchange) arm(ctx context.Context, h http.Header) error {
	mode, moderated := o.applies(), o.moderates()
	if mode == guard.Off && moderated == guard.Off {
		return nil
	}
	st, req := o.state, o.req
	job := guard.Job{Question: question(req), MayAnnotate: !formed(req)}
	if mode != guard.Off {
		if err := o.ground(ctx, &job); err != nil {
			return err
		}
		if job.Evidence.Empty() {
			mode = guard.Off
		}
	}
	strictest := guard.Stricter(mode, moderated)
	switch {
	case strictest == guard.Off:
		o.skip(h)
		return nil
	case moderated != guard.Off:
		job.Checker = st.moderation(mode, strictest)
	}
	h["X-Signalbox-Guard"] = []string{strictest.String()}
	job.Policy = st.watch.policyFor(req, strictest)
	o.guarding = &guarding{engine: st.watch.engine(), job: job}
	return nil
}

// ground finds what an answer is checked against.
func (o *exchange) ground(ctx context.Context, job *guard.Job) (err error) {
	g := o.state.watch.opts.gather(o.req, o.contexts)
	if g.cut {
		o.lacking = append(o.lacking, lackEvidence)
	}
	if job.Evidence, err = g.prepare(ctx); err != nil {
		return err
	}
	if !job.Evidence.Empty() && o.state.watch.claims.Lacking() != "" {
		o.lacking = append(o.lacking, lackGrounding)
	}
	if o.contexts.named() {
		job.Origin = g.origin
	}
	return nil
}

// moderates is the strictest action of classifiers that read the answer to a decided request; off
// where none does. An answer that is no text is not read.
func (d *decision) moderates() guard.Mode {
	if d.Action == nil || d.Action.Verb != rules.Use || d.request.API == openai.Other {
		return guard.Off
	}
	return d.state.watch.outputMode()
}

// moderation makes what lets classifiers read an answer whose facts are checked in a mode;
// strictest is the mode that applies.
func (st *State) moderation(facts, strictest guard.Mode) *moderation {
	m := &moderation{outputs: st.watch.opts.Outputs, acting: facts == strictest || facts >= guard.Terminate}
	if m.asked, _ = st.classifier.(Moderator); m.asked == nil {
		m.asked = nobody{}
	}
	if facts != guard.Off {
		m.facts = st.watch.claims.Checker
	}
	return m
}

// nobody is the Moderator of a Classifier that is none.
type nobody struct{}

func (nobody) Moderate(context.Context, signal.Kind, signal.Exchange) signal.Value {
	return signal.Value{State: signal.Unknown, Reason: signal.ReasonNoModel}
}

// skip says that the answer goes out unchecked.
func (o *exchange) skip(h http.Header) {
	o.guarding = nil
	h["X-Signalbox-Guard"] = []string{guardUnknown}
	o.state.watch.metrics.GuardAction(actionSkipped)
}

// misses is errUncheckable of an answer that must not pass, since it cannot be checked; nil when it
// can, or may.
func (o *exchange) misses(u *upstream, h http.Header) error {
	if !u.good() || u.plain() && (u.events || isJSON(u.header)) {
		return nil
	}
	return o.forgo(h)
}

// forgo gives up the check of an answer; the error is errUncheckable when the answer must not pass
// then.
func (o *exchange) forgo(h http.Header) error {
	if o.guarding == nil {
		return nil
	}
	if p := &o.guarding.job.Policy; p.OnUnchecked == guard.Block && p.Mode > guard.Observe {
		return fault.ErrUncheckable
	}
	o.skip(h)
	return nil
}

// check checks a whole answer. Without a guard the body stays as it is; so does one that cannot be
// read, unless what is unchecked must not pass.
func (o *exchange) check(ctx context.Context, body []byte, h http.Header) (out []byte, err error) {
	g := o.guarding
	if g == nil {
		return body, nil
	}
	out, o.guarded, err = g.engine.Body(ctx, body, g.job)
	switch {
	case ctx.Err() != nil:
		return nil, fault.ErrClientGone
	case errors.Is(err, guard.ErrOpaque):
		return nil, fault.ErrUncheckable
	case err != nil:
		return nil, err
	case o.guarded.State == sse.Failed:
		o.skip(h)
	}
	return out, nil
}

// copyChecked passes a stream on through the guard. Values that were hidden from the model are put
// back before the check: the evidence has them as they are, and places in the text are those that
// the client sees.
func (u *upstream) copyChecked(ctx context.Context, o *exchange, t *meter, client *clientSink, to guard.Sink) error {
	if err := client.w.send(nil, time.Now()); err != nil { // the first text may have to wait for its verdict
		return clientError(err)
	}
	var (
		err error
		cut *fault.InterruptedError
	)
	o.guarded, err = o.guarding.engine.Copy(ctx, &checkedSource{u: u, t: t, vault: o.vault}, to, o.guarding.job)
	u.told = o.guarded.State == sse.Failed
	switch {
	case err == nil && !o.guarded.Cut:
		u.drain(t, client)
		return nil
	case err == nil, errors.Is(err, fault.ErrClientGone), errors.Is(err, fault.ErrClientStalled), errors.As(err, &cut):
		return err
	}
	return &fault.InterruptedError{Err: err}
}

// checkedSource reads an upstream's stream and counts what is in it. Hidden values are put back.
type checkedSource struct {
	u     *upstream
	t     *meter
	vault *redact.Vault
	to    response.Sink // by way of what puts them back; nil before the first is read
}

// Read implements guard.Source. The first part is there already.
func (s *checkedSource) Read() {
	if s.to != nil {
		s.u.advance(s.u.model.gap)
	}
}

// Deliver implements guard.Source.
func (s *checkedSource) Deliver(to response.Sink) error {
	if s.to == nil {
		s.to = s.vault.Stream(to)
	}
	if s.u.deliver(s.to, s.t) {
		s.u.watch.expect(0) // the time that the client takes is not the upstream's
		s.u.fresh = true
		s.u.flow.client.now = time.Time{} // what came may be held
	}
	ended, err := s.u.flow.Ended()
	switch {
	case s.u.flow.Done():
		return io.EOF
	case ended:
		return &fault.InterruptedError{Err: err}
	}
	return nil
}

// Cancel implements guard.Source.
func (s *checkedSource) Cancel() { s.u.watch.cancel() }
