package quantity

import (
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits for reading a bare four-digit number as a year.
const (
	minYear = 1000
	maxYear = 2199
	// Limits before a month, as in 2024 Nov 12.
	firstListed = 1800
	lastListed  = 2099
)

func dateValue(start int) Value {
	return Value{Start: start, Kind: Date, Dim: calendar, Alt: math.NaN(), Factor: 1, Step: 1, Place: 1}
}

func (v *Value) years(from, to int) {
	v.Year, v.YearTo = from, to
	v.Raw, v.RawHi = float64(from), float64(to)
	v.Lo, v.Hi = v.Raw, v.RawHi
}

// date reads a date at token i in any notation. It returns the token after it.
func (p *parser) date(i int) (v Value, next int, ok bool) {
	t := p.tok(i)
	v = dateValue(t.start)
	switch {
	case t.kind == tokDate:
		v.years(t.year, t.year)
		v.Month, v.Day, v.Swap = t.month, t.day, t.swap
		next = i + 1
	case t.kind == tokNumber:
		next = p.numberDate(i, &v)
	case t.kind == tokWord && t.word.role&roleMonth != 0:
		next = p.monthDate(i, &v)
	case t.kind == tokWord && quarterName(p.text[t.start:t.end]):
		next = p.quarter(i, &v)
	default:
		next = p.century(i, &v)
	}
	if next <= i {
		next = p.partOfYear(i, &v)
	}
	if next <= i {
		next = p.shortDecade(i, &v)
	}
	if next <= i {
		return v, i, false
	}
	v.End = p.tok(next - 1).end
	p.weekday(i, &v)
	return v, next, true
}

// weekday adds the weekday before a date that begins at token i: Friday, 4 December; Freitag, den
// 4. Dezember.
func (p *parser) weekday(i int, v *Value) {
	if v.Month == 0 || v.Day == 0 {
		return
	}
	for k := i - 1; k >= max(p.free, i-3); k-- {
		t := p.tok(k)
		if t.kind == tokWord && weekdays[p.text[t.start:t.end]] != 0 {
			v.Weekday, v.Start = weekdays[p.text[t.start:t.end]], t.start
			return
		}
		if !p.sym(k, ',') && !p.sym(k, '.') && !p.word(k, "the") && !p.word(k, "den") && !p.word(k, "dem") &&
			!p.word(k, "der") {
			return
		}
	}
}

// weekdays maps the names of weekdays to 1 (Monday) to 7.
//
//nolint:gochecknoglobals // constant table
var weekdays = func() map[string]uint8 {
	m := map[string]uint8{}
	for i, names := range [...]string{
		"Monday Mon Montag Mo lundi lunes", "Tuesday Tue Tues Dienstag Di mardi martes", "Wednesday Wed Mittwoch Mi mercredi miércoles",
		"Thursday Thu Thurs Donnerstag jeudi jueves", "Friday Fri Freitag Fr vendredi viernes", "Saturday Sat Samstag Sonnabend Sa samedi sábado",
		"Sunday Sun Sonntag dimanche domingo",
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = uint8(i + 1)
		}
	}
	return m
}()

// weekdayOf returns the weekday of a date, 1 for Monday to 7: the one written with it, otherwise
// that of the calendar. It returns 0 if the weekday is unknown.
func weekdayOf(v *Value) uint8 {
	if v.Weekday != 0 || v.Year < minYear || v.Year != v.YearTo || v.Month == 0 || v.Month > 12 || v.Day == 0 ||
		v.Swap {
		return v.Weekday
	}
	d := time.Date(v.Year, time.Month(v.Month), int(v.Day), 0, 0, 0, 0, time.UTC).Weekday()
	return uint8(d+6)%7 + 1
}

// DayOfWeek returns the weekday of a date, 1 for Monday to 7, or 0 if v is not a date or the
// weekday is unknown.
func (v *Value) DayOfWeek() uint8 {
	if v.Kind != Date {
		return 0
	}
	return weekdayOf(v)
}

// shortDecade reads decades of the 20th century written without the century: 60er Jahre, années
// soixante, años 60.
func (p *parser) shortDecade(i int, v *Value) int {
	at, next := i, i+3
	switch {
	case p.word(i, "années") || p.word(i, "años"):
		at, next = i+1, i+2
	case !p.word(i+1, "er") || !p.touches(i+1) || !p.word(i+2, "Jahre") && !p.word(i+2, "Jahren"):
		return i
	}
	t := p.tok(at)
	n := t.num
	if t.kind == tokWord && t.word.role&roleCardinal != 0 {
		n = t.word.num
	}
	if n < 20 || n > 90 || math.Mod(n, 10) != 0 {
		return i
	}
	v.years(1900+int(n), 1909+int(n))
	return next
}

// numberDate reads dates that begin with a number: 12 May 1889, 1990s, 2024年5月12日, 1889, 19th
// century. It returns i if there is none.
func (p *parser) numberDate(i int, v *Value) int {
	t := p.tok(i)
	if next := p.dayFirst(i, v); next > i {
		return next
	}
	if next := p.ideographicDate(i, v); next > i {
		return next
	}
	if next := p.century(i, v); next > i {
		return next
	}
	if p.shortYear(i, v) {
		return i + 1
	}
	if t.digits != 4 && !p.era(i+1) || t.step != 1 {
		return i
	}
	n := int(t.num)
	if p.era(i+1) && n < 10000 {
		v.years(-n, -n)
		return i + 2
	}
	if n < minYear || n > maxYear {
		return i
	}
	return p.bareYear(i, n, v)
}

// bareYear reads n at token i as a year or as the start of a decade.
func (p *parser) bareYear(i, n int, v *Value) int {
	if p.touches(i+1) && p.word(i+1, "s") || p.touches(i+1) && p.sym(i+1, '\'') && p.word(i+2, "s") || p.word(i+1, "er") {
		v.years(n, n)
		if n%10 == 0 {
			v.years(n, decadeEnd(n))
		}
		if p.sym(i+1, '\'') {
			return i + 3
		}
		return i + 2
	}
	if !p.tok(i).told && !p.yearStands(i) {
		return i
	}
	v.years(n, n)
	return i + 1
}

// shortYear reads the 19 of 2018–19.
func (p *parser) shortYear(i int, v *Value) bool {
	t, first := p.tok(i), p.tok(i-2)
	dash := p.sym(i-1, '–') || p.sym(i-1, '-') || p.sym(i-1, '/')
	if !dash || t.digits != 2 || t.step != 1 || first.digits != 4 || first.num < minYear || first.num > maxYear || !p.touches(i) || !p.touches(i-1) {
		return false
	}
	n := int(first.num)/100*100 + int(t.num)
	if n <= int(first.num) {
		return false
	}
	v.years(n, n)
	return true
}

func decadeEnd(n int) int {
	if n%100 == 0 {
		return n + 99
	}
	return n + 9
}

func (p *parser) era(i int) bool { return p.has(i, roleEra) }

// yearStands reports whether a number is a year and not a count: it follows "in", a month or a
// bracket, or ends its clause.
func (p *parser) yearStands(i int) bool {
	if p.money(i-1) || p.money(i+1) || p.magnitude(i+1) > 0 || p.has(i-1, roleHedge) && !p.has(i-1, roleYearCue) {
		return false
	}
	if _, _, ok := p.unitAt(i + 1); ok {
		return false
	}
	_, said := p.unitSaid(i)
	if _, _, ok := p.fieldUnit(i); ok || said || p.amountField(i) {
		return false
	}
	if p.has(i+1, roleAnd|roleTo) || p.sym(i+1, '-') || p.sym(i+1, '–') {
		if _, _, ok := p.unitAt(i + 3); ok && p.tok(i+2).kind == tokNumber && p.tok(i+2).num >= minYear {
			return false // between 1800 and 1900 km, but not: in 2018 and 67 %
		}
	}
	if p.has(i-1, roleThan) && !p.has(i-1, roleYearCue|roleOf) {
		return false
	}
	if p.has(i-1, roleYearCue) || p.has(i-1, roleOf) || p.monthAt(i-1) {
		return true
	}
	return p.endsYear(i)
}

// endsYear reports whether the text after the number at token i may follow a year.
func (p *parser) endsYear(i int) bool {
	if p.monthAt(i+1) && (p.tok(i).num < firstListed || p.tok(i).num > lastListed) {
		return false // a file size followed by its date
	}
	if after := p.tok(i + 1); after.kind == tokWord {
		r, _ := utf8.DecodeRuneInString(p.text[after.start:])
		stands := after.word.role&(roleAnd|roleTo|roleYearCue|roleOf|roleMonth) != 0 || after.word.span
		return stands || unicode.IsUpper(r)
	}
	return true
}

// dayFirst reads 12 May 1889, 12-May-1889, 12th of May, 12. Mai 1889, 12 de mayo de 1889, 1er mai.
func (p *parser) dayFirst(i int, v *Value) int {
	t := p.tok(i)
	if t.step != 1 || t.num < 1 || t.num > 31 || t.digits > 2 || t.digits == 0 {
		return i
	}
	j := i + 1
	if p.touches(j) && (p.sym(j, '.') || p.ordinalMark(j)) {
		j++
	}
	if p.toLaterDay(j, t.num, v) {
		v.Day = uint8(t.num)
		return j
	}
	joined := p.touches(j) && (p.sym(j, '-') || p.sym(j, '/')) && p.touches(j+1)
	if joined || p.has(j, roleOf) {
		j++
	}
	if !p.monthAt(j) {
		return i
	}
	v.Day, v.Month = uint8(t.num), p.tok(j).word.month
	if joined && p.touches(j+1) && p.tok(j+1).kind == tokSymbol && p.tok(j+1).sym == p.tok(j-1).sym {
		if next := p.yearAfter(j+2, v); next > j+2 {
			return next
		}
	}
	return p.yearAfter(j+1, v)
}

// toLaterDay reads "to" or a dash at token i and a later day of the same month after it: 10-12 May
// 2025, 10. bis 12. Mai. It reports whether it found them.
func (p *parser) toLaterDay(i int, day float64, v *Value) bool {
	dash := (p.sym(i, '-') || p.sym(i, '–') || p.sym(i, '—')) && p.dashRange(i)
	later := p.tok(i + 1)
	if !dash && !p.has(i, roleTo) || later.kind != tokNumber || later.num <= day {
		return false
	}
	var end Value
	if p.dayFirst(i+1, &end) == i+1 {
		return false
	}
	v.Month, v.Year, v.YearTo = end.Month, end.Year, end.YearTo
	return true
}

// monthAt reports whether token i is a month. "may" and "march" must be capitalised.
func (p *parser) monthAt(i int) bool {
	t := p.tok(i)
	if t.kind != tokWord || t.word.role&roleMonth == 0 {
		return false
	}
	switch p.text[t.start:t.end] {
	case "may", "march":
		return false
	case "mar", "mars", "jun", "sep", "dec", "ago", "Ago", "AGO", "avr", "Avr", "AVR":
		before := p.tok(i - 1)
		if p.has(i-1, roleOf) {
			before = p.tok(i - 2)
		}
		return before.kind == tokNumber
	}
	return true
}

// yearAfter reads a year after a month: 1889 or , 1889 or de 1889.
func (p *parser) yearAfter(i int, v *Value) int {
	j := i
	if p.sym(j, '.') && p.touches(j) {
		j++
	}
	if p.sym(j, ',') || p.has(j, roleOf) {
		j++
	}
	for p.word(j, "พ") || p.word(j, "ศ") || j > i && p.sym(j, '.') && (p.word(j-1, "พ") || p.word(j-1, "ศ")) {
		j++ // พ.ศ. 2567
	}
	t := p.tok(j)
	if t.kind == tokNumber && t.digits == 4 && t.num >= minYear && t.num <= maxYear {
		v.years(int(t.num), int(t.num))
		return j + 1
	}
	return i
}

// monthDate reads May 12, 1889 and May 1889. A month alone is not a date.
func (p *parser) monthDate(i int, v *Value) int {
	if !p.monthAt(i) {
		return i
	}
	v.Month = p.tok(i).word.month
	j := i + 1
	if p.sym(j, '.') && p.touches(j) {
		j++
	}
	t := p.tok(j)
	if t.kind == tokNumber && t.step == 1 && t.digits > 0 && t.digits <= 2 && t.num >= 1 && t.num <= 31 {
		v.Day = uint8(t.num)
		j++
		if p.touches(j) && p.ordinalMark(j) {
			j++
		}
		return p.yearAfter(j, v)
	}
	if next := p.yearAfter(j, v); next > j {
		if (p.has(i-1, roleTo) || p.sym(i-1, '-') || p.sym(i-1, '–')) && p.monthAt(i-2) {
			v.From = p.tok(i - 2).word.month
		}
		return next
	}
	return i
}

func (p *parser) ordinalMark(i int) bool {
	if p.word(i, "e") || p.word(i, "ᵉ") {
		return true
	}
	t := p.tok(i)
	return (t.kind == tokWord || t.kind == tokSymbol) && glued(p.text[t.start:t.end]) == gluedOrdinal
}

// ideographicDate reads 2024年5月12日, 2024년 5월 12일 and their parts.
func (p *parser) ideographicDate(i int, v *Value) int {
	t := p.tok(i)
	year, month := p.word(i+1, "年") || p.word(i+1, "년"), p.monthMark(i+1)
	if t.step != 1 || !year && !month {
		return i
	}
	j := i
	if year {
		if t.num < minYear && !p.monthMark(j+3) {
			return i // a length of time
		}
		v.years(int(t.num), int(t.num))
		j += 2
	}
	if m := p.tok(j); m.kind == tokNumber && p.monthMark(j+1) && m.num >= 1 && m.num <= 12 {
		v.Month = uint8(m.num)
		j += 2
		if d := p.tok(j); d.kind == tokNumber && p.dayMark(j+1) && d.num >= 1 && d.num <= 31 {
			v.Day = uint8(d.num)
			j += 2
		}
	}
	return j
}

func (p *parser) monthMark(i int) bool { return p.word(i, "月") || p.word(i, "월") }

func (p *parser) dayMark(i int) bool {
	return p.word(i, "日") || p.word(i, "号") || p.word(i, "號") || p.word(i, "일")
}

// quarter reads Q3 2024 and Q3/2024, and the French and Spanish T3 2024.
func (p *parser) quarter(i int, v *Value) int {
	at := i + 1
	if p.sym(at, '/') && p.touches(at) {
		at++
	}
	j := p.yearAfter(at, v)
	if j == at {
		return i
	}
	s := p.tokText(i)
	part := s[0]
	if part == 'T' {
		part = 'Q'
	}
	v.Month = 100 + 10*(part%10) + s[1] - '0' // a code above 100 for a part of the year
	return j
}

// partOfYear reads third quarter of 2024, 3. Quartal 2024, first half of 2024.
func (p *parser) partOfYear(i int, v *Value) int {
	t := p.tok(i)
	n, j := 0.0, i+1
	switch {
	case t.kind == tokNumber && t.digits == 1:
		if n = t.num; !p.touches(j) || !p.ordinalMark(j) && !p.sym(j, '.') {
			return i
		}
		j++
	case t.kind != tokWord || !p.ordinalWord(i, &n, &j):
		return i
	}
	part, most := byte('Q'), 4.0
	switch p.tokText(j) {
	case "quarter", "Quarter", "Quartal", "Quartals", "trimestre", "Trimestre":
	case "half", "Halbjahr", "Halbjahres", "Halbjahrs", "semestre": //nolint:misspell // French and Spanish
		part, most = 'H', 2
	default:
		return i
	}
	if j++; p.word(j, "des") && p.word(j+1, "Jahres") {
		j += 2
	}
	next := p.yearAfter(j, v)
	if n < 1 || n > most || next == j {
		return i
	}
	v.Month = 100 + 10*(part%10) + uint8(n)
	return next
}

// century reads 19th century, nineteenth century, 19. Jahrhundert, XIXe siècle, siglo XIX.
func (p *parser) century(i int, v *Value) int {
	n, j := 0.0, i+1
	t := p.tok(i)
	switch {
	case t.kind == tokWord && t.word.role&roleCentury != 0:
		if n = float64(roman(p.tokText(i + 1))); n == 0 {
			return i
		}
		j = i + 1
	case t.kind == tokNumber && t.step == 1:
		if !p.touches(j) || !p.ordinalMark(j) && !p.sym(j, '.') {
			return i
		}
		j++
		n = t.num
	case t.kind == tokWord && p.ordinalWord(i, &n, &j):
	case t.kind == tokWord:
		n = float64(roman(p.tokText(i)))
	}
	if p.sym(j, '-') {
		j++
	}
	if n < 1 || n > 30 || j > i && t.word.role&roleCentury == 0 && !p.has(j, roleCentury) {
		return i
	}
	v.years(int(n-1)*100, int(n)*100)
	if p.era(j + 1) {
		v.years(-int(n)*100, -int(n-1)*100)
		j++
	}
	return j + 1
}

func (p *parser) tokText(i int) string {
	t := p.tok(i)
	if t.kind != tokWord {
		return ""
	}
	return p.text[t.start:t.end]
}

// roman returns the value of a small Roman numeral, possibly with a French ordinal ending, or 0 if
// s is not one.
func roman(s string) int {
	for len(s) > 1 && (s[len(s)-1] == 'e' || s[len(s)-1] > 0x7f || s[len(s)-1] == 'm') {
		s = s[:len(s)-1]
	}
	total, prev := 0, 0
	for i := len(s) - 1; i >= 0; i-- {
		var n int
		switch s[i] {
		case 'I':
			n = 1
		case 'V':
			n = 5
		case 'X':
			n = 10
		default:
			return 0
		}
		if n < prev {
			total -= n
		} else {
			total += n
			prev = n
		}
	}
	return total
}

// MonthOf returns the month that a word names, 1 to 12, or 0 if it names none.
func MonthOf(word string) uint8 {
	var form [16]byte
	if len(word) > len(form)/2 && len(word) > 12 || word == "may" || word == "march" || word == "mars" || word == "ago" ||
		word == "avr" {
		return 0
	}
	n := 0
	for _, r := range word {
		if n+utf8.UTFMax > len(form) {
			return 0
		}
		n += utf8.EncodeRune(form[n:], unicode.ToLower(r))
	}
	return lexicon[string(form[:n])].month
}
