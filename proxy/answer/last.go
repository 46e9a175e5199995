package answer

import "bytes"

// last finds the event that ends a stream of the Responses API, which has no [DONE]: its data is an object
// with a type of response.completed, response.incomplete or response.failed at the top level. Whether a
// server names its events, and where the type stands, does not matter: clients read the type alone. It
// reads byte by byte, since such an event holds the whole answer and comes in pieces.
//
// The zero value is at the start of a stream.
type last struct {
	col   int  // bytes of the line so far; of a data line those of its JSON do not count
	data  bool // the line is one of data
	cr    bool // the byte before was a CR, which an LF belongs to
	found bool // the event is the last

	depth           int
	inside, escaped bool // in a string
	value           bool // of the top-level object: behind a colon
	typed           bool // that member is the type
	n               int  // bytes of word, which a longer string exceeds
	word            [len("response.incomplete")]byte
}

const dataField = "data:"

// endIn is end for bytes of which it may be known that they are whole events: then they are read only if
// they mention a type that could be the last one's.
func (l *last) endIn(b []byte, whole bool) int { //nolint:revive // a fact about b
	if whole && !mentionsLast(b) {
		*l = last{}
		return -1
	}
	return l.end(b)
}

// mentionsLast reports whether a type of a last event stands somewhere in b.
func mentionsLast(b []byte) bool {
	prefix := []byte("response.")
	for {
		i := bytes.Index(b, prefix)
		if i < 0 {
			return false
		}
		b = b[i+len(prefix):]
		if bytes.HasPrefix(b, []byte("completed")) || bytes.HasPrefix(b, []byte("incomplete")) || bytes.HasPrefix(b, []byte("failed")) {
			return true
		}
	}
}

// end reads the next bytes of the stream, and returns the offset behind the last event, -1 as long as there
// is none.
func (l *last) end(b []byte) int {
	for i := l.text(b); i < len(b); i += 1 + l.text(b[i+1:]) {
		switch c := b[i]; {
		case c == '\n' && l.cr:
			l.cr = false
		case c == '\n' || c == '\r':
			l.cr = c == '\r'
			if l.line() {
				if i++; l.cr && i < len(b) && b[i] == '\n' {
					i++
				}
				return i
			}
		default:
			l.cr = false
			l.byte(c)
		}
	}
	return -1
}

// text reads what is text at the front of b, as most of a stream is, and returns its length.
func (l *last) text(b []byte) int {
	if !l.data || !l.inside || l.escaped {
		return 0
	}
	n := textLen(b)
	l.keep(b[:n])
	return n
}

// textLen is how many bytes of the inside of a string are at the front of b.
func textLen(b []byte) int {
	for i, c := range b {
		if c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return len(b)
}

// line ends a line, and reports whether with it the last event has ended.
func (l *last) line() bool {
	blank := l.col == 0 && !l.data
	l.col, l.data = 0, false
	if !blank {
		return false
	}
	found := l.found
	*l = last{cr: l.cr}
	return found
}

// byte reads a byte that ends no line.
func (l *last) byte(c byte) {
	if l.data {
		l.json(c)
		return
	}
	if l.col >= 0 && l.col < len(dataField) && c == dataField[l.col] {
		if l.col++; l.col == len(dataField) {
			l.data = true
		}
		return
	}
	l.col = -1 // a line of something else
}

// json reads a byte of data.
func (l *last) json(c byte) {
	if l.inside {
		switch {
		case l.escaped:
			l.escaped = false
			l.keep([]byte{c})
		case c == '\\':
			l.escaped = true
			l.keep([]byte{c})
		case c == '"':
			l.inside = false
			l.str()
		default:
			l.keep([]byte{c})
		}
		return
	}
	switch c {
	case '"':
		l.inside, l.n = true, 0
	case '{', '[':
		l.depth++
	case '}', ']':
		l.depth--
	case ':':
		l.value = l.value || l.depth == 1
	case ',':
		l.value = l.value && l.depth != 1
	}
}

// keep adds to the string being read.
func (l *last) keep(b []byte) {
	if l.depth == 1 && l.n < len(l.word) {
		copy(l.word[l.n:], b)
	}
	l.n += len(b)
}

// str takes note of a string of the top-level object that has ended.
func (l *last) str() {
	if l.depth != 1 {
		return
	}
	word := l.word[:min(l.n, len(l.word))]
	switch {
	case l.n > len(l.word):
		l.typed = l.typed && l.value
	case !l.value:
		l.typed = string(word) == "type"
	case l.typed:
		l.found = isLast(word)
	}
}

// isLast reports whether a type of event is that of the last one.
func isLast(word []byte) bool {
	switch string(word) {
	case "response.completed", "response.incomplete", "response.failed":
		return true
	}
	return false
}

// Trailer returns the [DONE] that stands at the front of what the window holds, with the line ends around
// it, nil when something else does. It is valid until the next call of another method.
func (w *Window) Trailer() []byte {
	front := bytes.TrimLeft(w.b[:w.n], "\r\n")
	if !bytes.HasPrefix(front, []byte("data: [DONE]")) && !bytes.HasPrefix(front, []byte("data:[DONE]")) {
		return nil
	}
	if w.ending != LastEvent {
		return nil
	}
	return w.b[:doneEnd(w.b[:w.n], true)]
}
