package numeric

import (
	"math"
	"slices"

	"signalbox/stream/numeric/quantity"
)

// relative reports whether v is a share or a ratio, and therefore not an amount.
func relative(v *quantity.Value) bool { return v.Dim == quantity.Percent || v.Dim == quantity.Multiple }

// several reports whether n may be a number of things: a whole number of at least 2, not a range.
func several(n *quantity.Value) bool {
	return n.Kind == quantity.Count && !n.Range() && n.Raw >= 2 && n.Raw == math.Trunc(n.Raw)
}

// times looks for an amount in the evidence that, multiplied by another number of the claim, yields
// v. Example: the evidence "a ticket costs 20 euros" supports the claim "two tickets cost 40
// euros".
func (c *checker) times(v *quantity.Value) candidate {
	near := c.beside()
	for i := range near {
		if by := c.multiple(&near[i], v); by.sentence >= 0 {
			return by
		}
	}
	return nobody
}

// besideNumbers is how many numbers before and after a number are considered as its factor.
const besideNumbers = 2

// beside returns the numbers of the claim around the one being judged, including that one.
func (c *checker) beside() []quantity.Value {
	return c.values[max(0, c.at-besideNumbers):min(len(c.values), c.at+besideNumbers+1)]
}

// multiplies reports whether n is the factor of another number of the claim.
func (c *checker) multiplies(n *quantity.Value) bool {
	near := c.beside()
	return slices.ContainsFunc(near, func(v quantity.Value) bool { return c.multiple(n, &v).sentence >= 0 })
}

// multiple returns an amount in the evidence of which v is n times as much. The amount must fit the
// claim about as well as the best one. It has the unit of v, or no unit if it comes from a record.
func (c *checker) multiple(n, v *quantity.Value) candidate {
	if v.Kind != quantity.Count || v.Dim == quantity.Plain || relative(v) || v.Range() || n.Dim == v.Dim || !several(n) {
		return nobody
	}
	for _, dim := range [...]quantity.Dim{v.Dim, quantity.Plain} {
		near := c.operands(func(e *quantity.Value) bool {
			return e.Kind == quantity.Count && e.Dim == dim && !e.Range() && e.Side == quantity.NoSide
		})
		for _, a := range near {
			if a.score < near[0].score-c.limit.SwapMargin {
				break
			}
			if f := c.factor(n, v, a.known); f > 0 && v.Says(f*c.x.known[a.known].value.Lo) {
				return a
			}
		}
	}
	return nobody
}

// factor returns how many times evidence number k is contained in v according to n, or 0 if the
// units do not allow it.
func (c *checker) factor(n, v *quantity.Value, k int32) float64 {
	switch e := &c.x.known[k].value; {
	case e.Dim != v.Dim && !c.unnamed(v, k):
		return 0
	case e.Dim == v.Dim && n.Dim != quantity.Plain:
		return periods(n, e)
	}
	return n.Raw
}

// rounding is the relative difference up to which two lengths of time count as equal.
const rounding = 1e-9

// periods returns how many periods of amount e fit into n, which is a length of time: 24 for an
// amount per month and "2 years". It returns 0 if the result is not a whole number.
func periods(n, e *quantity.Value) float64 {
	if n.Dim != quantity.Duration || e.Period == 0 {
		return 0
	}
	count := math.Round(n.Lo / e.Period)
	if math.Abs(count*e.Period-n.Lo) > rounding*n.Lo {
		return 0
	}
	return count
}

// Words, by hash, that say that a share is subtracted from an amount (takenOff) or added to it
// (putOn).
//
//nolint:gochecknoglobals // constant tables
var (
	takenOff = hashSet("off discount discounts discounted rebate reduction reduced cheaper less Rabatt Nachlass " +
		"Ermäßigung ermäßigt günstiger remise réduction descuento rebaja")
	putOn = hashSet("surcharge plus extra additional VAT tax fee more Zuschlag Aufschlag zuzüglich MwSt TVA " +
		"supplément IVA recargo")
)

// reduced looks for an amount in the evidence that yields v after a percentage from another
// sentence is subtracted or added. The claim must contain a word that occurs with the percentage
// but not with the amount. Example: "Entry: 35 euros. Students get 20 % off." supports "students
// pay 28 euros".
func (c *checker) reduced(v *quantity.Value) candidate {
	if v.Kind != quantity.Count || relative(v) || v.Dim == quantity.Duration || v.Range() {
		return nobody
	}
	var shares [maxOperands]candidate
	n := copy(shares[:], c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Count && e.Dim == quantity.Percent && e.Side == quantity.NoSide && !e.Range()
	}))
	if n == 0 {
		return nobody
	}
	amounts := c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Count && e.Dim == v.Dim && !e.Range() })
	for _, share := range shares[:n] {
		part := c.signed(share)
		for _, a := range amounts {
			if part != 0 && a.sentence != share.sentence && v.Says(c.x.known[a.known].value.Lo*(1+part)) && c.saysOf(share, a) {
				return share
			}
		}
	}
	return nobody
}

// countNames are names, by hash, of record fields that hold a number of things.
//
//nolint:gochecknoglobals // constant table
var countNames = hashSet("qty quantity count units pieces nights seats hours days months " +
	"Menge Anzahl Stück quantité cantidad")

// ofRecord looks for a row or record about the claim's subject that contains both a number of
// things and the price of one, with v as their product.
func (c *checker) ofRecord(v *quantity.Value) candidate {
	if v.Kind != quantity.Count || v.Range() {
		return nobody
	}
	for _, s := range c.top {
		in := &c.x.sentences[s]
		if !in.row || in.knownEnd-in.known > maxOperands || float64(c.scores[s]) < c.limit.SameSubject*c.all {
			continue
		}
		for i := in.known; i < in.knownEnd; i++ {
			n := &c.x.known[i].value
			if n.Dim != quantity.Plain || !several(n) || !c.counts(i) {
				continue
			}
			if by := c.priced(v, i, in); by.sentence >= 0 {
				return by
			}
		}
	}
	return nobody
}

// priced returns a number of row in that yields v when multiplied by number i of the same row,
// which is a number of things.
func (c *checker) priced(v *quantity.Value, i int32, in *indexed) candidate {
	n := &c.x.known[i].value
	for k := in.known; k < in.knownEnd; k++ {
		if c.left -= comparing; c.left < 0 {
			return nobody
		}
		e := &c.x.known[k].value
		if k != i && e.Kind == quantity.Count && (e.Dim == v.Dim || e.Dim == quantity.Plain) && v.Says(n.Raw*e.Lo) {
			return c.by(k, c.affinity(k))
		}
	}
	return nobody
}

// counts reports whether the cell of number k is named as a number of things, such as "qty".
func (c *checker) counts(k int32) bool {
	e := &c.x.known[k]
	in := &c.x.sentences[e.sentence]
	c.left -= int(in.termEnd - in.terms)
	return slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool {
		return w.clause == e.clause && countNames[w.hash]
	})
}

// signed returns a percentage as a fraction with the sign its sentence implies: negative if it is
// subtracted, positive if it is added, 0 if no word says which.
func (c *checker) signed(share candidate) float64 {
	in := &c.x.sentences[share.sentence]
	c.left -= int(in.termEnd - in.terms)
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		switch {
		case takenOff[w.hash]:
			return -c.x.known[share.known].value.Lo / 100
		case putOn[w.hash]:
			return c.x.known[share.known].value.Lo / 100
		}
	}
	return 0
}

// saysOf reports whether the claim has a word that occurs with one number but not with the other.
func (c *checker) saysOf(with, without candidate) bool {
	for i := range c.terms {
		t := &c.terms[i]
		if t.at != absent && c.place(t, &c.x.known[with.known]) != absent && c.place(t, &c.x.known[without.known]) == absent {
			return true
		}
	}
	return false
}
