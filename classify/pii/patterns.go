package pii

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// PatternsContext appends to dst the personal data found in text by patterns, sorted by start and
// without overlaps; see the package comment for what it leaves to a model. text may have any size
// and is not retained. Without a finding it allocates nothing, unless narrow rewrites text. Its
// error is that of ctx, which is checked first and then every 64 KiB; nothing is appended in that
// case.
func PatternsContext(ctx context.Context, text string, dst []Span) ([]Span, error) {
	n, other := narrow(text)
	if !other {
		return patterns(ctx, text, dst)
	}
	out, err := patterns(ctx, n.text, dst)
	for i := len(dst); i < len(out); i++ {
		out[i].Start, out[i].End = n.before(out[i].Start), n.before(out[i].End)
	}
	return out, err
}

func patterns(ctx context.Context, text string, dst []Span) ([]Span, error) {
	s := scanner{text: text, out: dst[len(dst):], lines: judge{text: text}}
	for i := 0; i < len(text); {
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		i = s.part(i, i+bytesPerLook)
	}
	if err := s.fields(ctx); err != nil {
		return dst, err
	}
	if err := s.announced(ctx); err != nil {
		return dst, err
	}
	if err := s.closed(ctx); err != nil {
		return dst, err
	}
	if len(s.out) == 0 {
		return dst, nil
	}
	spans, err := resolve(ctx, s.out)
	return append(dst, spans...), err
}

// part examines the positions in [from, to) and returns where to continue.
func (s *scanner) part(from, to int) int {
	i, to := from, min(to, len(s.text))
	for i < to {
		if classes[s.text[i]] == plain {
			i++
			continue
		}
		i = s.look(i)
	}
	return i
}

// scanner is one pass over a text. Its methods examine a position. If they find something there,
// they add it to out and return the position to continue from, after the finding; otherwise they
// return 0.
type scanner struct {
	text string
	out  []Span

	nearAt int    // 1 + the place that near is about
	near   uint16 // see cuedBy

	runTo int  // up to where run holds
	run   bool // see phoneRun

	lines judge
}

// class is what may begin, or continue, at a byte.
type class uint8

const (
	plain class = iota
	digit
	capital
	at
	dot
	colon
	percent
)

// classes reduces the first test of a byte to one load: in prose nine of ten bytes are plain.
var classes = func() (t [256]class) { //nolint:gochecknoglobals // constant table
	for b := '0'; b <= '9'; b++ {
		t[b] = digit
	}
	for b := 'A'; b <= 'Z'; b++ {
		t[b] = capital
	}
	t['@'], t['.'], t[':'], t['%'] = at, dot, colon, percent
	return t
}()

// look examines position i, which is not plain, and returns where to continue.
func (s *scanner) look(i int) int {
	end := 0
	switch classes[s.text[i]] {
	case digit:
		return s.number(i)
	case capital:
		return s.word(i)
	case at:
		end = s.email(i, 1, 0)
	case dot:
		if end = s.title(i); end == 0 {
			end = s.domain(i)
		}
	case colon:
		if end = s.url(i); end == 0 {
			end = s.ipv6(i)
		}
	case percent:
		if strings.HasPrefix(s.text[i:], "%40") {
			end = s.email(i, len("%40"), 0)
		}
	case plain:
	}
	return max(end, i+1)
}

// add adds a span, unless it is machine text, and returns its end.
func (s *scanner) add(kind string, start, end int, score float64) int {
	if s.machines(kind, start, end) {
		return end
	}
	s.out = append(s.out, Span{Type: kind, Start: start, End: end, Score: score, Pattern: true})
	return end
}

// machines reports whether a finding is a time stamp at the start of a line, or is in a line of
// code or of a log without a word or key that assigns it to a person. Numbers with a checksum and
// mail addresses are always personal; cards and machine addresses are judged where they are read.
func (s *scanner) machines(kind string, start, end int) bool {
	switch kind {
	case EmailAddress, CreditCard, IBAN, IPAddress, SSN, NationalID:
		return false
	case DateTime:
		clock := strings.Count(s.text[start:end], ":") > 1
		if clock && s.leads(start) || s.inStamp(start, end) || s.endsKey(end) {
			return true
		}
	}
	if !s.lines.at(start) {
		return false
	}
	switch kind {
	case PhoneNumber:
		return !s.phoneAt(start, end)
	case DateTime: // "geb. 1.4.80" looks like a version
		return !s.keyed(start, kind) && !s.cued(start, cueWidth/2, dateCues)
	case Title:
		return s.text[end-1] != '.'
	case StreetAddress:
		return !s.keyed(start, kind) && !endsInStreet(s.text[start:end])
	case Age:
		return !s.keyed(start, kind) &&
			!strings.HasPrefix(strings.TrimLeft(s.text[end:min(len(s.text), end+8)], " -"), "year")
	}
	return !s.keyed(start, kind)
}

// fraction reports whether the clock that ends [start, end) tells parts of a second, behind a point
// or, as Python's loggers do, behind a comma.
func (s *scanner) fraction(start, end int) bool {
	colon := strings.LastIndexByte(s.text[start:end], ':')
	return colon > 0 && (strings.IndexByte(s.text[start+colon:end], '.') > 0 ||
		s.byteAt(end) == ',' && s.digitsEnd(end+1) == end+len(",000"))
}

// leads reports whether nothing but brackets, quotes and the word date stands before i in its line.
func (s *scanner) leads(i int) bool {
	from := max(0, i-len("Author-Date:   ")-1)
	k := strings.LastIndexByte(s.text[from:i], '\n')
	if k < 0 && from > 0 {
		return false
	}
	switch fold(strings.Trim(s.text[from+k+1:i], " \t[]()<>\"'-*#")) {
	case "", "date:", "author-date:", "time:", "last-modified:", "expires:":
		return true
	}
	return false
}

// byteAt returns the byte at i, or 0 outside the text.
func (s *scanner) byteAt(i int) byte {
	if i < 0 || i >= len(s.text) {
		return 0
	}
	return s.text[i]
}

func isDigit(b byte) bool  { return b-'0' <= 9 }
func isUpper(b byte) bool  { return b-'A' <= 'Z'-'A' }
func isLetter(b byte) bool { return b|0x20-'a' <= 'z'-'a' }
func isAlnum(b byte) bool  { return isDigit(b) || isLetter(b) }
func isHex(b byte) bool    { return isDigit(b) || b|0x20-'a' <= 'f'-'a' }

// wordBefore reports whether a word reaches up to i, so that what begins at i is only its rest.
// Scripts that set no spaces between words do not count, nor does Korean before another script.
func (s *scanner) wordBefore(i int) bool {
	b := s.byteAt(i - 1)
	if b < utf8.RuneSelf {
		return isAlnum(b) || b == '_'
	}
	r, _ := utf8.DecodeLastRuneInString(s.text[:i])
	return spaced(r) && (!script.IsHangul(r) || s.byteAt(i) >= utf8.RuneSelf)
}

// wordAfter reports whether what ends at i goes on as a word. A particle of Korean is none of the
// number or the Latin word before it.
func (s *scanner) wordAfter(i int) bool {
	b := s.byteAt(i)
	if b < utf8.RuneSelf {
		return isAlnum(b) || b == '_'
	}
	r, _ := utf8.DecodeRuneInString(s.text[i:])
	return spaced(r) && (!script.IsHangul(r) || s.byteAt(i-1) >= utf8.RuneSelf)
}

// spaced reports whether r is a letter or digit of a script that sets spaces between words.
func spaced(r rune) bool {
	if r < utf8.RuneSelf {
		return isAlnum(byte(r))
	}
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !script.IsUnspaced(r)
}

// digitsEnd returns the end of the ASCII digits that begin at i.
func (s *scanner) digitsEnd(i int) int {
	for i < len(s.text) && isDigit(s.text[i]) {
		i++
	}
	return i
}

// wordEnd returns the end of the letters that begin at i; bytes of other scripts count as letters.
func (s *scanner) wordEnd(i int) int {
	for i < len(s.text) && (isLetter(s.text[i]) || s.text[i] >= utf8.RuneSelf) {
		i++
	}
	return i
}

// wordStart returns the start of the letters that end at i.
func (s *scanner) wordStart(i int) int {
	for i > 0 && (isLetter(s.text[i-1]) || s.text[i-1] >= utf8.RuneSelf) {
		i--
	}
	return i
}
