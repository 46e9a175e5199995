package sse

import "bytes"

// State is how far a stream has come.
type State uint8

const (
	// Running: nothing has been seen that ends an answer.
	Running State = iota
	// Finished: a finish_reason has been seen; [DONE] is still due.
	Finished
	// Done: [DONE] has been seen, or the last event of a Responses API stream. The answer is complete.
	Done
	// Failed: an error event has been seen. A client raises it; the answer is not complete.
	Failed
	// Truncated: the stream ended before any of these. Clients in use take that for a complete answer, so
	// an error event has to follow, and the connection must not end in order.
	Truncated
)

// String returns the name in lower case.
func (s State) String() string {
	switch s {
	case Running:
		return "running"
	case Finished:
		return "finished"
	case Done:
		return "done"
	case Failed:
		return "failed"
	case Truncated:
		return "truncated"
	}
	return "unknown"
}

// Writer prepares the bytes that a client gets. Every unit of the upstream's stream is given to one of
// Pass, Replace and Drop, in order; Insert adds events of our own between them. Take returns the bytes.
// The zero value is ready for use. It is for one stream and one goroutine.
type Writer struct {
	out    []byte
	taken  bool // out was returned
	state  State
	closed bool // [DONE] was written
}

// Take returns what is to be sent now, nil when there is nothing. It is valid until the next call of any
// method but State.
func (w *Writer) Take() []byte {
	w.begin()
	w.taken = true
	if len(w.out) == 0 {
		return nil
	}
	return w.out
}

// Len is how many bytes wait to be taken.
func (w *Writer) Len() int {
	if w.taken {
		return 0
	}
	return len(w.out)
}

// Reset prepares the writer for another stream; it keeps the buffer.
func (w *Writer) Reset() {
	w.taken = true
	w.begin()
	*w = Writer{out: w.out}
}

// begin forgets what was taken.
func (w *Writer) begin() {
	if !w.taken {
		return
	}
	w.taken = false
	if cap(w.out) > keptBytes {
		w.out = nil
	}
	w.out = w.out[:0]
}

// State returns how far the stream has come.
func (w *Writer) State() State { return w.state }

// Note corrects the state by what a reader of the JSON knows: Running when one of several choices has not
// finished yet, Failed for an error beside an answer. A stream that is done or has failed stays so.
func (w *Writer) Note(s State) {
	if w.state == Running || w.state == Finished {
		w.state = s
	}
}

// Pass writes a unit as it came, but for the list in the package's comment. A Cut event is dropped, unless
// it is [DONE].
func (w *Writer) Pass(e Event) {
	w.begin()
	switch {
	case w.closed:
		return
	case e.Cut && IsDone(e.Data):
		w.done()
		return
	case e.Cut:
		return
	}
	w.observe(e.Name, e.Data)
	if e.bareCR || e.lines > 1 || isError(e.Name) {
		w.rewrite(e, e.Data)
		return
	}
	w.out = append(w.out, e.Raw...)
}

// Replace writes a Message with other data, which is observed in place of its own. Its other lines and
// its line ends stay. A line break in the data becomes a blank.
func (w *Writer) Replace(e Event, data []byte) {
	w.begin()
	if w.closed || e.Cut {
		return
	}
	w.observe(e.Name, data)
	w.rewrite(e, data)
}

// Drop leaves a unit out. What it tells about the end of the stream counts; only [DONE] does not, as the
// client has not seen it.
func (w *Writer) Drop(e Event) {
	if w.closed || e.Cut || IsDone(e.Data) {
		return
	}
	w.observe(e.Name, e.Data)
}

// Insert writes an event of our own. An empty name means none. A line break in the data becomes a blank;
// the name must not hold any.
func (w *Writer) Insert(name string, data []byte) {
	w.begin()
	if w.closed {
		return
	}
	w.state, w.closed = observed(w.state, []byte(name), data)
	if name != "" {
		w.out = append(append(append(w.out, "event: "...), name...), '\n')
	}
	w.out = append(w.out, "data: "...)
	w.out = append(appendLine(w.out, data), "\n\n"...)
}

// InsertComment writes a comment, which clients ignore and which keeps a connection alive. The text must
// not hold a line break.
func (w *Writer) InsertComment(text string) {
	w.begin()
	if w.closed {
		return
	}
	w.out = append(append(append(w.out, ": "...), text...), "\n\n"...)
}

// InsertDone writes [DONE]; what follows is dropped.
func (w *Writer) InsertDone() {
	w.begin()
	if !w.closed {
		w.done()
	}
}

func (w *Writer) done() {
	w.out = append(w.out, "data: [DONE]\n\n"...)
	w.state, w.closed = observed(w.state, nil, []byte("[DONE]"))
}

// End tells that the upstream's stream is over, in order or not: a nil error stands for the end of its
// body. It writes [DONE] where it is due and returns the last state: Done, Failed or Truncated.
func (w *Writer) End(err error) State {
	w.begin()
	switch {
	case w.state == Done || w.state == Failed:
	case err == nil && w.state == Finished:
		w.done()
	default:
		w.state = Truncated
	}
	return w.state
}

func (w *Writer) observe(name, data []byte) {
	w.state, w.closed = observed(w.state, name, data)
}

// observed returns the state behind an event, and whether nothing may follow it.
func observed(s State, name, data []byte) (next State, closed bool) {
	switch {
	case IsDone(data):
		if s != Failed {
			s = Done
		}
		return s, true
	case s == Failed:
	case isError(name) || hasError(data):
		s = Failed
	case s == Done:
	case isLast(name, data):
		s = Done
	case s == Running && finishes(data):
		s = Finished
	}
	return s, false
}

// IsDone reports whether data is the end mark of a stream. Official SDKs look at its front only.
func IsDone(data []byte) bool { return bytes.HasPrefix(data, []byte("[DONE]")) }

func isError(name []byte) bool { return string(name) == "error" }

// hasError reports whether data is an error: an object that begins with a member error that is not null.
// Every server known to send one in a stream sends nothing before it.
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

// isLast reports whether an event is the last of a Responses API stream, which has no [DONE]. The name
// says it, or the type where it stands first.
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

// finishes reports whether data has a member finish_reason that is a string and not empty. In a text its
// quotes would be escaped.
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

// memberValue returns b, which follows a member's name, from the member's value on, nil without a colon.
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

// rewrite writes a unit line by line, with data on one line in the place of its first data line, without
// the name error, and with LF for each bare CR.
func (w *Writer) rewrite(e Event, data []byte) {
	unnamed := isError(e.Name)
	written := false
	for raw := e.Raw; len(raw) > 0; {
		end := bytes.IndexAny(raw, "\r\n")
		width, mark := 1, "\n"
		if raw[end] == '\r' && end+1 < len(raw) && raw[end+1] == '\n' {
			width, mark = 2, "\r\n"
		}
		line := raw[:end]
		raw = raw[end+width:]
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch {
		case string(name) == "data" && written, string(name) == "event" && unnamed:
			continue
		case string(name) == "data":
			written = true
			w.out = appendData(w.out, line[len(name):], data)
		default:
			w.out = append(w.out, line...)
		}
		w.out = append(w.out, mark...)
	}
}

// appendData appends a data line with its colon and blank as in old, what followed the name.
func appendData(dst, old, data []byte) []byte {
	dst = append(dst, "data"...)
	switch {
	case bytes.HasPrefix(old, []byte(": ")), len(data) > 0 && (len(old) == 0 || data[0] == ' ' || data[0] == '\n'):
		dst = append(dst, ": "...)
	case len(old) > 0:
		dst = append(dst, ':')
	}
	return appendLine(dst, data)
}

// appendLine appends data with a blank for each line break.
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
