package numeric

import (
	"math"
	"slices"

	"signalbox/stream/numeric/quantity"
)

// relative reports shares and ratios, which are no amounts.
func relative(v *quantity.Value) bool { return v.Dim == quantity.Percent || v.Dim == quantity.Multiple }

// several reports whether a number may be how many there are of something: two or more, and whole.
func several(n *quantity.Value) bool {
	return n.Kind == quantity.Count && !n.Range() && n.Raw >= 2 && n.Raw == math.Trunc(n.Raw)
}

// times tries v as so many times an amount of the evidence as another number of the claim says:
// "two tickets cost 40 euros" of "a ticket costs 20 euros".
func (c *checker) times(v *quantity.Value) candidate {
	near := c.beside()
	for i := range near {
		if by := c.multiple(&near[i], v); by.sentence >= 0 {
			return by
		}
	}
	return nobody
}

// besideNumbers bounds the numbers before and behind another that may be its factor.
const besideNumbers = 2

// beside are the numbers of the claim around the one that is being judged, that one included.
func (c *checker) beside() []quantity.Value {
	return c.values[max(0, c.at-besideNumbers):min(len(c.values), c.at+besideNumbers+1)]
}

// multiplies reports whether n is what another number of the claim was multiplied by.
func (c *checker) multiplies(n *quantity.Value) bool {
	near := c.beside()
	return slices.ContainsFunc(near, func(v quantity.Value) bool { return c.multiple(n, &v).sentence >= 0 })
}

// multiple is an amount of the evidence of which v is n times as much: one that fits the claim about as
// well as any, with the unit of v, or in a record without one.
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

// factor is how often number k of the evidence is in v by n; 0 where that cannot be.
func (c *checker) factor(n, v *quantity.Value, k int32) float64 {
	switch e := &c.x.known[k].value; {
	case e.Dim != v.Dim && !c.unnamed(v, k):
		return 0
	case e.Dim == v.Dim && n.Dim != quantity.Plain:
		return periods(n, e)
	}
	return n.Raw
}

// rounding is how far two lengths of time may be apart that are the same, as a share.
const rounding = 1e-9

// periods is how many of the lengths of time that amount e is for are in n, a length of time as
// well: 24 months in 2 years. 0 where it is no whole number.
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

// Words in whose sentence a share is taken off an amount, and put on it, by hash.
//
//nolint:gochecknoglobals // constant tables
var (
	takenOff = hashSet("off discount discounts discounted rebate reduction reduced cheaper less Rabatt Nachlass " +
		"Ermäßigung ermäßigt günstiger remise réduction descuento rebaja")
	putOn = hashSet("surcharge plus extra additional VAT tax fee more Zuschlag Aufschlag zuzüglich MwSt TVA " +
		"supplément IVA recargo")
)

// reduced tries v as an amount of the evidence less or plus a share that another sentence tells, of
// which the claim has a word that the amount stands without: "students pay 28 euros" of "Entry: 35
// euros. Students get 20 % off.".
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

// countNames are names of what a record has so many of, by hash.
//
//nolint:gochecknoglobals // constant table
var countNames = hashSet("qty quantity count units pieces nights seats hours days months " +
	"Menge Anzahl Stück quantité cantidad")

// ofRecord tries v as what so many of a thing cost, where the row or record that the claim speaks of
// has the number of things and what one of them costs.
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

// priced is a number of a row that number i of it, how many there are, makes v.
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

// counts reports whether the cell of number k says that it is how many there are of something.
func (c *checker) counts(k int32) bool {
	e := &c.x.known[k]
	in := &c.x.sentences[e.sentence]
	c.left -= int(in.termEnd - in.terms)
	return slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool {
		return w.clause == e.clause && countNames[w.hash]
	})
}

// signed is the share of a candidate as its sentence means it: below 0 where it is taken off, above
// where it is put on, 0 where no word tells.
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

// saysOf reports whether the claim has a word that stands with one number and not with the other.
func (c *checker) saysOf(with, without candidate) bool {
	for i := range c.terms {
		t := &c.terms[i]
		if t.at != absent && c.place(t, &c.x.known[with.known]) != absent && c.place(t, &c.x.known[without.known]) == absent {
			return true
		}
	}
	return false
}
