package rules

import (
	"slices"

	"signalbox/internal/signal"
)

// blockersOf names the leaves that keep a route from being taken: with their values fixed, nothing
// that the others could be would make a difference, and none of them can be left out. raw is the
// route's value by weigh. The result is nil for a route that is taken or still open.
//
// Where evaluation stopped at one member of an operator, that member is named, not an equally good
// one that was never looked at. So the set is minimal, though not always the smallest there is.
func (r *route) blockersOf(set *signal.Set, raw bounds) []string {
	if r.onUnknown.resolve(raw).hi != no {
		return nil
	}
	p := pruner{set: set, policy: r.onUnknown}
	if p.blocked(r.when.eval(set)) {
		kept := p.collect(r.when, nil)
		return textsOf(fewest(kept, func(fewer []node) bool { return p.blocked(p.with(r.when, fewer).eval(set)) }))
	}
	// Tests of one missing signal exclude each other: no leaf on its own blocks, so weigh is asked.
	simple := newSimplifier(r.labels)
	var kept []node
	literals(r.when, func(n node) { kept = append(kept, n) })
	return textsOf(fewest(kept, func(fewer []node) bool {
		return p.blocked(simple.simplify(substitute(p.with(r.when, fewer), set, r.onUnknown)).eval(set))
	}))
}

// fewest leaves out, from the last to the first, what enough can do without.
func fewest(kept []node, enough func([]node) bool) []node {
	for i := range slices.Backward(slices.Clone(kept)) {
		if fewer := slices.Delete(slices.Clone(kept), i, i+1); enough(fewer) {
			kept = fewer
		}
	}
	return kept
}

type pruner struct {
	set    *signal.Set
	policy OnUnknown
}

// blocked reports that the policy makes false of a condition.
func (p *pruner) blocked(b bounds) bool { return p.policy.resolve(b).hi == no }

// collect adds to found the literals by which n is blocked, in the order of evaluation.
func (p *pruner) collect(n node, found []node) []node {
	switch n := n.(type) {
	case *leaf, *not:
		if slices.ContainsFunc(found, func(f node) bool { return same(f, n) }) {
			return found
		}
		return append(found, n)
	case *anyOf: // all of its members are blocked
		for _, x := range n.xs {
			found = p.collect(x, found)
		}
	case *all: // any blocked member will do
		return p.cheapest(n, found)
	case constant:
	}
	return found
}

// cheapest adds to found the literals of the blocked member of n that needs the fewest more, among
// those that evaluation reaches and that have the value of n.
func (p *pruner) cheapest(n *all, found []node) []node {
	value := n.eval(p.set).hi
	var best []node
	for _, x := range n.xs {
		b := x.eval(p.set)
		if b.hi == value && p.blocked(b) {
			if with := p.collect(x, slices.Clone(found)); best == nil || len(with) < len(best) {
				best = with
			}
		}
		if b.hi == no {
			break
		}
	}
	return best
}

// with returns n with all literals but those of kept replaced by what is not known.
func (p *pruner) with(n node, kept []node) node {
	each := func(xs []node) []node {
		out := make([]node, len(xs))
		for i, x := range xs {
			out[i] = p.with(x, kept)
		}
		return out
	}
	switch n := n.(type) {
	case *all:
		return &all{each(n.xs)}
	case *anyOf:
		return &anyOf{each(n.xs)}
	case *leaf, *not:
		if !slices.ContainsFunc(kept, func(k node) bool { return same(k, n) }) {
			return &open{}
		}
	}
	return n
}

// open is a condition of which nothing is known.
type open struct{ _ byte } // not of size zero: two of them are not the same

func (*open) eval(*signal.Set) bounds { return bounds{no, yes} }

func (*open) holds(*signal.Set) bool { return false }

func (*open) String() string { return "?" }

// literals visits the literals of a simplified condition in order, each once.
func literals(n node, visit func(node)) {
	var seen []node
	var walk func(node)
	walk = func(n node) {
		for _, x := range membersOf(n) {
			walk(x)
		}
		if l, _ := literal(n); l != nil && !slices.ContainsFunc(seen, func(s node) bool { return same(s, n) }) {
			seen = append(seen, n)
			visit(n)
		}
	}
	walk(n)
}

func textsOf(xs []node) []string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = x.String()
	}
	return out
}
