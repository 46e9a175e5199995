package quantity

import "math"

// Kind says what a Value is.
type Kind uint8

// The kinds of values.
const (
	Count    Kind = iota // a number: bare, or with a unit, a currency or a percent sign
	Date                 // a day, month, year, decade or century
	Clock                // a time of day
	Ordinal              // a rank: 3rd, third
	Fraction             // a share in words: half, two thirds, 3/4
)

// Hedge says how a number is qualified.
type Hedge uint8

// The hedges, with words that express them.
const (
	Exact  Hedge = iota // none
	About               // about, roughly, etwa, environ, casi
	Nearly              // nearly, almost, just under: the truth is slightly less
	Over                // over, more than: the truth is more
	Under               // under, less than: the truth is less
	Least               // at least: the truth is this or more
	Most                // at most, up to: the truth is this or less
)

// Quarters is the value above which a Month encodes a quarter or half-year.
const Quarters = 100

// Side says on which side of a number the subject lies.
type Side uint8

// The sides.
const (
	NoSide    Side = iota
	Upwards        // from 50 euros, ab 6 Jahren, 10 or more; also above, at least
	Downwards      // up to 50 euros, bis 6 Jahre; also below, at most
)

// Value is one number, date or time of a text. Amounts are stored twice: as written (Raw, RawHi, in
// the written unit) and in the base unit of their dimension (Lo, Hi).
type Value struct {
	// Start and End are byte offsets into the text: the number with its sign, magnitude and unit,
	// without the hedge.
	Start, End int

	Kind  Kind
	Hedge Hedge
	// Weak marks a small number or a rank in words that may not be a fact: "one of them", "first of
	// all".
	Weak bool

	Lo, Hi     float64 // base unit; Lo < Hi is a range. Clock: minutes after midnight
	Raw, RawHi float64 // written unit, multiplied by magnitude words
	// Alt is the other reading of an ambiguous notation (1.234), in the written unit; NaN: none.
	Alt float64
	// Step is the place value of the last written digit, in the written unit: 0.1 for 3.2, 1e5 for
	// 3.2 million.
	Step  float64
	Place float64 // place value of the last digit that is not 0: 1e3 for 45,000

	Scale float64 // of magnitude words: 1e6 for "3 million"; 0 without any
	// Period is the seconds that an amount is for: a month for "49 dollars a month"; 0: not stated.
	Period float64

	Dim    Dim     // dimension; Plain for bare numbers
	Factor float64 // base units in one written unit
	Offset float64 // added after Factor, for temperatures

	Year, YearTo int   // of a Date: first and last year; 0: none; BC years are negative
	Month, Day   uint8 // of a Date; 0: none; above 100, Month encodes a quarter or half-year
	From         uint8 // of a Date without a day: first month of a range up to Month; 0: none
	Forbids      bool  // a prohibition precedes its Hedge: "do not take more than 4"
	Side         Side  // of a Count: the side on which the subject lies
	Zone         int16 // of a Clock: utc plus minutes ahead of UTC; 0: unknown
	Country      int16 // of a telephone number: its country code; 0: unknown
	Spoken       bool  // of a Clock: the half of the day is in words, am or in the evening
	Weekday      uint8 // of a Date, as written, 1 for Monday to 7; 0: none
	Half         bool  // of a Clock: the half of the day is unknown, 7:30 may be in the evening
	Apart        bool  // its unit precedes it and is not adjacent
	Swap         bool  // 05/12/1889: Month and Day may be swapped
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

// MeasureAs gives v, a bare number, the unit and the magnitude of another value: the 14 of "from 14
// to 30 days", the 10 of "from 10 to 12 million". A number that is written out in full keeps its
// own magnitude.
func (v *Value) MeasureAs(o *Value) {
	if v.Scale == 0 && o.Scale > 1 && math.Abs(v.Raw) < 1000 && v.Step <= 1 {
		v.Raw, v.RawHi, v.Step, v.Place = v.Raw*o.Scale, v.RawHi*o.Scale, v.Step*o.Scale, v.Place*o.Scale
		v.Alt *= o.Scale
		v.Scale = o.Scale
	}
	v.setUnit(unit{o.Dim, o.Factor, o.Offset})
}

// plainValue returns a bare number.
func plainValue(raw, step float64) Value {
	return Value{
		Raw: raw, RawHi: raw, Lo: raw, Hi: raw, Alt: math.NaN(), Factor: 1,
		Step: step, Place: placeOf(raw, step),
	}
}

// placeOf returns the place value of the last digit of raw that is not 0; step is the place value
// of the last written digit.
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
