package numeric

import (
	"slices"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// course is what the words of a clause say about changes.
type course struct {
	turns  turn
	denied bool // one is a negation
}

// noteCourses records the course of each clause. noteTurns must have run.
func (r *reading) noteCourses() {
	r.courses = append(r.courses[:0], make([]course, len(r.bounds)+1)...)
	n := 0
	for k, w := range r.words {
		for n < len(r.bounds) && r.bounds[n] <= w.Start {
			n++
		}
		r.courses[n].turns |= r.turns[k]
		r.courses[n].denied = r.courses[n].denied || w.Has(words.Negation)
	}
}

// wordsBefore returns how many words end at or before an offset.
func (r *reading) wordsBefore(at int) int {
	k, _ := slices.BinarySearchFunc(r.words, at, func(w words.Word, at int) int { return w.End - at - 1 })
	return k
}

// trend returns the direction of value i if it is the size of a change: "rose by 15 %", "a 20 %
// cut". It returns 0 if no direction is stated or the value is the result of the change.
func (r *reading) trend(i int) turn {
	v := &r.values[i]
	if r.allTurns&(turnRise|turnFall) == 0 || v.Kind != quantity.Count && v.Kind != quantity.Fraction ||
		r.phases[i] != always {
		return 0
	}
	in := r.courses[r.clause(v.Start)]
	if in.denied {
		return 0
	}
	way, at := in.turns&(turnRise|turnFall), r.wordsBefore(v.Start)
	if at > 0 && r.turns[at-1]&(turnFrom|turnTo|turnAuf) != 0 || way == turnRise|turnFall {
		return 0
	}
	return way
}

// datesOf counts the dates of the reading and records whether a word is a month name.
func (r *reading) datesOf(text string) {
	r.dates, r.only = 0, 0
	for i := range r.values {
		if v := &r.values[i]; v.Kind == quantity.Date {
			r.dates, r.only = r.dates+1, monthOf(v)
		}
	}
	r.months = r.dates == 0 && slices.ContainsFunc(r.words, func(w words.Word) bool { return month(text, w) != 0 })
}

// month returns the month that a word names, or 0.
func month(text string, w words.Word) int32 {
	if w.Class&(words.Capital|words.Number) != words.Capital {
		return 0
	}
	return int32(quantity.MonthOf(text[w.Start:w.End]))
}

// when returns the month that value i applies to, or 0. It is taken from the date or month name
// between the value and the next number, else from that between it and the previous one, else from
// the only date of the sentence. Without a year it is 1 to 12. datesOf must have run.
func (r *reading) when(text string, i int) int32 {
	v := &r.values[i]
	if r.dates == 0 && !r.months || v.Kind == quantity.Date || v.Kind == quantity.Clock {
		return 0
	}
	from, to := r.clauseAround(v.Start)
	before, after := int32(0), int32(0)
	if i > 0 && r.values[i-1].Start >= from {
		if o := &r.values[i-1]; o.Kind == quantity.Date {
			before = monthOf(o)
		}
		from = r.values[i-1].End
	}
	if i+1 < len(r.values) && r.values[i+1].Start < to {
		if o := &r.values[i+1]; o.Kind == quantity.Date {
			after = monthOf(o)
		}
		to = r.values[i+1].Start
	}
	if r.months {
		before, after = r.monthsBeside(text, v, from, to)
	}
	switch {
	case after != 0:
		return after
	case before != 0:
		return before
	case r.dates == 1:
		return r.only
	}
	return 0
}

// monthsBeside returns the last month named before v and the first one named after it, in [from,
// to).
func (r *reading) monthsBeside(text string, v *quantity.Value, from, to int) (before, after int32) {
	at, _ := slices.BinarySearchFunc(r.words, from, func(w words.Word, at int) int { return w.Start - at })
	for ; at < len(r.words) && r.words[at].Start < to; at++ {
		switch m := month(text, r.words[at]); {
		case m == 0:
		case r.words[at].Start < v.Start:
			before = m
		case after == 0:
			after = m
		}
	}
	return before, after
}

// monthOf returns a date as a number that grows with time, 13 for each year, so that a year alone
// comes before its January and after the December before it; 1 to 12 if the date has no year.
func monthOf(v *quantity.Value) int32 {
	month := int32(v.Month)
	if month > 100 { // a quarter or half-year
		month = month % 10 * 3
	}
	if v.Year <= 0 {
		return month
	}
	return 13*int32(v.Year) + 13 + month
}

// order returns -1 if number a applies to an earlier time than b, 1 if to a later one, and 0 if
// that is unknown.
func order(a, b *known) int {
	switch {
	case a.sentence == b.sentence && a.phase != always && b.phase != always && a.phase != b.phase:
		if a.phase == former {
			return -1
		}
		return 1
	case a.when == 0 || b.when == 0 || (a.when > 12) != (b.when > 12):
		return 0
	case a.when < b.when:
		return -1
	case a.when > b.when:
		return 1
	}
	return 0
}

// went reports whether the change from number b of the evidence to a has the direction that the
// claim states, as far as both are known.
func (c *checker) went(a, b int32) bool {
	x, y := &c.x.known[a], &c.x.known[b]
	if !c.compares(x, y) {
		return false
	}
	if c.trend == 0 {
		return true
	}
	return order(y, x) <= 0 && x.value.Lo != y.value.Lo && (x.value.Lo > y.value.Lo) == (c.trend == turnRise)
}
