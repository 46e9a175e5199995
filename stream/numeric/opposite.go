package numeric

import (
	"slices"

	"signalbox/stream/numeric/quantity"
)

// apartOf reports whether one side is upwards and the other downwards.
func apartOf(a, b quantity.Side) bool {
	return a != quantity.NoSide && b != quantity.NoSide && a != b
}

// sides reports whether a word only says on which side of a number something lies.
func sides(word string) bool {
	switch word {
	case "below", "above", "under", "over", "exceed", "exceeds", "exceeding", "minimum", "maximum", "min", "max",
		"upwards", "upward", "least", "most", "more", "less", "fewer", "larger", "greater", "higher", "lower",
		"smaller", "longer", "shorter", "older", "younger", "limit", "limited", "capped",
		"ab", "Ab", "bis", "Bis", "unter", "Unter", "über", "Über", "mindestens", "höchstens", "maximal",
		"aufwärts", "zu", "mehr", "weniger", "plus", "moins", "mínimo", "máximo", "más", "menos":
		return true
	}
	return false
}

// amounting are words, by hash, that only introduce an amount.
//
//nolint:gochecknoglobals // constant table
var amounting = hashSet("cost costs weigh weighs measure measures last lasts amount amounts reach reaches " +
	"hold holds")

// complements reports whether v is the opposite side of a bound in the evidence and the claim says
// something else about it. Example: "fewer than 12 characters are rejected" for "must have at least
// 12". A rule for one side of a number only implies that it may not hold on the other side.
func (c *checker) complements(v *quantity.Value) bool {
	return slices.ContainsFunc(c.opposites(v), func(o candidate) bool {
		e := &c.x.known[o.known]
		return strict(v) != strict(&e.value) && (c.negated || c.strange(e))
	})
}

// limiting are words, by hash, for an amount that is itself a limit.
//
//nolint:gochecknoglobals // constant table
var limiting = hashSet("allow allows allowed up maximum max limit limits limited most can may permit permits " +
	"let lets capped höchstens maximal bis darf dürfen kann können erlaubt maximum peut " +
	"peuvent permet máximo hasta puede pueden permite")

// above reports whether v is an upper bound ("at most") and the evidence has a smaller amount of
// the same unit that is not a limit itself: "at most 50 euros" for a fee of 40. Such a claim is
// true although the evidence does not state it.
func (c *checker) above(v *quantity.Value) bool {
	const near = 0.5 // as a share of v; our choice
	if v.Kind != quantity.Count || v.Hedge != quantity.Most {
		return false
	}
	ops := c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Count && e.Dim == v.Dim && e.Side == quantity.NoSide && e.Hi < v.Lo && e.Lo >= near*v.Lo
	})
	return slices.ContainsFunc(ops, func(o candidate) bool {
		in := &c.x.sentences[o.sentence]
		c.left -= int(in.termEnd - in.terms)
		return !slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(t term) bool { return limiting[t.hash] })
	})
}

// opposites returns the bounds in the evidence at the amount of v but on the other side.
func (c *checker) opposites(v *quantity.Value) []candidate {
	if v.Kind != quantity.Count || v.Side == quantity.NoSide {
		return nil
	}
	return c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Count && apartOf(v.Side, e.Side) && meets(v, e)
	})
}

// strict reports whether a bound excludes the number itself: "over 48" rather than "from 48".
func strict(v *quantity.Value) bool { return v.Hedge == quantity.Over || v.Hedge == quantity.Under }

// meets reports whether two bounds are at the same amount.
func meets(v, e *quantity.Value) bool {
	a, b := *v, *e
	a.Hedge, b.Hedge = quantity.Exact, quantity.Exact
	if (ofYears(v, e) || ofYears(e, v)) && v.Raw == e.Raw {
		return true // an age
	}
	agreement := quantity.Compare(&a, &b)
	return agreement == quantity.Equal || agreement == quantity.Converted
}
