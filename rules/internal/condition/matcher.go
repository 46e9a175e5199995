package condition

import "signalbox/internal/signal"

// Matcher is a simplified condition with what an unknown value of it comes to.
type Matcher struct {
	When      Node
	OnUnknown OnUnknown
	Kinds     signal.Mask // the signals that When reads

	labels  Labels
	tangled bool // see Eval
}

// Matcher simplifies a condition and joins it with a policy. It keeps no reference to the
// simplifier.
func (s *Simplifier) Matcher(when Node, u OnUnknown) Matcher {
	when = s.Simplify(when)
	return Matcher{When: when, OnUnknown: u, Kinds: KindsOf(when), labels: s.labels, tangled: isTangled(when)}
}

// Eval returns what the condition can still become for set, before OnUnknown, and the residual
// condition, which is where Pending finds what is missing. Where several tests of one signal are
// spread over a condition, known facts may leave two of them side by side that contradict each
// other, such as `domain is math` and `domain is not math`; what is left is then simplified again,
// so that no pass is run for a value that cannot matter. That allocates, and happens only before
// signals are asked for.
func (m *Matcher) Eval(set *signal.Set) (Bounds, Node) {
	b := m.When.Eval(set)
	if !m.tangled || m.OnUnknown.Resolve(b).Settled() {
		return b, m.When
	}
	rest := NewSimplifier(m.labels).Simplify(substitute(m.When, set, m.OnUnknown))
	b = rest.Eval(set)
	resolved := m.OnUnknown.Resolve(b)
	failed := Exactly(Unknown)
	if resolved.Settled() && m.OnUnknown.Resolve(failed) == resolved && m.Failed(set) != 0 {
		return failed, rest // say that the policy decided
	}
	return b, rest
}

// Pending returns the signals not yet extracted that can still change what the policy makes of the
// residual condition.
func (m *Matcher) Pending(rest Node, set *signal.Set) signal.Mask {
	if m.OnUnknown.Resolve(rest.Eval(set)).Settled() {
		return 0
	}
	if l, _ := Literal(rest); l != nil {
		return signal.MaskOf(l.Kind)
	}
	var out signal.Mask
	for _, x := range Members(rest) {
		out |= m.Pending(x, set)
	}
	return out
}

// Failed returns the failed signals that keep the condition from having a definite value.
func (m *Matcher) Failed(set *signal.Set) signal.Mask { return failedIn(m.When, set) }

func failedIn(n Node, set *signal.Set) signal.Mask {
	if b := n.Eval(set); b.Settled() && b.Lo != Unknown {
		return 0
	}
	if l, _ := Literal(n); l != nil {
		if v := set.Value(l.Kind); l.partial(v) || StateOf(v) == signal.Unknown {
			return signal.MaskOf(l.Kind)
		}
		return 0
	}
	var out signal.Mask
	for _, x := range Members(n) {
		out |= failedIn(x, set)
	}
	return out
}

// substitute replaces the literals whose value is known, and those that failed by what the policy
// makes of them; under on_unknown: error they stay.
func substitute(n Node, set *signal.Set, u OnUnknown) Node {
	return mapLiterals(n, func(x Node) Node {
		b := u.Resolve(x.Eval(set))
		if b.Settled() && b.Lo != Unknown {
			return Constant(b.Lo == True)
		}
		return x
	})
}

// isTangled reports that the condition has operators inside operators and reads a costly signal in
// more than one place.
func isTangled(n Node) bool {
	var seen signal.Mask
	repeated := false
	EachLeaf(n, func(l *Leaf) {
		if !l.ReadsSignal() || l.Kind.Tier() == signal.TierLexical {
			return
		}
		repeated = repeated || seen.Has(l.Kind)
		seen |= signal.MaskOf(l.Kind)
	})
	return repeated && !every(Members(n), func(x Node) bool {
		l, _ := Literal(x)
		return l != nil
	})
}
