package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/fault"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/recall"
	"signalbox/proxy/resolve"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

// decide wraps the stage in its span and counts what it computed and what it did not have to.
func (p *Proxy) decide(ctx context.Context, st *State, who Principal, h http.Header, o *exchange) (*decision, error) {
	ctx, span := p.tel.Tracer.Start(ctx, "decide")
	defer span.End()
	d, err := st.decide(ctx, who, o.req, h, o.resolved, o.lookup)
	if d == nil || errors.Is(err, fault.ErrClientGone) {
		return d, err
	}
	d.save(p.spending.Saving(who.Tenant, who.Budgets))
	traceDecision(span, d)
	m := p.tel.Metrics
	m.Decide(d.elapsed)
	mentioned := d.program.Kinds()
	for k := range signal.NumKinds {
		v := d.set.Value(k)
		switch {
		case v.State == signal.Unknown:
			m.SignalUnknown(st.signals.Identity.Names.Of(k), string(v.Reason))
		case v.State == signal.NotExtracted && mentioned.Has(k):
			m.SignalSkipped(st.signals.Identity.Names.Of(k))
		}
	}
	return d, err
}

// decide steps through the rules, extracting what they ask for and nothing else. A decision to
// block is returned beside its error.
func (st *State) decide(
	ctx context.Context, who Principal, req *openai.Request, h http.Header, r *resolve.Contexts, m *recall.Lookup,
) (*decision, error) {
	d, err := st.start(who, req, h, r)
	if err != nil {
		return nil, err
	}
	d.lookup, d.talk = m, st.talk(ctx, d, req, h)
	if err := st.conclude(ctx, d, req); err != nil {
		return d, err
	}
	switch {
	case d.Outcome == rules.Unavailable:
		return d, d.unavailable()
	case d.Action.Verb == rules.Block && d.Outcome == rules.FailClosed && d.timedOut():
		return d, fault.ErrOverloaded
	case d.Action.Verb == rules.Block && d.Outcome == rules.FailClosed:
		return d, d.unavailable() // nothing was found that a policy forbids
	case d.Action.Verb == rules.Block:
		return d, &fault.BlockedError{Message: d.Action.Text}
	}
	st.assign(d, req)
	return d, nil
}

// start collects what is known without looking into the text, and picks the program.
func (st *State) start(who Principal, req *openai.Request, h http.Header, r *resolve.Contexts) (*decision, error) {
	if err := guardrail.CheckFacts(req.Extras.Facts, "signalbox.facts"); err != nil {
		return nil, err
	}
	name, configured := st.modelNamed(req.Model)
	d := &decision{set: &signal.Set{Facts: st.facts(who, req, h, r)}, state: st, who: who, request: req, program: st.program, contexts: r}
	if r != nil {
		d.lacking = slices.Clone(r.Left)
	}
	switch {
	case configured && !who.May(name):
		return nil, &fault.UnknownModelError{Model: req.Model} // as if there were none: names of models tell something
	case configured:
		d.model = name
		if !st.opts.RouteNamedModels || req.API == openai.Other {
			d.program = st.program.Named()
		}
	case !st.isAuto(name):
		return nil, &fault.UnknownModelError{Model: req.Model}
	case req.API == openai.Other:
		return nil, errNotRouted(req.Model)
	}
	return d, nil
}

// modelNamed finds the configured model that a client means. Clients that know tags from elsewhere
// ask for NAME:latest.
func (st *State) modelNamed(asked string) (name string, configured bool) {
	if _, ok := st.byName[asked]; ok {
		return asked, true
	}
	if base, ok := strings.CutSuffix(asked, ":latest"); ok {
		_, configured = st.byName[base]
		return base, configured
	}
	return asked, false
}

func (st *State) isAuto(name string) bool {
	return slices.Contains(st.opts.AutoModels, name)
}

func (st *State) facts(who Principal, req *openai.Request, h http.Header, r *resolve.Contexts) signal.Facts {
	f := signal.Facts{Role: who.Role, Tenant: who.Tenant, Model: req.Model, Session: resolve.Session(req, h), Tokens: req.EstimateTokens()}
	f.Turns, f.Results, f.ToolLoop = req.Shape()
	if len(st.readHeaders) > 0 {
		f.Header = func(name string) []string {
			name = http.CanonicalHeaderKey(name)
			if strings.HasPrefix(name, ownPrefix) {
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
func (d *decision) extract(ctx context.Context, need signal.Mask, how signals.Extent) {
	d.dropped &^= need
	if d.request != nil && d.request.OpaquePrompt {
		d.set.Fail(need, signal.ReasonNoText) // what nobody has read is not known to be harmless
		return
	}
	from := d.lookup.Sources(need, d.program.Neural(need), d.set)
	from |= d.alongside(from)
	open := from
	still := func() signal.Mask {
		useful := d.useful(need)
		useful = d.lookup.Sources(useful, d.program.Neural(useful), d.set)
		open &= useful | d.alongside(useful)
		return open
	}
	if from != 0 {
		d.state.signals.Read(ctx, d.contexts, &d.text, from, d.set, how, still)
	}
	d.set.Fail(from&open, signal.ReasonInternal) // so that a kind that was left out is not asked for again
	if d.contexts.Named() {
		d.state.signals.AddStored(ctx, d.contexts, from, d.set)
	}
	if need.Has(signal.Cache) && from&^open&signal.MaskOf(signal.Embedding)&^d.set.Have() == 0 {
		d.lookUp(ctx)
	}
	d.dropped |= need &^ (open | d.set.Have())
}

// alongside are the signals that are extracted beside those of need: the embedding, by which
// outcomes are looked up, comes from the same pass.
func (d *decision) alongside(need signal.Mask) signal.Mask {
	if d.state == nil || d.state.outcomes == nil || d.program.Neural(need) == 0 {
		return 0
	}
	return signal.MaskOf(signal.Embedding) & d.state.signals.Signals() &^ d.set.Have()
}

// useful returns the signals of need that can still matter, given those that are there. A decision
// that is settled needs none, with two exceptions. A route that wants everything read may no longer
// match after that. And a refusal for a signal that failed may yet become one for what another
// signal of the same route finds: the client is told then not to try again.
func (d *decision) useful(need signal.Mask) signal.Mask {
	final, next := d.program.Step(d.set)
	if next != 0 {
		return next
	}
	if unread(&final, d.set) != 0 {
		return need
	}
	if final.Outcome == rules.FailClosed {
		for _, r := range d.program.Routes() {
			if r.Name == final.Route {
				return r.Kinds
			}
		}
	}
	return 0
}

// conclude decides, and decides again where the conversation stays what it was.
func (st *State) conclude(ctx context.Context, d *decision, req *openai.Request) error {
	begun := time.Now()
	if err := st.stepRules(ctx, d, req); err != nil {
		return err
	}
	if err := st.keepSubject(ctx, d, req); err != nil {
		return err
	}
	if d.model != "" && d.Outcome == rules.Defaulted {
		// No route has a say: the client gets the model it named, not the default one.
		d.Route, d.Action = rules.RouteNamed, &rules.Action{}
	}
	d.expect(ctx, req)
	d.decided = time.Now()
	d.elapsed = d.decided.Sub(begun)
	return nil
}

// stepRules asks the rules until the decision is final. A route that says `windows: all`, or `redact:
// true`, is taken only after the whole text was read: where a part of it was read so far, the rest
// is read then, and the rules are asked again.
func (st *State) stepRules(ctx context.Context, d *decision, req *openai.Request) error {
	var whole signal.Mask // what came when everything was asked for: there is no more to be had
	for {
		var seen signal.Set // a selection
		how := signals.Selection
		final, need := d.program.Step(d.set)
		if need == 0 {
			if need = unread(&final, d.set) &^ whole; need == 0 || !st.signals.ReadsAll() {
				d.Decision = final
				return nil
			}
			how, seen = signals.Everything, *d.set
			d.set.Drop(need)
		}
		if d.text.Segments == nil {
			d.text = req.Text()
			d.talk.addEarlierTurns(&d.text)
		}
		asked := time.Now()
		d.extract(ctx, need, how)
		if how == signals.Everything {
			whole |= need & d.set.Have()
		}
		d.fallBack(need, &seen)
		d.talk.restoreTopics(d.set)
		d.classified += time.Since(asked)
		if ctx.Err() != nil {
			return fault.ErrClientGone
		}
	}
}

// fallBack gives signals that could not be read whole what was seen of a selection, which proves
// what it has found and nothing else. Without, what shows personal data or an attack at once would
// be known of a short text and not of one that is too long to be read in time.
func (d *decision) fallBack(kinds signal.Mask, seen *signal.Set) {
	for _, k := range (kinds & seen.Have()).Kinds() {
		now, v := d.set.Value(k), *seen.Value(k)
		if now.State != signal.Unknown {
			continue
		}
		v.Partial, v.Reason, v.Verdicts = true, now.Reason, slices.Clone(v.Verdicts)
		for i := range v.Verdicts {
			v.Verdicts[i].Partial = true
		}
		d.set.Put(k, v)
	}
}

// unread returns the signals of which a route that wants everything read has only seen a selection.
// What is to be hidden has to be found first, so a route that redacts wants all personal data.
func unread(final *rules.Decision, set *signal.Set) signal.Mask {
	if final.Outcome == rules.Unavailable {
		return 0
	}
	var wanted, m signal.Mask
	if final.Action.Windows == "all" {
		wanted = signal.MaskOf(signal.Jailbreak, signal.Injection, signal.PII)
	}
	if final.Action.Redact {
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

// timedOut reports whether a signal is missing only because there was no time for it. The request is
// refused then as well, but not as a breach of policy: a client may send it again.
func (d *decision) timedOut() bool {
	for _, k := range d.Failed.Kinds() {
		if why := d.set.Value(k).Reason; why == signal.ReasonTimeout || why == signal.ReasonOverload {
			return true
		}
	}
	return false
}

// unavailable is the error of a request that nothing may pass without signals which are unknown.
func (d *decision) unavailable() error {
	e := &fault.SignalError{}
	for _, k := range d.Failed.Kinds() {
		e.Signals = append(e.Signals, d.signalName(k))
		switch v := d.set.Value(k); {
		case v.Reason == signal.ReasonNoModel:
			e.Reason = signal.ReasonNoModel // which an operator can do something about
		case e.Reason == signal.ReasonNone:
			e.Reason = v.Reason
		}
	}
	return e
}

// signalName is how the configuration calls a signal.
func (d *decision) signalName(k signal.Kind) string {
	if d.state == nil {
		return k.String()
	}
	return d.state.signals.Identity.Names.Of(k)
}

// degraded names what the decision had to do without.
func (d *decision) degraded() []string {
	var out []string
	for _, k := range d.Failed.Kinds() {
		out = append(out, d.signalName(k))
	}
	return out
}

// errNotRouted refuses to route what only a named model can be asked for: a model that answers
// questions gives no embeddings, and those of two models cannot be compared.
func errNotRouted(asked string) error {
	return &openai.Error{
		Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: "model",
		Message: asked + " is for requests that are routed, and this endpoint's are not: name the model",
	}
}
