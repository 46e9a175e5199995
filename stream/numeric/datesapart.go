package numeric

import (
	"math"
	"time"

	"signalbox/stream/numeric/quantity"
)

// age compares a bare number with the years between two dates in the evidence, allowing for a last
// year that is not complete: "was 27 when".
func (c *checker) age(v *quantity.Value) candidate {
	if !c.isAge(v) {
		return nobody
	}
	ops := c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Date && e.Year != 0 && e.Year == e.YearTo })
	for i, a := range ops {
		x := &c.x.known[a.known].value
		for _, b := range ops[:i] {
			y := &c.x.known[b.known].value
			years := math.Abs(float64(x.Year - y.Year))
			if v.Raw == years || v.Raw == years-1 && (x.Month != 0 || y.Month != 0) {
				return a
			}
		}
	}
	return nobody
}

// isAge reports whether v may be an age in years and the claim speaks of one.
func (c *checker) isAge(v *quantity.Value) bool {
	return c.cues&cueAge != 0 && v.Kind == quantity.Count && v.Dim == quantity.Plain && v.Step == 1 &&
		v.Raw >= 1 && v.Raw <= maxAge
}

// agedThen reports whether v may be the years from a date in the evidence to one in the claim: "in
// 1655, aged about 20" for someone born in 1635.
func (c *checker) agedThen(v *quantity.Value) bool {
	own, _ := c.ownNear()
	dates := c.x.byDim[quantity.Days]
	if !c.isAge(v) || len(dates) > fewNumbers {
		return false
	}
	for i := range own {
		w := &own[i]
		if w.Kind != quantity.Date || w.Year == 0 || w.Year != w.YearTo {
			continue
		}
		for _, k := range dates {
			c.left -= comparing
			e := &c.x.known[k].value
			years := float64(w.Year - e.Year)
			if e.Year != 0 && e.Year == e.YearTo && (v.Raw == years || v.Raw == years-1) {
				return true
			}
		}
	}
	return false
}

// days compares v with the days between two dates of the evidence. Dates without a year count as
// dates of the same year.
func (c *checker) days(v *quantity.Value) candidate {
	if v.Dim != quantity.Duration || c.cues&(cueSpan|cueDiff) == 0 {
		return nobody
	}
	ops := c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Date && e.Year == e.YearTo && e.Month >= 1 && e.Month <= 12 && e.Day > 0
	})
	dayOf := func(e *quantity.Value) time.Time {
		return time.Date(e.Year, time.Month(e.Month), int(e.Day), 0, 0, 0, 0, time.UTC)
	}
	for i, a := range ops {
		x := &c.x.known[a.known].value
		for _, b := range ops[:i] {
			y := &c.x.known[b.known].value
			apart := dayOf(x).Sub(dayOf(y)).Abs()
			if (x.Year == 0) == (y.Year == 0) && apart > 0 && v.Says(apart.Seconds()) {
				return a
			}
		}
	}
	return nobody
}

// months reports whether v may be the months from a date in the best sentence to one in that
// sentence or an adjacent one, both with month and year. If both have a day, an incomplete last
// month may be left out; if neither has one, both the first and the last month may be counted.
func (c *checker) months(v *quantity.Value) bool {
	const month = 30.44 * 24 * 3600 // in seconds
	dates := c.x.byDim[quantity.Days]
	if n := v.Factor / month; v.Dim != quantity.Duration || n < 0.95 || n > 1.05 || len(c.top) == 0 ||
		len(dates) > fewNumbers {
		return false
	}
	top := c.top[0]
	for _, k := range dates {
		x := &c.x.known[k]
		if x.sentence != top || !monthOfYear(&x.value) {
			continue
		}
		for _, l := range dates {
			c.left -= comparing
			y := &c.x.known[l]
			if monthOfYear(&y.value) && max(x.sentence-y.sentence, y.sentence-x.sentence) <= 1 &&
				c.x.sentences[x.sentence].group == c.x.sentences[y.sentence].group && monthsApart(v, &x.value, &y.value) {
				return true
			}
		}
	}
	return false
}

// monthsApart reports whether v may be the months between two dates.
func monthsApart(v, x, y *quantity.Value) bool {
	apart := 12*(x.Year-y.Year) + int(x.Month) - int(y.Month)
	if apart < 0 {
		apart, x, y = -apart, y, x
	}
	days := x.Day > 0 && y.Day > 0
	said := int(v.Raw)
	return apart > 0 && float64(said) == v.Raw && (said == apart || days && x.Day < y.Day && said == apart-1 ||
		x.Day == 0 && y.Day == 0 && said == apart+1)
}

// monthOfYear reports whether v is a date with a month and a year.
func monthOfYear(v *quantity.Value) bool {
	return v.Kind == quantity.Date && v.Year != 0 && v.Year == v.YearTo && v.Month >= 1 && v.Month <= 12
}
