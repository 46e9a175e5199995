package views

import (
	"cmp"
	"slices"
	"strings"
)

// Classes of bytes, as bits, so that the class set of a token is the OR over its bytes.
const (
	isLetter  uint8 = 1 << iota // ASCII letters
	isUpper                     // capital ones
	isDigit                     // 0-9
	isMark                      // punctuation that ends or joins words and never replaces letters
	isSymbol                    // characters that occur in encodings, escapes or leetspeak
	isForeign                   // bytes of characters beyond ASCII
	isSpace                     // white space, which ends a token
)

//nolint:gochecknoglobals // constant table
var classOf = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = isLetter
		case c >= 'A' && c <= 'Z':
			t[c] = isLetter | isUpper
		case c >= '0' && c <= '9':
			t[c] = isDigit
		case c == ' ' || c >= '\t' && c <= '\r':
			t[c] = isSpace
		case c >= 0x80:
			t[c] = isForeign
		case strings.IndexByte(`,;:'"()?[]{}`, byte(c)) >= 0:
			t[c] = isMark
		default:
			t[c] = isSymbol
		}
	}
	return t
}()

// edit replaces a part of the text.
type edit struct {
	start, end int
	with       string
}

// reading is one pass over a text by tokens, that is, runs without white space. It collects edits
// for disguises and decoded payloads; most tokens are plain words and cost one look-up.
type reading struct {
	text     string
	edits    []edit
	weak     []edit // edits that only count together with others of their kind
	leets    int    // number of leetspeak words among the edits
	payloads []string
	escapes  bool // an edit has replaced escapes by characters
	depth    int  // number of layers of encoding around the text
	done     int  // text before this offset has been decoded and is not examined again

	plain   cipherRun
	singles singleRun
	morse   morseRun
}

// longToken is the length from which tokens are searched for base64 and similar encodings.
const longToken = 8

// run processes the text.
func (r *reading) run() {
	text := r.text
	for i := 0; i < len(text); {
		if classOf[text[i]] == isSpace {
			if text[i] == '\n' {
				r.endLine()
			}
			i++
			continue
		}
		start, all, h := i, uint8(0), hashStart
		for i < len(text) {
			c := text[i]
			class := classOf[c]
			if class == isSpace {
				break
			}
			all |= class
			h = (h + uint32(c|0x20)) * hashStep
			i++
		}
		if all&^(isLetter|isUpper) == 0 {
			r.word(start, i, h)
			if all&isUpper != 0 && i-start >= longToken || i-start >= longLetters {
				r.blobs(start, i)
			}
			continue
		}
		r.other(start, i, all)
	}
	r.endLine()
}

// longLetters is the length from which a token of lower-case letters is treated as something other
// than a word.
const longLetters = 16

// word processes a token of ASCII letters with the given hash.
func (r *reading) word(start, end int, h uint32) {
	if end-start == 1 {
		r.singles.add(r, start, end)
		return
	}
	r.singles.end(r)
	r.morse.end(r)
	if lexiconWords.has(h) {
		r.plain.known(r, start, end)
		return
	}
	r.plain.unknown(start, end)
	if end-start >= minTogether {
		r.together(start, end)
	}
}

// other processes a token that does not consist of ASCII letters alone.
func (r *reading) other(start, end int, all uint8) {
	if start < r.done {
		return
	}
	r.token(start, end, all)
	if all&(isLetter|isForeign) == 0 {
		r.bare(start, end, all)
		return
	}
	from, to := trim(r.text, start, end)
	if single(r.text[from:to]) {
		r.singles.add(r, from, to)
		return
	}
	r.singles.end(r)
	r.morse.end(r)
	switch {
	case all&isForeign != 0:
		r.plain.end(r)
	case all&(isDigit|isSymbol) == 0 || onlyLetters(r.text[from:to]):
		if known(r.text[from:to]) {
			r.plain.known(r, from, to)
		} else {
			r.plain.unknown(start, end)
		}
	}
}

// bare processes a token without letters: numbers, Morse code, punctuation.
func (r *reading) bare(start, end int, all uint8) {
	from, to := unquoted(r.text, start, end)
	switch {
	case isMorse(r.text[from:to]):
		r.morse.add(r, from, to)
	case all&isDigit != 0:
		r.morse.end(r)
		if end-start == 1 {
			r.singles.add(r, start, end) // spaced-out leetspeak has digits among its letters
			return
		}
		r.singles.end(r)
		r.numbers(start)
	default:
		r.morse.end(r)
	}
}

// token searches a token for disguises that need no neighbours.
func (r *reading) token(start, end int, all uint8) {
	if all&isSymbol != 0 && r.escaped(start, end) {
		return
	}
	if all&(isDigit|isUpper|isSymbol) != 0 && end-start >= longToken || end-start >= longLetters {
		r.blobs(start, end)
	}
	if start < r.done || all&isLetter == 0 {
		if all&isForeign != 0 && all&(isSymbol|isMark) != 0 {
			r.dotted(start, end)
		}
		return
	}
	if all&(isDigit|isSymbol) != 0 {
		r.leet(start, end)
		if all&isDigit != 0 {
			r.numbers(start)
		}
	}
	if all&(isSymbol|isMark) != 0 {
		r.dotted(start, end)
	}
}

// endLine ends the runs that are limited to a line.
func (r *reading) endLine() {
	r.plain.end(r)
	r.singles.endLine(r)
}

// minWeak weak edits count like a strong one.
const minWeak = 3

// edited returns the text with the edits applied.
func (r *reading) edited() string {
	r.singles.end(r)
	r.morse.end(r)
	if r.leets > 0 || len(r.weak) >= minWeak {
		r.edits = append(r.edits, r.weak...)
		slices.SortStableFunc(r.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	}
	if len(r.edits) == 0 {
		return r.text
	}
	var b strings.Builder
	b.Grow(len(r.text))
	at := 0
	for _, e := range r.edits {
		if e.start < at {
			continue // inside an edit already applied
		}
		b.WriteString(r.text[at:e.start])
		b.WriteString(e.with)
		at = e.end
	}
	b.WriteString(r.text[at:])
	return b.String()
}

// payload adds a decoded text.
func (r *reading) payload(s string) {
	r.payloads = append(r.payloads, strings.ToValidUTF8(s, ""))
}

// trim returns the range of a token without the punctuation around it.
func trim(text string, start, end int) (from, to int) {
	for start < end && classOf[text[start]]&(isMark|isSymbol) != 0 {
		start++
	}
	for end > start && classOf[text[end-1]]&(isMark|isSymbol) != 0 {
		end--
	}
	return start, end
}

// unquoted returns the range of a token without the quotation marks, brackets and commas around it.
func unquoted(text string, start, end int) (from, to int) {
	for start < end && classOf[text[start]] == isMark {
		start++
	}
	for end > start && classOf[text[end-1]] == isMark {
		end--
	}
	return start, end
}

// onlyLetters reports whether a token consists of ASCII letters, at least one.
func onlyLetters(token string) bool {
	for i := range len(token) {
		if letterOf[token[i]] == 0 {
			return false
		}
	}
	return token != ""
}
