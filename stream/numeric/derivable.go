package numeric

import (
	"math"
	"slices"

	"signalbox/stream/numeric/quantity"
)

// maxNear is the maximum number of evidence values near the claim from which a number may follow;
// our choice.
const maxNear = 12

// How many significant digits make it unlikely that two other amounts yield a number by chance: for
// amounts of one sentence, and for those of adjacent sentences. Our choice.
const (
	digitsTogether = 2
	digitsApart    = 3
)

// derivable reports whether v may follow from evidence values near the claim by one step of
// arithmetic. Such a number is neither supported nor contradicted. A step needs a matching word in
// the claim, its factor in the claim, or an amount with a unit and two or three digits.
func (c *checker) derivable(v *quantity.Value) bool {
	switch {
	case v.Kind == quantity.Date:
		return c.dateAfter(v) || c.supposedDates(v)
	case v.Kind != quantity.Count || v.Range() || v.Raw <= 0 || v.Dim.Top() == quantity.Multiple,
		v.Hedge == quantity.Over || v.Hedge == quantity.Under, len(c.opposites(v)) > 0:
		return false
	case v.Hedge == quantity.Least || v.Hedge == quantity.Most:
		limit := *v // "480 euros at most" from "at most 160 a night"
		limit.Hedge = quantity.Exact
		v = &limit
	}
	if v.Period != 0 && v.Dim.IsCurrency() && v.Dim != v.Dim.Top() {
		sum := *v // a monthly amount also applies to its parts
		sum.MeasureAs(&quantity.Value{Dim: v.Dim.Top(), Factor: 1})
		v = &sum
	}
	near := c.numbersNear()
	if v.Dim == quantity.Plain && (c.perPeriod(v, near) || c.nights(v)) {
		return true
	}
	for i, k := range near {
		if c.scaled(v, k) || c.withOwn(v, k) {
			return true
		}
		for _, l := range near[:i] {
			if c.ofBoth(v, k, l) || c.ofBoth(v, l, k) || c.ofSeveral(v, k, l) || c.ofSeveral(v, l, k) {
				return true
			}
		}
	}
	return c.ofOneSentence(v)
}

// perPeriod reports whether v is a frequency that follows from an interval: "five buses an hour"
// from "every 12 minutes".
func (c *checker) perPeriod(v *quantity.Value, near []int32) bool {
	return v.Period != 0 && slices.ContainsFunc(near, func(k int32) bool {
		e := &c.x.known[k].value
		return e.Kind == quantity.Count && e.Dim == quantity.Duration && v.Says(v.Period/e.Lo)
	})
}

// ownBeside is how many numbers on each side of one in the claim may be operands for it; our
// choice.
const ownBeside = 4

// ownNear returns the numbers of the claim around the one being judged, and the index of that one
// in the list. It charges the budget for looking at them.
func (c *checker) ownNear() (list []quantity.Value, at int) {
	from := max(0, c.at-ownBeside)
	list = c.values[from:min(len(c.values), c.at+ownBeside+1)]
	c.left -= comparing * len(list)
	return list, c.at - from
}

// fewNumbers is the maximum size of the evidence, in numbers, at which every sentence is tried for
// two numbers that yield one of the claim; our choice.
const fewNumbers = 64

// ofOneSentence is ofBoth for the numbers of each sentence of short evidence, wherever it is.
func (c *checker) ofOneSentence(v *quantity.Value) bool {
	if c.left -= len(c.x.sentences); c.left < 0 || len(c.x.known) > fewNumbers {
		return false
	}
	for s := range c.x.sentences {
		in := &c.x.sentences[s]
		if in.row || in.knownEnd-in.known > maxNear {
			continue
		}
		if c.ofAll(v, in) {
			return true
		}
		if c.ofTwoOf(v, in) {
			return true
		}
	}
	return false
}

// ofTwoOf is ofBoth for any two numbers of a sentence.
func (c *checker) ofTwoOf(v *quantity.Value, in *indexed) bool {
	for k := in.known; k < in.knownEnd; k++ {
		for l := in.known; l < k; l++ {
			if !countsNear(&c.x.known[k].value) || !countsNear(&c.x.known[l].value) {
				continue
			}
			if c.ofBoth(v, k, l) || c.ofBoth(v, l, k) {
				return true
			}
		}
	}
	return false
}

// ofAll reports whether v is the sum of all amounts in a sentence that have its unit.
func (c *checker) ofAll(v *quantity.Value, in *indexed) bool {
	sum, n := 0.0, 0
	c.left -= int(in.knownEnd - in.known)
	for k := in.known; k < in.knownEnd; k++ {
		if e := &c.x.known[k].value; e.Kind == quantity.Count && e.Dim == v.Dim && !e.Range() {
			sum, n = sum+e.Lo, n+1
		}
	}
	return n > 2 && v.Dim != quantity.Plain && digitsOf(v) >= digitsTogether && v.Says(sum)
}

// ofSeveral reports whether v, called a sum or a difference, follows from amounts k and l of the
// evidence, multiplied by counts in the claim: "two adults and one child", "ten single tickets".
func (c *checker) ofSeveral(v *quantity.Value, k, l int32) bool {
	x, y := &c.x.known[k].value, &c.x.known[l].value
	if c.cues&(cueSum|cueDiff) == 0 || v.Dim == quantity.Plain || x.Dim != v.Dim || y.Dim != v.Dim {
		return false
	}
	own, _ := c.ownNear()
	for i := range own {
		n := &own[i]
		if c.left < 0 || !howMany(n) || n.Dim != quantity.Plain {
			continue
		}
		if c.cues&cueDiff != 0 && (v.Says(n.Raw*x.Lo-y.Lo) || v.Says(y.Lo-n.Raw*x.Lo)) {
			return true
		}
		for j := range own {
			m := &own[j]
			if i != j && howMany(m) && m.Dim == quantity.Plain && c.cues&cueSum != 0 && v.Says(n.Raw*x.Lo+m.Raw*y.Lo) {
				return true
			}
		}
	}
	return false
}

// premise reports whether v is an assumption of the claim from which another of its amounts
// follows: the $50 in "a $50 sweater gets $43.05 back".
func (c *checker) premise(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Dim == quantity.Plain || v.Range() {
		return false
	}
	near := c.numbersNear()
	own, at := c.ownNear()
	for i := range own {
		w := &own[i]
		if i == at || w.Kind != quantity.Count || w.Dim == quantity.Plain {
			continue
		}
		for _, k := range near {
			c.left -= comparing
			if e := &c.x.known[k].value; e.Kind == quantity.Count && comesOf(w, v, e) {
				return true
			}
		}
	}
	return false
}

// comesOf reports whether w, an amount of a claim, follows from another amount v and an amount,
// rate or share e of the evidence.
func comesOf(w, v, e *quantity.Value) bool {
	switch {
	case e.Dim.Of(w.Dim, v.Dim):
		return w.Says(e.Lo * v.Lo)
	case w.Dim != v.Dim:
		return false
	case e.Dim == quantity.Percent:
		return closely(w, v.Lo*e.Lo/100) || closely(w, v.Lo*(1-e.Lo/100))
	}
	return digitsOf(w) >= digitsApart && e.Dim == v.Dim && (w.Says(v.Lo-e.Lo) || w.Says(v.Lo+e.Lo))
}

// numbersNear returns the evidence numbers in and next to the sentences that fit the claim best,
// including table rows.
func (c *checker) numbersNear() []int32 {
	c.nearNumbers = c.nearNumbers[:0]
	top := c.top[:min(len(c.top), fewSentences)]
	if len(top) == 0 && len(c.x.sentences) <= fewSentences {
		top = allSentences[:len(c.x.sentences)]
	}
	if len(top) == 0 && len(c.x.known) <= 2*maxNear { // no sentence stands out
		for k := range c.x.known {
			if countsNear(&c.x.known[k].value) {
				c.nearNumbers = append(c.nearNumbers, int32(k))
			}
		}
	}
	for _, beside := range [...]int32{0, -1, 1} {
		for _, s := range top {
			if i := s + beside; i >= 0 && int(i) < len(c.x.sentences) && c.x.sentences[i].group == c.x.sentences[s].group {
				c.takeNear(&c.x.sentences[i])
			}
		}
	}
	return c.nearNumbers
}

func (c *checker) takeNear(in *indexed) {
	for k := in.known; k < in.knownEnd && len(c.nearNumbers) < maxNear; k++ {
		c.left -= maxNear
		if countsNear(&c.x.known[k].value) && !slices.Contains(c.nearNumbers, k) {
			c.nearNumbers = append(c.nearNumbers, k)
		}
	}
}

func countsNear(e *quantity.Value) bool {
	return e.Kind == quantity.Count && e.Lo > 0 && !e.Range() || e.Kind == quantity.Clock
}

// scaled reports whether v is number k of the evidence multiplied or divided by a count in the
// claim.
func (c *checker) scaled(v *quantity.Value, k int32) bool {
	e := &c.x.known[k].value
	if e.Kind != quantity.Count || v.Dim == quantity.Percent || c.x.known[k].lot.amount != 0 {
		return false // prices for several items are handled by lots
	}
	if v.Dim == quantity.Plain && e.Dim != quantity.Plain {
		return c.goesInto(v, e)
	}
	if e.Dim.Top() != v.Dim.Top() && (v.Dim == quantity.Plain || !c.unnamed(v, k)) {
		return false
	}
	amount := e.Lo
	if e.Dim == quantity.Plain {
		amount *= v.Factor
	}
	own, at := c.ownNear()
	for i := range own {
		n := &own[i]
		if i == at || n.Kind != quantity.Count || n.Dim != quantity.Plain && n.Dim != quantity.Multiple || n.Raw < 2 ||
			n.Raw != math.Trunc(n.Raw) || n.Range() {
			continue
		}
		if v.Says(amount*n.Raw) || v.Says(amount/n.Raw) {
			return true
		}
	}
	return c.cues&cueRatio != 0 && (v.Says(amount/2) || v.Says(2*amount)) || !c.lasts && c.forLonger(v, amount, e.Period)
}

// forLonger reports whether v is a periodic amount converted to a longer period: 142.80 a year from
// 11.90 a month. An amount with few digits must be stated per year.
func (c *checker) forLonger(v *quantity.Value, amount, period float64) bool {
	if period == 0 {
		return false
	}
	sure := digitsOf(v) >= digitsApart
	for _, longer := range [...]float64{7 * secondsOfDay, quantity.Year / 12, quantity.Year} {
		if longer > period && v.Says(amount*math.Round(longer/period)) && (sure || longer == quantity.Year && c.yearly) {
			return true
		}
	}
	return false
}

// noteYears records whether the claim has a length of time other than a year, and whether it
// mentions a year.
func (c *checker) noteYears() {
	c.lasts, c.yearly = false, false
	for i := range c.values {
		v := &c.values[i]
		c.lasts = c.lasts || v.Dim == quantity.Duration && v.Lo != quantity.Year
	}
	for i := range c.words {
		c.yearly = c.yearly || yearWords[c.words[i].Hash]
	}
}

//nolint:gochecknoglobals // constant table
var yearWords = hashSet("year yearly annual annually Jahr jährlich an année annuel año")

// goesInto reports whether v is the quotient of another amount in the claim and amount e.
func (c *checker) goesInto(v, e *quantity.Value) bool {
	own, _ := c.ownNear()
	for i := range own {
		if w := &own[i]; w.Kind == quantity.Count && w.Dim == e.Dim && !w.Range() && v.Says(w.Lo/e.Lo) {
			return true
		}
	}
	return false
}

// withOwn reports whether v follows from another amount of the claim and number k of the evidence:
// the rest of an assumed price, 200 km at .38 euros a kilometre, or the complement of a percentage.
func (c *checker) withOwn(v *quantity.Value, k int32) bool {
	e := &c.x.known[k].value
	own, at := c.ownNear()
	for i := range own {
		w := &own[i]
		if i == at || w.Kind != quantity.Count || w.Range() || v.Dim == quantity.Plain {
			continue
		}
		if e.Kind == quantity.Count && (comesOf(v, w, e) || c.fitsOwn(v, w, k)) ||
			v.Dim == quantity.Percent && w.Dim == v.Dim && c.hasShare(w) && v.Says(100-w.Lo) {
			return true
		}
	}
	return v.Dim == quantity.Percent && e.Dim == quantity.Percent && c.cues&cueDiff != 0 && v.Says(100-e.Lo)
}

// ownFit is the score that the words around an evidence number need if the claim compares it with
// an amount of its own; our choice.
const ownFit = 0.5

// fitsOwn reports whether v is the sum or difference of amount w of the claim and number k of the
// evidence, which is about the claim's subject: "7,200 euros, which is 700 over the budget".
func (c *checker) fitsOwn(v, w *quantity.Value, k int32) bool {
	e := &c.x.known[k].value
	return w.Dim == v.Dim && e.Dim == v.Dim && e.Lo != w.Lo &&
		(v.Says(w.Lo-e.Lo) || v.Says(e.Lo-w.Lo) || v.Says(w.Lo+e.Lo)) && c.held(w) && c.affinity(k) > ownFit
}

// hasShare reports whether the evidence contains the percentage w.
func (c *checker) hasShare(w *quantity.Value) bool {
	for _, k := range c.x.byDim[quantity.Percent][:min(maxNear, len(c.x.byDim[quantity.Percent]))] {
		if c.left -= comparing; w.Says(c.x.known[k].value.Lo) {
			return true
		}
	}
	return false
}

// ofBoth reports whether v follows from numbers k and l of the evidence.
func (c *checker) ofBoth(v *quantity.Value, k, l int32) bool {
	a, b := &c.x.known[k], &c.x.known[l]
	x, y := &a.value, &b.value
	if c.left -= comparing; c.left < 0 {
		return false
	}
	if a.lot.amount != 0 || b.lot.amount != 0 {
		// other multi-item prices are handled by lots
		return v.Dim == quantity.Duration && a.lot.dim == v.Dim && v.Says(a.lot.amount)
	}
	if x.Kind != quantity.Count || y.Kind != quantity.Count {
		first, second := x, y
		if k > l {
			first, second = y, x
		}
		return x.Kind == quantity.Clock && y.Kind == quantity.Clock && elapsed(v, first.Lo, second.Lo)
	}
	if x.Dim.Of(v.Dim, y.Dim) {
		return v.Says(x.Lo * y.Lo) // 120 ml of 2 mg/ml
	}
	if x.Dim == y.Dim && v.Dim == quantity.Percent && a.sentence == b.sentence {
		return isPart(x, y) && closely(v, 100*x.Lo/y.Lo)
	}
	return x.Dim == v.Dim && c.ofPair(v, pair{a, b, c.x.sentences[a.sentence].row || c.x.sentences[b.sentence].row})
}

// isPart reports whether part is written next to its whole: "640 of 800", "3,200 (1,280 women".
func isPart(part, whole *quantity.Value) bool {
	const outOf, brackets = 12, 2 // maximum bytes between them: " out of the ", " ("
	before, behind := whole.Start-part.End, part.Start-whole.End
	return before > 0 && before <= outOf || behind > 0 && behind <= brackets
}

// oneOfUnit returns the amount in unit dim, written as 1 in the sentence of e, to which e applies,
// or 0.
func (c *checker) oneOfUnit(e *known, dim quantity.Dim) float64 {
	in := &c.x.sentences[e.sentence]
	if dim == quantity.Plain {
		return 0
	}
	c.left -= int(in.knownEnd - in.known)
	for k := in.known; k < in.knownEnd; k++ {
		if o := &c.x.known[k].value; o.Kind == quantity.Count && o.Dim == dim && o.Raw == 1 && !o.Range() {
			return o.Lo
		}
	}
	return 0
}

// pair holds two numbers of the evidence; the first has the unit of the result.
type pair struct {
	a, b *known
	row  bool // one of many amounts of one kind
}

// ofPair reports whether v follows from a pair.
func (c *checker) ofPair(v *quantity.Value, p pair) bool {
	x, y := &p.a.value, &p.b.value
	together, digits := !p.row && p.a.sentence == p.b.sentence, digitsOf(v)
	sure := !p.row && c.surely(v, p.a.sentence, digits, together)
	adds := sure || c.cues&cueSum != 0
	if y.Dim == v.Dim {
		return adds && v.Says(x.Lo+y.Lo) || c.lessBy(v, p, sure || digits >= digitsApart && together)
	}
	if y.Dim == quantity.Percent {
		return sure && (partOf(v, x.Lo, y.Lo/100) || p.same() && wholeOf(v, x.Lo, y.Lo/100))
	}
	if one := c.oneOfUnit(p.a, y.Dim); one > 0 {
		return v.Says(x.Lo * y.Lo / one) // "one millilitre contains 2 mg"
	}
	if !howMany(y) || y.Raw <= 1 || v.Dim == quantity.Plain {
		return false
	}
	return (adds || p.besides()) && v.Says(x.Lo*y.Raw) || c.cues&cueMean != 0 && v.Says(x.Lo/y.Raw)
}

// surely reports whether two amounts are unlikely to yield v by chance: v has a unit and enough
// digits, or they are the only two of their sentence.
func (c *checker) surely(v *quantity.Value, s int32, digits int, together bool) bool {
	return v.Dim != quantity.Plain && (digits >= digitsApart || together && (digits >= digitsTogether || c.onlyTwo(v.Dim, s)))
}

// onlyTwo reports whether a sentence has exactly two amounts of a unit, which it contrasts: "1.2 kg
// without battery, 1.8 kg with it".
func (c *checker) onlyTwo(dim quantity.Dim, s int32) bool {
	in, n := &c.x.sentences[s], 0
	c.left -= int(in.knownEnd - in.known)
	for k := in.known; k < in.knownEnd; k++ {
		if c.x.known[k].value.Dim == dim {
			n++
		}
	}
	return n == 2
}

// besides reports whether the second number directly precedes the first one in its clause: "eight
// sessions of two and a half hours".
func (p *pair) besides() bool {
	between := p.a.value.Start - p.b.value.End
	return p.a.sentence == p.b.sentence && p.a.clause == p.b.clause && between > 0 && between < mostBetween
}

// mostBetween is the maximum number of bytes between two such numbers; our choice.
const mostBetween = 24

// same reports whether an amount and a share state the same quantity: "30 % (651 euros)".
func (p *pair) same() bool {
	const brackets = 5
	x, y := &p.a.value, &p.b.value
	return p.a.sentence == p.b.sentence && max(x.Start-y.End, y.Start-x.End) < brackets
}

// partOf reports whether v is a part of an amount, or the amount minus or plus that part.
func partOf(v *quantity.Value, amount, part float64) bool {
	return closely(v, amount*part) || closely(v, amount*(1-part)) || closely(v, amount*(1+part))
}

// wholeOf reports whether v is the whole of which an amount is a part, or the rest of it.
func wholeOf(v *quantity.Value, amount, part float64) bool {
	return closely(v, amount/part) || closely(v, amount/part*(1-part))
}

// lessBy reports whether v is the difference of two amounts. If it is not sure, the claim needs a
// word for a difference. Directions of change and comparisons between dates are handled elsewhere.
func (c *checker) lessBy(v *quantity.Value, p pair, sure bool) bool {
	return (sure || c.cues&cueDiff != 0) && c.trend == 0 && (c.than.way == 0 || p.a.when == 0 && p.b.when == 0) &&
		v.Says(p.a.value.Lo-p.b.value.Lo)
}

// closeBy is the maximum relative difference between a share and the claim's number for it; our
// choice.
const closeBy = 0.001

// closely reports whether v states an amount with hardly any rounding.
func closely(v *quantity.Value, base float64) bool {
	return v.Says(base) && (v.Hedge != quantity.Exact || math.Abs(v.Lo-base) <= closeBy*base)
}

// digitsOf returns how many digits of a number are significant: 2 for 4,300.
func digitsOf(v *quantity.Value) int {
	if v.Place <= 0 || v.Raw <= 0 {
		return 0
	}
	return 1 + int(math.Floor(math.Log10(math.Round(v.Raw/v.Place))))
}
