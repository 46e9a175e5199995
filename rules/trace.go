package rules

import "signalbox/internal/signal"

// RouteTrace tells how one route was evaluated.
type RouteTrace struct {
	Name  string  `json:"name"`
	Value string  `json:"value"` // "true", "false", "unknown" or "not_reached"
	Path  []Visit `json:"path"`  // the leaves in the order of evaluation
	// Blockers are the leaves that kept a route which was evaluated from being taken: a minimal set
	// whose values decide, as Visit.Leaf has them. Empty for the route taken and for those not reached.
	Blockers []string `json:"blockers,omitempty"`
}

// Visit is one leaf on the path through a route.
type Visit struct {
	Leaf      string   `json:"leaf"`                // the test in words, such as "domain in [law, math]"
	Group     string   `json:"group,omitempty"`     // the operators around it, outermost first: "all", "all/any"
	Signal    string   `json:"signal,omitempty"`    // the signal it reads; empty for facts of the request
	Value     string   `json:"value"`               // "true", "false", "unknown", or "skipped" when it was not evaluated
	Found     string   `json:"found,omitempty"`     // the label that the signal had
	Score     *float64 `json:"score,omitempty"`     // the score that was compared, in [0,1]
	Threshold *float64 `json:"threshold,omitempty"` // what it was compared with
	Source    string   `json:"source,omitempty"`    // the model or component that produced the signal
	// Reason says why the value is unknown (a signal.Reason, or "not extracted") or why the leaf was
	// skipped ("short-circuit": its operator was settled; "not needed": a route above won).
	Reason string `json:"reason,omitempty"`
}

// The reasons of leaves that were not evaluated.
const (
	reasonShortCircuit = "short-circuit"
	reasonNotNeeded    = "not needed"
	reasonNotExtracted = "not extracted"
)

// Trace explains what Step makes of set. The value of a route is that of its condition, before
// on_unknown. A leaf that short-circuit evaluation never looks at is skipped even where its signal
// is known. It allocates; call it only to explain.
func (p *Program) Trace(set *signal.Set) []RouteTrace {
	out := make([]RouteTrace, 0, len(p.routes))
	won := false
	for i := range p.routes {
		r := &p.routes[i]
		t := tracer{set: set, path: []Visit{}}
		if won {
			t.skip(r.when, "", reasonNotNeeded)
			out = append(out, RouteTrace{Name: r.name, Value: "not_reached", Path: t.path})
			continue
		}
		t.visit(r.when, "")
		raw, _ := r.weigh(set)
		b := r.onUnknown.resolve(raw)
		value := unknown
		switch {
		case raw.settled():
			value = raw.lo
		case b.settled() && failedKinds(r.when, set) == 0:
			value = b.lo // whatever is still pending cannot change it
		}
		out = append(out, RouteTrace{r.name, value.String(), t.path, r.blockersOf(set, raw)})
		won = b.settled() && b.lo != no
	}
	return out
}

type tracer struct {
	set  *signal.Set
	path []Visit
}

// visit evaluates n the way its eval does and notes the leaves.
func (t *tracer) visit(n node, group string) bounds {
	switch n := n.(type) {
	case *all:
		return t.members(n.xs, under(group, "all"), exactly(yes))
	case *anyOf:
		return t.members(n.xs, under(group, "any"), exactly(no))
	case *leaf:
		t.note(n, n, group)
	case *not:
		if l, ok := n.x.(*leaf); ok {
			t.note(n, l, group)
		}
	case constant:
	}
	return n.eval(t.set)
}

func under(group, op string) string {
	if group == "" {
		return op
	}
	return group + "/" + op
}

// members evaluates the members of an operator whose value without any is start.
func (t *tracer) members(xs []node, group string, start bounds) bounds {
	out := start
	for i, x := range xs {
		b := t.visit(x, group)
		if start.lo == yes {
			out = bounds{min(out.lo, b.lo), min(out.hi, b.hi)}
		} else {
			out = bounds{max(out.lo, b.lo), max(out.hi, b.hi)}
		}
		if out.settled() && out.lo == yes-start.lo {
			for _, rest := range xs[i+1:] {
				t.skip(rest, group, reasonShortCircuit)
			}
			break
		}
	}
	return out
}

func (t *tracer) skip(n node, group, reason string) {
	switch n := n.(type) {
	case *all:
		for _, x := range n.xs {
			t.skip(x, under(group, "all"), reason)
		}
	case *anyOf:
		for _, x := range n.xs {
			t.skip(x, under(group, "any"), reason)
		}
	case *leaf, *not:
		v := Visit{Leaf: n.String(), Group: group, Value: "skipped", Reason: reason}
		each(n, func(l *leaf) { v.Signal = signalName(l) })
		t.path = append(t.path, v)
	case constant:
	}
}

func signalName(l *leaf) string {
	if l.kind < signal.NumKinds {
		return l.kind.String()
	}
	return ""
}

// note records the visit of n, which is l or its negation.
func (t *tracer) note(n node, l *leaf, group string) {
	v := Visit{Leaf: n.String(), Group: group, Signal: signalName(l), Value: unknown.String()}
	if b := n.eval(t.set); b.settled() {
		v.Value = b.lo.String()
	}
	if l.kind < signal.NumKinds {
		t.describe(&v, l)
	}
	t.path = append(t.path, v)
}

func (t *tracer) describe(v *Visit, l *leaf) {
	value := &t.set.Values[l.kind]
	v.Source = value.Source
	switch stateOf(value) {
	case signal.NotExtracted:
		v.Reason = reasonNotExtracted
		return
	case signal.Unknown:
		v.Reason = string(value.Reason)
		if value.Reason == signal.ReasonNone {
			v.Reason = string(signal.ReasonInvalid)
		}
		return
	case signal.Known:
	}
	v.Found = value.Label
	switch test := l.test.(type) {
	case *scored:
		in, _ := test.best(value)
		v.Score, v.Threshold = &in, new(test.min)
	case *span:
		x := probability(value, test.label)
		v.Score, v.Threshold = &x, thresholdOf(test)
	case *entities:
		v.Threshold = new(test.min)
	case *member:
		v.Score = new(value.Score)
	}
}

// thresholdOf returns the bound that a reader looks for first: the lower one when there is one.
func thresholdOf(s *span) *float64 {
	if s.lo >= 0 {
		return new(s.lo)
	}
	return new(s.hi)
}
