package question

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// enter determines whether a token without white space begins at pos, and which part of it is code,
// in which every sign is meaningful.
func (s *splitter) enter() {
	if s.pos < s.end || s.text[s.pos] == ' ' {
		return
	}
	s.code, s.exact = "", false
	if s.blank(); strings.Trim(s.text[s.pos+s.letters:s.end], ".,;:?") == "" {
		return // a word, and the end of a sentence
	}
	if s.code = core(s.text[s.pos:s.end]); !isCode(s.code) && !factorial(s.code) {
		s.code = ""
		return
	}
	s.coded = s.pos + strings.Index(s.text[s.pos:s.end], s.code)
	s.exact = len(s.code) > 1 && s.code[0] == '-' && (isLetter(s.code[1]) || s.code[1] == '-')
}

// blank finds the end of the token at pos, and counts the letters and digits at its beginning.
func (s *splitter) blank() {
	s.letters = 0
	for s.end = s.pos; s.end < len(s.text); {
		c, size := rune(s.text[s.end]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s.text[s.end:])
		}
		switch {
		case c <= unicode.MaxASCII && (isLetter(byte(c)) || digit(byte(c))):
			if s.letters == s.end-s.pos {
				s.letters++
			}
		case c <= ' ', c > unicode.MaxASCII && parts(c):
			s.end = max(s.end, s.pos+size)
			return
		}
		s.end += size
	}
}

// parts reports whether a rune beyond ASCII ends a token, because its script is written without
// spaces.
func parts(c rune) bool {
	return unicode.IsSpace(c) || script.IsUnspaced(c) || c >= '\u3000' && !unicode.IsLetter(c)
}

// inCode reports whether an ASCII sign at pos is part of code.
func (s *splitter) inCode(c rune) bool {
	if c > unicode.MaxASCII || s.pos < s.coded || s.pos >= s.coded+len(s.code) {
		return false
	}
	return strings.ContainsRune("().,/-_!?:;", c) || strings.HasPrefix(s.text[s.pos:], "'(") // f'(x)
}

const quotes = "\"'`“”‘’«»„"

// spelled reports whether a text contains a letter or a digit.
func spelled(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
}

// core returns a token without the punctuation of the sentence around it.
func core(text string) string {
	if !spelled(text) { // a smiley, an arrow
		return strings.TrimRight(strings.Trim(text, quotes), ".,?!")
	}
	for {
		was := len(text)
		text = strings.TrimRight(strings.TrimLeft(text, quotes), quotes+".,;:?")
		open, closed := strings.Count(text, "("), strings.Count(text, ")")
		first, last := strings.HasPrefix(text, "("), strings.HasSuffix(text, ")")
		switch {
		case first && last && open == closed:
			text = text[1 : len(text)-1]
		case first && open > closed:
			text = text[1:]
		case last && closed > open:
			text = text[:len(text)-1]
		case strings.HasSuffix(text, "!") && !factorial(text):
			text = text[:len(text)-1]
		}
		if len(text) == was {
			return text
		}
	}
}

// factorial reports whether an exclamation mark is a sign: after a number, a letter, a parenthesis.
func factorial(text string) bool {
	text, ok := strings.CutSuffix(text, "!")
	if !ok || text == "" {
		return false
	}
	last := text[len(text)-1]
	return last == ')' || digit(last) || len(text) == 1 && isLetter(last) && text != "I"
}

// isCode reports whether a token is not prose: a term, a path, a flag, an identifier.
func isCode(text string) bool {
	if len(text) > 1 && !spelled(text) {
		return strings.ContainsAny(text, `()[]{}<>=+*&|^~/\_`)
	}
	if strings.ContainsAny(text, `_\{}[]<>=|^~*+@`) || strings.Count(text, "/") > 1 || strings.Contains(text, "::") {
		return true
	}
	for i := range len(text) {
		if codes(text, i) {
			return true
		}
	}
	return false
}

// codes reports whether the sign at i shows that a token is code.
func codes(text string, i int) bool {
	before, behind := byte(' '), byte(' ')
	if i > 0 {
		before = text[i-1]
	}
	if i+1 < len(text) {
		behind = text[i+1]
	}
	switch text[i] {
	case '(':
		rest := text[i:]
		return rest != "(s)" && rest != "(es)" && (isLetter(before) || digit(before) || before == '\'')
	case '.':
		alone := i < 2 && i+2 >= len(text) || i > 1 && text[i-2] == '.' // e.g, U.S
		return i == 0 && behind != ' ' && behind != '.' || isLetter(before) && isLetter(behind) && !alone
	case '/', '-', '!':
		return i == 0 && (isLetter(behind) || behind == '-')
	}
	return false
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b >= utf8.RuneSelf }

// capitals is the capitalisation that distinguishes a word. The zero value distinguishes nothing.
type capitals uint8

const (
	titled capitals = 1 + iota // Co
	full                       // CO
	mixed                      // mW, pH
	unit                       // after a number; the marks of units are added to it
)

// The marks of units.
const (
	mega   capitals = 1 << iota // M, and not m
	octets                      // B, and not b
)

// scaled are units of which the first letter may be mega or milli.
//
//nolint:gochecknoglobals // constant table
var scaled = [...]string{"mw", "mv", "ma", "ms", "mj", "mn", "mpa", "mhz", "mwh"}

// shortest is the maximum length of words that capitals distinguish: longer ones are written in
// either way.
const shortest = 3

// capitalsOf returns the capitalisation of a word; first means that it is the first of its
// sentence.
func capitalsOf(word string, runes, upper int, first bool) capitals {
	initial, _ := utf8.DecodeRuneInString(word)
	switch {
	case upper == 0 || runes < 2 || runes > shortest:
		return 0
	case upper == runes:
		return full
	case upper > 1 || !unicode.IsUpper(initial):
		return mixed
	case runes == 2 && !first:
		return titled
	}
	return 0
}

// unitOf returns, for a word after a number, whether it is a unit distinguished by capitals: MW and
// mW, MB and Mb.
func unitOf(word string) capitals {
	const longest = 5
	if len(word) < 2 || len(word) > longest {
		return 0
	}
	if strings.ToLower(word) == word && strings.HasSuffix(word, "b") {
		return 0 // 5 gb, as it is commonly typed
	}
	of, at := unit, 1
	if word[1] == 'i' {
		at = 2
	}
	if strings.ContainsRune("kmgtp", rune(word[0]|0x20)) && at < len(word) && word[at]|0x20 == 'b' {
		if word[at] == 'B' {
			of += octets
		}
		return of
	}
	for _, u := range scaled {
		if strings.EqualFold(word, u) {
			if word[0] == 'M' {
				of += mega
			}
			return of
		}
	}
	return 0
}

// capitals returns the capitalisation of the word that ends at pos.
func (s *splitter) capitals(from, runes, upper int, first bool) capitals {
	word := s.text[from:s.pos]
	if digit(word[0]) {
		return unitOf(strings.TrimLeft(word, "0123456789.,"))
	}
	if from > 1 && digit(s.text[from-2]) && (s.text[from-1] == ' ' || s.text[from-1] == '-') {
		if u := unitOf(word); u != 0 {
			return u
		}
	}
	return capitalsOf(word, runes, upper, first)
}

// clashes reports whether the capitals of two words with the same letters distinguish them. A word
// without capitals may be either.
func (x *token) clashes(y *token) bool {
	told := x.capitals != 0 && y.capitals != 0
	return told && (x.capitals >= unit) == (y.capitals >= unit) && x.capitals != y.capitals
}

// is reports whether two words are the same.
func (x *token) is(y *token) bool { return equal(x.form, y.form) && !x.clashes(y) }
