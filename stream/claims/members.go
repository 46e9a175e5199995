package claims

import (
	"bytes"
	"unicode/utf8"
)

// Bounds on JSON that is read value by value; our choice. What is beyond them is read as text.
const (
	maxDepth  = 64
	maxToken  = 256 // bytes of a name, a number or a word
	maxLabel  = 64  // bytes of the name that a value is told with, and of what its object is called
	fewWords  = 8   // of a string that is told with its name
	maxOpener = 64  // bytes that are looked at for where JSON begins
	// From so many escapes of a string on those that are not needed any more are dropped.
	manyEscapes = 4 << 10
)

// members reads a text of JSON. Each string is cut like a text of its own; a short one, and each
// number, is a claim that is told with the name of its member and with what its object is called.
type members struct {
	open   bool
	fenced bool // in a block of Markdown
	block  fence
	frame  Frame
	lines  bool // one has ended as JSON does: another may follow in a line of its own
	fresh  bool // nothing but blanks stands before pos in its line
	want   want
	token  token
	from   int // in the buffer: where the token that is under way begins, its quotation mark apart
	levels []level

	text    *Splitter // of the string that is under way
	at      Span      // bytes and code points of the text before that string
	fed     int       // bytes of it that were read, as they read
	found   int       // claims in it so far
	escapes []escape  // of its part that no claim was cut from yet
}

// want is what comes next in JSON.
type want uint8

const (
	aValue want = iota
	aValueOrEnd
	aName
	aNameOrEnd
	aColon
	aCommaOrEnd
)

// token is what of JSON is under way.
type token uint8

const (
	noToken token = iota
	nameToken
	stringToken
	muteToken // a string that is not judged
	wordToken // a number, true, false or null
)

// level is an object or a list that is open.
type level struct {
	object bool
	mute   bool   // nothing in it is a fact of the answer
	call   bool   // it is what a program is called with, or what may stand in a value
	name   string // of the member that is read, or of the list
	label  string // what the object is called: its first short string, or its year
}

// escape is an escaped character of a string: how much longer it and all before it are in the text
// than as they read, and where it stands as it reads.
type escape struct{ at, bytes, runes int }

// beginsJSON reports whether JSON begins at a place: brackets before a quotation mark.
func (s *Splitter) beginsJSON(at int) verdict {
	if at >= len(s.buf) || s.buf[at] != '{' && s.buf[at] != '[' {
		return no
	}
	last, fresh := byte(0), false
	for i := at; i < at+maxOpener; i++ {
		if i >= len(s.buf) {
			if s.final {
				return no
			}
			return more
		}
		switch c := s.buf[i]; {
		case c == '"':
			return yes
		case c == '[' || c == '{' && last != '{':
			last, fresh = c, false
		case !isGapOf(c, &fresh):
			return no
		}
	}
	return no
}

// beginsObject reports whether an object of JSON, or a list of such, begins at a place behind other
// text: brackets, a brace the last of them, the name of a member and a colon.
func (s *Splitter) beginsObject(at int) verdict {
	if at >= len(s.buf) || s.buf[at] != '{' && s.buf[at] != '[' {
		return no
	}
	want, fresh := byte('{'), false
	for i := at; i < at+maxOpener; i++ {
		if i >= len(s.buf) {
			if s.final {
				return no
			}
			return more
		}
		switch c := s.buf[i]; {
		case want == '"': // in the name
			switch c {
			case '"':
				want = ':'
			case '\n':
				return no
			case '\\':
				i++
			}
		case isGapOf(c, &fresh):
		case want == ':':
			if c == ':' {
				return yes
			}
			return no
		case c == '"' && want == 0:
			want = '"'
		case c == '{' && want == '{':
			want, fresh = 0, false
		case c != '[' || want != '{':
			return no
		}
	}
	return no
}

// isGapOf reports whether c is white space of JSON, or begins a line of a quotation; fresh tells whether
// nothing else stands before it in its line.
func isGapOf(c byte, fresh *bool) bool {
	*fresh = *fresh || c == '\n'
	return isBlank(c) || c == '>' && *fresh
}

// laterJSON opens JSON that begins at a place behind other text.
func (s *Splitter) laterJSON(at int) verdict {
	if !s.opts.Values || s.value.open || s.tick > 0 || s.math != noMath {
		return no
	}
	v := s.beginsObject(at)
	if v == yes {
		s.endLineClaim()
		s.table.leave()
		s.openJSON(at)
	}
	return v
}

// announced reports whether what stands here may be JSON in the middle of a line: behind a colon,
// or where a claim has ended.
func (s *Splitter) announced() bool {
	return s.begun && !s.table.row && (!s.open || s.end > s.start && s.buf[s.end-1] == ':')
}

// isBlank reports whether c is white space of JSON.
func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// openFenced begins to read the JSON of the block of Markdown that is open.
func (s *Splitter) openFenced(at int) {
	block, frame := s.fence, s.frame()
	s.fence = fence{}
	s.openJSON(at)
	s.json.fenced, s.json.block, s.json.frame = true, block, frame
}

// openJSON begins to read JSON at a place.
func (s *Splitter) openJSON(at int) {
	m := &s.json
	if m.text == nil {
		o := s.opts
		o.Values = false
		m.text = &Splitter{opts: o}
	}
	*m = members{open: true, fresh: true, text: m.text, levels: m.levels[:0], escapes: m.escapes[:0]}
	s.pos, s.lineStart, s.kind = at, false, Prose
}

// leaveJSON goes on as in a text, from a place on, or as in the block that the JSON stands in.
func (s *Splitter) leaveJSON(from int) {
	s.json.open, s.json.token, s.json.lines = false, noToken, false
	s.pos, s.start, s.end = from, from, from
	s.open, s.words, s.inWord, s.depth = false, 0, false, 0
	s.value, s.lineLen = value{over: true}, 0
	if s.json.fenced {
		s.value = value{}
		s.fence = s.json.block
	}
}

// readJSON reads the next part of JSON; false means that more text is needed.
func (s *Splitter) readJSON() bool {
	m := &s.json
	switch m.token {
	case nameToken:
		return s.readName()
	case stringToken, muteToken:
		return s.readString()
	case wordToken:
		return s.readWord()
	case noToken:
	}
	c := s.buf[s.pos]
	if isBlank(c) || !m.fenced && len(m.levels) > 0 && isGapOf(c, &m.fresh) {
		m.fresh = m.fresh || c == '\n'
		s.pos++
		return true
	}
	if m.fresh && m.fenced && c == m.block.char || m.fresh && c == '`' { // the block ends before its JSON does
		s.leaveJSON(s.pos)
		s.lineStart = true
		return true
	}
	m.from, m.fresh = s.pos, false
	switch {
	case m.want == aColon && c == ':':
		m.want = aValue
	case m.want == aCommaOrEnd && c == ',':
		m.want = aValue
		if m.levels[len(m.levels)-1].object {
			m.want = aName
		}
	case m.want == aColon, m.want == aCommaOrEnd && c != '}' && c != ']':
		s.leaveJSON(s.pos)
		return true
	case c == '}' || c == ']':
		return s.closeLevel(c)
	case m.want == aName || m.want == aNameOrEnd:
		if c != '"' {
			s.leaveJSON(s.pos)
			return true
		}
		m.token = nameToken
	default:
		return s.beginJSONValue(c)
	}
	s.pos++
	return true
}

// closeLevel ends an object or a list, and with the last one the JSON.
func (s *Splitter) closeLevel(c byte) bool {
	m := &s.json
	n := len(m.levels)
	if n == 0 || m.levels[n-1].object != (c == '}') || m.want == aValue && c == '}' {
		s.leaveJSON(s.pos)
		return true
	}
	s.pos++
	m.levels, m.want = m.levels[:n-1], aCommaOrEnd
	if n == 1 {
		s.leaveJSON(s.pos)
		m.lines = true
	}
	return true
}

// beginJSONValue begins a value with its first byte.
func (s *Splitter) beginJSONValue(c byte) bool {
	m := &s.json
	switch {
	case (c == '{' || c == '[') && len(m.levels) < maxDepth:
		l := level{object: c == '{'}
		if n := len(m.levels); n > 0 {
			up := &m.levels[n-1]
			l.mute, l.call = up.mute || besides(up.name), up.call || calls(up.name)
			l.name = up.name
			if l.label = up.label; !up.object {
				l.label = ""
			}
		}
		m.levels = append(m.levels, l)
		m.want = aValueOrEnd
		if l.object {
			m.want = aNameOrEnd
		}
		s.pos++
	case len(m.levels) == 0:
		s.leaveJSON(s.pos)
	case c == '"':
		s.pos++
		m.token = stringToken
		if l := &m.levels[len(m.levels)-1]; l.mute || isMute(l.name) {
			m.token = muteToken
		}
		m.from, m.fed, m.found, m.escapes = s.pos, 0, 0, m.escapes[:0]
		m.at = Span{s.base + s.pos, s.baseRune + utf8.RuneCount(s.buf[:s.pos])}
		m.text.Reset()
	case c == '-' || c >= '0' && c <= '9' || letter(c):
		m.token = wordToken
		s.pos++
	default:
		s.leaveJSON(s.pos)
	}
	return true
}

// readName reads the name of a member, its quotation mark apart.
func (s *Splitter) readName() bool {
	m := &s.json
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; {
		case c == '\\' && s.pos+1 == len(s.buf) && !s.final:
			return false
		case c == '\n', s.pos-m.from > maxToken:
			s.leaveJSON(m.from)
			return true
		case c == '\\':
			s.pos++
		case c == '"':
			l := &m.levels[len(m.levels)-1]
			l.name = unquote(s.buf[m.from+1 : s.pos])
			m.token, m.want = noToken, aColon
			s.pos++
			return true
		}
		s.pos = min(s.pos+1, len(s.buf))
	}
	return s.final
}

// unquote is what stands between quotation marks, its escapes read.
func unquote(text []byte) string {
	text = bytes.TrimSpace(text)
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	var out []byte
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if text[i] == '\\' {
			if r, size = escaped(text[i:]); size == 0 {
				break
			}
		}
		out, i = utf8.AppendRune(out, r), i+size
	}
	return string(out)
}

// readWord reads a number, or a word that stands for a value.
func (s *Splitter) readWord() bool {
	m := &s.json
	for s.pos < len(s.buf) && s.pos-m.from <= maxToken && bytes.IndexByte([]byte(",]} \t\r\n"), s.buf[s.pos]) < 0 {
		s.pos++
	}
	if s.pos == len(s.buf) && !s.final {
		return s.pos-m.from > maxToken
	}
	word := s.buf[m.from:s.pos]
	switch string(word) {
	case "true", "false", "null", "True", "False", "None", "NaN":
	default:
		if !isNumber(word) {
			s.leaveJSON(m.from)
			return true
		}
		if l := &m.levels[len(m.levels)-1]; !l.mute && !isMuteNumber(l.name) {
			before := s.baseRune + utf8.RuneCount(s.buf[:m.from])
			c := Claim{
				Text: string(word), Kind: Value, Place: Inside, Frame: m.framed(), Unfinished: s.pos == len(s.buf),
				Bytes: Span{s.base + m.from, s.base + s.pos}, Runes: Span{before, before + len(word)},
			}
			s.told(&c, c.Text)
			s.out = append(s.out, c)
			if l.label == "" && l.object && anyPart(l.name, yearNames) {
				l.label = c.Text
			}
		}
	}
	m.token, m.want = noToken, aCommaOrEnd
	return true
}

// isNumber reports whether a word is made like a number of JSON.
func isNumber(word []byte) bool {
	digits := false
	for i, c := range word {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c == '-' && i == 0, i > 0 && bytes.IndexByte([]byte(".eE+-"), c) >= 0:
		default:
			return false
		}
	}
	return digits
}

// kept is where the text begins that JSON needs yet, in the buffer.
func (s *Splitter) kept() int {
	m := &s.json
	switch m.token {
	case nameToken, wordToken:
		return m.from
	case stringToken:
		from := m.fed - m.text.Pending()
		return m.at.Start + from + m.shift(from).bytes - s.base
	case muteToken, noToken:
	}
	return s.pos
}
