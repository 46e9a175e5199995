// Package script reports whether the script of a character separates words by spaces. It is a table
// without dependencies. It is safe for concurrent use and allocates nothing.
package script

import "unicode"

// first is the first code point of a script without spaces between words, Thai.
const first = 0x0E00

// ideographs is the first code point for which IsIdeograph can be true, in the radicals of Chinese.
const ideographs = 0x2E80

// hangul is the first code point of Hangul.
const hangul = 0x1100

// IsUnspaced reports whether r belongs to a script that writes words without spaces: Han, Hiragana,
// Katakana, Thai, Lao, Khmer or Myanmar. Korean separates words, so Hangul does not count.
func IsUnspaced(r rune) bool {
	return r >= first && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// IsIdeograph reports whether r belongs to the scripts of Chinese and Japanese: Han, Hiragana or
// Katakana, in which one or two characters form a word.
func IsIdeograph(r rune) bool {
	return r >= ideographs && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// IsHangul reports whether r is Korean, whose particles directly follow a word of any script.
func IsHangul(r rune) bool {
	return r >= hangul && unicode.Is(unicode.Hangul, r)
}
