package rules

import (
	"math"
	"strings"

	"signalbox/internal/signal"
)

// node is a condition. The set of implementations is closed: constant, *leaf, *not, *all, *anyOf,
// and *open where a trace looks for blockers.
type node interface {
	// eval returns the range of values that the condition can take for set.
	eval(set *signal.Set) bounds
	// holds is eval for a set in which every signal that the condition reads is known: two values
	// are enough then, and most requests of a program meet it so.
	holds(set *signal.Set) bool
	// String is canonical: equal text means equal condition. The simplifier and the trace use it.
	String() string
}

// constant is `true` or `false` in YAML.
type constant bool

func (c constant) eval(*signal.Set) bounds { return of(bool(c)) }

func (c constant) holds(*signal.Set) bool { return bool(c) }

func (c constant) String() string {
	if c {
		return "true"
	}
	return "false"
}

// not negates. After simplification it stands directly above a leaf only.
type not struct{ x node }

func (n *not) eval(set *signal.Set) bounds { return n.x.eval(set).flip() }

func (n *not) holds(set *signal.Set) bool { return !n.x.holds(set) }

func (n *not) String() string { return "not " + n.x.String() }

// all is the conjunction: the minimum of its members.
type all struct{ xs []node }

func (n *all) eval(set *signal.Set) bounds {
	out := exactly(yes)
	for _, x := range n.xs {
		b := x.eval(set)
		if b.hi == no {
			return b
		}
		out.lo, out.hi = min(out.lo, b.lo), min(out.hi, b.hi)
	}
	return out
}

func (n *all) holds(set *signal.Set) bool {
	for _, x := range n.xs {
		if !x.holds(set) {
			return false
		}
	}
	return true
}

func (n *all) String() string { return group("all", n.xs) }

// anyOf is the disjunction: the maximum of its members.
type anyOf struct{ xs []node }

func (n *anyOf) eval(set *signal.Set) bounds {
	out := exactly(no)
	for _, x := range n.xs {
		b := x.eval(set)
		if b.lo == yes {
			return b
		}
		out.lo, out.hi = max(out.lo, b.lo), max(out.hi, b.hi)
	}
	return out
}

func (n *anyOf) holds(set *signal.Set) bool {
	for _, x := range n.xs {
		if x.holds(set) {
			return true
		}
	}
	return false
}

func (n *anyOf) String() string { return group("any", n.xs) }

func group(op string, xs []node) string {
	var b strings.Builder
	b.WriteString(op)
	b.WriteString(": [")
	for i, x := range xs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(x.String())
	}
	b.WriteString("]")
	return b.String()
}

// leaf tests one signal or one fact.
type leaf struct {
	kind signal.Kind // NumKinds when the test reads facts, which are always known
	test predicate
	text string
}

func (l *leaf) eval(set *signal.Set) bounds {
	if l.kind < signal.NumKinds {
		switch stateOf(&set.Values[l.kind]) {
		case signal.NotExtracted:
			if s, ok := l.test.(tautology); ok {
				return s.pending()
			}
			return bounds{no, yes}
		case signal.Unknown:
			return exactly(unknown)
		case signal.Known:
		}
	}
	return of(l.test.holds(set))
}

func (l *leaf) holds(set *signal.Set) bool { return l.test.holds(set) }

func (l *leaf) String() string { return l.text }

// stateOf treats a known value whose score is not a number as failed: comparisons with it are all
// false, and a broken model output must not read as a clean text.
func stateOf(v *signal.Value) signal.State {
	if v.State == signal.Known && math.IsNaN(v.Score) {
		return signal.Unknown
	}
	return v.State
}

// knownIn returns the signals whose value can be compared.
func knownIn(set *signal.Set) signal.Mask {
	var m signal.Mask
	for k := range signal.NumKinds {
		if stateOf(&set.Values[k]) == signal.Known {
			m |= 1 << k
		}
	}
	return m
}

// kindsOf returns every signal that the condition mentions.
func kindsOf(n node) signal.Mask {
	var m signal.Mask
	each(n, func(l *leaf) {
		if l.kind < signal.NumKinds {
			m |= signal.MaskOf(l.kind)
		}
	})
	return m
}

// each visits the leaves in order.
func each(n node, visit func(*leaf)) {
	switch n := n.(type) {
	case *leaf:
		visit(n)
	case *not:
		each(n.x, visit)
	case *all:
		for _, x := range n.xs {
			each(x, visit)
		}
	case *anyOf:
		for _, x := range n.xs {
			each(x, visit)
		}
	case constant:
	}
}

// pendingKinds returns the signals not yet extracted that can still change what the policy makes of
// n. It expects a simplified condition.
func pendingKinds(n node, set *signal.Set, u OnUnknown) signal.Mask {
	if u.resolve(n.eval(set)).settled() {
		return 0
	}
	var m signal.Mask
	switch n := n.(type) {
	case *leaf:
		m = signal.MaskOf(n.kind)
	case *not:
		each(n, func(l *leaf) { m |= signal.MaskOf(l.kind) })
	case *all:
		for _, x := range n.xs {
			m |= pendingKinds(x, set, u)
		}
	case *anyOf:
		for _, x := range n.xs {
			m |= pendingKinds(x, set, u)
		}
	case constant:
	}
	return m
}

// failedKinds returns the failed signals that keep n from having a definite value.
func failedKinds(n node, set *signal.Set) signal.Mask {
	b := n.eval(set)
	if b.settled() && b.lo != unknown {
		return 0
	}
	var m signal.Mask
	switch n := n.(type) {
	case *leaf:
		if stateOf(&set.Values[n.kind]) == signal.Unknown {
			m = signal.MaskOf(n.kind)
		}
	case *not:
		m = failedKinds(n.x, set)
	case *all:
		for _, x := range n.xs {
			m |= failedKinds(x, set)
		}
	case *anyOf:
		for _, x := range n.xs {
			m |= failedKinds(x, set)
		}
	case constant:
	}
	return m
}
