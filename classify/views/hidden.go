package views

import (
	"strings"
	"unicode/utf8"
)

// tag reports whether a character is a Unicode tag, the invisible counterpart of an ASCII
// character.
func tag(c rune) bool {
	return c >= 0xE0000 && c <= 0xE007F
}

// variation reports whether a character is a variation selector.
func variation(c rune) bool {
	return c >= 0xFE00 && c <= 0xFE0F || c >= 0xE0100 && c <= 0xE01EF
}

// minZeroBits is the minimum number of zero-width characters that are read as bits.
const minZeroBits = 32

// smuggled returns the text in a run of invisible characters: ASCII in tags, bytes in variation
// selectors (the n-th selector represents byte n), bits in two kinds of zero-width characters.
func smuggled(run string) (text string, ok bool) {
	var tags, bytes []byte
	var zeros []rune
	for _, c := range run {
		switch {
		case tag(c):
			if c >= 0xE0020 && c < 0xE007F {
				tags = append(tags, byte(c-0xE0000))
			}
		case c >= 0xFE00 && c <= 0xFE0F:
			bytes = append(bytes, byte(c-0xFE00))
		case c >= 0xE0100 && c <= 0xE01EF:
			bytes = append(bytes, byte(c-0xE0100)+16)
		default:
			zeros = append(zeros, c)
		}
	}
	if len(tags) > 1 {
		return string(tags), true
	}
	if s, ok := readable(bytes); ok {
		return s, true
	}
	return zeroBits(zeros)
}

// zeroBits reads two kinds of characters as zeros and ones, in both assignments.
func zeroBits(zeros []rune) (text string, ok bool) {
	if len(zeros) < minZeroBits {
		return "", false
	}
	other := rune(0)
	for _, c := range zeros {
		switch {
		case c == zeros[0], c == other:
		case other == 0:
			other = c
		default:
			return "", false
		}
	}
	for _, one := range [...]rune{other, zeros[0]} {
		raw := make([]byte, len(zeros)/8)
		for i := range len(raw) * 8 {
			raw[i/8] <<= 1
			if zeros[i] == one {
				raw[i/8] |= 1
			}
		}
		if s, ok := readable(raw); ok {
			return strings.ToValidUTF8(s, ""), utf8.ValidString(s)
		}
	}
	return "", false
}
