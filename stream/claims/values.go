package claims

import (
	"bytes"
	"unicode"
)

// value is a JSON object in a text. Its strings are checked like any text, but nothing may be
// inserted into it.
type value struct {
	open  bool
	over  bool // one has ended, and no text has followed
	empty bool // the current line is empty so far
	left  int  // runes that it may still have
	nesting
}

// nesting is how deep a position in JSON is in arrays and objects.
type nesting struct {
	depth         int
	said, escaped bool // in a string, and after a backslash in it
}

// next processes the next rune.
func (n *nesting) next(r rune) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.said && r == '\\':
		n.escaped = true
	case r == '"':
		n.said = !n.said
	case n.said:
	case r == '{' || r == '[':
		n.depth++
	case r == '}' || r == ']':
		n.depth--
	}
}

// beginValue checks whether an object begins at pos: a brace before a quotation mark.
func (s *Splitter) beginValue() verdict {
	if s.value.open || s.tick > 0 || s.math != noMath {
		return no
	}
	for at := s.pos + 1; at < s.pos+maxTagGap; at++ {
		switch {
		case at == len(s.buf) && s.final:
			return no
		case at == len(s.buf):
			return more
		case s.buf[at] == '"':
			s.value = value{open: true, left: maxBlock}
			return yes
		case s.buf[at] > ' ':
			return no
		}
	}
	return no
}

// follow processes the next rune of a text to find where objects end.
func (v *value) follow(r rune) {
	if !v.open {
		v.over = v.over && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		return
	}
	v.empty = v.empty && unicode.IsSpace(r)
	v.left--
	v.next(r)
	if v.depth == 0 || v.left <= 0 {
		*v = value{over: v.depth == 0}
	}
}

// newline handles the end of a line. An empty line ends an object whose end is missing.
func (v *value) newline() {
	if v.open && v.empty {
		*v = value{}
	}
	v.empty = true
}

// formed reports whether the text so far ends in an object, or directly after one.
func (v *value) formed() bool { return v.open || v.over }

// layout tracks indented code: lines with at least four spaces or a tab after an empty line, but
// not below a list. They may be prose and are checked.
type layout struct {
	code bool // the current line is indented code
	gap  bool // the previous line was empty
	list bool // a list item precedes, and nothing at the margin since
}

// line processes the start of a line after its indentation.
func (l *layout) line(indent []byte, h lineHead, m mark) {
	if len(h.text) == 0 || h.text[0] == '\n' {
		l.gap = true
		return
	}
	wide := len(indent) >= 4 || bytes.IndexByte(indent, '\t') >= 0
	l.code = wide && !l.list && (l.gap || l.code)
	l.gap = false
	switch {
	case m.kind == itemMark && !l.code:
		l.list = true
	case len(indent) == 0:
		l.list = false
	}
}

// formed reports whether nothing may be inserted after the text so far.
func (s *Splitter) formed() bool {
	return s.json.open || s.value.formed() || s.layout.code && s.opts.Blocks
}
