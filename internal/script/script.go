// Package script tells whether the script of a character parts words by blanks. It is a table that
// any package may ask; it knows nothing of languages and texts. All of it is safe for concurrent use
// and allocates nothing.
package script

import "unicode"

// first is the first code point of a script without blanks between words, Thai.
const first = 0x0E00

// ideographs is the first code point that IsIdeograph can be true of, in the radicals of Chinese.
const ideographs = 0x2E80

// hangul is the first code point of Hangul.
const hangul = 0x1100

// IsUnspaced reports whether r is of a script that writes words without blanks between them: Han,
// Hiragana, Katakana, Thai, Lao, Khmer or Myanmar. Korean parts words, so Hangul is not among them.
func IsUnspaced(r rune) bool {
	return r >= first && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// IsIdeograph reports whether r is of the scripts of Chinese and Japanese: Han, Hiragana or Katakana,
// of which a character or two make a word.
func IsIdeograph(r rune) bool {
	return r >= ideographs && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// IsHangul reports whether r is Korean, whose particles stand right behind a word of any script.
func IsHangul(r rune) bool {
	return r >= hangul && unicode.Is(unicode.Hangul, r)
}
