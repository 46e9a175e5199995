package quantity

import "math"

// Kind tells what a Value is.
type Kind uint8

// The kinds of a value.
const (
	Count    Kind = iota // a number: bare, or with a unit of measure, a currency or a percent sign
	Date                 // a day, month, year, decade or century
	Clock                // a time of day
	Ordinal              // a rank: 3rd, third
	Fraction             // a share in words: half, two thirds, 3/4
)

// Hedge tells how a number is meant.
type Hedge uint8

// The hedges, by the words that carry them.
const (
	Exact  Hedge = iota // none
	About               // about, roughly, etwa, environ, casi
	Nearly              // nearly, almost, just under: the truth is a little less
	Over                // over, more than: the truth is more
	Under               // under, less than: the truth is less
	Least               // at least: the truth is this or more
	Most                // at most, up to: the truth is this or less
)

// Quarters is what a Month is above that codes a quarter or half of the year.
const Quarters = 100

// Side tells on which side of a number lies what is spoken of.
type Side uint8

// The sides.
const (
	NoSide    Side = iota
	Upwards        // from 50 euros, ab 6 Jahren, 10 or more; also above, at least
	Downwards      // up to 50 euros, bis 6 Jahre; also below, at most
)

// Value is one number, date or time of a text. Amounts are kept twice: as written (Raw, RawHi, in
// the written unit) and in the base unit of their dimension (Lo, Hi).
type Value struct {
	Start, End int // byte offsets into the text: number with its sign, magnitude and unit, without the hedge

	Kind  Kind
	Hedge Hedge
	Weak  bool // a small number in words, or a rank in words, that may be no fact: "one of them", "first of all"

	Lo, Hi     float64 // base unit; Lo < Hi is a range. Clock: minutes after midnight
	Raw, RawHi float64 // written unit, magnitude words multiplied in
	Alt        float64 // the other reading of an ambiguous notation (1.234), written unit; NaN when there is none
	Step       float64 // place value of the last digit written, written unit: 0.1 for 3.2, 1e5 for 3.2 million
	Place      float64 // place value of the last digit that is not 0: 1e3 for 45,000

	Scale  float64 // of magnitude words: 1e6 for "3 million"; 0 without any
	Period float64 // seconds that an amount is for: a month for "49 dollars a month"; 0 when it is not told

	Dim    Dim     // dimension; plain for bare numbers
	Factor float64 // base units in one written unit
	Offset float64 // added after Factor, for temperatures

	Year, YearTo int   // first and last year of a Date; 0 when it names none; BC years are negative
	Month, Day   uint8 // of a Date; 0 when it names none; a Month above 100 codes a quarter or half of the year
	From         uint8 // of a Date without a day, the month from which on it goes up to Month; 0 when none is told
	Forbids      bool  // an order not to do something stands before its Hedge: "do not take more than 4"
	Side         Side  // of a Count: on which side of it lies what is spoken of
	Zone         int16 // of a Clock: minutes ahead of UTC and utc more; 0 when it is not told
	Country      int16 // of a number to call: the code of its country; 0 when it is not told
	Spoken       bool  // of a Clock: which half of the day is told in words, am or in the evening
	Weekday      uint8 // of a Date, as it is written, 1 for Monday to 7; 0 when it names none
	Half         bool  // of a Clock: which half of the day is not told, "7:30" may be in the evening
	Apart        bool  // its unit is told before it, not beside it
	Swap         bool  // 05/12/1889: Month and Day may be the other way round
}

// Range reports whether v was written as a range.
func (v *Value) Range() bool { return v.Hi > v.Lo }

// scaled sets Lo and Hi from Raw and the unit.
func (v *Value) scaled() {
	v.Lo = v.Raw*v.Factor + v.Offset
	v.Hi = v.RawHi*v.Factor + v.Offset
}

func (v *Value) setUnit(u unit) {
	v.Dim, v.Factor, v.Offset = u.dim, u.factor, u.offset
	v.scaled()
}

// MeasureAs gives v, a bare number, the unit and the magnitude of another: the 14 of "from 14 to 30
// days", the 10 of "from 10 to 12 million". What is written in full has a magnitude of its own.
func (v *Value) MeasureAs(o *Value) {
	if v.Scale == 0 && o.Scale > 1 && math.Abs(v.Raw) < 1000 && v.Step <= 1 {
		v.Raw, v.RawHi, v.Step, v.Place = v.Raw*o.Scale, v.RawHi*o.Scale, v.Step*o.Scale, v.Place*o.Scale
		v.Alt *= o.Scale
		v.Scale = o.Scale
	}
	v.setUnit(unit{o.Dim, o.Factor, o.Offset})
}

// plainValue is a bare number.
func plainValue(raw, step float64) Value {
	return Value{
		Raw: raw, RawHi: raw, Lo: raw, Hi: raw, Alt: math.NaN(), Factor: 1,
		Step: step, Place: placeOf(raw, step),
	}
}

// placeOf is the place value of the last digit of raw that is not 0, where step is the place of the
// last one written.
func placeOf(raw, step float64) float64 {
	n := math.Round(math.Abs(raw) / step)
	if n == 0 || n > 1e15 {
		return step
	}
	for math.Mod(n, 10) == 0 {
		n /= 10
		step *= 10
	}
	return step
}

// significant counts the digits of raw from the first to the one at place.
func significant(raw, place float64) int {
	n := math.Round(math.Abs(raw) / place)
	count := 0
	for n >= 1 && count < 20 {
		n = math.Floor(n / 10)
		count++
	}
	return count
}
