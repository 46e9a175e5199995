package condition

import (
	"slices"

	"signalbox/internal/signal"
)

// Blockers returns the text of the literals that keep the matcher from matching. With their values
// fixed, no value of the other literals would make it match, and none of them can be omitted. raw
// is the first result of Eval for set. The result is empty for a matcher that matches or is open.
//
// Where evaluation stopped at one member of an operator, that member is returned, not an equally
// good one that was not evaluated. The set is therefore minimal, though not always the smallest
// possible.
func (m *Matcher) Blockers(set *signal.Set, raw Bounds) []string {
	if !m.rejects(raw) {
		return nil
	}
	if m.rejects(m.When.Eval(set)) {
		kept := m.blocking(m.When, set, nil)
		return texts(minimal(kept, func(fewer []Node) bool { return m.rejects(m.onlyKnown(fewer).Eval(set)) }))
	}
	// Tests of one missing signal may exclude each other, so that no single leaf blocks. The
	// condition is therefore simplified as in Eval.
	simplifier := NewSimplifier(m.labels)
	return texts(minimal(literals(m.When), func(fewer []Node) bool {
		return m.rejects(simplifier.Simplify(substitute(m.onlyKnown(fewer), set, m.OnUnknown)).Eval(set))
	}))
}

// rejects reports whether the policy maps a value to false.
func (m *Matcher) rejects(b Bounds) bool { return m.OnUnknown.Resolve(b).Hi == False }

// minimal removes, from the last to the first, the members that enough does not need.
func minimal(kept []Node, enough func([]Node) bool) []Node {
	for i := range slices.Backward(slices.Clone(kept)) {
		if fewer := slices.Delete(slices.Clone(kept), i, i+1); enough(fewer) {
			kept = fewer
		}
	}
	return kept
}

// blocking appends to found the literals because of which n is rejected, in the order of
// evaluation.
func (m *Matcher) blocking(n Node, set *signal.Set, found []Node) []Node {
	switch n := n.(type) {
	case *Leaf, *Not:
		if contains(found, n) {
			return found
		}
		return append(found, n)
	case *Any: // all of its members are rejected
		for _, x := range n.Xs {
			found = m.blocking(x, set, found)
		}
	case *All: // one rejected member is sufficient
		return m.cheapest(n, set, found)
	}
	return found
}

// cheapest appends to found the literals of one rejected member of n: among the evaluated members
// with the value of n, the one that needs the fewest additional literals.
func (m *Matcher) cheapest(n *All, set *signal.Set, found []Node) []Node {
	value := n.Eval(set).Hi
	var fewest []Node
	for _, x := range n.Xs {
		b := x.Eval(set)
		if b.Hi == value && m.rejects(b) {
			if with := m.blocking(x, set, slices.Clone(found)); fewest == nil || len(with) < len(fewest) {
				fewest = with
			}
		}
		if b.Hi == False {
			break
		}
	}
	return fewest
}

// onlyKnown returns the condition with every literal that is not in kept replaced by an unknown
// one.
func (m *Matcher) onlyKnown(kept []Node) Node {
	return mapLiterals(m.When, func(x Node) Node {
		if contains(kept, x) {
			return x
		}
		return &anything{}
	})
}

// anything is a condition whose value is entirely open.
type anything struct{ _ byte } // not of size zero: pointers to two of them must differ

// Eval implements Node.
func (*anything) Eval(*signal.Set) Bounds { return open() }

// Holds implements Node.
func (*anything) Holds(*signal.Set) bool { return false }

// String implements Node.
func (*anything) String() string { return "?" }

func (*anything) sealed() {}

// literals returns the distinct literals of a simplified condition in order.
func literals(n Node) []Node {
	var out []Node
	mapLiterals(n, func(x Node) Node {
		if !contains(out, x) {
			out = append(out, x)
		}
		return x
	})
	return out
}
