package guardrail

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
	"signalbox/rules"
	"signalbox/stream/check"
	"signalbox/stream/guard"
	"signalbox/stream/sse"
)

// Claims is what judges the claims of responses.
type Claims struct {
	// Checker reads claims. With nil, only numbers are compared.
	Checker *check.Checker
	// Lacking explains, for /readyz, why no model reads claims; empty when one does, as far as is
	// known. It is called for each checked response, from many goroutines. nil means that there is
	// no model.
	Lacking func() string
	// Wanted means that the section or some route turns the guard on, so that /readyz reports what
	// it lacks.
	Wanted bool
}

// Guard is the guard of a state. Its workers start with the first response that is checked.
type Guard struct {
	opts    Options
	Policy  guard.Policy // with the mode of the section
	Claims  Claims
	metrics *telemetry.Metrics

	once  sync.Once
	guard *guard.Guard

	// verifying holds a value for each text being verified. When it is full, the next one waits, as
	// long as its client does.
	verifying chan struct{}
}

// New validates the options and returns a guard without workers.
func New(o Options, c Claims, m *telemetry.Metrics) (*Guard, error) {
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
		c.Lacking = func() string { return "no model judges claims: the guard compares only numbers" }
	}
	return &Guard{opts: o, Policy: o.policy(), Claims: c, metrics: m, verifying: make(chan struct{}, o.verifiers())}, nil
}

// policy converts valid options.
func (o Options) policy() guard.Policy {
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

// verifiers returns the number of texts verified at once: half of the cores, or of the configured
// workers, so that some remain for responses.
func (o Options) verifiers() int {
	return max(1, cmp.Or(o.Workers, runtime.GOMAXPROCS(0))/2)
}

// engine starts the workers on the first call. After Close it returns nil.
func (w *Guard) engine() *guard.Guard {
	w.once.Do(func() {
		w.guard = guard.New(w.Claims.Checker, guard.Options{Workers: w.opts.Workers, Queue: w.opts.Queue, Observer: observer{w.metrics}})
	})
	return w.guard
}

// Close stops the workers, if there are any.
func (w *Guard) Close() {
	w.once.Do(func() {})
	if w.guard != nil {
		w.guard.Close()
	}
}

// Lacking explains, for /readyz, why no model judges claims; empty when one does.
func (w *Guard) Lacking() string { return w.Claims.Lacking() }

// Verifying returns the number of texts being verified.
func (w *Guard) Verifying() int { return len(w.verifying) }

// observer counts findings and actions of the guard.
type observer struct{ metrics *telemetry.Metrics }

// Claim implements guard.Observer.
func (o observer) Claim(v check.Verdict, took time.Duration) {
	o.metrics.GuardClaim(v.String())
	o.metrics.GuardCheck(took)
}

// Action implements guard.Observer.
func (o observer) Action(a guard.Action) { o.metrics.GuardAction(a.String()) }

// The values for the guard in the header for degraded responses.
const (
	LackGrounding = "grounding" // no model judges claims
	lackEvidence  = "evidence"  // some evidence was too long to be read
)

// actionSkipped counts a response of a route with a guard for which there was no evidence.
const actionSkipped = "skipped"

// Ask is a decided request whose response may have to be checked.
type Ask struct {
	Action     *rules.Action // nil if there is none
	Request    *openai.Request
	Contexts   *resolve.Contexts // that the request names; nil if it names none
	Classifier any               // used by Outputs if it is a Moderator
}

// text reports whether the response is text written by a model.
func (a *Ask) text() bool {
	return a.Action != nil && a.Action.Verb == rules.Use && a.Request.API != openai.Other
}

// mode returns the mode of the route, or that of the section if the route has none, or a stricter
// one that the client asks for.
func (w *Guard) mode(a *Ask) guard.Mode {
	if !a.text() {
		return guard.Off
	}
	mode := w.Policy.Mode
	if a.Action.Guard != "" {
		mode, _ = guard.ParseMode(a.Action.Guard)
	}
	asked, _ := guard.ParseMode(a.Request.Extras.Guard)
	return guard.Stricter(mode, asked)
}

// applies returns the mode that applies to the response. For text with a form, the operator may
// have configured a stricter mode instead of annotate.
func (w *Guard) applies(a *Ask) guard.Mode {
	mode := w.mode(a)
	if mode != guard.Annotate || !formed(a.Request) {
		return mode
	}
	return guard.Stricter(mode, w.instead())
}

// instead returns the mode that replaces annotate for text with a form.
func (w *Guard) instead() guard.Mode {
	mode, _ := guard.ParseMode(w.opts.Structured) // report is not a mode: annotate stays
	return mode
}

// moderates returns the strictest action of the classifiers that read the response; off if there
// are none.
func (w *Guard) moderates(a *Ask) guard.Mode {
	if !a.text() {
		return guard.Off
	}
	return w.outputMode()
}

// policyFor returns the policy of a request in a mode. For a client that asks for terminate,
// loosened settings do not apply: the response ends at the first failed claim.
func (w *Guard) policyFor(req *openai.Request, mode guard.Mode) guard.Policy {
	p := w.Policy
	p.Mode, p.Summary = mode, req.Extras.Guard != ""
	if mode == guard.Terminate && req.Extras.Guard == mode.String() {
		p.Failures = 1
	}
	return p
}

// Plan is how one response is checked.
type Plan struct {
	Header  string   // value of X-Signalbox-Guard; empty if the guard is off for the request
	Lacking []string // values for the header for degraded responses
	Check   *Check   // nil if the response is not checked
}

// Plan prepares the check of a response: it collects and indexes the evidence.
func (w *Guard) Plan(ctx context.Context, a *Ask) (p Plan, err error) {
	mode, moderated := w.applies(a), w.moderates(a)
	if mode == guard.Off && moderated == guard.Off {
		return p, nil
	}
	job := guard.Job{Question: question(a.Request), MayAnnotate: !formed(a.Request)}
	if mode != guard.Off {
		if err := w.ground(ctx, a, &job, &p); err != nil {
			return p, err
		}
		if job.Evidence.Empty() {
			mode = guard.Off
		}
	}
	strictest := guard.Stricter(mode, moderated)
	switch {
	case strictest == guard.Off:
		p.Header = w.skip()
		return p, nil
	case moderated != guard.Off:
		job.Checker = w.moderation(a.Classifier, mode, strictest)
	}
	p.Header = strictest.String()
	job.Policy = w.policyFor(a.Request, strictest)
	if job.Formed = strictest; mode == guard.Annotate {
		job.Formed = guard.Stricter(strictest, w.instead())
	}
	p.Check = &Check{Job: job, Guard: w}
	return p, nil
}

// ground collects the evidence for a response.
func (w *Guard) ground(ctx context.Context, a *Ask, job *guard.Job, p *Plan) (err error) {
	g := w.opts.gather(a.Request, a.Contexts)
	if g.cut {
		p.Lacking = append(p.Lacking, lackEvidence)
	}
	if job.Evidence, err = g.prepare(ctx); err != nil {
		return err
	}
	if !job.Evidence.Empty() && w.Claims.Lacking() != "" {
		p.Lacking = append(p.Lacking, LackGrounding)
	}
	if a.Contexts.Named() {
		job.Origin = g.origin
	}
	return nil
}

// Evidence counts what the response to a request would be checked against; nil if the guard is off
// or has nothing. mode is the mode that applies.
func (w *Guard) Evidence(a *Ask) (mode string, found *Evidence) {
	m := w.applies(a)
	if m == guard.Off {
		return m.String(), nil
	}
	return m.String(), w.opts.gather(a.Request, a.Contexts).counts()
}

// moderation returns the checker that lets classifiers read a response. facts is the mode for its
// claims; strictest is the mode that applies.
func (w *Guard) moderation(classifier any, facts, strictest guard.Mode) *moderation {
	m := &moderation{
		outputs: w.opts.Outputs, acting: facts == strictest || facts >= guard.Terminate,
	}
	if m.asked, _ = classifier.(Moderator); m.asked == nil {
		m.asked = nobody{}
	}
	if facts != guard.Off {
		m.facts = w.Claims.Checker
	}
	return m
}

// nobody is the Moderator for a classifier that cannot moderate.
type nobody struct{}

func (nobody) Moderate(_ context.Context, k signal.Kind, _ signal.Mask, _ signal.Exchange, set *signal.Set) {
	set.Fail(signal.MaskOf(k), signal.ReasonNoModel)
}

// skip counts an unchecked response and returns the value of its header.
func (w *Guard) skip() string {
	w.metrics.GuardAction(actionSkipped)
	return guardUnknown
}

// Check is the check of one response. A nil Check checks nothing.
type Check struct {
	Job   guard.Job
	Guard *Guard
}

// Summarises reports whether the guard writes its verdicts into the response.
func (c *Check) Summarises() bool {
	return c != nil && (c.Job.Policy.Summary || c.Job.Policy.Mode > guard.Observe)
}

// Forgo gives up the check of a response that cannot be read and returns the value of its header.
// The error is ErrUncheckable if an unchecked response must not pass.
func (c *Check) Forgo() (header string, err error) {
	if p := &c.Job.Policy; p.OnUnchecked == guard.Block && p.Mode > guard.Observe {
		return "", fault.ErrUncheckable
	}
	return c.Skip(), nil
}

// Skip gives up the check and returns the value of the header.
func (c *Check) Skip() (header string) { return c.Guard.skip() }

// Body checks a response in one piece. An unreadable body is returned unchanged with the outcome
// sse.Failed, unless unchecked responses must not pass.
func (c *Check) Body(ctx context.Context, body []byte) (out []byte, found guard.Outcome, err error) {
	out, found, err = c.Guard.engine().Body(ctx, body, c.Job)
	switch {
	case ctx.Err() != nil:
		return nil, found, fault.ErrClientGone
	case errors.Is(err, guard.ErrOpaque):
		return nil, found, fault.ErrUncheckable
	}
	return out, found, err
}

// Observe checks a body without changing it. failed reports whether a claim failed. told reports
// whether the result is reliable: all claims were read and got a verdict in time, even if that
// verdict is that nothing is known.
func (c *Check) Observe(ctx context.Context, body []byte) (failed, told bool) {
	job := c.Job
	job.Policy.Mode, job.Policy.Summary = guard.Observe, false
	_, found, err := c.Guard.engine().Body(ctx, body, job)
	if err != nil {
		return false, false
	}
	failed = found.Failed > 0
	whole := found.State != sse.Failed && found.Shed == 0 && found.Pending == 0 && found.Mode != guard.Off
	return failed, failed || whole
}

// Copy checks a stream while copying it from src to dst.
func (c *Check) Copy(ctx context.Context, src guard.Source, dst guard.Sink) (guard.Outcome, error) {
	return c.Guard.engine().Copy(ctx, src, dst, c.Job)
}
