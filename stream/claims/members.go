package claims

import (
	"bytes"
	"unicode/utf8"
)

// Limits of JSON that is read value by value; our choice. Anything beyond them is read as text.
const (
	maxDepth  = 64
	maxToken  = 256 // bytes of a name, a number or a word
	maxLabel  = 64  // bytes of the names of a member and of its object in a claim
	fewWords  = 8   // maximum words of a string that becomes a Value
	maxOpener = 64  // bytes that are searched for the start of JSON
	// manyEscapes is the number of escapes in a string from which those no longer needed are
	// dropped.
	manyEscapes = 4 << 10
)

// members reads JSON text. Each string is split like a text of its own. A short string or a number
// is a claim preceded by the names of its member and its object.
type members struct {
	open   bool
	fenced bool // in a Markdown block
	block  fence
	frame  Frame
	lines  bool // a JSON value has ended; another may follow on its own line
	fresh  bool // only white space precedes pos on its line
	want   want
	token  token
	from   int // start of the current token in the buffer, at the quotation mark of a name
	levels []level

	text    *Splitter // splitter of the current string
	at      Span      // Start and End are the bytes and the code points before that string
	fed     int       // unescaped bytes of it that were read
	found   int       // claims found in it so far
	escapes []escape  // escapes in the part of it that no claim was made of yet
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

// token is the JSON token that is being read.
type token uint8

const (
	noToken token = iota
	nameToken
	stringToken
	muteToken // a string that is not checked
	wordToken // a number, true, false or null
)

// level is an open object or list.
type level struct {
	object bool
	mute   bool   // nothing in it is a fact of the answer
	call   bool   // it holds arguments of a call, or describes possible values
	name   string // of the current member, or of the list
	label  string // name of the object: its first short string, or its year
}

// escape describes the escaped characters of a string up to one of them: its unescaped offset, and
// by how many bytes and runes the escaped text is longer.
type escape struct{ at, bytes, runes int }

// beginsJSON reports whether JSON begins at an offset: brackets before a quotation mark.
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

// beginsObject reports whether a JSON object, or a list of objects, begins at an offset after other
// text: brackets ending in a brace, a member name and a colon.
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

// isGapOf reports whether c is JSON white space, or the > of a Markdown quotation at the start of a
// line. fresh is whether only white space precedes c on its line.
func isGapOf(c byte, fresh *bool) bool {
	*fresh = *fresh || c == '\n'
	return isBlank(c) || c == '>' && *fresh
}

// laterJSON opens JSON that begins at an offset after other text.
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

// announced reports whether JSON may begin here in the middle of a line: after a colon, or where a
// claim has ended.
func (s *Splitter) announced() bool {
	return s.begun && !s.table.row && (!s.open || s.end > s.start && s.buf[s.end-1] == ':')
}

// isBlank reports whether c is JSON white space.
func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// openFenced begins to read the JSON of the open Markdown block.
func (s *Splitter) openFenced(at int) {
	block, frame := s.fence, s.frame()
	s.fence = fence{}
	s.openJSON(at)
	s.json.fenced, s.json.block, s.json.frame = true, block, frame
}

// openJSON begins to read JSON at an offset.
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

// leaveJSON continues from an offset as text, or as the block that contains the JSON.
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

// readJSON reads the next part of JSON. It returns false if more text is needed.
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
	// The block ends before its JSON does.
	if m.fresh && m.fenced && c == m.block.char || m.fresh && c == '`' {
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

// closeLevel ends an object or a list, and with the outermost one the JSON.
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

// readName reads the name of a member after its opening quotation mark. It returns false if more
// text is needed.
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

// unquote returns a quoted text without its escapes.
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

// readWord reads a number, or a word such as true. It returns false if more text is needed.
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

// isNumber reports whether a word has the form of a JSON number.
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

// kept returns the buffer offset from which JSON still needs the text.
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
