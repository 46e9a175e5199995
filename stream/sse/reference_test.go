package sse

import (
	"bytes"
	"strings"
)

// message is an event as a client sees it.
type message struct{ Name, Data string }

// reference reads a whole stream in the plainest way that follows WHATWG HTML, section 9.2.6. It is
// the oracle for the parser.
func reference(stream string) []message {
	for strings.HasPrefix(stream, "\ufeff") {
		stream = stream[len("\ufeff"):]
	}
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	var out []message
	var name, data string
	for _, line := range lines[:len(lines)-1] { // the last has no end
		if line == "" {
			if data != "" {
				out = append(out, message{name, strings.TrimSuffix(data, "\n")})
			}
			name, data = "", ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data += value + "\n"
		case "event":
			name = value
		}
	}
	return out
}

// passed is what a client has to see of messages once they were passed on, without the end of
// the stream.
func passed(in []message) []message {
	var out []message
	for _, m := range in {
		if m.Name == "error" {
			m.Name = ""
		}
		m.Data = strings.ReplaceAll(m.Data, "\n", " ")
		out = append(out, m)
		if strings.HasPrefix(m.Data, "[DONE]") {
			break
		}
	}
	return out
}

// copied is a unit whose bytes are its own.
type copied struct {
	Kind            Kind
	Cut             bool
	Raw, Name, Data string
	At              int
}

// cut gives stream to a parser in pieces of the given sizes, which are taken in turn, and returns
// the units, what a client gets of them, and its state behind the end.
func cut(stream []byte, limit int, sizes ...int) (units []copied, out string, state State, err error) {
	p, w := NewParser(limit), new(passer)
	var sent bytes.Buffer
	take := func(e *Event) {
		units = append(units, copied{e.Kind, e.Cut, string(e.Raw), string(e.Name), string(e.Data), e.At})
		w.pass(*e)
	}
	piece := make([]byte, 0, len(stream))
	for i := 0; len(stream) > 0; i++ {
		n := min(len(stream), max(1, sizes[i%len(sizes)]))
		piece = append(piece[:0], stream[:n]...)
		stream = stream[n:]
		p.Feed(piece)
		for e := p.Next(); e != nil; e = p.Next() {
			take(e)
		}
		clear(piece) // what is left has to be the parser's own
		sent.Write(w.take())
	}
	if e := p.End(); e != nil {
		take(e)
	}
	sent.Write(w.take())
	state = w.state
	return units, sent.String(), state, p.Err()
}

// messages returns the whole events among units.
func messages(units []copied) []message {
	var out []message
	for _, u := range units {
		if u.Kind == Message && !u.Cut {
			out = append(out, message{u.Name, u.Data})
		}
	}
	return out
}
