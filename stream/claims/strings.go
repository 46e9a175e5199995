package claims

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// readString continues in a string. It returns false if more text is needed.
func (s *Splitter) readString() bool {
	m := &s.json
	end := s.pos
	for end < len(s.buf) && s.buf[end] != '"' && s.buf[end] != '\\' && (s.buf[end] != '\n' || !s.mayBreak(end)) {
		end++
	}
	if end == len(s.buf) && !s.final {
		end = s.pos + wholeRunes(s.buf[s.pos:])
	}
	s.say(s.buf[s.pos:end], s.buf[s.pos:end])
	s.pos = end
	switch {
	case end == len(s.buf):
		return s.final
	case s.buf[end] == '"':
		s.endString()
		s.pos++
		m.token, m.want = noToken, aCommaOrEnd
		return true
	case s.buf[end] == '\n':
		return s.breakString()
	case s.buf[end] != '\\':
		return false // an incomplete character
	}
	r, size := escaped(s.buf[end:])
	if size == 0 {
		if s.final {
			s.pos = len(s.buf)
		}
		return s.final
	}
	var room [utf8.UTFMax]byte
	s.say(utf8.AppendRune(room[:0], r), s.buf[end:end+size])
	s.pos = end + size
	return true
}

// mayBreak reports whether an unterminated string may end at a line break. A string that is not
// checked does; one in a block may if the block ends there.
func (s *Splitter) mayBreak(at int) bool {
	if s.json.token == muteToken {
		return true
	}
	if !s.json.fenced {
		return false
	}
	for at++; at < len(s.buf); at++ {
		if c := s.buf[at]; c != ' ' && c != '\t' && c != '\r' {
			return c == s.json.block.char
		}
	}
	return true
}

// breakString handles a line break in a string, which is invalid JSON. The string ends if the block
// does.
func (s *Splitter) breakString() bool {
	end := false
	if s.json.token != muteToken {
		h := s.lineHead(s.pos + 1)
		text := bytes.TrimLeft(h.text, " \t\r")
		rest := bytes.TrimLeft(text, string(rune(s.json.block.char)))
		switch {
		case len(text) > 0 && text[0] != s.json.block.char:
		case !h.whole && len(bytes.TrimSpace(rest)) == 0:
			return false
		default:
			end = len(text)-len(rest) >= 3 && len(bytes.TrimSpace(rest)) == 0
		}
	}
	if !end && s.json.token != muteToken {
		s.say(s.buf[s.pos:s.pos+1], s.buf[s.pos:s.pos+1])
		s.pos++
		return true
	}
	s.endString()
	s.leaveJSON(s.pos)
	return true
}

// wholeRunes returns how many bytes of a text are complete characters.
func wholeRunes(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if at := len(text) - n; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}

// escaped reads the escaped character at the start of a text. It returns size 0 if the character is
// incomplete.
func escaped(text []byte) (r rune, size int) {
	if len(text) < 2 || !utf8.FullRune(text[1:]) {
		return 0, 0
	}
	switch text[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b', 'f':
		return ' ', 2
	case 'u':
	default:
		r, size = utf8.DecodeRune(text[1:])
		return r, 1 + size
	}
	r, size = hex(text)
	if size < 6 || !utf16.IsSurrogate(r) {
		return r, size
	}
	low, n := hex(text[6:])
	if pair := utf16.DecodeRune(r, low); n == 6 && pair != utf8.RuneError {
		return pair, 12
	}
	if n == 0 {
		return 0, 0
	}
	return utf8.RuneError, 6
}

// hex reads \u and four digits at the start of a text. It returns size 0 if more text is needed.
func hex(text []byte) (r rune, size int) {
	for i := range 6 {
		if i == len(text) {
			return 0, 0
		}
		switch c := text[i]; {
		case i == 0 && c == '\\', i == 1 && c == 'u':
		case i < 2:
			return utf8.RuneError, 1
		case c >= '0' && c <= '9':
			r = r<<4 + rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 + rune(c|0x20-'a'+10)
		default:
			return utf8.RuneError, 2
		}
	}
	return r, 6
}

// say adds text to the current string. raw is the same text as written in the answer.
func (s *Splitter) say(text, raw []byte) {
	m := &s.json
	if m.token == muteToken || len(text) == 0 {
		return
	}
	if len(text) != len(raw) {
		e := escape{at: m.fed}
		if n := len(m.escapes); n > 0 {
			e.bytes, e.runes = m.escapes[n-1].bytes, m.escapes[n-1].runes
		}
		e.bytes += len(raw) - len(text)
		e.runes += utf8.RuneCount(raw) - utf8.RuneCount(text)
		m.escapes = append(m.escapes, e)
	}
	m.fed += len(text)
	for _, c := range m.text.FeedBytes(text) {
		m.found++
		s.take(&c)
	}
	if len(m.escapes) > manyEscapes {
		m.forget()
	}
}

// forget drops the escapes before the text that no claim was made of yet, except the last of them.
func (m *members) forget() {
	pending := m.fed - m.text.Pending()
	n := 0
	for n+1 < len(m.escapes) && m.escapes[n+1].at < pending {
		n++
	}
	m.escapes = m.escapes[:copy(m.escapes, m.escapes[n:])]
}

// endString ends a string, or the text if it ends within one. A string of a few words becomes a
// Value with the names of its member and its object; a single word that isWord accepts is dropped.
func (s *Splitter) endString() {
	m := &s.json
	if m.token == muteToken {
		return
	}
	list := m.text.Flush()
	l := &m.levels[len(m.levels)-1]
	label := ""
	if m.found == 0 && len(list) == 1 && list[0].Kind == Prose && list[0].Unfinished && !list[0].Window {
		text := strings.TrimSpace(list[0].Text)
		n := len(strings.Fields(text))
		if n <= fewWords {
			list[0].Kind = Value
			if l.object && l.label == "" && len(text) <= maxLabel {
				label = text
			}
		}
		if n == 1 && isWord(text) {
			list = nil
		}
	}
	for i := range list {
		list[i].Unfinished = list[i].Unfinished && s.pos == len(s.buf)
		s.take(&list[i])
	}
	if label != "" {
		l.label = label
	}
}

// isWord reports whether a string of one word is one of a fixed set of values rather than a fact:
// it is not capitalised, or all in capitals.
func isWord(text string) bool {
	upper, lower := false, false
	for i, r := range text {
		switch {
		case unicode.IsDigit(r), r >= 0x2e80:
			return false
		case i == 0 && unicode.IsUpper(r):
			upper = true
		case unicode.IsLower(r):
			lower = true
		}
	}
	return !upper || !lower || strings.Contains(text, "_")
}

// take emits a claim of the current string.
func (s *Splitter) take(c *Claim) {
	m := &s.json
	said := c.Text
	from, to := m.shift(c.Bytes.Start), m.shift(c.Bytes.End)
	out := Claim{
		Kind: c.Kind, Context: c.Context, Place: Inside, Frame: m.framed(), Window: c.Window, Unfinished: c.Unfinished,
		Bytes: Span{m.at.Start + c.Bytes.Start + from.bytes, m.at.Start + c.Bytes.End + to.bytes},
		Runes: Span{m.at.End + c.Runes.Start + from.runes, m.at.End + c.Runes.End + to.runes},
		Text:  said,
	}
	if from != to {
		out.Text = string(s.buf[out.Bytes.Start-s.base : out.Bytes.End-s.base])
		out.Said = said
	}
	if c.Kind == Value {
		s.told(&out, said)
	}
	s.out = append(s.out, out)
}

// shift returns by how much an offset of the string moves in the answer because of the escapes
// before it.
func (m *members) shift(at int) escape {
	for _, e := range slices.Backward(m.escapes) {
		if e.at < at {
			return escape{bytes: e.bytes, runes: e.runes}
		}
	}
	return escape{}
}

// Raw converts a range in what a claim says, without its Lead, to one in its Text. Both are in code
// points.
func (c *Claim) Raw(at Span) Span {
	if c.Said == "" || c.Said[c.Lead:] == c.Text {
		return at
	}
	text := []byte(c.Text)
	out, n, raw := at, 0, 0
	for i := 0; i < len(text); n++ {
		if n == at.Start {
			out.Start = raw
		}
		_, size := utf8.DecodeRune(text[i:])
		if text[i] == '\\' {
			// An incomplete surrogate pair, or half of one.
			if _, size = escaped(text[i:]); size == 0 {
				if i+1 < len(text) && text[i+1] == 'u' {
					_, size = hex(text[i:])
				}
				size = cmp.Or(size, min(2, len(text)-i))
			}
		}
		raw += utf8.RuneCount(text[i : i+size])
		i += size
		if n+1 == at.End {
			out.End = raw
		}
	}
	return out
}

// Says returns how a claim reads: Said if it is set, otherwise Text.
func (c *Claim) Says() string {
	if c.Said != "" {
		return c.Said
	}
	return c.Text
}
