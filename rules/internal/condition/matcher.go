package condition

import "signalbox/internal/signal"

// Matcher is a simplified condition with the policy for an unknown value.
type Matcher struct {
	When      Node
	OnUnknown OnUnknown
	Kinds     signal.Mask // the signals that When reads

	labels  Labels
	tangled bool // see Eval
}

// Matcher simplifies a condition and joins it with a policy. The result does not refer to the
// simplifier.
func (s *Simplifier) Matcher(when Node, u OnUnknown) Matcher {
	when = s.Simplify(when)
	return Matcher{When: when, OnUnknown: u, Kinds: KindsOf(when), labels: s.labels, tangled: isTangled(when)}
}

// Eval returns the values that the condition can still take for set, before OnUnknown, and the
// residual condition, in which Pending finds the missing signals. If a condition tests one signal
// in several places, known facts may leave two contradictory tests, such as `domain is math` and
// `domain is not math`. The residual condition is then simplified again, so that no pass is run for
// a value that cannot matter. That allocates, and only happens before signals are requested.
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
		return failed, rest // so that the policy counts as the reason
	}
	return b, rest
}

// Pending returns the missing signals that can still change the result of the policy for the
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

// substitute replaces literals with a known value, and failed ones by the result of the policy;
// with on_unknown: error failed literals stay.
func substitute(n Node, set *signal.Set, u OnUnknown) Node {
	return mapLiterals(n, func(x Node) Node {
		b := u.Resolve(x.Eval(set))
		if b.Settled() && b.Lo != Unknown {
			return Constant(b.Lo == True)
		}
		return x
	})
}

// isTangled reports whether the condition has nested operators and reads an expensive signal in
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
