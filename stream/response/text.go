package response

import "unicode/utf8"

func isUTF8(b []byte) bool { return utf8.Valid(b) }

// appendText appends the unescaped text of the inside of a JSON string. The string has been
// validated, except for UTF-8 and surrogates.
func appendText(dst, inside []byte) []byte {
	for len(inside) > 0 {
		n := plain(inside)
		dst = append(dst, inside[:n]...)
		if inside = inside[n:]; len(inside) == 0 {
			break
		}
		r, width := unit(inside)
		dst = utf8.AppendRune(dst, r)
		inside = inside[width:]
	}
	return dst
}

// plain returns how many bytes at the start of b are ASCII without escapes.
func plain(b []byte) int {
	for i, c := range b {
		if c >= utf8.RuneSelf || c == '\\' {
			return i
		}
	}
	return len(b)
}

// unit reads the character at the start of the inside of a JSON string, and returns its length in
// bytes. An invalid UTF-8 byte, and a surrogate without its other half, become U+FFFD, which RFC
// 8259, section 8.2, leaves open and encoding/json does.
func unit(b []byte) (r rune, width int) {
	if b[0] != '\\' {
		return utf8.DecodeRune(b)
	}
	switch c := b[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return rune(c), 2
	}
	const (
		escape    = len(`\uXXXX`)
		highFirst = 0xd800
		lowFirst  = 0xdc00
		lowLast   = 0xdfff
	)
	r = hex(b[2:escape])
	switch {
	case r < highFirst || r > lowLast:
		return r, escape
	case r < lowFirst && len(b) >= 2*escape && b[escape] == '\\' && b[escape+1] == 'u':
		if low := hex(b[escape+2 : 2*escape]); low >= lowFirst && low <= lowLast {
			return 0x10000 + (r-highFirst)<<10 + (low - lowFirst), 2 * escape
		}
	}
	return utf8.RuneError, escape
}

// hex reads hexadecimal digits.
func hex(b []byte) rune {
	var r rune
	for _, c := range b {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}

// locate returns the range of the character that contains byte n of the text, within the inside of
// a JSON string. start and end are len(inside) if the text has no such byte. begins reports whether
// n is the first byte of the character.
func locate(inside []byte, n int) (start, end int, begins bool) {
	for start < len(inside) {
		k := min(plain(inside[start:]), n)
		start, n = start+k, n-k
		if start == len(inside) {
			break
		}
		r, width := unit(inside[start:])
		size := utf8.RuneLen(r)
		if n < size {
			return start, start + width, n == 0
		}
		start, n = start+width, n-size
	}
	return start, start, true
}

// startsRune reports whether a byte of valid UTF-8 is the first of a character.
func startsRune(b byte) bool { return utf8.RuneStart(b) }
