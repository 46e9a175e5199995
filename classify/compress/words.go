package compress

import (
	"unicode"
	"unicode/utf8"
)

// wordKind is the kind of characters in a word.
type wordKind uint8

const (
	mark   wordKind = iota // one character of punctuation or a symbol
	letter                 // letters of a script that separates words
	number                 // digits
	alnum                  // letters and digits, as in identifiers
	glyph                  // one character of a script that does not separate words
)

// word is one word of a text. The parts of aWordLikeThis are separate words.
type word struct {
	start, end int
	// hash is the hash of the lower-case word, stem that of its first five characters, or of all if
	// it is shorter.
	hash, stem uint32
	runes      int
	kind       wordKind
	capital    bool // starts with a capital letter
	joined     bool // adjacent to the previous word
	ascii      bool // consists of ASCII letters
	foreign    bool // has letters that are not Latin
}

// stemRunes is the number of characters in a stem. Five distinguish most words and are the same in
// most forms of a word, and for words from Latin often in several languages: ignore, ignorez,
// ignoriere.
const stemRunes = 5

// Constants of the 32-bit FNV-1a hash, IETF draft-eastlake-fnv.
const (
	fnvOffset uint32 = 2166136261
	fnvPrime  uint32 = 16777619
)

// nextWord returns the next word of text[at:to], or false if only white space is left.
func nextWord(text string, at, to int) (w word, ok bool) {
	for at < to {
		c := text[at]
		switch classes[c] {
		case classSpace:
			at++
		case classMark:
			return word{start: at, end: at + 1, kind: mark, runes: 1, ascii: true}, true
		case classDigit, classLower, classUpper:
			return run(text, at, to), true
		case classHigh:
			r, n := utf8.DecodeRuneInString(text[at:to])
			switch k := kindOf(r); {
			case k == letter:
				return run(text, at, to), true
			case k == glyph:
				return word{start: at, end: at + n, kind: glyph, runes: 1, hash: hashOf(text[at : at+n])}, true
			case unicode.IsSpace(r):
				at += n
			default:
				return word{start: at, end: at + n, kind: mark, runes: 1}, true
			}
		}
	}
	return word{}, false
}

// run returns the run of letters and digits that starts at text[at]: up to its end, or up to a
// capital letter after a lower-case one.
func run(text string, at, to int) word {
	w := word{start: at, ascii: true, joined: at > 0 && continues(text, at), capital: classes[text[at]] == classUpper}
	hash, runes, digits, small := fnvOffset, 0, 0, false
scan:
	for at < to {
		c := text[at]
		switch classes[c] {
		case classLower:
			small = true
			hash = (hash ^ uint32(c)) * fnvPrime
			at++
		case classUpper:
			if small {
				break scan
			}
			hash = (hash ^ uint32(c+'a'-'A')) * fnvPrime
			at++
		case classDigit:
			digits++
			hash = (hash ^ uint32(c)) * fnvPrime
			at++
		case classHigh:
			r, n := utf8.DecodeRuneInString(text[at:to])
			if kindOf(r) != letter {
				break scan
			}
			low := lower(r)
			w.capital = w.capital || at == w.start && low != r
			w.ascii, w.foreign = false, w.foreign || !isLatin(low)
			hash = hashRune(hash, low)
			at += n
		case classMark, classSpace:
			break scan
		}
		runes++
		if runes == stemRunes {
			w.stem = hash
		}
	}
	w.end, w.hash, w.runes, w.kind = at, hash, runes, letter
	if runes < stemRunes {
		w.stem = hash
	}
	switch digits {
	case 0:
	case runes:
		w.kind = number
	default:
		w.kind = alnum
	}
	return w
}

// isLatin reports whether r is in one of the blocks of Latin letters, or an accent that combines
// with them.
func isLatin(r rune) bool { return r <= 0x36f || r >= 0x1e00 && r <= 0x1eff }

// continues reports whether the character before text[at] is an ASCII letter or digit, so that the
// word that starts there is the rest of one.
func continues(text string, at int) bool {
	c := classes[text[at-1]]
	return c == classLower || c == classUpper || c == classDigit
}

func hashOf(text string) uint32 {
	h := fnvOffset
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * fnvPrime
	}
	return h
}

// hashRune adds the UTF-8 form of r to h.
func hashRune(h uint32, r rune) uint32 {
	var b [utf8.UTFMax]byte
	for _, c := range b[:utf8.EncodeRune(b[:], r)] {
		h = (h ^ uint32(c)) * fnvPrime
	}
	return h
}

// class is the role of a byte in a word.
type class uint8

const (
	classMark class = iota
	classSpace
	classDigit
	classLower
	classUpper
	classHigh // part of a character beyond ASCII
)

//nolint:gochecknoglobals // constant table
var classes = func() (t [256]class) {
	for c := range t {
		switch b := byte(c); {
		case b <= ' ' || b == 0x7f:
			t[c] = classSpace
		case isDigit(b):
			t[c] = classDigit
		case isLower(b):
			t[c] = classLower
		case isUpper(b):
			t[c] = classUpper
		case b >= utf8.RuneSelf:
			t[c] = classHigh
		}
	}
	return t
}()

// kindOf distinguishes letters, glyphs and marks beyond ASCII. A combining mark is part of its
// word.
func kindOf(r rune) wordKind {
	switch {
	case r >= 0xC0 && r <= 0x24F:
		if r == 0xD7 || r == 0xF7 {
			return mark
		}
		return letter
	case r >= 0x0391 && r <= 0x0481, r >= 0x0620 && r <= 0x065F, r >= 0x05D0 && r <= 0x05EA:
		return letter
	case r >= 0x3041 && r <= 0x30FF, r >= 0x3400 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3, r >= 0xF900 && r <= 0xFAFF:
		return glyph
	case r >= 0x0E01 && r <= 0x0EFF, r >= 0x1000 && r <= 0x109F, r >= 0x1780 && r <= 0x17D3, r >= 0x20000 && r <= 0x3FFFF:
		return glyph // Thai, Lao, Burmese, Khmer, rare ideographs
	case r >= 0x2000 && r <= 0x2BFF:
		return mark
	case unicode.IsLetter(r), unicode.Is(unicode.M, r), unicode.IsDigit(r):
		return letter
	default:
		return mark
	}
}

// lower is unicode.ToLower, faster for the scripts that have many capitals.
func lower(r rune) rune {
	switch {
	case r >= 0xE0 && r <= 0xFF, r >= 0x430 && r <= 0x45F, r >= 0x620 && r <= 0x65F, r >= 0x900 && r <= 0xDFF:
		return r
	case r >= 0x410 && r <= 0x42F:
		return r + 0x20
	default:
		return unicode.ToLower(r)
	}
}
