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

// Decide is Make, with what a client is refused for as an error. A decision to block is returned
// beside its error.
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
		return d, d.unavailable() // nothing was found that a policy forbids
	case d.Action.Verb == rules.Block:
		return d, &fault.BlockedError{Message: d.Action.Text, Param: d.refused(req)}
	}
	return d, nil
}

// Make steps through the rules, extracting what they ask for and nothing else. It returns no
// decision where the request cannot be one of the configuration, as for a model that there is not,
// and one that is not finished beside ErrClientGone.
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

// Start collects what is known without looking into the text, and picks the program.
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
		return nil, b.unknownModel(who, req.Model) // as if there were none: names of models tell something
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

// modelNamed finds the configured model that a client means. Clients that know tags from elsewhere
// ask for NAME:latest.
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

// unknownModel is the error about a name that the caller may not ask for, with those that it may.
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

// Facts are what rules may ask of a request without looking into its text.
func (b *Base) Facts(who auth.Principal, req *openai.Request, h http.Header, r *resolve.Contexts) signal.Facts {
	f := signal.Facts{Role: who.Role, Tenant: who.Tenant, Model: req.Model, Session: resolve.Session(req, h), Tokens: req.EstimateTokens()}
	f.Turns, f.Results, f.ToolLoop = req.Shape()
	if len(b.ReadHeaders) > 0 {
		f.Header = func(name string) []string {
			name = http.CanonicalHeaderKey(name)
			if strings.HasPrefix(name, headers.OwnPrefix) {
				return nil // a client's word about our own answers counts for nothing
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

// extract fills in the signals of need, unless what comes in first settles what they are for.
func (d *Decision) extract(ctx context.Context, need signal.Mask, how signals.Extent) {
	d.Dropped &^= need
	if d.Request != nil && d.Request.OpaquePrompt {
		d.Set.Fail(need, signal.ReasonNoText) // what nobody has read is not known to be harmless
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
	d.Set.Fail(from&open, signal.ReasonInternal) // so that a kind that was left out is not asked for again
	if d.Contexts.Named() {
		d.Base.Signals.AddStored(ctx, d.Contexts, from, d.Set)
	}
	if need.Has(signal.Cache) && from&^open&signal.MaskOf(signal.Embedding)&^d.Set.Have() == 0 {
		d.lookUp(ctx)
	}
	d.Dropped |= need &^ (open | d.Set.Have())
}

// alongside are the signals that are extracted beside those of need: the embedding, by which
// outcomes are looked up, comes from the same pass.
func (d *Decision) alongside(need signal.Mask) signal.Mask {
	if d.Base == nil || d.Base.Outcomes == nil || d.Program.Neural(need) == 0 {
		return 0
	}
	return signal.MaskOf(signal.Embedding) & d.Base.Signals.Signals() &^ d.Set.Have()
}

// useful returns the signals of need that can still matter, given those that are there. A decision
// that is settled needs none, with two exceptions. A route that wants everything read may no longer
// match after that. And a refusal for a signal that failed may yet become one for what another
// signal of the same route finds: the client is told then not to try again.
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

// Conclude decides, and decides again where the conversation stays what it was.
func (b *Base) Conclude(ctx context.Context, d *Decision, req *openai.Request) error {
	begun := time.Now()
	if err := b.stepRules(ctx, d, req); err != nil {
		return err
	}
	if err := b.keepSubject(ctx, d, req); err != nil {
		return err
	}
	if d.Named != "" && d.Outcome == rules.Defaulted {
		// No route has a say: the client gets the model it named, not the default one.
		d.Route, d.Action = rules.RouteNamed, &rules.Action{}
	}
	d.expect(ctx, req)
	d.Decided = time.Now()
	d.Elapsed = d.Decided.Sub(begun)
	return nil
}

// stepRules asks the rules until the decision is final. A route that says `windows: all`, or
// `redact: true`, is taken only after the whole text was read: where a part of it was read so far,
// the rest is read then, and the rules are asked again.
func (b *Base) stepRules(ctx context.Context, d *Decision, req *openai.Request) error {
	var whole signal.Mask // what came when everything was asked for: there is no more to be had
	for {
		var seen signal.Set // a selection
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

// fallBack gives signals that could not be read whole what was seen of a selection, which proves
// what it has found and nothing else. Without, what shows personal data or an attack at once would
// be known of a short text and not of one that is too long to be read in time.
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

// Unread returns the signals of which a route that wants everything read has only seen a selection.
// What is to be hidden has to be found first, so a route that redacts wants all personal data.
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
		failed := v.Partial && v.Reason != signal.ReasonNone // all of it was asked for before
		if v.State == signal.Known && isSelection(v) && !failed {
			m |= signal.MaskOf(k)
		}
	}
	return m
}

// isSelection reports that only some of the windows of a text, or of that of one origin, were read.
func isSelection(v *signal.Value) bool {
	return v.Read < v.Windows || slices.ContainsFunc(v.Verdicts,
		func(o signal.Verdict) bool { return o.Read < o.Windows })
}

// TimedOut reports whether a signal is missing only because there was no time for it. The request
// is refused then as well, but not as a breach of policy: a client may send it again.
func (d *Decision) TimedOut() bool {
	for _, k := range d.Failed.Kinds() {
		if why := d.Set.Value(k).Reason; why == signal.ReasonTimeout || why == signal.ReasonOverload {
			return true
		}
	}
	return false
}

// refused is the place in the body of the message that speaks most for the attack for which the
// request is refused, such as messages[7] or input[3]. It is empty where something else is the
// reason, and where no message holds the text.
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

// unread is the error of a request that was refused because it is too long to be read for personal
// data in the time that there is, patience; nil for others.
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

// late is the error of a request that was refused because signals were not ready in time.
func (d *Decision) late(req *openai.Request) error {
	e := &fault.LateError{}
	for _, k := range d.Failed.Kinds() {
		switch d.Set.Value(k).Reason { //nolint:exhaustive // the rest is not late
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

// unavailable is the error of a request that nothing may pass without signals which are unknown.
func (d *Decision) unavailable() error {
	if d.Request != nil && d.Request.OpaquePrompt {
		return fault.Unreadable(d.Request.PromptField())
	}
	e := &fault.SignalError{}
	for _, k := range d.Failed.Kinds() {
		e.Signals = append(e.Signals, d.signalName(k))
		switch v := d.Set.Value(k); {
		case v.Reason == signal.ReasonNoModel && !d.able(k):
			e.Reason, e.Away = v.Reason, false // which an operator can do something about
		case e.Reason == signal.ReasonNone:
			e.Reason, e.Away = v.Reason, v.Reason == signal.ReasonNoModel
		}
	}
	return e
}

// able reports whether there is a model for a signal, whether or not it answers.
func (d *Decision) able(k signal.Kind) bool {
	return d.Base != nil && d.Base.Signals.Classifier != nil && d.Base.Signals.Signals().Has(k)
}

// signalName is how the configuration calls a signal.
func (d *Decision) signalName(k signal.Kind) string {
	if d.Base == nil {
		return k.String()
	}
	return d.Base.Signals.Name(k)
}

// Degraded names what the decision had to do without.
func (d *Decision) Degraded() []string {
	var out []string
	for _, k := range d.Failed.Kinds() {
		out = append(out, d.signalName(k))
	}
	return out
}

// errNotRouted refuses to route what only a named model can be asked for: a model that answers
// questions gives no embeddings, and those of two models cannot be compared.
func errNotRouted(asked string) error {
	return openai.Invalid("model",
		asked+" is for requests that are routed, and this endpoint's are not: name the model")
}

// ProgramFor picks the program for what a client asked for, and the model that it names, if any; ok
// is false when nothing has the name.
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

// First is the model that is tried first; empty when there is none.
func (b *Base) First(r choose.Request, who *auth.Principal) string {
	for _, c := range b.Chooser.Rank(r) {
		if !c.Out && who.May(c.Name) {
			return c.Name
		}
	}
	return ""
}

// WhySkipped says why a signal that the rules mention was not computed.
func (d *Decision) WhySkipped(k signal.Kind) string {
	if d.Dropped.Has(k) {
		return "cancelled: others came in first and settled the conditions"
	}
	wanted := false
	for _, r := range d.Program.Routes() {
		if r.Kinds.Has(k) {
			return "not needed to settle any condition"
		}
		wanted = wanted || r.Wants.Has(k)
		if r.Name == d.Route {
			break
		}
	}
	if wanted {
		return "wanted only by actions of routes that were not taken"
	}
	return "read only by routes behind " + d.Route
}
