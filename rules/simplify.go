package rules

import (
	"math"
	"slices"

	"signalbox/internal/signal"
)

// operator is the sort of a group: any when true, all when false. It is also the constant that decides
// the group on its own; the opposite constant has no effect in it.
type operator bool

const (
	conjunction operator = false
	disjunction operator = true
)

// pick is a conditional expression.
func pick[T any](o operator, ifAny, ifAll T) T {
	if o == disjunction {
		return ifAny
	}
	return ifAll
}

// simplifier rewrites conditions and shares equal leaves between all of them.
type simplifier struct {
	leaves map[string]*leaf
	labels map[signal.Kind][]string // what a kind can report, as in Env
}

func newSimplifier(labels map[signal.Kind][]string) *simplifier {
	return &simplifier{map[string]*leaf{}, labels}
}

// covers reports that names hold every label that a known value of the kind can have. An intent may
// also be none of those listed.
func (s *simplifier) covers(k signal.Kind, names []string) bool {
	return (k == signal.Domain || k == signal.Complexity) && len(s.labels[k]) > 0 && subset(s.labels[k], names)
}

// simplify returns an equivalent condition in negation normal form. On settled signals the value is
// the same, unknown included; on pending ones the bounds are the same or tighter.
func (s *simplifier) simplify(n node) node { return s.rewrite(n, false) }

// rewrite simplifies n, or its negation when flipped.
func (s *simplifier) rewrite(n node, flipped bool) node { //nolint:revive // the polarity of negation normal form
	switch n := n.(type) {
	case constant:
		return constant(bool(n) != flipped)
	case *not:
		return s.rewrite(n.x, !flipped)
	case *all:
		return s.group(n.xs, flipped, operator(flipped))
	case *anyOf:
		return s.group(n.xs, flipped, operator(!flipped))
	case *leaf:
		if !flipped {
			return s.share(n)
		}
		return s.complement(n)
	case *open:
		return n
	}
	panic("rules: unknown condition")
}

// share returns the one leaf with the text of l.
func (s *simplifier) share(l *leaf) node {
	if t, ok := l.test.(*span); ok && (t.empty() || t.full()) {
		return s.fixed(l.kind, t.full())
	}
	if t, ok := l.test.(*scored); ok && t.trivial() {
		return s.fixed(l.kind, true)
	}
	if m, ok := l.test.(*member); ok {
		if len(m.names) == 0 || m.subject == ofLabel && s.covers(l.kind, m.names) {
			return s.fixed(l.kind, m.out == (len(m.names) == 0))
		}
	}
	if known, ok := s.leaves[l.text]; ok {
		return known
	}
	s.leaves[l.text] = l
	return l
}

// leaf makes the shared leaf of a test.
func (s *simplifier) leaf(k signal.Kind, p predicate) node { return s.share(newLeaf(k, p)) }

// fixed is a value that only a failed signal can keep from being definite.
func (s *simplifier) fixed(k signal.Kind, value bool) node {
	if k >= signal.NumKinds {
		return constant(value)
	}
	return s.leaf(k, tautology{k, value})
}

// complement negates a leaf, as a leaf where one can say it.
func (s *simplifier) complement(l *leaf) node {
	switch t := l.test.(type) {
	case *member:
		c := *t
		c.out = !c.out
		return s.leaf(l.kind, &c)
	case *keywords:
		c := *t
		c.out = !c.out
		return s.leaf(l.kind, &c)
	case tautology:
		return s.leaf(l.kind, tautology{t.kind, !t.value})
	case *span:
		c := *t
		switch {
		case math.IsInf(t.hi, 1):
			c.lo, c.loOpen, c.hi, c.hiOpen = math.Inf(-1), false, t.lo, !t.loOpen
			return s.leaf(l.kind, &c)
		case math.IsInf(t.lo, -1):
			c.hi, c.hiOpen, c.lo, c.loOpen = math.Inf(1), false, t.hi, !t.hiOpen
			return s.leaf(l.kind, &c)
		}
	}
	x := s.share(l)
	if x != node(l) {
		if shared, ok := x.(*leaf); !ok || shared.text != l.text {
			return s.rewrite(x, true)
		}
	}
	return &not{x}
}

// group simplifies the members of what is an operator of sort either once its negation, if flipped,
// has moved inwards.
func (s *simplifier) group(members []node, flipped bool, either operator) node {
	var xs []node
	for _, m := range members {
		x := s.rewrite(m, flipped)
		if c, ok := x.(constant); ok {
			if operator(c) == either {
				return c
			}
			continue
		}
		xs = appendFlat(xs, x, either)
	}
	xs = s.merge(xs, either)
	if i := slices.Index(xs, node(constant(either))); i >= 0 {
		return constant(either)
	}
	xs = slices.DeleteFunc(xs, func(x node) bool { return x == node(constant(!either)) })
	xs = absorb(xs)
	switch {
	case len(xs) == 0:
		return constant(!either)
	case len(xs) == 1:
		return xs[0]
	case either == disjunction:
		return &anyOf{xs}
	}
	return &all{xs}
}

// appendFlat adds x, or its members when x is the same operator.
func appendFlat(xs []node, x node, either operator) []node {
	switch x := x.(type) {
	case *all:
		if either == conjunction {
			return append(xs, x.xs...)
		}
	case *anyOf:
		if either == disjunction {
			return append(xs, x.xs...)
		}
	}
	return append(xs, x)
}

// merge joins members that speak of the same thing until no two can be joined.
func (s *simplifier) merge(xs []node, either operator) []node {
	var out []node
	for _, x := range xs {
		for i := 0; i < len(out); i++ {
			joined, ok := s.join(out[i], x, either)
			if !ok {
				continue
			}
			x = joined
			out = slices.Delete(out, i, i+1)
			i = -1
		}
		out = append(out, x)
	}
	return out
}

// join returns one condition for a and b under the operator.
func (s *simplifier) join(a, b node, either operator) (node, bool) {
	if same(a, b) {
		return a, true
	}
	if joined, ok := s.related(a, b, either); ok {
		return joined, true
	}
	x, ok1 := a.(*leaf)
	y, ok2 := b.(*leaf)
	if !ok1 || !ok2 || x.kind != y.kind {
		return nil, false
	}
	switch t := x.test.(type) {
	case *member:
		if u, ok := y.test.(*member); ok && u.subject == t.subject {
			return s.leaf(x.kind, joinMembers(t, u, either)), true
		}
	case *span:
		if u, ok := y.test.(*span); ok && u.subject == t.subject && u.label == t.label {
			c, ok := joinSpans(t, u, either)
			if !ok {
				return nil, false
			}
			return s.leaf(x.kind, c), true
		}
	}
	return nil, false
}

// same compares simplified conditions. Leaves are shared, so only operators need their text.
func same(a, b node) bool {
	if a == b {
		return true
	}
	switch a.(type) {
	case *all:
		_, ok := b.(*all)
		return ok && a.String() == b.String()
	case *anyOf:
		_, ok := b.(*anyOf)
		return ok && a.String() == b.String()
	case *not:
		_, ok := b.(*not)
		return ok && a.String() == b.String()
	}
	return false
}

// related joins two literals over one signal of which one implies the other or its negation. Since
// both are known or both unknown, what holds for two values holds for three.
func (s *simplifier) related(a, b node, either operator) (node, bool) {
	x, _ := literal(a)
	y, _ := literal(b)
	if x == nil || y == nil || x.kind != y.kind {
		return nil, false
	}
	notA, notB := s.rewrite(a, true), s.rewrite(b, true)
	switch {
	case either == disjunction && (entails(notA, b) || entails(notB, a)),
		either == conjunction && (entails(a, notB) || entails(b, notA)):
		return s.fixed(x.kind, bool(either)), true
	case entails(a, b):
		return pick(either, b, a), true
	case entails(b, a):
		return pick(either, a, b), true
	}
	return nil, false
}

// joinMembers unites (either) or intersects two lists over the same word.
func joinMembers(a, b *member, either operator) *member {
	c := *a
	if a.out && !b.out {
		a, b = b, a
	}
	// By De Morgan a list of excluded names joins as the listed names do under the other operator.
	switch {
	case a.out == b.out:
		c.out = a.out
		c.names = minus(a.names, minus(a.names, b.names))
		if either == disjunction != a.out {
			c.names = distinct(append(slices.Clone(a.names), b.names...))
		}
	case either == disjunction: // in a, or not in b: everything but what b excludes and a does not list
		c.out, c.names = true, minus(b.names, a.names)
	default: // in a and not in b
		c.out, c.names = false, minus(a.names, b.names)
	}
	return &c
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return contains(b, x) })
}

// distinct sorts names and drops repeats.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// joinSpans intersects two ranges, or unites them when they touch.
func joinSpans(a, b *span, either operator) (*span, bool) {
	if a.lo > b.lo || a.lo == b.lo && a.loOpen && !b.loOpen {
		a, b = b, a // a starts first
	}
	c := *b
	bEndsFirst := b.hi < a.hi || b.hi == a.hi && b.hiOpen
	if either == conjunction {
		if !bEndsFirst {
			c.hi, c.hiOpen = a.hi, a.hiOpen
		}
		return &c, true
	}
	if a.hi < b.lo || a.hi == b.lo && a.hiOpen && b.loOpen {
		return nil, false
	}
	c.lo, c.loOpen = a.lo, a.loOpen
	if bEndsFirst {
		c.hi, c.hiOpen = a.hi, a.hiOpen
	}
	return &c, true
}

// absorb drops members made superfluous by a sibling: x and (x or y) is x, x or (x and y) is x.
func absorb(xs []node) []node {
	return slices.DeleteFunc(slices.Clone(xs), func(x node) bool {
		return slices.ContainsFunc(membersOf(x), func(i node) bool {
			return slices.ContainsFunc(xs, func(sibling node) bool { return same(sibling, i) })
		})
	})
}

// membersOf returns the members of an operator and nothing for anything else.
func membersOf(n node) []node {
	switch n := n.(type) {
	case *all:
		return n.xs
	case *anyOf:
		return n.xs
	}
	return nil
}

func newLeaf(k signal.Kind, p predicate) *leaf { return &leaf{kind: k, test: p, text: p.text()} }
