package quantity

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// dayCues are words before a date without a year: am 20.06., até 15/06, on 06/20.
//
//nolint:gochecknoglobals // constant table
var dayCues = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`am bis vom ab zum seit den dem le du au el al del dia até il dal entro on by
		until from before after since due em no с до по от к`) {
		m[w] = true
	}
	return m
}()

// dayNames are the last words of field names that hold a date: "date": "06-01".
//
//nolint:gochecknoglobals // constant table
var dayNames = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("date dates deadline due birthday datum termin fecha") {
		m[w] = true
	}
	return m
}()

// fieldDate takes a month and a day of two digits each, 06-01, after a field name for dates. No
// word may follow: "Dates: 10-12 May" and "due: 10-12 days" are ranges. If both numbers may be a
// month, the order is unknown.
func (l *lexer) fieldDate(g []group) bool {
	if len(g) != 2 || g[0].digits != 2 || g[1].digits != 2 || !l.inDateField(g[0].start) {
		return false
	}
	a, b := int(g[0].value), int(g[1].value)
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(l.text[g[1].end:], " "))
	if unicode.IsLetter(next) || min(a, b) < 1 || min(a, b) > 12 || max(a, b) > 31 {
		return false
	}
	t := token{start: g[0].start, end: g[1].end, kind: tokDate, month: uint8(a), day: uint8(b), swap: max(a, b) <= 12}
	if a > 12 {
		t.month, t.day = uint8(b), uint8(a)
	}
	l.toks = append(l.toks, t)
	l.pos = t.end
	return true
}

// inDateField reports whether the name of a date field, a colon and possibly quotes precede an
// offset.
func (l *lexer) inDateField(at int) bool {
	name, ok := strings.CutSuffix(strings.TrimRight(l.text[:at], " \"'"), ":")
	if !ok {
		return false
	}
	name = strings.TrimRight(name, " \"'")
	word := name[strings.LastIndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })+1:]
	return len(word) <= len("birthday") && dayNames[strings.ToLower(word)]
}

// shortDate takes a day and a month in digits without a year. 20.06. needs a word such as "am"
// before it; 15/06 needs such a word or, if only one number may be a month, a preceding mark.
func (l *lexer) shortDate(g []group) bool {
	if len(g) != 2 {
		return false
	}
	a, b := int(g[0].value), int(g[1].value)
	if g[0].digits > 2 || g[1].digits > 2 || min(a, b) < 1 || min(a, b) > 12 || max(a, b) > 31 {
		return false
	}
	t := token{start: g[0].start, end: g[1].end, kind: tokDate, day: uint8(a), month: uint8(b)}
	cue, mark := l.before(t.start)
	switch {
	case g[1].sep == '.':
		if !cue || b > 12 || !strings.HasPrefix(l.text[t.end:], ".") || isDigitAt(l.text, t.end+1) {
			return false
		}
		t.end++
	case b > 12:
		t.day, t.month = uint8(b), uint8(a)
		fallthrough
	default:
		padded := l.text[g[0].start] == '0' || l.text[g[1].start] == '0'
		if told := cue || mark && padded && max(a, b) > 12; !told {
			return false
		}
		t.swap = a <= 12 && b <= 12
	}
	l.toks = append(l.toks, t)
	l.pos = t.end
	return true
}

// before reports whether a word that introduces a date precedes an offset, or a mark or nothing.
func (l *lexer) before(at int) (cue, mark bool) {
	text := strings.TrimRight(l.text[:at], " ")
	last, _ := utf8.DecodeLastRuneInString(text)
	if text == "" || strings.ContainsRune(":(,|：、（\n", last) {
		return false, true
	}
	word := text[strings.LastIndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })+1:]
	return dayCues[strings.ToLower(word)], false
}
