package rules

import "signalbox/internal/signal"

// weigh returns what the route's condition can still become for set, and the condition in which the
// open parts are to be looked for. Where several tests of one signal are spread over a condition,
// known facts may leave two of them side by side that contradict each other, such as `domain is
// math` and `domain is not math`; what is left is then simplified again, so that no pass is run for
// a value that cannot matter. That allocates, and happens only before signals are asked for.
func (r *route) weigh(set *signal.Set) (bounds, node) {
	b := r.when.eval(set)
	if !r.tangled || r.onUnknown.resolve(b).settled() {
		return b, r.when
	}
	rest := newSimplifier(r.labels).simplify(substitute(r.when, set, r.onUnknown))
	b = rest.eval(set)
	settled := r.onUnknown.resolve(b)
	failed := exactly(unknown)
	if settled.settled() && r.onUnknown.resolve(failed) == settled && failedKinds(r.when, set) != 0 {
		return failed, rest // say that the policy decided
	}
	return b, rest
}

// substitute replaces the literals whose value is known, and those that failed by what the policy
// makes of them; under on_unknown: error they stay. It expects a simplified condition.
func substitute(n node, set *signal.Set, u OnUnknown) node {
	switch n := n.(type) {
	case *leaf, *not:
		b := u.resolve(n.eval(set))
		if b.settled() && b.lo != unknown {
			return constant(b.lo == yes)
		}
	case *all:
		return &all{substituteEach(n.xs, set, u)}
	case *anyOf:
		return &anyOf{substituteEach(n.xs, set, u)}
	case constant:
	}
	return n
}

func substituteEach(xs []node, set *signal.Set, u OnUnknown) []node {
	out := make([]node, len(xs))
	for i, x := range xs {
		out[i] = substitute(x, set, u)
	}
	return out
}

// isTangled reports that the condition has operators inside operators and reads a costly signal in
// more than one place.
func isTangled(n node) bool {
	var seen signal.Mask
	tangled := false
	each(n, func(l *leaf) {
		if l.kind >= signal.NumKinds || l.kind.Tier() == signal.TierLexical {
			return
		}
		tangled = tangled || seen.Has(l.kind)
		seen |= signal.MaskOf(l.kind)
	})
	return tangled && nested(n)
}

func nested(n node) bool {
	return !every(membersOf(n), func(x node) bool {
		l, _ := literal(x)
		return l != nil
	})
}
