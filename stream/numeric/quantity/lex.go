package quantity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

type tokenKind uint8

const (
	tokWord   tokenKind = iota
	tokNumber           // digits, with separators resolved
	tokClock            // 14:30: num is minutes after midnight
	tokDate             // 1889-05-12, 12.05.1889: year, month, day
	tokSymbol           // a single rune that is neither
	tokOpaque           // version, identifier, address, code: not a fact
	tokCode             // a telephone or account number
)

// token is one piece of the text. A number with letters attached (12k, 5km, 3rd, 1990s) becomes a
// number and a word that touch.
type token struct {
	start, end int
	kind       tokenKind
	sym        rune // of a symbol

	// num, alt and step are the value of a number, its alternative reading or NaN, and the place
	// value of its last digit.
	num, alt, step float64
	// digits is the number of digits before the decimal sign if the number may be a year; 0 if it
	// has separators or decimals.
	digits int
	word   word // of a word: its lexicon entry
	unit   unit // unit that a word or symbol names; dim is Plain if none

	zone    int16 // of a clock, as in Value
	country int16 // of a telephone number, as in Value
	weak    bool  // of a number: one ideograph, which may not be a fact
	// told is set for a clock if a word states the half of the day, and for a number that is known
	// to be a year.
	told       bool
	year       int // of a date
	month, day uint8
	swap       bool
}

// lexer splits a text into tokens.
type lexer struct {
	text string
	pos  int
	toks []token
}

func (l *lexer) run() {
	for l.pos < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.pos:])
		switch {
		case r == '`':
			l.code()
		case r == ordinalMark && l.degree():
			l.symbol('°', size)
		case r == '[' && l.citation():
		case (isDigit(r) || r == '+' || r == '(') && l.phone():
		case isDigit(r):
			l.numeral()
		case r >= '〇' && hanRunes[r].kind != 0 && l.hanNumeral():
		case script.IsIdeograph(r) && (l.japaneseYear() || r == '半' && l.hanHalf()):
		case r == '_' && l.emphasis():
		case unicode.IsLetter(r) || r == '_' || r == '@':
			l.wordOrName()
		case vulgar(r) > 0:
			l.toks = append(l.toks, token{start: l.pos, end: l.pos + size, kind: tokNumber, num: vulgar(r), alt: nan(), step: 0.01})
			l.pos += size
		case unicode.IsSpace(r):
			l.pos += size
		default:
			l.symbol(r, size)
		}
	}
}

// emphasis skips underscores of emphasis next to a number, as in _20 days_, and reports whether it
// did. Other underscores begin a name.
func (l *lexer) emphasis() bool {
	rest := strings.TrimLeft(l.text[l.pos:], "_")
	if rest != "" && (rest[0] < '0' || rest[0] > '9') && startsWord(rest) {
		return false
	}
	l.pos = len(l.text) - len(rest)
	return true
}

// ordinalMark is also written for the degree sign.
const ordinalMark = 'º'

// degree reports whether the ordinal mark stands for the degree sign here: 24 ºC, 24º C.
func (l *lexer) degree() bool {
	rest, ok := strings.CutPrefix(l.text[l.pos:], string(ordinalMark))
	rest = strings.TrimPrefix(rest, " ")
	return ok && rest != "" && (rest[0] == 'C' || rest[0] == 'F') && !startsWord(rest[1:])
}

// symbol takes one rune, or the degree sign with its scale.
func (l *lexer) symbol(r rune, size int) {
	end := l.pos + size
	if r == '°' {
		rest := strings.TrimPrefix(l.text[end:], " ")
		if rest != "" && (rest[0] == 'C' || rest[0] == 'F') && !startsWord(rest[1:]) {
			end = len(l.text) - len(rest) + 1
			l.toks = append(l.toks, token{start: l.pos, end: end, kind: tokSymbol, sym: r, unit: symbols["°"+rest[:1]]})
			l.pos = end
			return
		}
	}
	t := token{start: l.pos, end: end, kind: tokSymbol, sym: r, unit: symbols[l.text[l.pos:end]]}
	if r == '~' || r == '≈' || r == '&' || r == '/' || r == '§' {
		t.word = lexicon[l.text[l.pos:end]]
	}
	l.toks = append(l.toks, t)
	l.pos = end
}

// code reads text between backticks if it is plain ("port 8080") and skips it otherwise. An
// unpaired run of backticks is skipped alone.
func (l *lexer) code() {
	run := 1
	for l.pos+run < len(l.text) && l.text[l.pos+run] == '`' {
		run++
	}
	rest := l.text[l.pos+run:]
	end := strings.Index(rest, l.text[l.pos:l.pos+run])
	if end < 0 {
		l.pos += run
		return
	}
	if !plainCode(rest[:end]) {
		l.opaque(l.pos + run + end + run)
		return
	}
	whole := l.text
	l.text = whole[:l.pos+run+end]
	l.pos += run
	l.run() // contains no backtick
	l.text = whole
	l.pos += run
}

// plainCode reports whether code reads like text: words, and numbers with their separators and
// units.
func plainCode(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !isDigit(r) && !strings.ContainsRune(" .,:%-_$€£°'", r)
	})
}

func (l *lexer) opaque(end int) {
	l.toks = append(l.toks, token{start: l.pos, end: end, kind: tokOpaque})
	l.pos = end
}

// citation skips [3], [3, 4] and [12-14].
func (l *lexer) citation() bool {
	for i := l.pos + 1; i < len(l.text) && i < l.pos+24; i++ {
		switch c := l.text[i]; {
		case c == ']' && i > l.pos+1:
			l.opaque(i + 1)
			return true
		case c >= '0' && c <= '9', c == ',', c == ' ', c == '-', c == ';', c == '^':
		default:
			return false
		}
	}
	return false
}

// wordOrName takes a word. A word that contains a digit is an identifier, unless it is a unit (m2)
// or a quarter (Q3). A hyphen and digits after a capitalised word or an abbreviation belong to it
// (COVID-19).
func (l *lexer) wordOrName() {
	start := l.pos
	first, _ := utf8.DecodeRuneInString(l.text[start:])
	if script.IsIdeograph(first) && (l.hanClock() || l.hanUnit()) {
		return
	}
	end, digits := l.wordEnd(start)
	switch {
	case digits && l.account():
		return
	case digits && l.currency(end):
		return
	case end == start:
		l.pos += utf8.RuneLen(first)
		return
	case strings.HasPrefix(l.text[end:], "://") || strings.HasPrefix(l.text[start:], "www."),
		strings.ContainsRune(l.text[start:end], '@'):
		l.opaque(l.spaceFrom(end))
		return
	case strings.HasPrefix(l.text[end:], "@") && l.spaceFrom(end) > end+1:
		l.opaque(l.spaceFrom(end))
		return
	}
	t := token{start: start, end: end, kind: tokWord}
	t.unit = symbols[l.text[start:end]]
	if digits || first == '_' {
		if t.unit.dim == Plain && !quarterName(l.text[start:end]) {
			l.opaque(l.dotted(end))
			return
		}
	}
	l.fold(&t)
	if t.word.role == 0 && l.hyphenNumber(end) && (unicode.IsUpper(first) || end-start == 1) {
		l.opaque(l.spaceFrom(end))
		return
	}
	l.toks = append(l.toks, t)
	l.pos = end
}

// currency takes a currency sign or code attached to an amount (Rs200, EUR200, USD1,500), and any
// three-letter code before an amount with thousands (IRR200,000). end is the end of the word with
// its digits.
func (l *lexer) currency(end int) bool {
	const code, capitals = 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	at := l.pos + strings.IndexAny(l.text[l.pos:end], "0123456789")
	if at < l.pos+2 || at > l.pos+code || strings.Trim(l.text[at:end], "0123456789") != "" {
		return false
	}
	t := token{start: l.pos, end: at, kind: tokWord, unit: symbols[l.text[l.pos:at]]}
	named := at == l.pos+code && strings.Trim(l.text[l.pos:at], capitals) == ""
	if !t.unit.dim.currency() && (!named || end > at+code || !threeMore(l.text[end:])) {
		return false
	}
	l.fold(&t)
	l.toks = append(l.toks, t)
	l.pos = at
	return true
}

// threeMore reports whether a text continues with a comma and exactly three digits.
func threeMore(s string) bool {
	return len(s) > 3 && s[0] == ',' && isDigit(rune(s[1])) && isDigit(rune(s[2])) && isDigit(rune(s[3])) &&
		(len(s) == 4 || !isDigit(rune(s[4])))
}

// wordEnd returns the end of the word that begins at start, and whether it contains a digit.
func (l *lexer) wordEnd(start int) (end int, digits bool) {
	for end = start; end < len(l.text); {
		r, size := utf8.DecodeRuneInString(l.text[end:])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !isDigit(r) && r != '_' && r != '@' && !l.joins(r, end, size) {
			break
		}
		digits = digits || isDigit(r)
		end += size
		if script.IsIdeograph(r) {
			break
		}
	}
	if bare := len(strings.TrimRight(l.text[start:end], "_")); bare > 0 && l.text[start] != '_' {
		end = start + bare // the end of emphasis
	}
	return end, digits
}

// joins reports whether a mark inside a word belongs to it: an apostrophe, the dot of a.m. and
// B.C., the hyphen of year-old and light-year.
func (l *lexer) joins(r rune, at, size int) bool {
	rest := l.text[at+size:]
	switch r {
	case '\'', '’':
		return startsWord(rest)
	case '.':
		return at == l.pos+1 && len(rest) > 0 && strings.IndexByte("mMcC", rest[0]) >= 0 && !startsWord(rest[1:])
	case '-':
		return strings.HasPrefix(rest, "old") || strings.HasPrefix(rest, "hour") || strings.HasPrefix(rest, "year") && strings.HasSuffix(l.text[:at], "light")
	}
	return false
}

// dotted returns the end of the dots, hyphens and digits that follow offset at: v1.2.3.
func (l *lexer) dotted(at int) int {
	for at+1 < len(l.text) && (l.text[at] == '.' || l.text[at] == '-') && l.text[at+1] >= '0' && l.text[at+1] <= '9' {
		at++
		for at < len(l.text) && l.text[at] >= '0' && l.text[at] <= '9' {
			at++
		}
	}
	return at
}

func (l *lexer) hyphenNumber(at int) bool {
	rest := l.text[at:]
	return len(rest) > 1 && rest[0] == '-' && rest[1] >= '0' && rest[1] <= '9'
}

func (l *lexer) spaceFrom(at int) int {
	if n := strings.IndexFunc(l.text[at:], func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`<>"()`, r)
	}); n >= 0 {
		return at + n
	}
	return len(l.text)
}

// fold looks up the word of a token in lower case and sets its lexicon entry and unit.
func (l *lexer) fold(t *token) {
	var form [48]byte
	n := 0
	for _, r := range l.text[t.start:t.end] {
		if n+utf8.UTFMax > len(form) {
			return
		}
		if r == '’' {
			r = '\''
		}
		n += utf8.EncodeRune(form[n:], unicode.ToLower(r))
	}
	folded := form[:n]
	t.word = lexicon[string(folded)]
	if t.unit.dim == Plain {
		t.unit = unitNames[string(folded)]
	}
	if t.word.role == 0 && t.unit.dim == Plain {
		if v := german(folded); v > 0 {
			t.word = word{role: roleCardinal, num: v}
		}
	}
}

// german returns the value of a German compound, or 0: einundzwanzig, dreihundert,
// zweitausendfünfhundert.
func german(w []byte) float64 {
	for _, mult := range [...]struct {
		name string
		n    float64
	}{{"tausend", 1000}, {"hundert", 100}} {
		i := strings.Index(string(w), mult.name)
		if i < 0 {
			continue
		}
		head, tail := 1.0, 0.0
		if i > 0 {
			if head = germanPart(w[:i]); head == 0 {
				return 0
			}
		}
		if rest := w[i+len(mult.name):]; len(rest) > 0 {
			if tail = germanPart(rest); tail == 0 {
				return 0
			}
		}
		return head*mult.n + tail
	}
	i := strings.Index(string(w), "und")
	if i <= 0 {
		return 0
	}
	unitPart, tens := germanPart(w[:i]), germanPart(w[i+3:])
	if unitPart >= 1 && unitPart <= 9 && tens >= 20 && tens <= 90 {
		return unitPart + tens
	}
	return 0
}

func germanPart(w []byte) float64 {
	if string(w) == "ein" {
		return 1
	}
	if known := cardinal(w); known > 0 {
		return known
	}
	if len(w) > 32 {
		return 0
	}
	return german(w)
}

// cardinal returns the value of a cardinal in the lexicon, or 0.
func cardinal(w []byte) float64 {
	if known, ok := lexicon[string(w)]; ok && known.role&roleCardinal != 0 {
		return known.num
	}
	return 0
}

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || isDigit(r)
}

func quarterName(s string) bool {
	return len(s) == 2 && (s[0] == 'Q' || s[0] == 'H' || s[0] == 'T') && s[1] >= '1' && s[1] <= '4'
}

// vulgar returns the value of a one-character fraction, or 0.
func vulgar(r rune) float64 {
	switch r {
	case '½':
		return 0.5
	case '⅓':
		return 1.0 / 3
	case '⅔':
		return 2.0 / 3
	case '¼':
		return 0.25
	case '¾':
		return 0.75
	case '⅕':
		return 0.2
	case '⅛':
		return 0.125
	case '⅜':
		return 0.375
	case '⅝':
		return 0.625
	case '⅞':
		return 0.875
	}
	return 0
}
