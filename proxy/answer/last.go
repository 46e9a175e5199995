package answer

import "bytes"

// last reads the data of one event. The zero value is at its start.
type last struct {
	found bool // the event is the last

	depth           int
	inside, escaped bool // in a string
	value           bool // of the top-level object: behind a colon
	typed           bool // that member is the type
	n               int  // bytes of word, which a longer string exceeds
	word            [len("response.incomplete")]byte
}

// IsLast reports whether the data of an event says that it is the last of a stream of the Responses API, which has no
// [DONE]: an object with a type of response.completed, response.incomplete or response.failed at the top level. Whether a
// server names its events, and where the type stands, does not matter: clients read the type alone.
func IsLast(data []byte) bool {
	if !mentionsLast(data) {
		return false
	}
	var l last
	for i := l.text(data); i < len(data); i += 1 + l.text(data[i+1:]) {
		l.json(data[i])
	}
	return l.found
}

// Finishes counts the choices that end in the data of an event: members finish_reason with a string.
func Finishes(data []byte) (n int) {
	const name = `"finish_reason"`
	for {
		i := find(data, name, 0)
		if i < 0 {
			return n
		}
		data = skipBlank(data[i+len(name):])
		if len(data) > 0 && data[0] == '"' {
			n++
		}
	}
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

// text reads what is text at the front of b, as most of a stream is, and returns its length.
func (l *last) text(b []byte) int {
	if !l.inside || l.escaped {
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
