package condition

import (
	"slices"
	"strings"

	"signalbox/internal/signal"
)

// BestBounds limits the probability of the most probable label of a set.
type BestBounds struct {
	Min, Max float64 // in [0,1], both inclusive
	// minimum lead over the most probable label outside the set, or over the runner-up if no label
	// is outside; -1 for any
	Margin float64
}

// best tests the probability of the most probable label inside a set of labels.
type best struct {
	BestBounds

	kind   signal.Kind
	in     Names
	order  []string // the labels in the order in which models are known to report them
	inside []bool   // membership, parallel to order
	at     []int    // index in order of each name of in, -1 if absent; nil if in is an exception
}

// Best tests the probability of the most probable label inside a set, whether or not it is the
// predicted one. order holds the labels as models are expected to report them; a different order
// costs time but does not affect correctness.
func Best(k signal.Kind, in Names, bounds BestBounds, order []string) *Leaf {
	t := &best{BestBounds: bounds, kind: k, in: in, order: order}
	for _, label := range order {
		t.inside = append(t.inside, in.has(label))
	}
	if !in.except {
		for _, n := range in.list {
			t.at = append(t.at, slices.Index(order, n))
		}
	}
	return newLeaf(k, t)
}

func (t *best) holds(set *signal.Set) bool {
	v := set.Value(t.kind)
	if t.Margin < 0 && len(v.Probs) > 0 && t.at != nil {
		if in, ok := t.quick(v); ok {
			return in >= float32(t.Min) && in <= float32(t.Max)
		}
	}
	in, out := t.scores(v)
	return single(in) >= single(t.Min) && single(in) <= single(t.Max) && single(in-out) >= single(t.Margin)
}

// quick is scores without the labels outside, for a value whose labels have the expected order.
func (t *best) quick(v *signal.Value) (in float32, ok bool) {
	for i, n := range t.in.list {
		j := t.at[i]
		if j < 0 || j >= len(v.Labels) || j >= len(v.Probs) || v.Labels[j] != n {
			return 0, false
		}
		in = max(in, v.Probs[j])
	}
	return in, true
}

// scores returns the highest probability inside and outside of the set; if every label is inside,
// the two highest. A value without probabilities only gives that of its label: the other side can
// then have at most the rest.
func (t *best) scores(v *signal.Value) (in, out float64) {
	if len(v.Probs) == 0 {
		if t.in.has(v.Label) {
			return v.Score, 1 - v.Score
		}
		return 0, v.Score
	}
	everything := t.in.everything()
	for i, l := range v.Labels[:min(len(v.Labels), len(v.Probs))] {
		p := float64(v.Probs[i])
		switch {
		case everything && p > in:
			in, out = p, in
		case !everything && t.contains(i, l):
			in = max(in, p)
		default:
			out = max(out, p)
		}
	}
	return in, out
}

// contains reports whether label, at index i of the value, is inside.
func (t *best) contains(i int, label string) bool {
	if i < len(t.order) && t.order[i] == label {
		return t.inside[i]
	}
	return t.in.has(label)
}

// trivial reports whether every value passes.
func (t *best) trivial() bool { return t.Min <= 0 && t.Max >= 1 && t.Margin < 0 }

func (t *best) text() string {
	var b strings.Builder
	b.WriteString(t.kind.String())
	if !t.in.everything() {
		b.WriteString(t.in.String())
	}
	if t.Min > 0 || t.Max >= 1 && t.Margin < 0 {
		b.WriteString(" score >= " + number(t.Min))
	}
	if t.Max < 1 {
		b.WriteString(" score <= " + number(t.Max))
	}
	if t.Margin >= 0 {
		b.WriteString(" margin >= " + number(t.Margin))
	}
	return b.String()
}

func (t *best) implies(other predicate) bool {
	if m, ok := other.(*member); ok {
		return m.subject == ofLabel && m.kind == t.kind && t.wins() && t.in.within(m.in)
	}
	o, ok := other.(*best)
	if !ok || o.kind != t.kind {
		return false
	}
	if o.in.equal(t.in) {
		return t.Min >= o.Min && t.Max <= o.Max && t.Margin >= o.Margin
	}
	switch {
	case o.Margin >= 0:
		// A runner-up can have at most what the best label lacks.
		lead := 2*t.least() - 1
		if len(t.in.list) == 1 && !t.in.except {
			lead = max(lead, t.Margin)
		}
		return o.in.everything() && o.Max >= 1 && t.least() >= o.Min && lead >= o.Margin
	case o.Max >= 1:
		return t.least() >= o.Min && t.in.within(o.in)
	case o.Min <= 0:
		return 1-t.least() <= o.Max && t.in.within(o.in.complement())
	}
	return false
}

// negationImplies reports whether other holds whenever the receiver does not. Only the negation of
// an upper bound is itself a test: a probability that is not at most Max is above it.
func (t *best) negationImplies(other predicate) bool {
	if t.Min > 0 || t.Margin >= 0 {
		return false
	}
	above := *t
	above.Min, above.Max = t.Max, 1
	return above.implies(other)
}

// excludes reports whether the two tests never hold together.
func (t *best) excludes(o *best) bool {
	if t.in.equal(o.in) {
		return t.Min > o.Max || o.Min > t.Max
	}
	if !t.in.within(o.in.complement()) {
		return false
	}
	// No label is in both sets, so their best probabilities add up to at most 1, and a margin
	// requires a lead over the other's.
	low := max(t.least()+o.least(), 2*o.least()+t.Margin, 2*t.least()+o.Margin)
	return t.wins() && o.wins() || low > 1
}

// least returns the lowest probability of the best label inside for which the test can hold.
func (t *best) least() float64 { return max(t.Min, t.Margin) }

// wins reports whether the test can only hold if the predicted label is inside: a label of the set
// must have more than half of the probability, or a lead over everything outside.
func (t *best) wins() bool {
	return t.Min > 0.5 || t.Margin > 0 && !t.in.everything()
}
