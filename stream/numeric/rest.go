package numeric

import (
	"math"

	"signalbox/stream/numeric/quantity"
)

// restOf reports whether v may be all but those of whom the evidence tells, of a number that the claim
// itself takes it from: "18 of the 41 members were absent" of "present: 23 of 41 members".
func (c *checker) restOf(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Dim != quantity.Plain || v.Range() || v.Raw != math.Trunc(v.Raw) {
		return false
	}
	whole := c.takenFrom(v)
	if whole == nil || whole.Raw <= v.Raw {
		return false
	}
	part, told := false, false
	c.nearby(func(_ int32, e *known) {
		o := &e.value
		if o.Kind == quantity.Count && o.Dim == quantity.Plain && !o.Range() {
			told = told || o.Raw == whole.Raw
			part = part || o.Raw == whole.Raw-v.Raw
		}
	})
	return told && part
}

// takenFrom is the number of the claim that v is a part of: "79 of 84", "of 84 participants 79".
func (c *checker) takenFrom(v *quantity.Value) *quantity.Value {
	for i := range c.values {
		o := &c.values[i]
		if o.Kind != quantity.Count || o.Dim != quantity.Plain || o.Start == v.Start {
			continue
		}
		if c.isWhole(o) {
			return o
		}
	}
	return nil
}

// isWhole reports whether the claim takes a part of one of its numbers.
func (c *checker) isWhole(v *quantity.Value) bool {
	return hasAnySuffix(c.claim[:v.Start], "of ", "of the ", "of all ", "of its ", "of our ", "Of ", "Of the ", "Of all ",
		"von ", "von den ", "Von ", "Von den ")
}

// ofItsPart reports whether a number that the claim takes a part of is called in the evidence as that
// part is: "of 84 participants" of "84 adults. Five participants withdrew".
func (c *checker) ofItsPart(v *quantity.Value, other candidate) bool {
	return v.Kind == quantity.Count && v.Dim == quantity.Plain && other.known >= 0 && c.isWhole(v) &&
		c.x.known[other.known].value.Raw < v.Raw
}
