package decide

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/auth"
	"signalbox/proxy/choose"
	"signalbox/proxy/fault"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/headers"
	"signalbox/proxy/recall"
	"signalbox/proxy/resolve"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

// Decide is Make, with an error when the client is to be refused. A decision to block is returned
// together with its error.
func (b *Base) Decide(
	ctx context.Context, who auth.Principal, req *openai.Request, h http.Header, r *resolve.Contexts, m *recall.Lookup,
) (*Decision, error) {
	d, err := b.Make(ctx, who, req, h, r, m)
	if err == nil {
		err = d.unread(req, b.Signals.Patience)
	}
	switch {
	case err != nil:
		return d, err
	case d.Outcome == rules.Unavailable:
		return d, d.unavailable()
	case d.Action.Verb == rules.Block && d.Outcome == rules.FailClosed && d.TimedOut():
		return d, d.late(req)
	case d.Action.Verb == rules.Block && d.Outcome == rules.FailClosed:
		return d, d.unavailable() // no violation was found
	case d.Action.Verb == rules.Block:
		return d, &fault.BlockedError{Message: d.Action.Text, Param: d.refused(req)}
	}
	return d, nil
}

// Make evaluates the rules and computes only the signals that they need. It returns a nil Decision
// when the request does not fit the configuration, such as one that names an unknown model, and an
// unfinished Decision with ErrClientGone.
func (b *Base) Make(
	ctx context.Context, who auth.Principal, req *openai.Request, h http.Header, r *resolve.Contexts, m *recall.Lookup,
) (*Decision, error) {
	d, err := b.Start(who, req, h, r)
	if err != nil {
		return nil, err
	}
	d.Lookup, d.Talk = m, b.talk(ctx, d, req, h)
	if err := b.findKept(ctx, d, req); err != nil {
		return nil, err
	}
	if err := b.Conclude(ctx, d, req); err != nil {
		return d, err
	}
	b.assign(d, req)
	return d, nil
}

// Start creates a Decision from what is known without reading the text, and selects the program.
func (b *Base) Start(who auth.Principal, req *openai.Request, h http.Header, r *resolve.Contexts) (*Decision, error) {
	if err := guardrail.CheckFacts(req.Extras.Facts, "signalbox.facts"); err != nil {
		return nil, err
	}
	name, configured := b.modelNamed(req.Model)
	d := &Decision{Set: &signal.Set{Facts: b.Facts(who, req, h, r)}, Base: b, Who: who, Request: req, Program: b.Program, Contexts: r}
	if r != nil {
		d.Lacking = slices.Clone(r.Left)
	}
	switch {
	case configured && !who.May(name):
		// as if it did not exist: the names of models are information, too
		return nil, b.unknownModel(who, req.Model)
	case configured:
		d.Named = name
		if !b.RoutesNamed || req.API == openai.Other {
			d.Program = b.Program.Named()
		}
	case !b.isAuto(name):
		return nil, b.unknownModel(who, req.Model)
	case req.API == openai.Other:
		return nil, errNotRouted(req.Model)
	}
	return d, nil
}

// modelNamed finds the configured model that a client means. Some clients append the tag :latest,
// as other servers do.
func (b *Base) modelNamed(asked string) (name string, configured bool) {
	if _, ok := b.ByName[asked]; ok {
		return asked, true
	}
	if base, ok := strings.CutSuffix(asked, ":latest"); ok {
		_, configured = b.ByName[base]
		return base, configured
	}
	return asked, false
}

// unknownModel returns the error for a name that the caller may not ask for. It lists the names
// that the caller may ask for.
func (b *Base) unknownModel(who auth.Principal, name string) error {
	known := slices.Clone(b.AutoModels)
	for _, m := range slices.Sorted(maps.Keys(b.ByName)) {
		if who.May(m) {
			known = append(known, m)
		}
	}
	return &fault.UnknownModelError{Model: name, Known: known}
}

func (b *Base) isAuto(name string) bool {
	return slices.Contains(b.AutoModels, name)
}

// Facts returns the facts that rules may read about a request without reading its text.
func (b *Base) Facts(who auth.Principal, req *openai.Request, h http.Header, r *resolve.Contexts) signal.Facts {
	f := signal.Facts{Role: who.Role, Tenant: who.Tenant, Model: req.Model, Session: resolve.Session(req, h), Tokens: req.EstimateTokens()}
	f.Turns, f.Results, f.ToolLoop = req.Shape()
	if len(b.ReadHeaders) > 0 {
		f.Header = func(name string) []string {
			name = http.CanonicalHeaderKey(name)
			if strings.HasPrefix(name, headers.OwnPrefix) {
				return nil // a client must not set headers that are the proxy's own responses
			}
			return h[name]
		}
	}
	if req.HasTools {
		f.Features |= signal.HasTools
	}
	if req.HasImages {
		f.Features |= signal.HasImages
	}
	if r.Named() {
		f.Features |= signal.HasContext
		f.Context = r.Tokens
		f.Tokens += r.Tokens
	}
	if len(req.Extras.Facts) > 0 || r.HasFacts() {
		f.Features |= signal.HasFacts
	}
	return f
}

// extract computes the signals in need. It cancels those that no longer matter when signals that
// arrive first settle the decision.
func (d *Decision) extract(ctx context.Context, need signal.Mask, how signals.Extent) {
	d.Dropped &^= need
	if d.Request != nil && d.Request.OpaquePrompt {
		d.Set.Fail(need, signal.ReasonNoText) // an unread text is not known to be harmless
		return
	}
	from := d.Lookup.Sources(need, d.Program.Neural(need), d.Set)
	from |= d.alongside(from)
	open := from
	still := func() signal.Mask {
		useful := d.useful(need)
		useful = d.Lookup.Sources(useful, d.Program.Neural(useful), d.Set)
		open &= useful | d.alongside(useful)
		return open
	}
	if from != 0 {
		reading, done := d.Base.Signals.Remaining(ctx, d.Classified)
		d.Base.Signals.Read(reading, d.Contexts, &d.Text, from, d.Set, how, still)
		done()
	}
	d.Set.Fail(from&open, signal.ReasonInternal) // so that a missing kind is not requested again
	if d.Contexts.Named() {
		d.Base.Signals.AddStored(ctx, d.Contexts, from, d.Set)
	}
	if need.Has(signal.Cache) && from&^open&signal.MaskOf(signal.Embedding)&^d.Set.Have() == 0 {
		d.lookUp(ctx)
	}
	d.Dropped |= need &^ (open | d.Set.Have())
}

// alongside returns the signals that are computed together with need. This is the embedding, which
// is used to look up outcomes and comes from the same pass.
func (d *Decision) alongside(need signal.Mask) signal.Mask {
	if d.Base == nil || d.Base.Outcomes == nil || d.Program.Neural(need) == 0 {
		return 0
	}
	return signal.MaskOf(signal.Embedding) & d.Base.Signals.Signals() &^ d.Set.Have()
}

// useful returns the signals in need that can still matter, given the ones that are known. A
// settled decision needs none, with two exceptions. A route that requires the whole text to be read
// may no longer match after that. And a refusal because of a failed signal may still become one
// because of what another signal of the same route finds, which tells the client not to retry.
func (d *Decision) useful(need signal.Mask) signal.Mask {
	final, next := d.Program.Step(d.Set)
	if next != 0 {
		return next
	}
	if Unread(&final, d.Set) != 0 {
		return need
	}
	if final.Outcome == rules.FailClosed {
		for _, r := range d.Program.Routes() {
			if r.Name == final.Route {
				return r.Kinds
			}
		}
	}
	return 0
}

// Conclude makes the decision, and revises it when the conversation keeps its subject.
func (b *Base) Conclude(ctx context.Context, d *Decision, req *openai.Request) error {
	begun := time.Now()
	if err := b.stepRules(ctx, d, req); err != nil {
		return err
	}
	if err := b.keepSubject(ctx, d, req); err != nil {
		return err
	}
	if d.Named != "" && d.Outcome == rules.Defaulted {
		// No route matched: the client gets the model that it named, not the default one.
		d.Route, d.Action = rules.RouteNamed, &rules.Action{}
	}
	d.expect(ctx, req)
	d.Decided = time.Now()
	d.Elapsed = d.Decided.Sub(begun)
	return nil
}

// stepRules evaluates the rules until the decision is final. A route with `windows: all` or
// `redact: true` is taken only after the whole text was read. When only a part was read so far, the
// rest is read and the rules are evaluated again.
func (b *Base) stepRules(ctx context.Context, d *Decision, req *openai.Request) error {
	var whole signal.Mask // signals computed from the whole text, of which no more can be had
	for {
		var seen signal.Set // values from a selection of windows
		how := signals.Selection
		final, need := d.Program.Step(d.Set)
		if need == 0 {
			if need = Unread(&final, d.Set) &^ whole; need == 0 || !b.Signals.ReadsAll() {
				d.Decision = final
				return nil
			}
			how, seen = signals.Everything, *d.Set
			d.Set.Drop(need)
		}
		if d.Text.Segments == nil {
			d.Text = req.Text()
			d.Talk.addEarlierTurns(&d.Text)
		}
		asked := time.Now()
		d.extract(ctx, need, how)
		if how == signals.Everything {
			whole |= need & d.Set.Have()
		}
		d.fallBack(need, &seen)
		d.Talk.restoreTopics(d.Set)
		d.Classified += time.Since(asked)
		if ctx.Err() != nil {
			return fault.ErrClientGone
		}
	}
}

// fallBack restores the values from a selection of windows for signals that could not be read from
// the whole text. Such a value proves what it found and nothing else. Without it, personal data or
// an attack that the selection shows would count in a short text but not in one that is too long to
// be read in time.
func (d *Decision) fallBack(kinds signal.Mask, seen *signal.Set) {
	for _, k := range (kinds & seen.Have()).Kinds() {
		now, v := d.Set.Value(k), *seen.Value(k)
		if now.State != signal.Unknown {
			continue
		}
		v.Partial, v.Reason, v.Verdicts = true, now.Reason, slices.Clone(v.Verdicts)
		for i := range v.Verdicts {
			v.Verdicts[i].Partial = true
		}
		d.Set.Put(k, v)
	}
}

// Unread returns the signals that were read only from a selection although the route requires the
// whole text. A route that redacts requires all personal data, which must be found before it can be
// replaced.
func Unread(final *rules.Decision, set *signal.Set) signal.Mask {
	if final.Outcome == rules.Unavailable {
		return 0
	}
	var wanted, m signal.Mask
	if final.Action.Windows == "all" {
		wanted = signal.MaskOf(signal.Jailbreak, signal.Injection, signal.PII)
	}
	if final.Action.Redact != nil {
		wanted |= signal.MaskOf(signal.PII)
	}
	for _, k := range wanted.Kinds() {
		v := set.Value(k)
		failed := v.Partial && v.Reason != signal.ReasonNone // the whole text was requested before
		if v.State == signal.Known && isSelection(v) && !failed {
			m |= signal.MaskOf(k)
		}
	}
	return m
}

// isSelection reports whether only some of the windows of a text, or of one of its origins, were
// read.
func isSelection(v *signal.Value) bool {
	return v.Read < v.Windows || slices.ContainsFunc(v.Verdicts,
		func(o signal.Verdict) bool { return o.Read < o.Windows })
}

// TimedOut reports whether a signal is missing only because time ran out. The request is refused in
// this case too, but not as a policy violation: the client may retry.
func (d *Decision) TimedOut() bool {
	for _, k := range d.Failed.Kinds() {
		if why := d.Set.Value(k).Reason; why == signal.ReasonTimeout || why == signal.ReasonOverload {
			return true
		}
	}
	return false
}

// refused returns the place in the body of the message with the highest score for the attack that
// the request is refused for, such as messages[7] or input[3]. It is empty when the reason is
// another one, or when no message contains the text.
func (d *Decision) refused(req *openai.Request) string {
	k, origins, ok := d.Program.Cause(&d.Decision, d.Set)
	if !ok {
		return ""
	}
	if origins == 0 {
		origins = d.Base.Signals.Identity.OriginsOf(k)
	}
	var worst *signal.Verdict
	for i := range d.Set.Value(k).Verdicts {
		v := &d.Set.Value(k).Verdicts[i]
		if counts := v.Origin == signal.OriginAny || origins.Has(v.Origin); counts && v.End > v.Start &&
			(worst == nil || v.Score > worst.Score) {
			worst = v
		}
	}
	if worst == nil {
		return ""
	}
	return req.SegmentField(worst.Segment, openai.Span{Start: worst.Start, End: worst.End})
}

// unread returns the error of a request that was refused because its text is too long to be
// searched for personal data within patience; nil for other requests.
func (d *Decision) unread(req *openai.Request, patience time.Duration) error {
	v := d.Set.Value(signal.PII)
	refused := d.Outcome == rules.Unavailable || d.Outcome == rules.FailClosed && d.Action.Verb == rules.Block
	if !refused || !d.Failed.Has(signal.PII) || v.Reason != signal.ReasonTimeout {
		return nil
	}
	text := req.Text()
	if err := fault.Late(&text, patience, d.signalName(signal.PII)); !errors.Is(err, fault.ErrOverloaded) {
		return err
	}
	return nil
}

// late returns the error of a request that was refused because signals were not ready in time.
func (d *Decision) late(req *openai.Request) error {
	e := &fault.LateError{}
	for _, k := range d.Failed.Kinds() {
		switch d.Set.Value(k).Reason { //nolint:exhaustive // the other reasons are not about time
		case signal.ReasonTimeout:
			text := req.Text()
			e.Bytes = fault.Length(&text)
		case signal.ReasonOverload:
		default:
			continue
		}
		e.Signals = append(e.Signals, d.signalName(k))
	}
	return e
}

// unavailable returns the error of a request that must not pass while signals are unknown.
func (d *Decision) unavailable() error {
	if d.Request != nil && d.Request.OpaquePrompt {
		return fault.Unreadable(d.Request.PromptField())
	}
	e := &fault.SignalError{}
	for _, k := range d.Failed.Kinds() {
		e.Signals = append(e.Signals, d.signalName(k))
		switch v := d.Set.Value(k); {
		case v.Reason == signal.ReasonNoModel && !d.able(k):
			e.Reason, e.Away = v.Reason, false // an operator can fix this
		case e.Reason == signal.ReasonNone:
			e.Reason, e.Away = v.Reason, v.Reason == signal.ReasonNoModel
		}
	}
	return e
}

// able reports whether a model is configured for a signal, whether or not it responds.
func (d *Decision) able(k signal.Kind) bool {
	return d.Base != nil && d.Base.Signals.Classifier != nil && d.Base.Signals.Signals().Has(k)
}

// signalName returns the name of a signal in the configuration.
func (d *Decision) signalName(k signal.Kind) string {
	if d.Base == nil {
		return k.String()
	}
	return d.Base.Signals.Name(k)
}

// Degraded lists the signals that the decision was made without.
func (d *Decision) Degraded() []string {
	var out []string
	for _, k := range d.Failed.Kinds() {
		out = append(out, d.signalName(k))
	}
	return out
}

// errNotRouted returns the error for an endpoint that needs a named model. Chat models return no
// embeddings, and the embeddings of two models cannot be compared.
func errNotRouted(asked string) error {
	return openai.Invalid("model",
		asked+" selects routing, which this endpoint does not support: name a model")
}

// ProgramFor selects the program for the model name that a client sent, and returns the configured
// model that it names, if any. ok is false for an unknown name.
func (b *Base) ProgramFor(asked string) (program *rules.Program, model string, ok bool) {
	name, configured := b.modelNamed(asked)
	switch {
	case configured && !b.RoutesNamed:
		return b.Program.Named(), name, true
	case configured:
		return b.Program, name, true
	}
	return b.Program, "", b.isAuto(name)
}

// First returns the model that is tried first; empty if there is none.
func (b *Base) First(r choose.Request, who *auth.Principal) string {
	for _, c := range b.Chooser.Rank(r) {
		if !c.Out && who.May(c.Name) {
			return c.Name
		}
	}
	return ""
}

// WhySkipped explains why a signal that the rules mention was not computed.
func (d *Decision) WhySkipped(k signal.Kind) string {
	if d.Dropped.Has(k) {
		return "cancelled: other signals had already decided the conditions"
	}
	wanted := false
	for _, r := range d.Program.Routes() {
		if r.Kinds.Has(k) {
			return "not needed to decide any condition"
		}
		wanted = wanted || r.Wants.Has(k)
		if r.Name == d.Route {
			break
		}
	}
	if wanted {
		return "used only by actions of routes that did not apply"
	}
	return "used only by routes after " + d.Route
}
