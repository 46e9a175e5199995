package rules

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
)

// eager is a plain evaluator of what a configuration says: conditions as they were written, every
// signal known or failed, every member of every operator looked at. It is what the engine is
// compared with, in results and in speed, and shares with it only how a single test is read.
type eager struct {
	routes []eagerRoute
	wants  signal.Mask // of the default
	leaves map[signal.Kind][]*leaf
}

type eagerRoute struct {
	name   string
	when   node
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
	e := &eager{leaves: make(map[signal.Kind][]*leaf)}
	for _, d := range c.readRoutes(src.Routes) {
		e.routes = append(e.routes, eagerRoute{d.name, d.raw, d.onUnknown, d.action.Verb == Block, c.wants(&d.action)})
		each(d.raw, func(l *leaf) { e.leaves[l.kind] = append(e.leaves[l.kind], l) })
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
		case v == yes, v == unknown && r.policy == Match:
			out = verdict{r.name, false, r.wants}
		case v == unknown && r.policy == Error:
			out = verdict{r.name, true, 0}
		}
	}
	return out
}

// value is the Kleene value of a condition.
func value(n node, set *signal.Set) truth {
	switch n := n.(type) {
	case constant:
		if n {
			return yes
		}
	case *not:
		return yes - value(n.x, set)
	case *all:
		out := yes
		for _, x := range n.xs {
			out = min(out, value(x, set))
		}
		return out
	case *anyOf:
		out := no
		for _, x := range n.xs {
			out = max(out, value(x, set))
		}
		return out
	case *leaf:
		if n.kind < signal.NumKinds && stateOf(&set.Values[n.kind]) != signal.Known {
			return unknown
		}
		if n.test.holds(set) {
			return yes
		}
	}
	return no
}
