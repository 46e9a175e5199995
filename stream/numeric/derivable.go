package numeric

import (
	"math"
	"slices"
	"time"

	"signalbox/stream/numeric/quantity"
)

// maxNear bounds the values near the claim that one of it may follow from; our choice.
const maxNear = 12

// Significant digits that an amount has which two others hardly come to by chance: of one sentence,
// and of sentences side by side. Our choice.
const (
	here  = 2
	about = 3
)

// derivable reports whether v may follow from values of the evidence near the claim by one step of
// arithmetic: such a number is no proof of anything, and none against the claim. A step needs a
// word for it in the claim, or its factor, or an amount with a unit of two or three digits.
func (c *checker) derivable(v *quantity.Value) bool {
	switch {
	case v.Kind == quantity.Date:
		return c.monthAfter(v)
	case v.Kind != quantity.Count || v.Range() || v.Raw <= 0 || v.Dim.Top() == quantity.Multiple:
		return false
	}
	near := c.numbersNear()
	for i, k := range near {
		if c.scaled(v, k) || c.withOwn(v, k) {
			return true
		}
		for _, l := range near[:i] {
			if c.ofBoth(v, k, l) || c.ofBoth(v, l, k) {
				return true
			}
		}
	}
	return false
}

// numbersNear are the numbers of the evidence beside the sentences that fit the claim best, rows of
// tables among them.
func (c *checker) numbersNear() []int32 {
	c.nearNumbers = c.nearNumbers[:0]
	top := c.top[:min(len(c.top), fewSentences)]
	if len(top) == 0 && len(c.x.sentences) <= fewSentences {
		top = allSentences[:len(c.x.sentences)]
	}
	for _, beside := range [...]int32{0, -1, 1} {
		for _, s := range top {
			i := s + beside
			if i < 0 || int(i) >= len(c.x.sentences) || c.x.sentences[i].group != c.x.sentences[s].group {
				continue
			}
			in := &c.x.sentences[i]
			for k := in.known; k < in.knownEnd && len(c.nearNumbers) < maxNear; k++ {
				c.left -= maxNear
				if e := &c.x.known[k].value; (e.Kind == quantity.Count && e.Lo > 0 && !e.Range() || e.Kind == quantity.Clock) &&
					!slices.Contains(c.nearNumbers, k) {
					c.nearNumbers = append(c.nearNumbers, k)
				}
			}
		}
	}
	return c.nearNumbers
}

// scaled reports whether v is number k of the evidence times, or by, a count that the claim tells.
func (c *checker) scaled(v *quantity.Value, k int32) bool {
	e := &c.x.known[k].value
	if e.Kind != quantity.Count || v.Dim == quantity.Percent || c.x.known[k].lot.amount != 0 {
		return false // several of one thing are counted elsewhere
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
	for i := range c.values {
		n := &c.values[i]
		if i == c.at || n.Kind != quantity.Count || n.Dim != quantity.Plain && n.Dim != quantity.Multiple || n.Raw < 2 ||
			n.Raw != math.Trunc(n.Raw) || n.Range() {
			continue
		}
		if v.Says(amount*n.Raw) || v.Says(amount/n.Raw) {
			return true
		}
	}
	return c.cues&cueRatio != 0 && (v.Says(amount/2) || v.Says(2*amount))
}

// goesInto reports whether v is how often amount e goes into another one that the claim tells.
func (c *checker) goesInto(v, e *quantity.Value) bool {
	return slices.ContainsFunc(c.values, func(w quantity.Value) bool {
		return w.Kind == quantity.Count && w.Dim == e.Dim && !w.Range() && v.Says(w.Lo/e.Lo)
	})
}

// withOwn reports whether v follows from another amount of the claim and number k of the evidence:
// what is left of a price that the claim supposes, and the other part of all.
func (c *checker) withOwn(v *quantity.Value, k int32) bool {
	e := &c.x.known[k].value
	for i := range c.values {
		w := &c.values[i]
		if i == c.at || w.Kind != quantity.Count || w.Range() || w.Dim != v.Dim || v.Dim == quantity.Plain {
			continue
		}
		if v.Dim == quantity.Percent && v.Says(100-w.Lo) {
			return true
		}
		if digitsOf(v) >= about && e.Kind == quantity.Count && e.Dim == v.Dim && (v.Says(w.Lo-e.Lo) || v.Says(w.Lo+e.Lo)) {
			return true
		}
	}
	return v.Dim == quantity.Percent && e.Dim == quantity.Percent && c.cues&cueDiff != 0 && v.Says(100-e.Lo)
}

// ofBoth reports whether v follows from numbers k and l of the evidence.
func (c *checker) ofBoth(v *quantity.Value, k, l int32) bool {
	a, b := &c.x.known[k], &c.x.known[l]
	x, y := &a.value, &b.value
	if c.left -= comparing; c.left < 0 || a.lot.amount != 0 || b.lot.amount != 0 {
		return false
	}
	if x.Kind != quantity.Count || y.Kind != quantity.Count {
		return x.Kind == y.Kind && v.Dim == quantity.Duration && v.Says(60*math.Abs(x.Lo-y.Lo)) // two times of day
	}
	rows := c.x.sentences[a.sentence].row || c.x.sentences[b.sentence].row // many amounts of one kind
	together, digits := !rows && a.sentence == b.sentence, digitsOf(v)
	sure := v.Dim != quantity.Plain && !rows && (digits >= about || digits >= here && together)
	switch {
	case x.Dim == v.Dim && y.Dim == v.Dim:
		return (sure || c.cues&cueSum != 0) && v.Says(x.Lo+y.Lo) || c.lessBy(v, x.Lo-y.Lo, sure || digits >= about && together)
	case x.Dim == v.Dim && y.Dim == quantity.Percent:
		return sure && partOf(v, x.Lo, y.Lo/100)
	case x.Dim == v.Dim && howMany(y) && y.Raw > 1 && v.Dim != quantity.Plain:
		return (sure || c.cues&cueSum != 0) && v.Says(x.Lo*y.Raw)
	}
	return false
}

// partOf reports whether v says a part of an amount, or the amount less or more that part.
func partOf(v *quantity.Value, all, part float64) bool {
	return closely(v, all*part) || closely(v, all*(1-part)) || closely(v, all*(1+part))
}

// lessBy reports whether v says the difference of two amounts, which is sure without a word for it. Which
// way something went, and what is more than something else, is looked at elsewhere.
func (c *checker) lessBy(v *quantity.Value, by float64, sure bool) bool {
	return (sure || c.cues&cueDiff != 0) && c.trend == 0 && c.than.way == 0 && v.Says(by)
}

// closeBy is how far a share may be from what the claim says of it, as a share; our choice.
const closeBy = 0.001

// closely reports whether v says an amount, rounded but little.
func closely(v *quantity.Value, base float64) bool {
	return v.Says(base) && (v.Hedge != quantity.Exact || math.Abs(v.Lo-base) <= closeBy*base)
}

// lasted reports whether v is how long a time of day to another one of the evidence is: 85 minutes of
// "19:00 to 20:25".
func (c *checker) lasted(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Dim != quantity.Duration || v.Range() || len(c.x.byDim[quantity.Hours]) > 2*maxNear {
		return false
	}
	return slices.ContainsFunc(c.x.byDim[quantity.Hours], func(k int32) bool {
		e := &c.x.known[k].value
		return e.Range() && v.Says(60*(e.Hi-e.Lo))
	})
}

// monthAfter reports whether v, a month, is that of a day of the evidence and a length of time behind
// it, or of the day before: what runs for 36 months from 1 September 2023 on ends in August 2026.
func (c *checker) monthAfter(v *quantity.Value) bool {
	if v.Day > 0 || v.Month < 1 || v.Month > 12 || v.Year == 0 || v.Range() {
		return false
	}
	found := false
	var days, months [maxOperands]int
	n, m := 0, 0
	c.nearby(func(_ int32, e *known) {
		switch o := &e.value; {
		case o.Kind == quantity.Date && o.Day > 0 && o.Month >= 1 && o.Month <= 12 && o.Year == o.YearTo && o.Year != 0 && n < maxOperands:
			days[n], n = int(time.Date(o.Year, time.Month(o.Month), int(o.Day), 0, 0, 0, 0, time.UTC).Unix()/86400), n+1
		case wholeLength(o) && m < maxOperands:
			if whole := o.Lo / quantity.Year * 12; math.Abs(whole-math.Round(whole)) < rounding && whole >= 1 {
				months[m], m = int(math.Round(whole)), m+1
			}
		}
	})
	for _, d := range days[:n] {
		for _, l := range months[:m] {
			end := time.Unix(int64(d)*86400, 0).UTC().AddDate(0, l, 0)
			for _, at := range [...]time.Time{end, end.AddDate(0, 0, -1)} {
				found = found || at.Year() == v.Year && int(at.Month()) == int(v.Month)
			}
		}
	}
	return found
}

// digitsOf is how many digits of a number tell something: 2 of 4,300.
func digitsOf(v *quantity.Value) int {
	if v.Place <= 0 || v.Raw <= 0 {
		return 0
	}
	return 1 + int(math.Floor(math.Log10(math.Round(v.Raw/v.Place))))
}
