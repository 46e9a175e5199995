package numeric

import (
	"math"
	"slices"
	"time"

	"signalbox/stream/numeric/quantity"
)

// nights reports whether v is the number of nights between two dates of the evidence.
func (c *checker) nights(v *quantity.Value) bool {
	if c.noun == 0 || !nightWords[c.noun] || len(c.x.byDim[quantity.Days]) > maxNear {
		return false
	}
	c.left -= len(c.x.byDim[quantity.Days]) * len(c.x.byDim[quantity.Days])
	for i, k := range c.x.byDim[quantity.Days] {
		for _, l := range c.x.byDim[quantity.Days][:i] {
			a, aOK := dayOf(&c.x.known[k].value)
			b, bOK := dayOf(&c.x.known[l].value)
			if aOK && bOK && v.Says(math.Abs(float64(a-b))) {
				return true
			}
		}
	}
	return false
}

//nolint:gochecknoglobals // constant table
var nightWords = hashSet("night nights Nacht Nächte nuit nuits noche noches")

// dayOf returns a date in days since 1970. ok is false if e is not a complete date.
func dayOf(e *quantity.Value) (day int, ok bool) {
	if e.Kind != quantity.Date || e.Day == 0 || e.Month < 1 || e.Month > 12 || e.Year == 0 || e.Year != e.YearTo {
		return 0, false
	}
	return int(time.Date(e.Year, time.Month(e.Month), int(e.Day), 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay), true
}

// lasted reports whether v is the time between two times of day of the evidence: 85 minutes for
// "19:00 to 20:25".
func (c *checker) lasted(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Range() || len(c.x.byDim[quantity.Hours]) > 2*maxNear {
		return false
	}
	c.left -= len(c.x.byDim[quantity.Hours]) * len(c.x.byDim[quantity.Hours])
	return slices.ContainsFunc(c.x.byDim[quantity.Hours], func(k int32) bool {
		e := &c.x.known[k].value
		if e.Range() && elapsed(v, e.Lo, e.Hi) {
			return true
		}
		return slices.ContainsFunc(c.x.byDim[quantity.Hours], func(l int32) bool {
			return l < k && c.oneStory(k, l) && elapsed(v, c.x.known[l].value.Lo, e.Lo)
		})
	})
}

// oneStory reports whether two times of day belong together: in one sentence, in adjacent
// sentences, or in lines that are not sentences, as in logs.
func (c *checker) oneStory(k, l int32) bool {
	a, b := c.x.known[k].sentence, c.x.known[l].sentence
	x, y := &c.x.sentences[a], &c.x.sentences[b]
	return a == b || !x.row && !y.row && x.group == y.group && (a-b <= 1 || x.line && y.line)
}

// elapsed reports whether v is the time from one minute of the day to another, possibly of the next
// day.
func elapsed(v *quantity.Value, from, to float64) bool {
	const day = 24 * 60
	if to < from {
		to += day
	}
	return v.Dim.Top() == quantity.Duration && from != to && v.Says(60*(to-from))
}

const secondsOfDay = 86400

// dateAfter reports whether v is a date of the evidence plus or minus a length of time. After the
// date, v is a month or a year, or that of the day before: 36 months from 1 September 2023 end in
// August 2026. A day is accepted only before the date, if the length says so; days after it are
// handled by reached. If the evidence has many numbers, only those near the claim are tried.
func (c *checker) dateAfter(v *quantity.Value) bool {
	if v.Month > 12 || v.Year == 0 || v.Year != v.YearTo {
		return false
	}
	var starts, lengths [maxNear]int32
	n, m := 0, 0
	take := func(k int32, e *known) {
		switch o := &e.value; {
		case o.Kind == quantity.Date && o.Month >= 1 && o.Month <= 12 && o.Year != 0 && o.Year == o.YearTo && n < maxNear:
			starts[n], n = k, n+1
		case wholeLength(o) && o.Lo >= secondsOfDay && m < maxNear:
			lengths[m], m = k, m+1
		}
	}
	if len(c.x.known) <= fewNumbers {
		for k := range c.x.known {
			take(int32(k), &c.x.known[k])
		}
	} else {
		c.nearby(take)
	}
	for _, start := range starts[:n] {
		for _, length := range lengths[:m] {
			if c.leadsTo(v, &c.x.known[start], &c.x.known[length]) {
				return true
			}
		}
	}
	return false
}

// leadsTo reports whether v follows from a date and a length of time as dateAfter describes.
func (c *checker) leadsTo(v *quantity.Value, start, length *known) bool {
	months, days := 0, int(math.Round(length.value.Lo/secondsOfDay))
	if whole := length.value.Lo / quantity.Year * 12; math.Abs(whole-math.Round(whole)) < rounding {
		months, days = int(math.Round(whole)), 0
	}
	from := time.Date(start.value.Year, time.Month(start.value.Month), max(1, int(start.value.Day)), 0, 0, 0, 0, time.UTC)
	if v.Day > 0 {
		return length.early && start.value.Day > 0 && isOn(v, moved(from, -months, -days)) && !c.tells(start, length)
	}
	end := moved(from, months, days)
	return isOn(v, end) || isOn(v, end.AddDate(0, 0, -1))
}

// supposedDates reports whether v and another date of the claim are as far apart as a length of
// time in the evidence, or less if that is an upper bound. The evidence itself must name no day.
// Example: "a cake made on 2 June keeps until 6 June".
func (c *checker) supposedDates(v *quantity.Value) bool {
	day, ok := dayOfAny(v)
	if !ok || len(c.x.byDim[quantity.Duration]) > maxNear || c.namesDays() {
		return false
	}
	own, at := c.ownNear()
	for i := range own {
		other, ok := dayOfAny(&own[i])
		if i == at || !ok || other == day {
			continue
		}
		c.left -= comparing * maxNear
		for _, k := range c.x.byDim[quantity.Duration] {
			e := &c.x.known[k].value
			apart := math.Abs(float64(day-other)) * secondsOfDay
			spans := math.Abs(apart-e.Lo) <= spanShare*e.Lo || e.Side == quantity.Downwards && apart <= e.Lo
			if e.Lo >= secondsOfDay && spans {
				return true
			}
		}
	}
	return false
}

// namesDays reports whether the evidence contains a date with a day.
func (c *checker) namesDays() bool {
	c.left -= len(c.x.byDim[quantity.Days])
	return slices.ContainsFunc(c.x.byDim[quantity.Days], func(k int32) bool { return c.x.known[k].value.Day > 0 })
}

// spanShare is the tolerance, as a share of the length of time, because months differ in length;
// our choice.
const spanShare = 0.03

// dayOfAny is dayOf that also accepts dates without a year.
func dayOfAny(e *quantity.Value) (day int, ok bool) {
	d := *e
	if d.Kind == quantity.Date && d.Year == 0 {
		d.Year, d.YearTo = 2001, 2001
	}
	return dayOf(&d)
}

// moved adds months and days to a date. If the month is shorter, it uses its last day.
func moved(from time.Time, months, days int) time.Time {
	first := time.Date(from.Year(), from.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(from.Day(), last)-1+days)
}

// isOn reports whether a date is the given day, as far as its parts are stated.
func isOn(v *quantity.Value, day time.Time) bool {
	return v.Year == day.Year() && (v.Month == 0 || int(v.Month) == int(day.Month())) &&
		(v.Day == 0 || int(v.Day) == day.Day())
}
