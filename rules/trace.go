package rules

import (
	"slices"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
)

// RouteTrace describes the evaluation of one route.
type RouteTrace struct {
	Name  string  `json:"name"`
	Value string  `json:"value"` // "true", "false", "unknown" or "not_reached"
	Path  []Visit `json:"path"`  // the leaves in the order of evaluation
	// Blockers are the leaves that kept an evaluated route from being taken: a minimal set whose
	// values are decisive, in the notation of Visit.Leaf. Empty for the route taken and for routes
	// not reached.
	Blockers []string `json:"blockers,omitempty"`
}

// Visit is one leaf in the evaluation of a route.
type Visit struct {
	Leaf   string `json:"leaf"`             // the test in words, such as "domain in [law, math]"
	Group  string `json:"group,omitempty"`  // the operators around it, outermost first: "all", "all/any"
	Signal string `json:"signal,omitempty"` // the signal it reads; empty for facts of the request
	// "true", "false", "unknown", or "skipped" if it was not evaluated
	Value     string   `json:"value"`
	Found     string   `json:"found,omitempty"`     // the label that the signal had
	Score     *float64 `json:"score,omitempty"`     // the score that was compared, in [0,1]
	Threshold *float64 `json:"threshold,omitempty"` // the threshold it was compared with
	// the model or component that computed the signal
	Source string `json:"source,omitempty"`
	// Reason is why the value is unknown (a signal.Reason, or "not extracted") or why the leaf was
	// skipped ("short-circuit": its operator was settled; "not needed": a route above won).
	Reason string `json:"reason,omitempty"`

	at []int // its index as a member of each operator in Group
}

// The reasons for which leaves are not evaluated.
const (
	reasonShortCircuit = "short-circuit"
	reasonNotNeeded    = "not needed"
	reasonNotExtracted = "not extracted"
)

// Trace explains the evaluation of set by Step. The value of a route is that of its condition,
// before on_unknown. A leaf that short-circuit evaluation does not reach is skipped even if its
// signal is known. Trace allocates; call it only for explanations.
func (p *Program) Trace(set *signal.Set) []RouteTrace {
	out := make([]RouteTrace, 0, len(p.routes))
	won := false
	for i := range p.routes {
		r := &p.routes[i]
		t := tracer{set: set, path: []Visit{}}
		if won {
			t.skip(r.When, "", reasonNotNeeded)
			out = append(out, RouteTrace{Name: r.name, Value: "not_reached", Path: t.path})
			continue
		}
		t.visit(r.When, "")
		raw, _ := r.Eval(set)
		b := r.OnUnknown.Resolve(raw)
		value := condition.Unknown
		switch {
		case raw.Settled():
			value = raw.Lo
		case b.Settled() && r.Failed(set) == 0:
			value = b.Lo // pending signals cannot change it
		}
		out = append(out, RouteTrace{r.name, value.String(), t.path, r.Blockers(set, raw)})
		won = b.Settled() && b.Lo != condition.False
	}
	return out
}

type tracer struct {
	set  *signal.Set
	path []Visit
	at   []int // indices of the members being visited
}

// visit evaluates n like its Eval and records the leaves.
func (t *tracer) visit(n condition.Node, group string) condition.Bounds {
	switch n := n.(type) {
	case *condition.All:
		return t.members(n.Xs, under(group, "all"), condition.True, condition.Bounds.And)
	case *condition.Any:
		return t.members(n.Xs, under(group, "any"), condition.False, condition.Bounds.Or)
	case *condition.Leaf:
		t.note(n, n, group)
	case *condition.Not:
		if l, ok := n.X.(*condition.Leaf); ok {
			t.note(n, l, group)
		}
	}
	return n.Eval(t.set)
}

func under(group, op string) string {
	if group == "" {
		return op
	}
	return group + "/" + op
}

// members evaluates the members of an operator. start is the operator's value without members; the
// opposite of start settles it.
func (t *tracer) members(
	xs []condition.Node, group string, start condition.Truth, join func(a, b condition.Bounds) condition.Bounds,
) condition.Bounds {
	out := condition.Exactly(start)
	for i, x := range xs {
		t.at = append(t.at, i)
		out = join(out, t.visit(x, group))
		t.at = t.at[:len(t.at)-1]
		if out == condition.Exactly(condition.True-start) {
			t.skipAll(xs, i+1, group, reasonShortCircuit)
			break
		}
	}
	return out
}

// skipAll skips the members from index from on.
func (t *tracer) skipAll(xs []condition.Node, from int, group, reason string) {
	for i := from; i < len(xs); i++ {
		t.at = append(t.at, i)
		t.skip(xs[i], group, reason)
		t.at = t.at[:len(t.at)-1]
	}
}

func (t *tracer) skip(n condition.Node, group, reason string) {
	switch n := n.(type) {
	case *condition.All:
		t.skipAll(n.Xs, 0, under(group, "all"), reason)
	case *condition.Any:
		t.skipAll(n.Xs, 0, under(group, "any"), reason)
	case *condition.Leaf, *condition.Not:
		v := Visit{Leaf: n.String(), Group: group, Value: "skipped", Reason: reason, at: slices.Clone(t.at)}
		condition.EachLeaf(n, func(l *condition.Leaf) { v.Signal = l.Signal() })
		t.path = append(t.path, v)
	}
}

// note records the visit of n, which is l or its negation.
func (t *tracer) note(n condition.Node, l *condition.Leaf, group string) {
	v := Visit{
		Leaf: n.String(), Group: group, Signal: l.Signal(), Value: condition.Unknown.String(),
		at: slices.Clone(t.at),
	}
	if b := n.Eval(t.set); b.Settled() {
		v.Value = b.Lo.String()
	}
	if l.ReadsSignal() {
		t.describe(&v, l)
	}
	t.path = append(t.path, v)
}

func (t *tracer) describe(v *Visit, l *condition.Leaf) {
	value := t.set.Value(l.Kind)
	v.Source = value.Source
	switch condition.StateOf(value) {
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
	// for scores about attacks the threshold already determines the label
	if signal.DefaultOrigins(l.Kind) == 0 {
		v.Found = value.Label
	}
	v.Score, v.Threshold = l.Compared(value)
}
