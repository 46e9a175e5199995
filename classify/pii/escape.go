package pii

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unescaped is a text in which JSON escapes of characters beyond ASCII, as \u00e9, are decoded.
// Many programs escape all of these, and models do not recognise names that are escaped.
type Unescaped struct{ narrowed }

// Unescape decodes text. It returns false if text has no escape of a character beyond ASCII.
func Unescape(text string) (u *Unescaped, ok bool) {
	var b strings.Builder
	u = &Unescaped{}
	written, less := 0, 0
	for i := 0; ; {
		k := strings.Index(text[i:], `\u`)
		if k < 0 {
			break
		}
		i += k
		r, size := letterAt(text[i:])
		if r < utf8.RuneSelf {
			i += len(`\u`)
			continue
		}
		from := i
		for from > written && text[from-1] == '\\' { // JSON in JSON
			from--
		}
		b.WriteString(text[written:from])
		b.WriteRune(r)
		i += size
		less += i - from - utf8.RuneLen(r)
		u.cuts = append(u.cuts, cut{b.Len(), less})
		written = i
	}
	if written == 0 {
		return nil, false
	}
	b.WriteString(text[written:])
	u.text = b.String()
	return u, true
}

// letterAt returns the character of the escape at the start of text, and the escape's length. It
// returns 0 if there is none, and for half of a surrogate pair.
func letterAt(text string) (r rune, size int) {
	const length = len(`\uXXXX`)
	if len(text) < length {
		return 0, 0
	}
	n, err := strconv.ParseUint(text[len(`\u`):length], 16, 16)
	switch r = rune(n); {
	case err != nil:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, length
	}
	rest := strings.TrimLeft(text[length:], `\`)
	second, _ := strconv.ParseUint(rest[min(1, len(rest)):min(len(`uXXXX`), len(rest))], 16, 16)
	if r = utf16.DecodeRune(r, rune(second)); r == utf8.RuneError || rest[0] != 'u' {
		return 0, 0
	}
	return r, len(text) - len(rest) + len(`uXXXX`)
}

// Text returns the decoded text.
func (u *Unescaped) Text() string { return u.text }

// Place returns a span of the decoded text as one of the original text. With a nil u it returns s.
func (u *Unescaped) Place(s Span) Span {
	if u != nil {
		s.Start, s.End = u.before(s.Start), u.before(s.End)
	}
	return s
}
