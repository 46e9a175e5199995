package rules

import (
	"slices"

	"signalbox/internal/signal"
)

// warn reports what is legal and probably not meant.
func (c *compiler) warn(drafts []draft) {
	c.warnUnreachable(drafts)
	c.warnExempt(drafts)
}

// warnUnreachable reports routes that cannot match: their condition is false, or a route above them
// matches whenever they would.
func (*compiler) warnUnreachable(drafts []draft) {
	for i := range drafts {
		d := &drafts[i]
		if d.broken {
			continue
		}
		if d.when == node(constant(false)) {
			d.at.warnf("route %q can never match: its condition is always false", d.name)
			continue
		}
		for j := range drafts[:i] {
			above := &drafts[j]
			if !above.broken && implies(d.when, above.when) {
				d.at.warnf("route %q can never match: %q above it always does", d.name, above.name)
				break
			}
		}
	}
}

// warnExempt reports routes above a safety route that send requests to a model without its check.
func (*compiler) warnExempt(drafts []draft) {
	safety := -1
	for i := range drafts {
		if isSafety(&drafts[i]) {
			safety = i
		}
	}
	for i := 0; i < safety; i++ {
		d := &drafts[i]
		if d.broken || d.action.Verb != Use || trusted(d.when) || d.when == node(constant(false)) {
			continue
		}
		for j := i + 1; j <= safety; j++ {
			if isSafety(&drafts[j]) {
				d.at.warnf("requests that route %q takes are never checked by %q below it; move it down, or limit it to a role or tenant",
					d.name, drafts[j].name)
				break
			}
		}
	}
}

func isSafety(d *draft) bool {
	return d.action.Verb == Block && kindsOf(d.when)&signal.MaskOf(signal.Jailbreak, signal.PII) != 0
}

// trusted reports that a condition holds for listed roles or tenants only.
func trusted(n node) bool {
	switch n := n.(type) {
	case *leaf:
		m, ok := n.test.(*member)
		return ok && !m.out && (m.subject == ofRole || m.subject == ofTenant)
	case *all:
		return slices.ContainsFunc(n.xs, trusted)
	case *anyOf:
		return every(n.xs, trusted)
	}
	return false
}

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
