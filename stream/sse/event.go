package sse

import "bytes"

// State is how far a stream has come.
type State uint8

const (
	// Running: nothing that ends an answer has been received.
	Running State = iota
	// Finished: a finish_reason has been received; [DONE] is still due.
	Finished
	// Done: [DONE] or the last event of a Responses API stream has been received. The answer is
	// complete.
	Done
	// Failed: an error event has been received. A client raises it as an error; the answer is
	// incomplete.
	Failed
	// Truncated: the stream ended before any of these. Clients in use treat that as a complete
	// answer, so an error event has to follow, and the connection must not be closed properly.
	Truncated
)

// String returns the name in lower case.
func (s State) String() string {
	names := [...]string{Running: "running", Finished: "finished", Done: "done", Failed: "failed", Truncated: "truncated"}
	if int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// After returns the state after an event. [DONE] does not repair a stream that has failed.
func (s State) After(name, data []byte) State {
	switch {
	case s == Failed:
	case IsDone(data):
		return Done
	case isError(name) || hasError(data):
		return Failed
	case s == Done:
	case isLast(name, data):
		return Done
	case s == Running && finishes(data):
		return Finished
	}
	return s
}

// IsDone reports whether data is the end mark of a stream. Like official SDKs it only compares the
// beginning.
func IsDone(data []byte) bool { return bytes.HasPrefix(data, []byte("[DONE]")) }

func isError(name []byte) bool { return string(name) == "error" }

// hasError reports whether data is an error: an object whose first member is an error that is not
// null. All servers known to send errors in a stream send this member first.
func hasError(data []byte) bool {
	rest, ok := bytes.CutPrefix(data, []byte("{"))
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(skipBlank(rest), []byte(`"error"`))
	if !ok {
		return false
	}
	value := memberValue(rest)
	return len(value) > 0 && value[0] != 'n'
}

// isLast reports whether an event is the last of a Responses API stream, which has no [DONE]. It is
// recognised by the name, or by the type if that is the first member.
func isLast(name, data []byte) bool {
	if len(name) == 0 {
		rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
		if !ok {
			return false
		}
		name, _, _ = bytes.Cut(rest, []byte(`"`))
	}
	switch string(name) {
	case "response.completed", "response.incomplete", "response.failed":
		return true
	}
	return false
}

// finishes reports whether data has a member finish_reason that is a non-empty string. Within a
// text its quotes would be escaped.
func finishes(data []byte) bool {
	name := []byte(`finish_reason"`) // an f is rarer than the quote before it
	for from := 0; ; {
		i := bytes.Index(data[from:], name)
		if i < 0 {
			return false
		}
		at := from + i
		from = at + len(name)
		value := memberValue(data[from:])
		if at > 0 && data[at-1] == '"' && len(value) > 1 && value[0] == '"' && value[1] != '"' {
			return true
		}
	}
}

// memberValue returns b, the bytes after a member's name, from the member's value on, or nil if
// there is no colon.
func memberValue(b []byte) []byte {
	rest, ok := bytes.CutPrefix(skipBlank(b), []byte(":"))
	if !ok {
		return nil
	}
	return skipBlank(rest)
}

func skipBlank(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// DoneEvent returns [DONE] in the spelling of most servers.
func DoneEvent() Event {
	e, _ := NewEvent(nil, "", []byte("[DONE]"))
	return e
}

// KeepName makes Mended keep the name of a unit, whatever it is, for clients of an API in which all
// events have names.
func KeepName(e *Event) { e.named = true }

// Flawed reports whether Mended differs from the unit.
func (e Event) Flawed() bool { return e.bareCR || e.lines > 1 || e.misnamed() }

func (e Event) misnamed() bool { return !e.named && isError(e.Name) }

// Mended returns a unit as a client may receive it, see the package comment: the unit itself or a
// copy in buf, and buf. Its data is on one line.
func (e Event) Mended(buf []byte) (Event, []byte) {
	if !e.Flawed() {
		return e, buf
	}
	unnamed, at, size, name := e.misnamed(), -1, 0, [2]int{}
	buf = buf[:0]
	for raw := e.Raw; len(raw) > 0; {
		end := bytes.IndexAny(raw, "\r\n")
		width, mark := 1, "\n"
		if raw[end] == '\r' && end+1 < len(raw) && raw[end+1] == '\n' {
			width, mark = 2, "\r\n"
		}
		line := raw[:end]
		raw = raw[end+width:]
		field, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case string(field) == "data" && at >= 0, string(field) == "event" && unnamed:
			continue
		case string(field) == "data":
			buf = appendField(buf, line[len(field):], e.Data)
			at, size = len(buf), len(e.Data)
			buf = appendLine(buf, e.Data)
		case string(field) == "event":
			buf = append(buf, line...)
			name = [2]int{len(buf) - len(bytes.TrimPrefix(value, []byte(" "))), len(buf)}
		default:
			buf = append(buf, line...)
		}
		buf = append(buf, mark...)
	}
	e.Raw, e.Name, e.At, e.bareCR, e.lines = buf, buf[name[0]:name[1]], at, false, min(e.lines, 1)
	if at >= 0 {
		e.Data = buf[at : at+size]
	}
	return e, buf
}

// With returns a mended Message with other data, written to buf, and buf. Other lines and line ends
// stay. Line breaks in data become spaces.
func (e Event) With(buf, data []byte) (Event, []byte) {
	buf = append(buf[:0], e.Raw[:e.At]...)
	buf = append(appendLine(buf, data), e.Raw[e.At+len(e.Data):]...)
	e.Raw, e.Data = buf, buf[e.At:e.At+len(data)]
	return e, buf
}

// NewEvent returns an event of the proxy, written to buf, and buf. An empty name means none. Line
// breaks in data become spaces; name must not contain any.
func NewEvent(buf []byte, name string, data []byte) (Event, []byte) {
	e := Event{Kind: Message, lines: 1}
	buf = buf[:0]
	if name != "" {
		buf = append(append(append(buf, "event: "...), name...), '\n')
	}
	e.At = len(buf) + len("data: ")
	buf = append(appendLine(append(buf, "data: "...), data), "\n\n"...)
	if e.Raw, e.Data = buf, buf[e.At:len(buf)-2]; name != "" {
		e.Name = buf[len("event: "):][:len(name)]
	}
	return e, buf
}

// appendField appends the start of a data line up to the value: with a colon and a space as in old.
func appendField(dst, old, data []byte) []byte {
	dst = append(dst, "data"...)
	switch {
	case bytes.HasPrefix(old, []byte(": ")), len(data) > 0 && (len(old) == 0 || data[0] == ' ' || data[0] == '\n'):
		return append(dst, ": "...)
	case len(old) > 0:
		return append(dst, ':')
	}
	return dst
}

// appendLine appends data with a space for each line break.
func appendLine(dst, data []byte) []byte {
	n := len(dst)
	dst = append(dst, data...)
	for i := n; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return dst
}
