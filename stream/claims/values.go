package claims

import "unicode"

// value is a JSON object in a text: its strings are judged like any text, but nothing can be put
// into it.
type value struct {
	open          bool
	over          bool // one has ended, and no text has followed
	depth         int
	said, escaped bool
	empty         bool // nothing stands in the line so far
	left          int  // runes that it may still have
}

// beginValue looks for an object at pos: a brace before a quotation mark.
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

// follow reads the next rune of a text for where objects end.
func (v *value) follow(r rune) {
	if !v.open {
		v.over = v.over && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		return
	}
	v.empty = v.empty && unicode.IsSpace(r)
	v.left--
	switch {
	case v.escaped:
		v.escaped = false
	case v.said && r == '\\':
		v.escaped = true
	case r == '"':
		v.said = !v.said
	case v.said:
	case r == '{' || r == '[':
		v.depth++
	case r == '}' || r == ']':
		v.depth--
	}
	if v.depth == 0 || v.left <= 0 {
		*v = value{over: v.depth == 0}
	}
}

// newline takes note of the end of a line. An empty one ends an object whose end is missing.
func (v *value) newline() {
	if v.open && v.empty {
		*v = value{}
	}
	v.empty = true
}

// formed reports whether the text so far ends in an object, or right behind one.
func (v *value) formed() bool { return v.open || v.over }
