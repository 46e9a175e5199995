package condition

import (
	"slices"

	"signalbox/internal/signal"
)

// maxProofSteps limits the comparisons of one pair of conditions: a nested pair can be decomposed
// in exponentially many orders.
const maxProofSteps = 4096

// Implies reports whether b is true whenever a is, and at least unknown whenever a is unknown.
// False may mean that this could not be proved. Both conditions must come from one simplifier.
func Implies(a, b Node) bool {
	p := prover{left: maxProofSteps}
	return p.implies(a, b)
}

type prover struct{ left int }

func (p *prover) implies(a, b Node) bool {
	if p.left--; p.left < 0 {
		return false
	}
	if b == Node(Constant(true)) || a == Node(Constant(false)) || a == b {
		return true
	}
	if x, ok := a.(*Any); ok {
		return every(x.Xs, func(m Node) bool { return p.implies(m, b) })
	}
	if y, ok := b.(*All); ok {
		return every(y.Xs, func(m Node) bool { return p.implies(a, m) })
	}
	if y, ok := b.(*Any); ok && slices.ContainsFunc(y.Xs, func(m Node) bool { return p.implies(a, m) }) {
		return true
	}
	if x, ok := a.(*All); ok {
		return slices.ContainsFunc(x.Xs, func(m Node) bool { return p.implies(m, b) })
	}
	return entails(a, b)
}

// entails is Implies for two literals over one signal or fact.
func entails(a, b Node) bool {
	if a == b {
		return true
	}
	x, negated := Literal(a)
	y, negatedToo := Literal(b)
	switch {
	case x == nil || y == nil || x.Kind != y.Kind:
		return false
	case negated && negatedToo:
		return x == y || y.test.implies(x.test)
	case !negated && !negatedToo:
		return x.test.implies(y.test)
	}
	// Of the tests that can remain negated after simplification, only best can be compared with
	// others.
	t, ok := x.test.(*best)
	if !ok {
		return false
	}
	if negated {
		return t.negationImplies(y.test)
	}
	u, ok := y.test.(*best)
	return ok && t.excludes(u)
}

func every(xs []Node, f func(Node) bool) bool {
	return !slices.ContainsFunc(xs, func(x Node) bool { return !f(x) })
}

// Reach returns the values that a condition can take over all requests, if the signals in absent
// are always unknown and every other signal may have any value or fail.
func Reach(n Node, absent signal.Mask) Bounds {
	switch n := n.(type) {
	case Constant:
		return of(bool(n))
	case *Not:
		return Reach(n.X, absent).negate()
	case *All:
		out := Exactly(True)
		for _, x := range n.Xs {
			out = out.And(Reach(x, absent))
		}
		return out
	case *Any:
		out := Exactly(False)
		for _, x := range n.Xs {
			out = out.Or(Reach(x, absent))
		}
		return out
	case *Leaf:
		if n.ReadsSignal() && absent.Has(n.Kind) {
			return Exactly(Unknown)
		}
		if x, ok := n.test.(excludedMiddle); ok {
			return x.pending()
		}
	}
	return open()
}

// LimitsCaller reports whether a condition only holds for listed roles or tenants.
func LimitsCaller(n Node) bool {
	switch n := n.(type) {
	case *Leaf:
		m, ok := n.test.(*member)
		return ok && !m.in.except && (m.subject == ofRole || m.subject == ofTenant)
	case *All:
		return slices.ContainsFunc(n.Xs, LimitsCaller)
	case *Any:
		return every(n.Xs, LimitsCaller)
	}
	return false
}
