package quantity

import "math"

// exactly is the relative rounding error of float64 arithmetic that equal amounts may have.
const exactly = 1e-9

// Maximum relative error of a rounded number, however few digits it has: "about 300" can stand for
// 329, but not for 400. Our choice.
const (
	looseShare  = 0.18 // hedged, or in another unit
	strictShare = 0.12
	spanShare   = 0.09 // a length of time in another unit: "one month" can be 28 days, but not 27
)

// Agreement is the relation between a number of a claim and one of the evidence.
type Agreement uint8

// The agreements.
const (
	Differs Agreement = iota
	Equal             // the same value, however written
	// Rounded means that the claim says no more than the evidence: it is rounded, a bound that
	// holds, or a range around it.
	Rounded
	Converted // the same value in another unit, possibly rounded
)

// Commensurable reports whether two values measure the same thing, so that a difference between
// them is meaningful.
func Commensurable(c, e *Value) bool {
	if c.Kind == Fraction || e.Kind == Fraction {
		return (c.Kind == Fraction || c.Dim == Percent) && (e.Kind == Fraction || e.Dim == Percent)
	}
	return c.Kind == e.Kind && (c.Dim == e.Dim || c.Period != 0 && c.Period == e.Period && c.Dim.Top() == e.Dim.Top())
}

// Compare compares number c of a claim with number e of the evidence. A number without a unit also
// agrees with one that has a unit if both are written the same, because units are often in a
// heading.
func Compare(c, e *Value) Agreement {
	switch {
	case c.Dim == telephone || c.Dim == account || e.Dim == telephone || e.Dim == account:
		abroad := c.Country != e.Country && c.Country != 0 && e.Country != 0
		return when(c.Dim == e.Dim && c.Raw == e.Raw && !abroad, Equal)
	case c.Kind == Date && e.Kind == Date:
		return sameDate(c, e)
	case c.Kind == Clock && e.Kind == Clock:
		return sameTime(c, e)
	case c.Kind == Ordinal || e.Kind == Ordinal:
		return when(sameRank(c, e) || sameRank(e, c), Equal)
	case c.Kind == Clock || e.Kind == Clock:
		return when(sayTime(c, e) || sayTime(e, c), Equal)
	case c.Kind == Date || e.Kind == Date:
		return yearAsCount(c, e)
	case c.Kind == Fraction || e.Kind == Fraction:
		return share(c, e)
	case c.Period != 0 && e.Period != 0 && !near(c.Period, e.Period, exactly*c.Period) && (c.Dim>>8 == 0 || e.Dim>>8 == 0):
		return otherPeriod(c, e)
	case c.Period != 0 && c.Period == e.Period && c.Dim.Top() == e.Dim.Top() && c.Dim>>8 != 0 && e.Dim>>8 == 0 &&
		perOf(c, e) > 0:
		sum := numerator(c, e)
		return amounts(&sum, e)
	case rateOf(e, c):
		sum := numerator(e, c)
		return amounts(c, &sum)
	case c.Dim != e.Dim:
		return asWritten(c, e)
	case c.Range() || e.Range():
		return ranges(c, e)
	}
	return amounts(c, e)
}

// highRank is the rank from which a number or a date may express it: "number 176" is the 176th; our
// choice.
const highRank = 10

// sameRank reports whether a rank equals another rank, the day of a date ("on the 12th" for 12
// November) or a bare number.
func sameRank(rank, o *Value) bool {
	switch {
	case rank.Kind != Ordinal:
		return false
	case o.Kind == Date:
		return rank.Raw >= highRank && rank.Raw == float64(o.Day)
	case o.Kind == Count:
		return rank.Raw >= highRank && rank.Raw == o.Raw && o.Dim == Plain && !o.Range()
	}
	return o.Kind == Ordinal && rank.Raw == o.Raw
}

// sayTime reports whether a number may be a time of day.
func sayTime(clock, n *Value) bool {
	return hoursMinutes(clock, n) || hours(clock, n) || dotted(clock, n)
}

// hoursMinutes reports whether four digits without a unit are a time of day: 2100 for 21:00.
func hoursMinutes(clock, digits *Value) bool {
	if clock.Kind != Clock || digits.End-digits.Start != 4 || digits.Range() || digits.Dim != Plain && digits.Dim != calendar {
		return false
	}
	hours := math.Floor(digits.Raw / 100)
	return hours*60+digits.Raw-100*hours == clock.Lo
}

// hours reports whether a number of hours may be a time of day: à 9 h, for 9:00.
func hours(clock, h *Value) bool {
	return clock.Kind == Clock && h.Kind == Count && h.Dim == Duration && h.Factor == hour && !h.Range() &&
		(h.Raw*60 == clock.Lo || clock.Half && h.Raw*60 == clock.Lo+12*60)
}

// dotted reports whether a number with two decimals may be a time of day: 7.30 for 7:30.
func dotted(clock, n *Value) bool {
	if clock.Kind != Clock || n.Kind != Count || n.Dim != Plain || n.Step != 0.01 {
		return false
	}
	for _, raw := range [...]float64{n.Raw, n.RawHi} {
		hours := math.Floor(raw)
		minutes := hours*60 + math.Round((raw-hours)*100)
		if minutes == clock.Lo || clock.Half && minutes == clock.Lo+12*60 {
			return true
		}
	}
	return false
}

// slackShare is how much weaker than the evidence's bound the claim's may be: "under 2.4 GB"
// supports "under 2.5 GB". A much weaker bound is a different one, although it follows: "for
// children under 15". Our choice.
const slackShare = 0.05

// weaker reports whether the claim's bound is slightly weaker than that of the evidence.
func weaker(c *Value, truth float64) bool {
	return (c.Hedge == Over || c.Hedge == Under) && math.Abs(c.Raw-truth) <= slackShare*math.Abs(truth)
}

// rateOf reports whether rate is an amount per unit and sum the same amount without "per". Claims
// often omit the unit that money is paid for, or say "of vitamin C a day". Lengths are excluded: 90
// km is not 90 km/h.
func rateOf(rate, sum *Value) bool {
	if sum.Dim>>8 != 0 || rate.Dim>>8 == 0 || rate.Dim&0xff != sum.Dim || rate.Range() || sum.Range() {
		return false
	}
	return (sum.Dim.currency() || sum.Dim == mass || sum.Dim == volume) && perOf(rate, sum) > 0
}

// otherPeriod compares amounts for different periods: 4,850 a month is 58,200 a year. Percentages
// cannot be converted this way.
func otherPeriod(c, e *Value) Agreement {
	if c.Dim.Top() != e.Dim.Top() || c.Dim == Percent || c.Range() || e.Range() {
		return Differs
	}
	sum := *e
	if c.Dim>>8 != 0 {
		if perOf(c, e) == 0 {
			return Differs
		}
		bare := numerator(c, e)
		c = &bare
	}
	if e.Dim>>8 != 0 {
		if perOf(e, c) == 0 {
			return Differs
		}
		sum = numerator(e, c)
	}
	factor := c.Period / e.Period
	if whole := math.Round(e.Raw * factor); factor < 1 && c.Dim == Plain &&
		(e.Period > hour || !near(whole, e.Raw*factor, exactly*whole)) {
		return Differs // 90 things a year are not 1.7 a week, but 600 a minute are 10 a second
	}
	sum.Raw, sum.Step, sum.Place = sum.Raw*factor, sum.Step*factor, sum.Place*factor
	sum.RawHi = sum.Raw
	sum.scaled()
	exact := c.Hedge != Exact || near(c.Raw, sum.Raw*sum.Factor/c.Factor, c.Step/2*(1+1e-6))
	return when(exact && amounts(c, &sum) != Differs, Converted)
}

// perOf returns the factor of the unit that rate is per, in base units, if its amount has the unit
// of sum. Otherwise it returns 0.
func perOf(rate, sum *Value) float64 {
	for _, per := range [...]float64{1, minute, hour, day, 7 * day, month, year, 1e-3} {
		if near(rate.Factor*per, sum.Factor, exactly*sum.Factor) {
			return per
		}
	}
	return 0
}

// numerator returns a rate without the unit it is per, in the unit of sum.
func numerator(rate, sum *Value) Value {
	n := *rate
	n.setUnit(unit{sum.Dim, sum.Factor, 0})
	return n
}

//nolint:revive // picks a value, not a way
func when(ok bool, a Agreement) Agreement {
	if ok {
		return a
	}
	return Differs
}

// asWritten compares a number without a unit, in degrees or in times with one that has a unit. "A
// day" does not match the one of "one tablet".
func asWritten(c, e *Value) Agreement {
	bare := func(v *Value) bool { return v.Dim == Plain || v.Dim == Multiple || v.Dim == degree }
	degrees := c.Dim == degree && e.Dim == temperature || c.Dim == temperature && e.Dim == degree
	anyBare := bare(c) || bare(e)
	if !anyBare || c.Dim != Plain && e.Dim != Plain && !degrees || c.Dim != Plain && e.Weak && e.Dim == Plain ||
		opposed(c, e) {
		return Differs
	}
	cc, ee := *c, *e
	cc.setUnit(unit{Plain, 1, 0})
	ee.setUnit(unit{Plain, 1, 0})
	cc.Hedge, ee.Hedge = Exact, Exact
	if cc.Range() || ee.Range() {
		return ranges(&cc, &ee)
	}
	return amounts(&cc, &ee)
}

func yearAsCount(c, e *Value) Agreement {
	bare := func(v *Value) bool {
		return v.Kind == Date && v.Year != 0 && v.Year == v.YearTo && v.Month == 0 || v.Kind == Count && v.Dim == Plain
	}
	if bare(c) && e.Apart {
		return when(c.Lo == e.Raw, Equal)
	}
	if !bare(c) || !bare(e) || c.Range() && e.Range() {
		return Differs
	}
	return when(c.Lo == e.Lo || c.Range() && c.Lo <= e.Lo && e.Lo <= c.Hi, Equal)
}

// sameDate compares two dates. They agree if the evidence contains everything the claim says about
// the date; the claim may be less precise.
func sameDate(c, e *Value) Agreement {
	if !dayFits(c, e, c.Month, c.Day) && (!c.Swap || !dayFits(c, e, c.Day, c.Month)) {
		return Differs
	}
	if day := weekdayOf(e); c.Weekday != 0 && day != 0 && c.Weekday != day {
		return Differs
	}
	switch {
	case c.Weekday != 0 && e.Weekday == 0 && weekdayOf(e) != 0 && c.Year == e.Year && c.Year == c.YearTo:
		return Converted // by the calendar
	case c.Year == 0 || e.Year == 0:
		return when(c.Month != 0 && e.Month != 0, Equal)
	case c.Year == e.Year && (c.YearTo == e.YearTo || c.Year == c.YearTo && e.YearTo-e.Year < 10):
		return Equal
	case c.Year < c.YearTo && c.Year <= e.Year && e.YearTo <= c.YearTo:
		return Rounded
	}
	return Differs
}

func dayFits(c, e *Value, month, day uint8) bool {
	fits := func(m, d uint8) bool {
		return (month == 0 || month == m || quarterOf(month, m) || fills(m, c.From, month)) && (day == 0 || day == d)
	}
	return fits(e.Month, e.Day) || e.Swap && fits(e.Day, e.Month) || c.Month == 0 && c.Day == 0
}

// quarterOf reports whether month m is in the quarter or half-year that part encodes (see
// parser.quarter).
func quarterOf(part, m uint8) bool {
	if part < 100 || m == 0 || m > 12 {
		return false
	}
	n := (part - 100) % 10
	if part/10%10 == 'H'%10 {
		return (m-1)/6+1 == n
	}
	return part/10%10 == 'Q'%10 && (m-1)/3+1 == n
}

// fills reports whether two months are the first and the last of the quarter or half-year that part
// encodes.
func fills(part, from, to uint8) bool {
	return from != 0 && quarterOf(part, from) && quarterOf(part, to) &&
		!quarterOf(part, from-1) && (to == 12 || !quarterOf(part, to+1))
}

func share(c, e *Value) Agreement {
	cc, ee := *c, *e
	for _, v := range []*Value{&cc, &ee} {
		if v.Kind == Fraction {
			*v = plainValue(v.Raw*100, 1)
			v.Hedge = c.Hedge
		}
		v.setUnit(unit{Plain, 1, 0})
	}
	if c.Dim != Percent && c.Kind != Fraction || e.Dim != Percent && e.Kind != Fraction {
		return when(c.Kind == e.Kind || math.Abs(c.Raw-e.Raw) <= exactly, Equal)
	}
	if c.Kind == Fraction && e.Kind == Fraction {
		return when(math.Abs(cc.Raw-ee.Raw) < 1, Equal)
	}
	// In words: two thirds for 66.4 %.
	if c.Kind == Fraction {
		return when(math.Abs(cc.Raw-ee.Raw) <= 1.5 || c.Hedge != Exact && math.Abs(cc.Raw-ee.Raw) <= 4, Rounded)
	}
	return amounts(&cc, &ee)
}

func ranges(c, e *Value) Agreement {
	lo, hi := *c, *c
	lo.RawHi, hi.Raw = c.Raw, c.RawHi
	lo.scaled()
	hi.scaled()
	switch {
	case c.Range() && e.Range():
		elo, ehi := *e, *e
		elo.RawHi, ehi.Raw = e.Raw, e.RawHi
		elo.scaled()
		ehi.scaled()
		a, b := amounts(&lo, &elo), amounts(&hi, &ehi)
		if a == Differs || b == Differs {
			return Differs
		}
		return max(a, b)
	case c.Range():
		if c.Dim == Plain && c.Hi > 2*c.Lo {
			return Differs // pages, scores: too wide for a bare number
		}
		slack := exactly * math.Abs(c.Hi)
		return when(e.Lo >= c.Lo-slack && e.Lo <= c.Hi+slack, Rounded)
	case c.Hedge == About && e.Lo <= c.Lo && c.Lo <= e.Hi:
		return Rounded
	}
	for _, end := range [...]float64{e.Raw, e.RawHi} {
		one := *e
		one.Raw, one.RawHi = end, end
		one.scaled()
		if a := amounts(c, &one); a != Differs {
			return a
		}
	}
	return Differs
}

// amounts compares two single amounts of the same dimension.
func amounts(c, e *Value) Agreement {
	truth := (e.Lo - c.Offset) / c.Factor // in the unit of the claim
	same := c.Factor == e.Factor && c.Offset == e.Offset
	if opposed(c, e) {
		return Differs
	}
	if near(c.Raw, truth, exactly*max(math.Abs(truth), math.Abs(c.Raw))) {
		if same {
			return Equal
		}
		return Converted
	}
	if same && (near(c.Alt, e.Raw, exactly*math.Abs(e.Raw)) || near(c.Raw, e.Alt, exactly*math.Abs(c.Raw))) {
		return Equal
	}
	kind := Rounded
	if !same {
		kind = Converted
		other := (e.Alt*e.Factor + e.Offset - c.Offset) / c.Factor
		if near(c.Raw, other, exactly*math.Abs(c.Raw)) || near(c.Alt, truth, exactly*math.Abs(truth)) {
			// "1.240 Meter" is 1.24 km if the full stop separates thousands.
			return Converted
		}
	}
	if bound(c, truth) && (c.Hedge != e.Hedge || weaker(c, truth)) {
		return kind
	}
	return when(near(c.Raw, truth, tolerance(c, e)), kind)
}

// Reach returns an upper bound for the distance between v, a single amount of a claim, and an
// amount of the evidence that agrees with it, in the unit of v or as both are written. It is meant
// for searching; Compare decides.
func (v *Value) Reach() float64 {
	size := math.Abs(v.Raw)
	reach := min(max(v.Place, v.Step)/2, looseShare*size) + 1e-6*max(1, size)
	switch v.Hedge {
	case Over, Under, Least, Most:
		return reach + max(v.Place, 0.5*size)
	case Nearly:
		return reach + looseShare*size
	case Exact, About:
	}
	return reach
}

// Says reports whether v states base, a calculated amount in base units, within the precision that
// v is written with.
func (v *Value) Says(base float64) bool {
	e := *v
	e.Hedge = Exact
	e.Raw = (base - v.Offset) / v.Factor
	e.RawHi, e.Alt = e.Raw, math.NaN()
	e.Step = v.Step / 1000
	e.scaled()
	return amounts(v, &e) != Differs
}

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol }

// opposed reports whether one amount is an upper bound and the other a lower bound: "more than 300"
// and "fewer than 200". If only one of them is forbidden, they are not opposed.
func opposed(c, e *Value) bool {
	up := func(h Hedge) bool { return h == Over || h == Least }
	down := func(h Hedge) bool { return h == Under || h == Most }
	return c.Forbids == e.Forbids && (up(c.Hedge) && down(e.Hedge) || down(c.Hedge) && up(e.Hedge))
}

// tolerance returns how far the claim may be from the truth, in its own unit, given the precision
// it is written with. Only a claim coarser than its source may be rounded.
func tolerance(c, e *Value) float64 {
	same := c.Factor == e.Factor && c.Offset == e.Offset
	hedged := c.Hedge == About // "nearly" means less: see bound
	place := c.Step
	if hedged || !same || c.Place >= 100*c.Step && significant(c.Raw, c.Place) >= 2 {
		place = c.Place
	}
	source := e.Step * e.Factor / c.Factor
	if same && place <= source*(1+exactly) {
		return 0
	}
	limit := strictShare
	switch {
	case hedged:
		limit = looseShare
	case !same && c.Dim == Duration:
		limit = spanShare
	case !same:
		limit = looseShare
	}
	return min(place/2, limit*math.Abs(c.Raw)) * (1 + 1e-6)
}

// limitShare is how far an amount may be below an upper bound in the claim, as a share of it: "up
// to 100" for 96. A bound much higher, as "up to 50 devices" for 25, may be a different limit. Our
// choice.
const limitShare = 0.1

// bound reports whether truth satisfies a claim that only states a bound: more than 300, up to 5
// km. A bound far from the truth is about something else.
func bound(c *Value, truth float64) bool {
	if c.Raw == 0 {
		return false
	}
	reach := max(c.Place, 0.5*math.Abs(c.Raw))
	if c.Hedge == Most {
		reach = limitShare * math.Abs(c.Raw)
	}
	switch c.Hedge {
	case Over, Least:
		return truth > c.Raw && truth <= c.Raw+reach
	case Under, Most:
		return truth < c.Raw && truth >= c.Raw-reach
	case Nearly:
		return truth < c.Raw && truth >= c.Raw*(1-looseShare)
	case Exact, About:
	}
	return false
}
