package rules

import "slices"

// maxImplies bounds the comparisons of one pair of conditions: a nested pair can be taken apart in
// exponentially many orders.
const maxImplies = 4096

// implies reports that b is true whenever a is. False may mean that it cannot tell.
func implies(a, b node) bool {
	p := prover{left: maxImplies}
	return p.implies(a, b)
}

type prover struct{ left int }

func (p *prover) implies(a, b node) bool {
	if p.left--; p.left < 0 {
		return false
	}
	if b == node(constant(true)) || a == node(constant(false)) || a == b {
		return true
	}
	if x, ok := a.(*anyOf); ok {
		return every(x.xs, func(m node) bool { return p.implies(m, b) })
	}
	if y, ok := b.(*all); ok {
		return every(y.xs, func(m node) bool { return p.implies(a, m) })
	}
	if y, ok := b.(*anyOf); ok && slices.ContainsFunc(y.xs, func(m node) bool { return p.implies(a, m) }) {
		return true
	}
	if x, ok := a.(*all); ok {
		return slices.ContainsFunc(x.xs, func(m node) bool { return p.implies(m, b) })
	}
	return entails(a, b)
}

// entails is implies for two literals over one signal or fact.
func entails(a, b node) bool {
	if a == b {
		return true
	}
	x, negated := literal(a)
	y, negatedToo := literal(b)
	switch {
	case x == nil || y == nil || x.kind != y.kind:
		return false
	case negated && negatedToo:
		return x == y || y.test.implies(x.test)
	case !negated && !negatedToo:
		return x.test.implies(y.test)
	case !negated && negatedToo:
		return exclusive(x.test, y.test)
	case negated && !negatedToo:
		t, ok := x.test.(*scored)
		if !ok || t.min > 0 || t.margin >= 0 {
			return false
		}
		above := *t // not at most max, so above it
		above.min, above.max = t.max, 1
		return above.implies(y.test)
	}
	return false
}

// exclusive reports that two tests never hold together, for those whose negation is no test itself.
func exclusive(a, b predicate) bool {
	x, ok1 := a.(*scored)
	y, ok2 := b.(*scored)
	if !ok1 || !ok2 {
		return false
	}
	if x.out == y.out && slices.Equal(x.names, y.names) {
		return x.min > y.max || y.min > x.max
	}
	if !x.set().within(y.outside()) {
		return false
	}
	// No label is in both sets, so their best probabilities add up to at most 1, and a margin asks
	// for a lead over the other's.
	low := max(x.least()+y.least(), 2*y.least()+x.margin, 2*x.least()+y.margin)
	return x.wins() && y.wins() || low > 1
}

// literal returns the leaf of a literal, and whether it is negated.
func literal(n node) (l *leaf, negated bool) {
	switch n := n.(type) {
	case *leaf:
		return n, false
	case *not:
		l, _ = n.x.(*leaf)
		return l, true
	}
	return nil, false
}

func every(xs []node, f func(node) bool) bool {
	for _, x := range xs {
		if !f(x) {
			return false
		}
	}
	return true
}
