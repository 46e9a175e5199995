package views

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minEscapes is the minimum number of escapes in a token that are decoded.
	minEscapes = 3
	// maxToken is the maximum part of a token that is decoded at a time, in bytes.
	maxToken = 1 << 16
	// maxEscape is more than the length of any escape, in bytes.
	maxEscape = 16
)

// escaped decodes percent, HTML and backslash escapes of a token if they hide letters or spell a
// sentence, and reports whether it did. A space in a URL or an ampersand in HTML is not changed.
func (r *reading) escaped(start, end int) bool {
	found := false
	for from := start; from < end; {
		to := end
		if end-from > maxToken {
			to = from + maxToken
			if k := strings.LastIndexAny(r.text[to-maxEscape:to], `%&\`); k >= 0 {
				to += k - maxEscape // not inside an escape
			}
		}
		if s, ok := plainly(r.text[from:to]); ok {
			r.edits = append(r.edits, edit{from, to, s})
			found = true
		}
		from = to
	}
	if found {
		r.escapes = true
		r.done = end
	}
	return found
}

// plainly returns a token with its escapes decoded, if they hide letters or spell a sentence.
func plainly(token string) (s string, ok bool) {
	if strings.Count(token, "%")+strings.Count(token, "\\")+strings.Count(token, "&#") < minEscapes {
		return "", false
	}
	s, count, letters, unclean := unescapeAll(token)
	return s, count >= minEscapes && 2*unclean <= count && (letters >= minEscapes || sentence(s))
}

// unescapeAll returns a token with its escapes decoded, the number of escapes and of those for
// letters. Unclean ones, for control characters or invalid bytes, are left unchanged or removed.
func unescapeAll(token string) (text string, count, letters, unclean int) {
	var b strings.Builder
	for i := 0; i < len(token); {
		c, n := unescape(token[i:])
		if n == 0 {
			b.WriteByte(token[i])
			i++
			continue
		}
		count++
		switch {
		case c.code < ' ' && classOf[c.code] != isSpace || c.code == utf8.RuneError:
			unclean++
			b.WriteString(token[i : i+n])
		case c.raw:
			b.WriteByte(byte(c.code))
			if c.code >= utf8.RuneSelf || letterOf[c.code] != 0 {
				letters++
			}
		default:
			b.WriteRune(c.code)
			if unicode.IsLetter(c.code) {
				letters++
			}
		}
		i += n
	}
	text = strings.ToValidUTF8(b.String(), "")
	return text, count, letters, unclean + b.Len() - len(text)
}

// sentence reports whether a text has at least four known words separated by white space.
func sentence(s string) bool {
	n := 0
	for word := range strings.FieldsSeq(s) {
		from, to := trim(word, 0, len(word))
		if onlyLetters(word[from:to]) && known(word[from:to]) {
			n++
		}
	}
	return n >= 4
}

// character is the value of an escape: a byte of UTF-8 (raw) or a code point.
type character struct {
	code rune
	raw  bool
}

// unescape decodes the escape at the start of s; n is its length, 0 if there is none: %41, \x41,
// \u0041, \U00000041, \u{41}, &#65; and &#x41;.
func unescape(s string) (c character, n int) {
	switch s[0] {
	case '%':
		if v, ok := hexDigits(s, 1, 2); ok {
			return character{v, true}, 3
		}
	case '\\':
		return backslash(s)
	case '&':
		return entity(s)
	}
	return character{}, 0
}

func backslash(s string) (c character, n int) {
	if len(s) < 2 {
		return c, 0
	}
	switch s[1] {
	case 'x':
		if v, ok := hexDigits(s, 2, 2); ok {
			return character{v, true}, 4
		}
	case 'u':
		if len(s) > 3 && s[2] == '{' {
			if to := strings.IndexByte(s[:min(len(s), 10)], '}'); to > 3 {
				if v, ok := hexDigits(s, 3, to-3); ok {
					return character{v, false}, to + 1
				}
			}
			return c, 0
		}
		if v, ok := hexDigits(s, 2, 4); ok {
			return surrogates(s, v)
		}
	case 'U':
		if v, ok := hexDigits(s, 2, 8); ok && v <= unicode.MaxRune {
			return character{v, false}, 10
		}
	}
	return c, 0
}

// surrogates joins a pair of \u escapes that encode one character in UTF-16.
func surrogates(s string, v rune) (c character, n int) {
	const half = 6
	if v >= 0xD800 && v < 0xDC00 && len(s) >= 2*half && s[half] == '\\' && s[half+1] == 'u' {
		if low, ok := hexDigits(s, half+2, 4); ok && low >= 0xDC00 && low < 0xE000 {
			return character{(v-0xD800)<<10 + (low - 0xDC00) + 0x10000, false}, 2 * half
		}
	}
	return character{v, false}, half
}

func entity(s string) (c character, n int) {
	if len(s) < 4 || s[1] != '#' {
		return c, 0
	}
	at, base := 2, rune(10)
	if s[2]|0x20 == 'x' {
		at, base = 3, 16
	}
	v, from := rune(0), at
	for at < len(s) && at < from+7 {
		d := digit(s[at])
		if d < 0 || d >= base {
			break
		}
		v = v*base + d
		at++
	}
	if at == from || v == 0 || v > unicode.MaxRune {
		return c, 0
	}
	if at < len(s) && s[at] == ';' {
		at++
	}
	return character{v, false}, at
}

// hexDigits reads n hexadecimal digits from byte at of s.
func hexDigits(s string, at, n int) (v rune, ok bool) {
	if len(s) < at+n || n > 8 {
		return 0, false
	}
	for i := at; i < at+n; i++ {
		d := digit(s[i])
		if d < 0 || v > unicode.MaxRune {
			return 0, false
		}
		v = v<<4 | d
	}
	return v, true
}

// digit returns the value of a hexadecimal digit, or -1.
func digit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20) - 'a' + 10
	}
	return -1
}
