package rules

import (
	"slices"

	"signalbox/internal/signal"
)

// Program is a compiled set of routes. It is immutable and safe for concurrent use.
type Program struct {
	routes   []route
	fallback Action
	name     string      // of the decision when no route matches
	wants    signal.Mask // signals of the fallback action
	absent   signal.Mask // signals that nothing extracts
	headers  []string
	session  bool
	named    *Program
}

type route struct {
	name      string
	index     int
	when      node
	onUnknown OnUnknown
	action    Action
	kinds     signal.Mask // signals of the condition
	wants     signal.Mask // signals of the action
	tangled   bool        // see weigh
	labels    map[signal.Kind][]string
}

// Step decides, or says what is missing. When the mask is not zero, the caller extracts those
// signals, which are all of one tier unless nothing provides them, records each as known or unknown,
// and steps again; the Decision is then empty. When it is zero the Decision is final. The answer
// depends on set alone, so stepping twice is stepping once. Step neither keeps nor modifies set. It
// does not allocate, except where signals are missing and a route tests one of them in several nested
// places (see weigh).
func (p *Program) Step(set *signal.Set) (Decision, signal.Mask) {
	var need, wants, failed signal.Mask
	known := knownIn(set)
	for i := range p.routes {
		r := &p.routes[i]
		if r.kinds&^known == 0 && !r.when.holds(set) {
			continue
		}
		raw, rest := r.weigh(set)
		b := r.onUnknown.resolve(raw)
		if !b.settled() {
			need |= pendingKinds(rest, set, r.onUnknown)
			wants |= r.wants
			continue
		}
		var here signal.Mask
		if raw.hi == unknown || raw.lo == unknown {
			here = failedKinds(r.when, set)
			failed |= here
		}
		if b.lo == no {
			continue
		}
		if need == 0 {
			return r.decide(outcomeOf(b.lo, raw, here), failed, set)
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

// outcomeOf tells how a route won: t is what the policy made of its condition, raw the condition and
// failed the signals that left it unknown. A condition that every value of a pending signal makes
// true has matched without being asked for.
func outcomeOf(t truth, raw bounds, failed signal.Mask) Outcome {
	switch {
	case t == unknown:
		return Unavailable
	case raw.lo == unknown && failed != 0:
		return FailClosed
	}
	return Matched
}

// decide ends at a route that won.
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

// ask picks the cheapest tier of what is needed. Signals that nothing extracts come before all: to
// learn that they are unknown costs nothing and may settle a route. Wants ride along with a pass of
// their own tier that runs anyway, so that an action does not cost a second one.
func (p *Program) ask(need, wants signal.Mask, set *signal.Set) signal.Mask {
	if m := need & p.absent; m != 0 {
		return m
	}
	for t := range signal.NumTiers {
		if m := need.Tier(t); m != 0 {
			return m | missing(wants, set).Tier(t)
		}
	}
	return need
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
		if m.Has(k) && stateOf(&set.Values[k]) == signal.Unknown {
			out |= signal.MaskOf(k)
		}
	}
	return out
}

// Named returns the program for requests that name a model: of the routes only those that block,
// and after them nothing but the request itself. Its Named is itself.
func (p *Program) Named() *Program { return p.named }

// Route describes a route to those who report on a program.
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
		out[i] = Route{r.name, r.action.Verb, r.onUnknown, r.kinds, r.wants}
	}
	return out
}

// Kinds returns every signal that the program may ask for.
func (p *Program) Kinds() signal.Mask {
	m := p.wants
	for _, r := range p.routes {
		m |= r.kinds | r.wants
	}
	return m
}

// Headers returns the canonical names of the request headers that decisions depend on, sorted.
func (p *Program) Headers() []string { return slices.Clone(p.headers) }

// ReadsSession reports whether decisions depend on the request's session.
func (p *Program) ReadsSession() bool { return p.session }
