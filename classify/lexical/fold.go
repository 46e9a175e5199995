package lexical

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folding is what is done to text and phrases before they are compared.
type folding uint8

const (
	foldCase folding = iota
	keepCase
	foldings
)

// fold appends text to dst: composed, white space runs as one space and none at the ends, and with
// foldCase every letter in the form that its case variants share.
func fold(dst []byte, text string, mode folding) []byte {
	if !norm.NFC.IsNormalString(text) {
		text = norm.NFC.String(text)
	}
	start := len(dst)
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = len(dst) > start
			continue
		}
		if space {
			dst = append(dst, ' ')
			space = false
		}
		if mode == foldCase {
			r = foldRune(r)
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// foldRune goes through the upper case, because some lower-case variants (final sigma, long s)
// differ from the lower case of their own upper case.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// boundary reports whether a phrase may start or end before byte i of text.
func boundary(text []byte, i int) bool {
	before, n := utf8.DecodeLastRune(text[:i])
	if n == 0 || !isWord(before) {
		return true
	}
	after, n := utf8.DecodeRune(text[i:])
	return n == 0 || !isWord(after)
}

// isWord tells which characters make up words in scripts that separate words. A combining mark
// belongs to the word of its letter.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
		return false
	}
	return !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
