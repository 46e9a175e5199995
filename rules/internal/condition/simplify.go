package condition

import (
	"slices"

	"signalbox/internal/signal"
)

// Labels holds the labels that a kind can have, in the order of signal.Value.Labels. Nothing is
// known about a kind without an entry.
type Labels map[signal.Kind][]string

// operator is the kind of a group: any if true, all if false. It is also the constant that decides
// the group by itself; the opposite constant has no effect in it.
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

// Simplifier rewrites conditions and shares equal leaves between all of them. It belongs to one
// goroutine.
type Simplifier struct {
	leaves map[string]*Leaf // by text
	labels Labels
}

// NewSimplifier returns a simplifier. It and its matchers retain labels, which must not be
// modified.
func NewSimplifier(labels Labels) *Simplifier {
	return &Simplifier{map[string]*Leaf{}, labels}
}

// Simplify returns an equivalent condition in negation normal form. For settled signals the value
// is the same, including unknown; for pending ones the bounds are the same or tighter.
func (s *Simplifier) Simplify(n Node) Node { return s.rewrite(n, false) }

// rewrite simplifies n, or its negation if flipped is set.
func (s *Simplifier) rewrite(n Node, flipped bool) Node { //nolint:revive // the polarity of negation normal form
	switch n := n.(type) {
	case Constant:
		return Constant(bool(n) != flipped)
	case *Not:
		return s.rewrite(n.X, !flipped)
	case *All:
		return s.group(n.Xs, flipped, operator(flipped))
	case *Any:
		return s.group(n.Xs, flipped, operator(!flipped))
	case *Leaf:
		if !flipped {
			return s.share(n)
		}
		return s.complement(n)
	case *anything:
		return n
	}
	panic("condition: node of another package")
}

// share returns the one leaf with the text of l, or a constant if its test always has the same
// value.
func (s *Simplifier) share(l *Leaf) Node {
	switch t := l.test.(type) {
	case *interval:
		if full := t.full(); full || t.empty() {
			return s.fixed(l.Kind, l.Origins(), full)
		}
	case *best:
		if t.trivial() {
			return s.fixed(l.Kind, l.Origins(), true)
		}
	case *member:
		if len(t.in.list) == 0 {
			return s.fixed(l.Kind, l.Origins(), t.in.everything())
		}
		if t.subject == ofLabel && s.covers(l.Kind, t.in.list) {
			return s.fixed(l.Kind, l.Origins(), !t.in.except)
		}
	}
	if known, ok := s.leaves[l.text]; ok {
		return known
	}
	s.leaves[l.text] = l
	return l
}

// covers reports whether names contain every label that a known value of the kind can have. An
// intent may also be none of those listed.
func (s *Simplifier) covers(k signal.Kind, names []string) bool {
	return (k == signal.Domain || k == signal.Complexity) && len(s.labels[k]) > 0 && subset(s.labels[k], names)
}

// leaf makes the shared leaf of a test.
func (s *Simplifier) leaf(k signal.Kind, p predicate) Node { return s.share(newLeaf(k, p)) }

// fixed returns a condition with a fixed value, which is unknown only if the signal failed.
func (s *Simplifier) fixed(k signal.Kind, origins signal.Origins, value bool) Node {
	if k >= signal.NumKinds {
		return Constant(value)
	}
	return s.leaf(k, excludedMiddle{k, value, origins})
}

// complement negates a leaf; the result is a leaf if the negation can be expressed as one.
func (s *Simplifier) complement(l *Leaf) Node {
	switch t := l.test.(type) {
	case *member:
		return s.leaf(l.Kind, &member{t.subject, t.kind, t.in.complement()})
	case *keywords:
		return s.leaf(l.Kind, &keywords{t.in.complement()})
	case excludedMiddle:
		return s.leaf(l.Kind, excludedMiddle{t.kind, !t.value, t.origins})
	case *interval:
		if outside, ok := t.in.complement(); ok {
			return s.leaf(l.Kind, t.over(outside))
		}
	}
	x := s.share(l)
	if x != Node(l) {
		if shared, ok := x.(*Leaf); !ok || shared.text != l.text {
			return s.rewrite(x, true)
		}
	}
	return &Not{x}
}

// group simplifies the members of an operator. either is its kind after the negation, if flipped,
// has been moved inwards.
func (s *Simplifier) group(members []Node, flipped bool, either operator) Node {
	var xs []Node
	for _, m := range members {
		x := s.rewrite(m, flipped)
		if c, ok := x.(Constant); ok {
			if operator(c) == either {
				return c
			}
			continue
		}
		xs = appendFlat(xs, x, either)
	}
	xs = s.merge(xs, either)
	if i := slices.Index(xs, Node(Constant(either))); i >= 0 {
		return Constant(either)
	}
	xs = slices.DeleteFunc(xs, func(x Node) bool { return x == Node(Constant(!either)) })
	xs = absorb(xs)
	switch {
	case len(xs) == 0:
		return Constant(!either)
	case len(xs) == 1:
		return xs[0]
	case either == disjunction:
		return &Any{xs}
	}
	return &All{xs}
}

// appendFlat appends x, or its members if x is the same operator.
func appendFlat(xs []Node, x Node, either operator) []Node {
	switch x := x.(type) {
	case *All:
		if either == conjunction {
			return append(xs, x.Xs...)
		}
	case *Any:
		if either == disjunction {
			return append(xs, x.Xs...)
		}
	}
	return append(xs, x)
}

// merge joins members with the same subject until no two can be joined.
func (s *Simplifier) merge(xs []Node, either operator) []Node {
	var out []Node
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

// join returns one condition equivalent to a and b under the operator.
func (s *Simplifier) join(a, b Node, either operator) (Node, bool) {
	if Same(a, b) {
		return a, true
	}
	if joined, ok := s.related(a, b, either); ok {
		return joined, true
	}
	x, ok1 := a.(*Leaf)
	y, ok2 := b.(*Leaf)
	if !ok1 || !ok2 || x.Kind != y.Kind {
		return nil, false
	}
	switch t := x.test.(type) {
	case *member:
		if u, ok := y.test.(*member); ok && u.subject == t.subject {
			return s.leaf(x.Kind, &member{t.subject, t.kind, t.in.join(u.in, either)}), true
		}
	case *interval:
		u, ok := y.test.(*interval)
		if !ok || !u.comparable(t) {
			return nil, false
		}
		in := t.in.Intersect(u.in)
		if either == disjunction {
			if in, ok = t.in.unite(u.in); !ok {
				return nil, false
			}
		}
		return s.leaf(x.Kind, t.over(in)), true
	}
	return nil, false
}

// Same reports whether two conditions of one simplifier are equal. Their leaves are shared, so text
// is only compared for operators.
func Same(a, b Node) bool {
	if a == b {
		return true
	}
	switch a.(type) {
	case *All:
		_, ok := b.(*All)
		return ok && a.String() == b.String()
	case *Any:
		_, ok := b.(*Any)
		return ok && a.String() == b.String()
	case *Not:
		_, ok := b.(*Not)
		return ok && a.String() == b.String()
	}
	return false
}

// related joins two literals over one signal if one implies the other or its negation. Both are
// known or both unknown, so what holds for two values holds for three.
func (s *Simplifier) related(a, b Node, either operator) (Node, bool) {
	x, _ := Literal(a)
	y, _ := Literal(b)
	if x == nil || y == nil || x.Kind != y.Kind {
		return nil, false
	}
	notA, notB := s.rewrite(a, true), s.rewrite(b, true)
	switch {
	case either == disjunction && (entails(notA, b) || entails(notB, a)),
		either == conjunction && (entails(a, notB) || entails(b, notA)):
		// One of the two sets of origins contains the other: the result for the smaller one
		// decides.
		return s.fixed(x.Kind, x.Origins()&y.Origins(), bool(either)), true
	case entails(a, b):
		return pick(either, b, a), true
	case entails(b, a):
		return pick(either, a, b), true
	}
	return nil, false
}

// absorb removes members that a sibling makes superfluous: x and (x or y) is x, x or (x and y) is
// x.
func absorb(xs []Node) []Node {
	return slices.DeleteFunc(slices.Clone(xs), func(x Node) bool {
		return slices.ContainsFunc(Members(x), func(i Node) bool { return contains(xs, i) })
	})
}

func contains(xs []Node, x Node) bool {
	return slices.ContainsFunc(xs, func(y Node) bool { return Same(y, x) })
}
