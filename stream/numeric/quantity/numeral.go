package quantity

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

func nan() float64 { return math.NaN() }

// isDigit reports whether r is a decimal digit of a script that digitOf reads.
func isDigit(r rune) bool { return digitOf(r) >= 0 }

// digitOf returns the value of a decimal digit, or -1. It covers the blocks of Unicode's general
// category Nd in everyday use.
func digitOf(r rune) int {
	if r >= '0' && r <= '9' {
		return int(r - '0')
	}
	if r < 0x660 {
		return -1
	}
	for _, zero := range [...]rune{0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xFF10} {
		if r >= zero && r <= zero+9 {
			return int(r - zero)
		}
	}
	return -1
}

// maxGroups is the maximum number of digit groups in a numeral; 12 groups of three exceed any
// amount.
const maxGroups = 12

// group is a run of digits with the separator before it.
type group struct {
	sep        rune
	start, end int
	digits     int
	value      float64
}

// numeral takes digits with their separators.
func (l *lexer) numeral() {
	var buf [maxGroups]group
	groups := l.groups(buf[:0])
	if l.special(groups) {
		return
	}
	n, t := assemble(groups)
	t.end = groups[n-1].end
	if buddhist(l.text[:t.start], &t) {
		t.num -= buddhistYears
		t.told = true
	}
	l.toks = append(l.toks, t)
	l.pos = t.end
	l.suffix()
}

// groups reads runs of digits and the separators between them, without interpreting them.
func (l *lexer) groups(dst []group) []group {
	at, sep := l.pos, rune(0)
	for {
		g := group{sep: sep, start: at}
		for at < len(l.text) {
			r, size := utf8.DecodeRuneInString(l.text[at:])
			d := digitOf(r)
			if d < 0 {
				break
			}
			g.value = g.value*10 + float64(d)
			g.digits++
			at += size
		}
		g.end = at
		dst = append(dst, g)
		r, size := utf8.DecodeRuneInString(l.text[at:])
		next, _ := utf8.DecodeRuneInString(l.text[at+min(size, len(l.text)-at):])
		if !separator(r) || !isDigit(next) || len(dst) == maxGroups {
			return dst
		}
		sep = r
		at += size
	}
}

func separator(r rune) bool {
	switch r {
	case ',', '.', ' ', '\u00a0', '\u202f', '\u2009', '\'', '’', '_', '٫', '٬', '，', '．', ':', '/', '-':
		return true
	}
	return false
}

// special takes numerals that are not plain numbers: times of day, numeric dates, versions,
// addresses, telephone numbers.
func (l *lexer) special(g []group) bool {
	if len(g) < 2 {
		return false
	}
	end := 2
	for end < len(g) && g[end].sep == g[1].sep {
		end++
	}
	same := g[:end]
	switch g[1].sep {
	case ':':
		return l.clock(same)
	case '/':
		if len(same) == 3 {
			return l.date(same)
		}
		return l.fieldDate(g) || l.shortDate(g) || l.slash(same)
	case '-':
		return l.dashed(g, same)
	case '.':
		if len(same) == 3 && l.date(same) || l.shortDate(g) {
			return true
		}
		if len(same) >= 3 && !thousands(same) {
			l.opaque(same[len(same)-1].end)
			return true
		}
	}
	return false
}

// dashed takes dates and telephone numbers with hyphens. same are the first groups of g that have
// the same separator.
func (l *lexer) dashed(g, same []group) bool {
	if len(same) == 3 {
		return l.date(same) || l.dialled(same)
	}
	call := len(same) > 3 || len(same) == 2 && same[1].digits >= 4 && same[0].digits == 3
	return l.fieldDate(g) || call && l.dialled(same)
}

func (l *lexer) clock(g []group) bool {
	if g[0].digits > 2 || g[1].digits != 2 || g[0].value > 24 || g[1].value > 59 || g[0].value == 24 && g[1].value > 0 {
		return false
	}
	n := 2
	if len(g) > 2 && g[2].digits == 2 {
		n = 3
	}
	l.toks = append(l.toks, token{start: g[0].start, end: g[n-1].end, kind: tokClock, num: g[0].value*60 + g[1].value})
	l.pos = g[n-1].end
	return true
}

// slash skips 24/7 and takes small fractions as numbers.
func (l *lexer) slash(g []group) bool {
	a, b := g[0], g[1]
	if a.value == 24 && b.value == 7 {
		l.opaque(b.end)
		return true
	}
	if len(g) != 2 || b.value == 0 || a.digits > 2 || b.digits > 2 || a.value >= b.value {
		return false
	}
	l.toks = append(l.toks, token{start: a.start, end: b.end, kind: tokNumber, num: a.value / b.value, alt: nan(), step: 0.01})
	l.pos = b.end
	return true
}

// date takes year-month-day, day.month.year and day/month/year; in the last, month and day may be
// swapped.
func (l *lexer) date(g []group) bool {
	t := token{start: g[0].start, end: g[2].end, kind: tokDate}
	a, b, c := int(g[0].value), int(g[1].value), int(g[2].value)
	switch {
	case g[0].digits == 4 && b >= 1 && b <= 12 && c >= 1 && c <= 31 && g[1].digits <= 2 && g[2].digits <= 2:
		t.year, t.month, t.day = a, uint8(b), uint8(c)
	case g[2].digits == 4 && g[0].digits <= 2 && g[1].digits <= 2 && max(a, b) <= 31 && min(a, b) >= 1 && min(a, b) <= 12:
		t.year = c
		t.day, t.month = uint8(a), uint8(b)
		if b > 12 {
			t.day, t.month = uint8(b), uint8(a)
		}
		t.swap = g[1].sep != '.' && a <= 12 && b <= 12
	default:
		return false
	}
	l.toks = append(l.toks, t)
	l.pos = t.end
	l.timestamp()
	return true
}

// timestamp takes the time of day after a date in ISO 8601: 2026-11-25T09:30:00Z. Seconds are
// skipped, and the offset from UTC is kept.
func (l *lexer) timestamp() {
	rest := l.text[l.pos:]
	if len(rest) < 6 || rest[0] != 'T' && rest[0] != 't' && rest[0] != ' ' || !isTime(rest[1:]) {
		return
	}
	end := 6 + secondsOf(rest[6:])
	hours := float64(rest[1]-'0')*10 + float64(rest[2]-'0')
	minutes := float64(rest[4]-'0')*10 + float64(rest[5]-'0')
	t := token{start: l.pos + 1, end: l.pos + end, kind: tokClock, num: hours*60 + minutes}
	zone, size := zoneOf(rest[end:])
	if rest[0] == ' ' && end == 6 && size > 1 {
		zone, size = 0, 0 // 09:00-17:00 is a range
	}
	t.zone, end = zone, end+size
	l.toks = append(l.toks, t)
	l.pos += end
}

// secondsOf returns the length in bytes of the seconds at the start of s, with their fraction.
func secondsOf(s string) int {
	if len(s) < 3 || s[0] != ':' || !isMinutes(s[1:]) {
		return 0
	}
	if len(s) < 5 || s[3] != '.' && s[3] != ',' || !isDigit(rune(s[4])) {
		return 3
	}
	end := 4
	for end < len(s) && isDigit(rune(s[end])) {
		end++
	}
	return end
}

// zoneOf returns the offset from UTC at the start of a text, as in Value.Zone, and its length in
// bytes.
func zoneOf(tail string) (zone int16, size int) {
	switch {
	case strings.HasPrefix(tail, "Z") && !startsWord(tail[1:]):
		return utc, 1
	case len(tail) >= 6 && (tail[0] == '+' || tail[0] == '-') && isTime(tail[1:]):
		ahead := (int16(tail[1]-'0')*10+int16(tail[2]-'0'))*60 + int16(tail[4]-'0')*10 + int16(tail[5]-'0')
		if tail[0] == '-' {
			ahead = -ahead
		}
		return utc + ahead, 6
	}
	return 0, 0
}

// isTime reports whether s begins with a time of day: 09:30.
func isTime(s string) bool {
	return len(s) >= 5 && s[0] >= '0' && s[0] <= '2' && isDigit(rune(s[1])) && s[2] == ':' && isMinutes(s[3:])
}

// dialled skips 555-0123 and similar codes. Three groups that are not a date are not an amount
// either.
func (l *lexer) dialled(g []group) bool {
	l.opaque(g[len(g)-1].end)
	return true
}

// thousands reports whether the separators of g may separate thousands, or lakhs (12,34,567).
func thousands(g []group) bool {
	if g[0].digits > 3 || g[0].digits == 0 {
		return false
	}
	three, indian := true, g[0].digits <= 2 && len(g) > 2
	for i, x := range g[1:] {
		three = three && x.digits == 3
		last := i == len(g)-2
		indian = indian && (last && x.digits == 3 || !last && x.digits == 2)
	}
	return three || indian && g[1].sep == ','
}

// assemble builds a number from the first groups of g and returns how many it used.
func assemble(g []group) (int, token) {
	t := token{start: g[0].start, kind: tokNumber, num: g[0].value, alt: nan(), step: 1, digits: g[0].digits}
	if len(g) == 1 {
		return 1, t
	}
	run := 1 // groups joined by the first separator
	for run < len(g) && normalSep(g[run].sep) == normalSep(g[1].sep) {
		run++
	}
	sep := normalSep(g[1].sep)
	decimal := sep == '.' || sep == ','
	switch {
	case !decimal && sep != ' ':
		return 1, t
	case run >= 2 && thousands(g[:run]) && (run > 2 || !decimal || g[0].value != 0):
	case decimal && run == 2:
		fraction(&t, g[0].value, g[1])
		return 2, t
	default:
		return 1, t
	}
	n := run
	t.num, t.digits = 0, 0
	for _, x := range g[:n] {
		t.num = t.num*math.Pow10(x.digits) + x.value
	}
	if n < len(g) && (normalSep(g[n].sep) == '.' || normalSep(g[n].sep) == ',') && decimalAfter(sep, g[n]) {
		whole := t.num
		fraction(&t, whole, g[n])
		return n + 1, t
	}
	if n == 2 && decimal {
		ambiguous(&t, g[0].value, g[1], sep)
	}
	return n, t
}

func decimalAfter(sep rune, g group) bool { return normalSep(g.sep) != sep }

// ambiguous decides 1,234 and 1.234, which are thousands or fractions depending on the country. The
// comma is read as in English, the full stop as a decimal sign, and the other reading is kept in
// t.alt.
func ambiguous(t *token, whole float64, g group, sep rune) {
	var other token
	fraction(&other, whole, g)
	if sep == ',' {
		t.alt = other.num
		return
	}
	t.alt, t.num, t.step = t.num, other.num, other.step
}

func fraction(t *token, whole float64, g group) {
	t.step = math.Pow10(-g.digits)
	t.num = whole + g.value*t.step
	t.digits = 0
}

func normalSep(r rune) rune {
	switch r {
	case ',', '٬', '，':
		return ','
	case '.', '٫', '．':
		return '.'
	case ' ', '\u00a0', '\u202f', '\u2009', '\'', '’', '_':
		return ' '
	}
	return r
}

// suffix handles letters attached to a number. 3rd, 1990s, 12k and 5km become a number and a word,
// 14h30 becomes a time of day, and 3D and 4K0 are opaque.
func (l *lexer) suffix() {
	rest := l.text[l.pos:]
	r, _ := utf8.DecodeRuneInString(rest)
	if script.IsIdeograph(r) {
		l.hanMixed()
		return
	}
	if script.IsHangul(r) {
		l.hangul()
		return
	}
	if !unicode.IsLetter(r) || l.degree() {
		return
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !isDigit(r) })
	if end < 0 {
		end = len(rest)
	}
	last := &l.toks[len(l.toks)-1]
	tail := rest[:end]
	if (tail == "e" || tail == "E" || isExponent(tail)) && l.exponent(tail) {
		return
	}
	switch {
	case (tail[0] == 'h' || tail[0] == 'H') && len(tail) == 3 && isMinutes(tail[1:]) && (last.num < 24 || last.num == 24 && tail[1:] == "00"):
		last.kind, last.num, last.end = tokClock, last.num*60+float64(tail[1]-'0')*10+float64(tail[2]-'0'), l.pos+end
	case last.digits == 4 && len(tail) == 1 && tail[0] >= 'a' && tail[0] <= 'f':
		// 2011a in a reference list: the year remains
	case glued(tail) != plainWord:
		return // read as a word of its own
	default:
		last.kind, last.end = tokOpaque, l.pos+end
	}
	l.pos += end
}

func isExponent(s string) bool {
	return (s[0] == 'e' || s[0] == 'E') && len(s) > 1 && len(s) <= 3 && strings.Trim(s[1:], "0123456789") == ""
}

// exponent multiplies the last number by the power of ten in 1.2e-3 or 5e6.
func (l *lexer) exponent(tail string) bool {
	at, sign := l.pos+len(tail), 1
	digits := tail[1:]
	if digits == "" {
		rest := l.text[at:]
		if len(rest) < 2 || rest[0] != '-' && rest[0] != '+' || rest[1] < '0' || rest[1] > '9' {
			return false
		}
		if rest[0] == '-' {
			sign = -1
		}
		end := 2
		for end < len(rest) && end < 4 && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		digits = rest[1:end]
		at += end
	}
	exp := 0
	for _, c := range []byte(digits) {
		exp = exp*10 + int(c-'0')
	}
	last := &l.toks[len(l.toks)-1]
	last.num *= math.Pow10(sign * exp)
	last.step *= math.Pow10(sign * exp)
	last.alt, last.digits, last.end = nan(), 0, at
	l.pos = at
	return true
}

func isMinutes(s string) bool {
	return len(s) > 1 && s[0] >= '0' && s[0] <= '5' && s[1] >= '0' && s[1] <= '9'
}

// gluedKind is the meaning of letters directly after a number.
type gluedKind uint8

const (
	plainWord gluedKind = iota
	gluedOrdinal
	gluedDecade
	gluedMagnitude
	gluedUnit
)

func glued(s string) gluedKind {
	switch s {
	case "e", "E":
		return gluedUnit // an exponent, or the French ordinal mark
	case "st", "nd", "rd", "th", "er", "ère", "ème", "º", "ª", "ᵉ":
		return gluedOrdinal
	case "k", "K", "M", "B", "bn", "mn", "tn", "mio", "mrd", "m", "T":
		return gluedMagnitude
	case "s":
		return gluedDecade
	case "am", "pm", "AM", "PM":
		return gluedUnit
	}
	if _, ok := symbols[s]; ok {
		return gluedUnit
	}
	if _, ok := unitNames[strings.ToLower(s)]; ok {
		return gluedUnit
	}
	return plainWord
}
