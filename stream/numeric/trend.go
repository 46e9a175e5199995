package numeric

import (
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// trend tells which way value i went, where the number is how far: "rose by 15 %", "a 20 % cut". It
// is 0 where that is not told, and of what it rose or fell to.
func (r *reading) trend(i int) turn {
	v := &r.values[i]
	if r.allTurns&(turnRise|turnFall) == 0 || v.Kind != quantity.Count && v.Kind != quantity.Fraction || r.phases[i] != always {
		return 0
	}
	from, to := r.clauseAround(v.Start)
	way, at := turn(0), 0
	for k, w := range r.words {
		if w.End <= v.Start {
			at = k + 1
		}
		if w.Start < from || w.Start >= to {
			continue
		}
		if w.Has(words.Negation) {
			return 0
		}
		way |= r.turns[k] & (turnRise | turnFall)
	}
	if at > 0 && r.turns[at-1]&(turnFrom|turnTo|turnAuf) != 0 || way == turnRise|turnFall {
		return 0
	}
	return way
}

// when is the month that value i is of: of the date, or the name of a month, between it and the next
// number, else between it and the one before, else of the only date of the sentence. Without a year
// it is 1 to 12.
func (r *reading) when(text string, i int) int32 {
	v := &r.values[i]
	if v.Kind == quantity.Date || v.Kind == quantity.Clock {
		return 0
	}
	d := dating{number: v}
	d.from, d.to = r.clauseAround(v.Start)
	only, dates := int32(0), 0
	for k := range r.values {
		o := &r.values[k]
		switch {
		case o.Kind == quantity.Date:
			only, dates = monthOf(o), dates+1
		case o.End <= v.Start:
			d.from = max(d.from, o.End)
		case o.Start >= v.End:
			d.to = min(d.to, o.Start)
		}
	}
	for k := range r.values {
		if o := &r.values[k]; o.Kind == quantity.Date {
			d.note(o.Start, monthOf(o))
		}
	}
	if dates == 0 {
		for _, w := range r.words {
			if w.Has(words.Capital) {
				d.note(w.Start, int32(quantity.MonthOf(text[w.Start:w.End])))
			}
		}
	}
	switch {
	case d.after != 0:
		return d.after
	case d.before != 0:
		return d.before
	case dates == 1:
		return only
	}
	return 0
}

// dating looks for the date of a number between the numbers beside it.
type dating struct {
	number        *quantity.Value
	from, to      int
	before, after int32 // the last before it, the first after it
}

func (d *dating) note(at int, month int32) {
	switch {
	case month == 0 || at < d.from || at >= d.to:
	case at < d.number.Start:
		d.before = month
	case d.after == 0:
		d.after = month
	}
}

// monthOf is a date as months from year 0 on.
func monthOf(v *quantity.Value) int32 {
	month := int32(v.Month)
	if month > 100 { // a quarter or half of the year
		month = month % 10 * 3
	}
	if v.Year <= 0 {
		return month
	}
	return 12*int32(v.Year) + 12 + month
}

// order is -1 where number a is told to be of an earlier time than b, 1 of a later one, else 0.
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

// went reports whether the change from number b of the evidence to a is what the claim says of its
// way, as far as both are told.
func (c *checker) went(a, b int32) bool {
	x, y := &c.x.known[a], &c.x.known[b]
	if c.trend == 0 {
		return true
	}
	return order(y, x) <= 0 && x.value.Lo != y.value.Lo && (x.value.Lo > y.value.Lo) == (c.trend == turnRise)
}
