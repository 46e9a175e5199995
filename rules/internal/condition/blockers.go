package condition

import (
	"slices"

	"signalbox/internal/signal"
)

// Blockers names the literals that keep the matcher from matching, by their text: with their values
// fixed, nothing that the others could be would make a difference, and none of them can be left
// out. raw is the first result of Eval for set. Nothing is named for a matcher that matches or is
// open.
//
// Where evaluation stopped at one member of an operator, that member is named, not an equally good
// one that was never looked at. So the set is minimal, though not always the smallest there is.
func (m *Matcher) Blockers(set *signal.Set, raw Bounds) []string {
	if !m.rejects(raw) {
		return nil
	}
	if m.rejects(m.When.Eval(set)) {
		kept := m.blocking(m.When, set, nil)
		return texts(minimal(kept, func(fewer []Node) bool { return m.rejects(m.onlyKnown(fewer).Eval(set)) }))
	}
	// Tests of one missing signal exclude each other: no leaf on its own blocks, so the condition
	// is simplified as Eval does.
	simplifier := NewSimplifier(m.labels)
	return texts(minimal(literals(m.When), func(fewer []Node) bool {
		return m.rejects(simplifier.Simplify(substitute(m.onlyKnown(fewer), set, m.OnUnknown)).Eval(set))
	}))
}

// rejects reports that the policy makes false of a value.
func (m *Matcher) rejects(b Bounds) bool { return m.OnUnknown.Resolve(b).Hi == False }

// minimal leaves out, from the last to the first, what enough can do without.
func minimal(kept []Node, enough func([]Node) bool) []Node {
	for i := range slices.Backward(slices.Clone(kept)) {
		if fewer := slices.Delete(slices.Clone(kept), i, i+1); enough(fewer) {
			kept = fewer
		}
	}
	return kept
}

// blocking adds to found the literals by which n is rejected, in the order of evaluation.
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
	case *All: // any rejected member will do
		return m.cheapest(n, set, found)
	}
	return found
}

// cheapest adds to found the literals of the rejected member of n that needs the fewest more, among
// those that evaluation reaches and that have the value of n.
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

// onlyKnown returns the condition with nothing known of any literal but those of kept.
func (m *Matcher) onlyKnown(kept []Node) Node {
	return mapLiterals(m.When, func(x Node) Node {
		if contains(kept, x) {
			return x
		}
		return &anything{}
	})
}

// anything is a condition of which nothing is known.
type anything struct{ _ byte } // not of size zero: two of them are not the same

// Eval implements Node.
func (*anything) Eval(*signal.Set) Bounds { return open() }

// Holds implements Node.
func (*anything) Holds(*signal.Set) bool { return false }

// String implements Node.
func (*anything) String() string { return "?" }

func (*anything) sealed() {}

// literals returns the literals of a simplified condition in order, each once.
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
