package quantity

import (
	"cmp"
	"math"
	"strings"
	"time"
)

// opensHours reports whether the bare number at token i is the first of two hours, of which the
// second is marked as one: von 8 bis 18 Uhr, between 8 and 10 am, 14-16 Uhr, 9 to 17:00.
func (p *parser) opensHours(i int) bool {
	if !p.hour(i) {
		return false
	}
	k := p.hoursJoin(i)
	if k == 0 {
		return p.nineToFive(i) != 0
	}
	if p.tok(k).kind == tokClock {
		return true
	}
	return p.hour(k) && (p.has(k+1, roleClockCue) || p.has(k+1, roleMeridiem)) || p.nineToFive(i) != 0
}

// hour reports whether token i is a number that can be an hour.
func (p *parser) hour(i int) bool {
	t := p.tok(i)
	return t.kind == tokNumber && t.step == 1 && t.digits > 0 && t.digits <= 2 && t.num <= 24
}

// hoursJoin returns the token after the word or dash that joins the hour at token i to another, or
// 0 if there is none.
func (p *parser) hoursJoin(i int) int {
	switch {
	case (p.sym(i+1, '-') || p.sym(i+1, '–') || p.sym(i+1, '—')) && p.dashRange(i+1),
		p.has(i+1, roleTo), p.word(i+1, "until"), p.word(i+1, "till"),
		p.has(i+1, roleAnd) && p.has(i-1, roleBetween):
		return i + 2
	}
	return 0
}

// nineToFive returns 1 if the number at token i is the first hour of a phrase like "from 9 to 5", 2
// if it is the second, and 0 if it is neither. The second hour must be the smaller one, and nothing
// may be counted.
func (p *parser) nineToFive(i int) int {
	first, place := i, 1
	if p.hour(i-2) && p.has(i-1, roleTo) {
		first, place = i-2, 2
	}
	if !p.has(first-1, roleFrom) || !p.has(first+1, roleTo) || !p.hour(first) || !p.hour(first+2) {
		return 0
	}
	a, b := p.tok(first), p.tok(first+2)
	if !p.tellsHours(first) {
		return 0
	}
	if a.num > 12 || b.num > 12 || b.num >= a.num {
		return 0
	}
	if after := p.tok(first + 3); after.kind == tokSymbol && after.sym != '.' && after.sym != ',' && after.sym != ';' ||
		after.kind == tokWord && !p.word(first+3, "on") && !p.word(first+3, "from") && !p.word(first+3, "every") {
		return 0
	}
	return place
}

// tellsHours reports whether a word before token i indicates that hours follow.
func (p *parser) tellsHours(i int) bool {
	const near = 8 // in tokens
	told := false
	for k := i - 1; k >= max(0, i-near); k-- {
		switch strings.ToLower(p.tokText(k)) {
		case "open", "opens", "opened", "opening", "hours", "work", "works", "working", "worked", "shift", "shifts",
			"office", "available", "staffed", "reception", "desk", "business":
			told = true
		case "dropped", "fell", "fallen", "rose", "grew", "went", "reduced", "raised", "number":
			return false
		}
	}
	return told
}

// openingHour returns the time of the hour at token i, using the second hour: 8 to 10 pm begins in
// the evening, 9 to 5 pm in the morning. half reports that the half of the day is unknown.
func (p *parser) openingHour(i int, minutes float64) (at float64, half bool) {
	switch p.nineToFive(i) {
	case 1:
		return minutes, false
	case 2:
		return minutes + 12*60, false
	}
	k := p.hoursJoin(i)
	t := p.tok(k)
	if !p.has(k+1, roleMeridiem) || t.kind != tokNumber {
		return minutes, p.word(k+1, "o'clock")
	}
	if t.num < p.tok(i).num && p.tok(k+1).word.num == 12 && t.num != 12 {
		return minutes, false
	}
	return inHalf(minutes, p.tok(k+1).word.num), false
}

// utc is Value.Zone for Coordinated Universal Time.
const utc = 24 * 60

// zones maps the time zones written after a time of day to Value.Zone.
//
//nolint:gochecknoglobals // constant table
var zones = map[string]int16{
	"UTC": utc, "GMT": utc, "WET": utc, "BST": utc + 60, "CET": utc + 60, "MEZ": utc + 60, "CEST": utc + 120,
	"MESZ": utc + 120,
	"EST":  utc - 300, "EDT": utc - 240, "PST": utc - 480, "PDT": utc - 420,
}

// sameTime compares two times of day, converted to one time zone if both have one.
func sameTime(c, e *Value) Agreement {
	at, how := e.Lo, Equal
	if c.Zone != 0 && e.Zone != 0 && c.Zone != e.Zone {
		at, how = math.Mod(e.Lo+float64(c.Zone-e.Zone)+2*utc, utc), Converted
	}
	if c.Spoken != e.Spoken {
		how = Converted
	}
	return when(c.Lo == at || (c.Half || e.Half) && math.Abs(c.Lo-at) == 12*60, how)
}

// DaysApart returns by how many days the date at time c differs from that at time e, in another
// time zone, if both are the same moment: 1 for 00:30 CET and 23:30 UTC, -1 the other way round. It
// returns 0 for times of the same day or zone, and for different moments.
func DaysApart(c, e *Value) int {
	if c.Kind != Clock || e.Kind != Clock || c.Zone == 0 || e.Zone == 0 {
		return 0
	}
	switch at := e.Lo + float64(c.Zone-e.Zone); c.Lo - at {
	case -utc:
		return 1
	case utc:
		return -1
	}
	return 0
}

// Shifted returns a date some days later, or earlier if days is negative. A date without a year is
// treated as one in a year of 365 days. A value that is not a complete date is returned unchanged.
func (v *Value) Shifted(days int) Value {
	out := *v
	if v.Kind != Date || v.Day == 0 || v.Month == 0 || v.Month > 12 || v.Swap || v.Year != v.YearTo {
		return out
	}
	year := cmp.Or(v.Year, 2001)
	day := time.Date(year, time.Month(v.Month), int(v.Day)+days, 0, 0, 0, 0, time.UTC)
	out.Month, out.Day = uint8(day.Month()), uint8(day.Day())
	if v.Year != 0 {
		out.years(day.Year(), day.Year())
	}
	if v.Weekday != 0 {
		out.Weekday = uint8((int(v.Weekday)-1+days+7)%7) + 1
	}
	return out
}
