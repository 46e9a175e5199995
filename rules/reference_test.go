package rules

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
)

// eager is a plain evaluator of what a configuration says: conditions as they were written, every
// signal known or failed, every member of every operator looked at. It is what the engine is
// compared with, in results and in speed, and shares with it only how a single test is read.
type eager struct {
	routes []eagerRoute
	wants  signal.Mask // of the default
	leaves map[signal.Kind][]*condition.Leaf
}

type eagerRoute struct {
	name   string
	when   condition.Node
	policy OnUnknown
	block  bool
	wants  signal.Mask
}

// verdict is the part of a decision that a request feels.
type verdict struct {
	Route       string
	Unavailable bool
	wants       signal.Mask
}

// newEager reads a configuration without compiling it.
func newEager(tb testing.TB, doc *yaml.Node, env Env) *eager {
	tb.Helper()
	src := sections(doc)
	c := newCompiler(env)
	c.readConditions(src.Conditions)
	e := &eager{leaves: make(map[signal.Kind][]*condition.Leaf)}
	for _, d := range c.readRoutes(src.Routes) {
		e.routes = append(e.routes, eagerRoute{d.name, d.raw, d.OnUnknown, d.action.Verb == Block, c.wants(&d.action)})
		condition.EachLeaf(d.raw, func(l *condition.Leaf) { e.leaves[l.Kind] = append(e.leaves[l.Kind], l) })
	}
	fallback := c.readDefault(src.Default)
	e.wants = c.wants(&fallback)
	if HasErrors(c.problems) {
		tb.Fatal(c.problems)
	}
	return e
}

// named keeps the routes that block, as for a request that names its model.
func (e *eager) named() *eager {
	out := &eager{leaves: e.leaves}
	for _, r := range e.routes {
		if r.block {
			out.routes = append(out.routes, r)
		}
	}
	return out
}

// decide evaluates every route, then picks the first that takes the request.
func (e *eager) decide(set *signal.Set) verdict {
	out := verdict{wants: e.wants}
	for i := len(e.routes) - 1; i >= 0; i-- {
		r := &e.routes[i]
		switch v := value(r.when, set); {
		case v == condition.True, v == condition.Unknown && r.policy == Match:
			out = verdict{r.name, false, r.wants}
		case v == condition.Unknown && r.policy == Error:
			out = verdict{r.name, true, 0}
		}
	}
	return out
}

// value is the Kleene value of a condition.
func value(n condition.Node, set *signal.Set) condition.Truth {
	switch n := n.(type) {
	case condition.Constant:
		if n {
			return condition.True
		}
	case *condition.Not:
		return condition.True - value(n.X, set)
	case *condition.All:
		out := condition.True
		for _, x := range n.Xs {
			out = min(out, value(x, set))
		}
		return out
	case *condition.Any:
		out := condition.False
		for _, x := range n.Xs {
			out = max(out, value(x, set))
		}
		return out
	case *condition.Leaf:
		if n.Kind < signal.NumKinds && condition.StateOf(set.Value(n.Kind)) != signal.Known {
			return condition.Unknown
		}
		if n.Holds(set) {
			return condition.True
		}
	}
	return condition.False
}
