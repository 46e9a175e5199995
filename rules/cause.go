package rules

import (
	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
)

// Cause returns the signal about attacks whose score made the condition of a decision's route true,
// and the origins that the condition names for it, 0 if it names none. ok is false if no route
// matched, or matched for another reason, such as a low score. If there are several such tests, the
// first one evaluated is returned.
func (p *Program) Cause(d *Decision, set *signal.Set) (k signal.Kind, origins signal.Origins, ok bool) {
	if d.Outcome != Matched {
		return 0, 0, false
	}
	for i := range p.routes {
		if r := &p.routes[i]; r.index == d.Index {
			if l := causeOf(r.When, set); l != nil {
				return l.Kind, l.Origins(), true
			}
		}
	}
	return 0, 0, false
}

// causeOf finds a test for attacks among the tests that make n true; nil without one.
func causeOf(n condition.Node, set *signal.Set) *condition.Leaf {
	if n.Eval(set) != condition.Exactly(condition.True) {
		return nil
	}
	var xs []condition.Node
	switch n := n.(type) {
	case *condition.Leaf:
		if ofAttacks(n) && n.BoundsBelow() {
			return n
		}
	case *condition.Not: // above a leaf: see condition.Not
		if l, ok := n.X.(*condition.Leaf); ok && ofAttacks(l) && !l.BoundsBelow() {
			return l
		}
	case *condition.All:
		xs = n.Xs
	case *condition.Any:
		xs = n.Xs
	}
	for _, x := range xs {
		if l := causeOf(x, set); l != nil {
			return l
		}
	}
	return nil
}

func ofAttacks(l *condition.Leaf) bool {
	return l.Kind == signal.Jailbreak || l.Kind == signal.Injection
}
