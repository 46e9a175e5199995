package numeric

import (
	"slices"

	"signalbox/stream/numeric/quantity"
)

// restOf reports whether v may be the complement of an evidence number in a total that the claim
// and the evidence share: "18 of the 41 members were absent" for "present: 23 of 41 members". It
// does not apply if the claim has no negation and only the words of the evidence, because it is
// then about the same part.
func (c *checker) restOf(v *quantity.Value) bool {
	if v.Kind != quantity.Count || relative(v) || v.Range() || v.Weak {
		return false
	}
	whole := c.takenFrom(v)
	if whole == nil || whole.Raw <= v.Raw {
		return false
	}
	part := false
	c.nearby(func(k int32, e *known) {
		part = part || alikeIn(&e.value, whole) && v.Says((whole.Raw-e.value.Raw)*v.Factor) &&
			!c.ofAnother(k, whole) && (c.negated || c.strange(e))
	})
	c.left -= len(c.x.byDim[whole.Dim])
	return part && slices.ContainsFunc(c.x.byDim[whole.Dim], func(k int32) bool {
		e := &c.x.known[k].value
		return alikeIn(e, whole) && e.Raw == whole.Raw
	})
}

// ofAnother reports whether number k is a part of the number before it in its sentence, and that
// number is not the total: "five withdrew, four of them".
func (c *checker) ofAnother(k int32, whole *quantity.Value) bool {
	e := &c.x.known[k]
	if e.noun != 0 || k == c.x.sentences[e.sentence].known {
		return false
	}
	o := &c.x.known[k-1].value
	return alikeIn(o, whole) && o.Raw > e.value.Raw && o.Raw != whole.Raw
}

// alikeIn reports whether one of two numbers may be a part of the other: both have the same unit,
// or both are large amounts of which one lacks its currency.
func alikeIn(a, b *quantity.Value) bool {
	return a.Kind == quantity.Count && b.Kind == quantity.Count && !a.Range() && !b.Range() &&
		(a.Dim == b.Dim && a.Factor == b.Factor || large(a) && large(b))
}

// takenFrom returns the number of the claim that v is a part of: "79 of 84", "of 84 participants
// 79". It returns nil if there is none.
func (c *checker) takenFrom(v *quantity.Value) *quantity.Value {
	for i := range c.values {
		o := &c.values[i]
		if o.Start != v.Start && alikeIn(o, v) && c.isWhole(o) {
			return o
		}
	}
	return nil
}

// isWhole reports whether the claim names a part of its number v.
func (c *checker) isWhole(v *quantity.Value) bool {
	return hasAnySuffix(c.claim[:v.Start], "of ", "of the ", "of all ", "of its ", "of our ", "Of ", "Of the ", "Of all ",
		"von ", "von den ", "Von ", "Von den ", " der ")
}

// ofItsPart reports whether other, the evidence number that fits the words around v, is actually a
// part of the total v: "of 84 participants" with "84 adults. Five participants withdrew".
func (c *checker) ofItsPart(v *quantity.Value, other candidate) bool {
	return v.Kind == quantity.Count && other.known >= 0 && c.isWhole(v) && alikeIn(&c.x.known[other.known].value, v) &&
		c.x.known[other.known].value.Raw < v.Raw
}
