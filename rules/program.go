package rules

import (
	"slices"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
)

// Program is a compiled set of routes. It is immutable and safe for concurrent use.
type Program struct {
	routes    []route
	fallback  Action
	name      string      // of the decision if no route matches
	wants     signal.Mask // signals of the fallback action
	absent    signal.Mask // signals that nothing extracts
	elsewhere signal.Mask // kinds that remote models provide
	// kinds that a scan of the text provides, in addition to those of TierLexical
	lexical signal.Mask
	headers []string
	session bool
	named   *Program
}

type route struct {
	condition.Matcher

	name   string
	index  int // in the file
	action Action
	wants  signal.Mask // signals of the action
}

// Step decides, or returns the signals that are missing. If the mask is not zero, the Decision is
// empty: the caller extracts these signals, which are all of one tier unless nothing provides them,
// records each as known or unknown, and calls Step again. If the mask is zero, the Decision is
// final. The result only depends on set, so repeated calls are harmless. Step neither retains nor
// modifies set. It does not allocate, except if signals are missing and a route tests one of them
// in several nested places.
func (p *Program) Step(set *signal.Set) (Decision, signal.Mask) {
	var need, wants, failed signal.Mask
	known := condition.Known(set)
	for i := range p.routes {
		r := &p.routes[i]
		if r.Kinds&^known == 0 && !r.When.Holds(set) {
			continue
		}
		raw, rest := r.Eval(set)
		b := r.OnUnknown.Resolve(raw)
		if !b.Settled() {
			need |= r.Pending(rest, set)
			wants |= r.wants
			continue
		}
		var here signal.Mask
		if raw.Hi == condition.Unknown || raw.Lo == condition.Unknown {
			here = r.Failed(set)
			failed |= here
		}
		if b.Lo == condition.False {
			continue
		}
		if need == 0 {
			return r.decide(outcomeOf(b.Lo, raw, here), failed, set)
		}
		return Decision{}, p.ask(need, wants|r.wants, set)
	}
	if need != 0 {
		return Decision{}, p.ask(need, wants|p.wants, set)
	}
	if m := missing(p.wants, set); m != 0 {
		return Decision{}, m
	}
	failed |= broken(p.wants, set)
	return Decision{Route: p.name, Index: -1, Outcome: Defaulted, Action: &p.fallback, Failed: failed}, 0
}

// outcomeOf returns how a route won: t is the result of the policy, raw the condition's value and
// failed the signals that left it unknown. A condition that is true for every value of a pending
// signal matches without that signal.
func outcomeOf(t condition.Truth, raw condition.Bounds, failed signal.Mask) Outcome {
	switch {
	case t == condition.Unknown:
		return Unavailable
	case raw.Lo == condition.Unknown && failed != 0:
		return FailClosed
	}
	return Matched
}

// decide ends the evaluation at a route that won.
func (r *route) decide(o Outcome, failed signal.Mask, set *signal.Set) (Decision, signal.Mask) {
	d := Decision{Route: r.name, Index: r.index, Outcome: o, Action: &r.action, Failed: failed}
	if o == Unavailable {
		return d, 0
	}
	if m := missing(r.wants, set); m != 0 {
		return Decision{}, m
	}
	d.Failed |= broken(r.wants, set)
	return d, 0
}

// ask selects the cheapest tier of the needed signals. Signals that nothing extracts come first:
// recording them as unknown costs nothing and may settle a route. Members of wants join a pass of
// their own tier that runs anyway, so that an action does not cause a second pass.
func (p *Program) ask(need, wants signal.Mask, set *signal.Set) signal.Mask {
	if m := need & p.absent; m != 0 {
		return m
	}
	for t := range signal.NumTiers {
		if m := p.tier(need, t); m != 0 {
			return m | p.tier(missing(wants, set), t)
		}
	}
	return need
}

// tier returns the members of m with the cost of tier t; kinds from remote models belong to the
// last tier.
func (p *Program) tier(m signal.Mask, t signal.Tier) signal.Mask {
	switch t { //nolint:exhaustive // the others are what is left
	case signal.TierLexical:
		return m.Tier(t) | m&p.lexical
	case signal.TierLarge:
		return m.Tier(t) | m&p.elsewhere
	}
	return m.Tier(t) &^ (p.elsewhere | p.lexical)
}

// Local returns the members of m for which a local model has to read the text.
func (p *Program) Local(m signal.Mask) signal.Mask { return p.tier(m, signal.TierNeural) }

// Neural returns the members of m for which a model has to read the text, local or remote.
func (p *Program) Neural(m signal.Mask) signal.Mask {
	return m.Tier(signal.TierNeural) &^ p.lexical
}

// missing returns the members of m that were not extracted.
func missing(m signal.Mask, set *signal.Set) signal.Mask {
	if m == 0 {
		return 0
	}
	return m &^ set.Have()
}

// broken returns the members of m whose extraction failed.
func broken(m signal.Mask, set *signal.Set) signal.Mask {
	var out signal.Mask
	for k := signal.Kind(0); m != 0 && k < signal.NumKinds; k++ {
		if m.Has(k) && condition.StateOf(set.Value(k)) == signal.Unknown {
			out |= signal.MaskOf(k)
		}
	}
	return out
}

// Named returns the program for requests that name a model: it contains only the routes that block,
// and its default forwards the request unchanged. Its Named is itself.
func (p *Program) Named() *Program { return p.named }

// Route describes a route, for reports about a program.
type Route struct {
	Name      string
	Verb      Verb
	OnUnknown OnUnknown
	Kinds     signal.Mask // signals that its condition reads
	Wants     signal.Mask // signals that its action reads
}

// Routes lists the routes in order.
func (p *Program) Routes() []Route {
	out := make([]Route, len(p.routes))
	for i, r := range p.routes {
		out[i] = Route{r.name, r.action.Verb, r.OnUnknown, r.Kinds, r.wants}
	}
	return out
}

// Actions lists the actions of the routes in order, followed by the action for requests that no
// route takes.
func (p *Program) Actions() []*Action {
	out := make([]*Action, 0, len(p.routes)+1)
	for i := range p.routes {
		out = append(out, &p.routes[i].action)
	}
	return append(out, &p.fallback)
}

// Taken returns the decision that ends at the named route: Matched, or Defaulted if no route has
// this name. ok is false if p never decides so.
func (p *Program) Taken(route string) (d Decision, ok bool) {
	for i := range p.routes {
		if r := &p.routes[i]; r.name == route {
			return Decision{Route: route, Index: r.index, Outcome: Matched, Action: &r.action}, true
		}
	}
	return Decision{Route: p.name, Index: -1, Outcome: Defaulted, Action: &p.fallback}, route == p.name
}

// Kinds returns all signals that the program may request.
func (p *Program) Kinds() signal.Mask {
	m := p.wants
	for _, r := range p.routes {
		m |= r.Kinds | r.wants
	}
	return m
}

// Origins returns the origins that conditions name, for each signal for which they name any. The
// caller owns the map.
func (p *Program) Origins() map[signal.Kind]signal.Origins {
	out := make(map[signal.Kind]signal.Origins)
	for i := range p.routes {
		condition.EachLeaf(p.routes[i].When, func(l *condition.Leaf) {
			if o := l.Origins(); o != 0 {
				out[l.Kind] |= o
			}
		})
	}
	return out
}

// Headers returns the canonical names of the request headers that decisions depend on, sorted.
func (p *Program) Headers() []string { return slices.Clone(p.headers) }

// ReadsSession reports whether decisions depend on the request's session.
func (p *Program) ReadsSession() bool { return p.session }
