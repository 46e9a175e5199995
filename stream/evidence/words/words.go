// Package words cuts text into the words that evidence and number checks compare: folded to lower
// case, stemmed lightly, hashed, with a note of which are names, numbers, function words or
// negations.
//
// Scripts that write no spaces (Han, Kana, Thai and their like) give overlapping pairs of
// characters, the usual stand-in for words in retrieval. The package holds no state and is safe for
// concurrent use.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// Class tells what kind of word a Word is; the bits combine.
type Class uint8

// The classes of a word.
const (
	Stop     Class = 1 << iota // function word: article, preposition, auxiliary
	Name                       // starts with a capital, not the first word of its text
	Capital                    // starts with a capital, anywhere
	Number                     // holds a digit
	Negation                   // denies: not, kein, jamais, nunca, 不
	Uncased                    // of a script without letter case
)

// Word is one word of a text.
type Word struct {
	Start, End int    // byte offsets into the text
	Hash       uint64 // of the folded and stemmed form; equal forms have equal hashes
	Class      Class
}

// Has reports whether the word has all bits of c.
func (w Word) Has(c Class) bool { return w.Class&c == c }

// maxForm is the longest folded form in bytes that counts; what is longer is cut, so that a word
// needs no heap.
const maxForm = 64

// FNV-1a, 64 bit: http://www.isthe.com/chongo/tech/comp/fnv/.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Scan appends the words of text to dst and returns it. It allocates only to grow dst.
func Scan(dst []Word, text string) []Word {
	s := scanner{text: text}
	for s.pos < len(text) {
		r, size := utf8.DecodeRuneInString(text[s.pos:])
		switch {
		case spaceless(r):
			dst = s.pairs(dst)
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			dst = append(dst, s.word())
		default:
			if endsSentence(r) {
				s.inner = false
			}
			s.pos += size
		}
	}
	return dst
}

// elisions are the shortened function words of French, Italian and Catalan that an apostrophe joins
// to the next word, as in "l'eau", "n'est" and "dell'acqua". They are words of their own: "n'est
// pas" and "est" have a word in common.
//
//nolint:gochecknoglobals // constant table
var elisions = Set(`l d j n s c m t qu jusqu lorsqu puisqu quoiqu dell nell all dall sull quell quest un`)

type scanner struct {
	text  string
	pos   int
	inner bool // a word came since the sentence began

	day bool // the last word may be a day of a month
}

// word reads the word at pos, which starts with a letter or a digit.
func (s *scanner) word() Word {
	var form [maxForm]byte
	n, start := 0, s.pos
	var class Class
	for s.pos < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.pos:])
		if !s.continues(r, size) {
			break
		}
		if s.elided(form[:n], r, size) {
			s.inner, s.pos = true, s.pos+size
			return finish(form[:n], Word{Start: start, End: s.pos - size, Class: class | Stop})
		}
		if s.pos == start {
			class |= s.firstRune(r)
		}
		if unicode.IsDigit(r) {
			class |= Number
		}
		if r != '\'' && r != '’' && n+utf8.UTFMax <= maxForm {
			n += utf8.EncodeRune(form[n:], unicode.ToLower(r))
		}
		s.pos += size
		if r == '\'' || r == '’' {
			form[n], n = '\'', n+1
		}
	}
	s.inner = true
	w := finish(form[:n], Word{Start: start, End: s.pos, Class: class})
	if string(form[:n]) == "mai" && (s.day || w.Has(Name)) {
		w.Class &^= Negation // the month of German and French
	}
	s.day = w.Has(Number) && w.End-w.Start <= len("1er")
	return w
}

// elided reports whether the rune at pos is the apostrophe behind an elision.
func (s *scanner) elided(form []byte, r rune, size int) bool {
	return (r == '\'' || r == '’') && elisions[string(form)] && !s.possessive(s.pos+size)
}

// possessive reports whether an s that ends its word is at a place, as in "C's".
func (s *scanner) possessive(at int) bool {
	rest, ok := strings.CutPrefix(s.text[at:], "s")
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && !unicode.IsLetter(next)
}

// firstRune is what the first rune of a word tells of it.
func (s *scanner) firstRune(r rune) Class {
	switch {
	case unicode.Is(unicode.Lo, r):
		return Uncased
	case !unicode.IsUpper(r) && !unicode.IsTitle(r):
		return 0
	case s.inner:
		return Capital | Name
	}
	return Capital
}

// finish classes and hashes a word by its folded form.
func finish(folded []byte, w Word) Word {
	label := len(folded) == 1 && w.Has(Name) && folded[0] != 'i' || // plant A, vitamin A: no article
		w.Has(Name) && (string(folded) == "plus" || string(folded) == "pro") // what things for sale are called
	if stopWords[string(folded)] && !label {
		w.Class |= Stop
	}
	if negations[string(folded)] || hasSuffix(folded, "n't") {
		w.Class |= Negation
	}
	if !w.Has(Number) {
		folded = stem(folded)
	}
	w.Hash = hash(folded)
	return w
}

// continues reports whether the rune at pos belongs to the word being read. Separators inside
// numbers and apostrophes inside words belong to it when a digit or a letter follows.
func (s *scanner) continues(r rune, size int) bool {
	if spaceless(r) {
		return false
	}
	if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(s.text[s.pos+size:])
	switch r {
	case '\'', '’':
		return unicode.IsLetter(next)
	case '.', ',':
		return unicode.IsDigit(next) && unicode.IsDigit(before(s.text, s.pos))
	}
	return false
}

func before(text string, pos int) rune {
	r, _ := utf8.DecodeLastRuneInString(text[:pos])
	return r
}

// pairs reads a run of a script without spaces and appends one word for each pair of neighbours; a
// run of one rune is one word.
func (s *scanner) pairs(dst []Word) []Word {
	var prev rune
	prevAt, count := s.pos, 0
	for s.pos < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.pos:])
		if !spaceless(r) {
			break
		}
		if count > 0 {
			dst = append(dst, pair(prev, r, prevAt, s.pos+size))
		}
		prev, prevAt = r, s.pos
		s.pos += size
		count++
	}
	if count == 1 {
		dst = append(dst, pair(prev, 0, prevAt, s.pos))
	}
	s.inner = true
	return dst
}

func pair(a, b rune, start, end int) Word {
	var form [2 * utf8.UTFMax]byte
	n := utf8.EncodeRune(form[:], a)
	class := Uncased
	if denies(a) || (b != 0 && denies(b)) {
		class |= Negation
	}
	if b != 0 {
		n += utf8.EncodeRune(form[n:], b)
	}
	return Word{Start: start, End: end, Hash: hash(form[:n]), Class: class}
}

func denies(r rune) bool {
	switch r {
	case '不', '没', '沒', '無', '无', '未', '非':
		return true
	}
	return false
}

// spaceless reports whether r is of a script that writes words without spaces between them.
func spaceless(r rune) bool {
	return script.IsUnspaced(r) || r == 'ー'
}

func endsSentence(r rune) bool {
	switch r {
	case '.', '!', '?', '\n', ':':
		return true
	}
	return r > 0x7f && unicode.Is(unicode.STerm, r)
}

func hash(form []byte) uint64 {
	h := uint64(fnvOffset)
	for _, c := range form {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

// stem takes common endings off, so that "offices" meets "office" and "measured" meets "measures".
// It is made for comparing, not for reading: the form need not be a word. Words of fewer than five
// bytes stay as they are.
func stem(w []byte) []byte {
	if hasSuffix(w, "'s") || hasSuffix(w, "n't") {
		w = w[:len(w)-2]
	}
	if len(w) < 4 {
		return w
	}
	switch {
	case hasSuffix(w, "ies") && len(w) > 4:
		w = append(w[:len(w)-3], 'y')
	case hasSuffix(w, "sses"):
		w = w[:len(w)-2]
	case hasSuffix(w, "s") && !hasSuffix(w, "ss") && !hasSuffix(w, "us") && !hasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	switch {
	case hasSuffix(w, "ing") && len(w) > 5:
		w = w[:len(w)-3]
	case hasSuffix(w, "ed") && len(w) > 4:
		w = w[:len(w)-2]
	}
	if n := len(w); n > 4 && w[n-1] == 'e' {
		w = w[:n-1]
	}
	if n := len(w); n > 4 && w[n-1] == w[n-2] {
		w = w[:n-1]
	}
	return w
}

func hasSuffix(w []byte, s string) bool {
	return len(w) >= len(s) && string(w[len(w)-len(s):]) == s
}
