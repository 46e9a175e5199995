package condition

import (
	"math"
	"slices"
	"strings"

	"signalbox/internal/signal"
)

// Node is a condition. The set of implementations is closed: Constant, *Leaf, *Not, *All and *Any,
// and internally one whose value is open, for Blockers.
type Node interface {
	// Eval returns the range of values that the condition can take for set.
	Eval(set *signal.Set) Bounds
	// Holds is Eval for a set in which every signal that the condition reads is known. Two values
	// are sufficient then; this is the case for most requests.
	Holds(set *signal.Set) bool
	// String is canonical: equal text means equal conditions. The simplifier and traces use it.
	String() string

	sealed()
}

// Constant is a condition with the same value for every request.
type Constant bool

// Eval implements Node.
func (c Constant) Eval(*signal.Set) Bounds { return of(bool(c)) }

// Holds implements Node.
func (c Constant) Holds(*signal.Set) bool { return bool(c) }

// String implements Node.
func (c Constant) String() string {
	if c {
		return "true"
	}
	return "false"
}

// Not is the negation. After simplification it only occurs directly above a leaf.
type Not struct{ X Node }

// Eval implements Node.
func (n *Not) Eval(set *signal.Set) Bounds { return n.X.Eval(set).negate() }

// Holds implements Node.
func (n *Not) Holds(set *signal.Set) bool { return !n.X.Holds(set) }

// String implements Node.
func (n *Not) String() string { return "not " + n.X.String() }

// All is the conjunction: the minimum of its members, true without any.
type All struct{ Xs []Node }

// Eval implements Node. It stops at a member that is false.
func (n *All) Eval(set *signal.Set) Bounds {
	out := Exactly(True)
	for _, x := range n.Xs {
		b := x.Eval(set)
		if b.Hi == False {
			return b
		}
		out = out.And(b)
	}
	return out
}

// Holds implements Node.
func (n *All) Holds(set *signal.Set) bool {
	return !slices.ContainsFunc(n.Xs, func(x Node) bool { return !x.Holds(set) })
}

// String implements Node.
func (n *All) String() string { return "all: " + listed(n.Xs) }

// Any is the disjunction: the maximum of its members, false without any.
type Any struct{ Xs []Node }

// Eval implements Node. It stops at a member that is true.
func (n *Any) Eval(set *signal.Set) Bounds {
	out := Exactly(False)
	for _, x := range n.Xs {
		b := x.Eval(set)
		if b.Lo == True {
			return b
		}
		out = out.Or(b)
	}
	return out
}

// Holds implements Node.
func (n *Any) Holds(set *signal.Set) bool {
	return slices.ContainsFunc(n.Xs, func(x Node) bool { return x.Holds(set) })
}

// String implements Node.
func (n *Any) String() string { return "any: " + listed(n.Xs) }

func listed(xs []Node) string { return "[" + strings.Join(texts(xs), ", ") + "]" }

func texts(xs []Node) []string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = x.String()
	}
	return out
}

// Leaf tests one signal or one fact. This package has one constructor for each kind of test.
type Leaf struct {
	Kind signal.Kind // the signal that is read; NumKinds for facts, which are always known

	test predicate
	text string
}

func newLeaf(k signal.Kind, p predicate) *Leaf { return &Leaf{Kind: k, test: p, text: p.text()} }

// ReadsSignal reports whether the leaf reads a signal, as opposed to a fact.
func (l *Leaf) ReadsSignal() bool { return l.Kind < signal.NumKinds }

// Signal returns the name of the signal that is read; empty for facts.
func (l *Leaf) Signal() string {
	if t, ok := l.test.(*own); ok {
		return t.name
	}
	if l.ReadsSignal() {
		return l.Kind.String()
	}
	return ""
}

// Eval implements Node.
func (l *Leaf) Eval(set *signal.Set) Bounds {
	if l.ReadsSignal() {
		switch StateOf(set.Value(l.Kind)) {
		case signal.NotExtracted:
			if x, ok := l.test.(excludedMiddle); ok {
				return x.pending()
			}
			return open()
		case signal.Unknown:
			return Exactly(Unknown)
		case signal.Known:
			if l.partial(set.Value(l.Kind)) {
				return certain(l.test, set)
			}
		}
	}
	return of(l.test.holds(set))
}

// Holds implements Node.
func (l *Leaf) Holds(set *signal.Set) bool { return l.test.holds(set) }

// String implements Node.
func (l *Leaf) String() string { return l.text }

func (Constant) sealed() {}
func (*Not) sealed()     {}
func (*All) sealed()     {}
func (*Any) sealed()     {}
func (*Leaf) sealed()    {}

// Origins returns the origins whose verdicts the leaf tests; 0 if it tests the value as a whole.
func (l *Leaf) Origins() signal.Origins { return originsOf(l.test) }

// partial reports whether a known value covers only a part of what the leaf tests.
func (l *Leaf) partial(v *signal.Value) bool {
	origins := l.Origins()
	if origins == 0 {
		return v.Partial
	}
	return partialOf(v, origins)
}

func partialOf(v *signal.Value, origins signal.Origins) bool {
	return slices.ContainsFunc(v.Verdicts, func(x signal.Verdict) bool { return x.Partial && origins.Has(x.Origin) })
}

// StateOf returns the state of a value for conditions. A known value with a score that is not a
// number counts as failed: all comparisons with it are false, and an invalid model output must not
// count as a harmless text.
func StateOf(v *signal.Value) signal.State {
	if v.State != signal.Known {
		return v.State
	}
	broken := math.IsNaN(v.Score)
	for i := range v.Verdicts {
		broken = broken || math.IsNaN(v.Verdicts[i].Score)
	}
	if broken {
		return signal.Unknown
	}
	return v.State
}

// Known returns the signals whose value can be compared and covers the whole request.
func Known(set *signal.Set) signal.Mask {
	var m signal.Mask
	for k := range signal.NumKinds {
		if v := set.Value(k); StateOf(v) == signal.Known && !v.Partial &&
			!partialOf(v, ^signal.Origins(0)) {
			m |= 1 << k
		}
	}
	return m
}

// Members returns the members of an operator, which are shared, and nil for anything else.
func Members(n Node) []Node {
	switch n := n.(type) {
	case *All:
		return n.Xs
	case *Any:
		return n.Xs
	}
	return nil
}

// Literal returns the leaf of a literal (a leaf or its negation) and whether it is negated. The
// leaf is nil for anything else.
func Literal(n Node) (l *Leaf, negated bool) {
	switch n := n.(type) {
	case *Leaf:
		return n, false
	case *Not:
		l, _ = n.X.(*Leaf)
		return l, true
	}
	return nil, false
}

// EachLeaf visits the leaves in order.
func EachLeaf(n Node, visit func(*Leaf)) {
	switch n := n.(type) {
	case *Leaf:
		visit(n)
	case *Not:
		EachLeaf(n.X, visit)
	default:
		for _, x := range Members(n) {
			EachLeaf(x, visit)
		}
	}
}

// KindsOf returns every signal that the condition mentions.
func KindsOf(n Node) signal.Mask {
	var m signal.Mask
	EachLeaf(n, func(l *Leaf) {
		if l.ReadsSignal() {
			m |= signal.MaskOf(l.Kind)
		}
	})
	return m
}

// mapLiterals returns n with f applied to its literals. n must be in negation normal form.
func mapLiterals(n Node, f func(Node) Node) Node {
	each := func(xs []Node) []Node {
		out := slices.Clone(xs)
		for i, x := range xs {
			out[i] = mapLiterals(x, f)
		}
		return out
	}
	switch n := n.(type) {
	case *All:
		return &All{each(n.Xs)}
	case *Any:
		return &Any{each(n.Xs)}
	case *Leaf, *Not:
		return f(n)
	}
	return n
}
