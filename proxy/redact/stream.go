package redact

import (
	"bytes"
	"slices"
	"strconv"
)

// maxEvent bounds an event that is put together from pieces, in bytes; a longer one passes as it is.
const maxEvent = 16 << 20

// Stream restores an answer that is a stream of chunks of chat completions or completions, or of events of
// the Responses API, in pieces of any size. A placeholder may be cut anywhere between the texts of two chunks. What may be its front is held back,
// for each field of each choice by itself, and leaves with the next text of that field or, at the
// latest, before the choice, or the output item, is finished. nil passes everything on as it is.
type Stream struct {
	v *Vault

	pending []byte // of an event that is not whole yet
	seen    seen   // of pending
	out     []byte
	line    []byte // the data of an event of several lines
	text    []byte // the restored text of a field
	chunk   chunk
	before  []byte // what stands around the data of the event being restored
	behind  []byte
	tails   []tail // those that hold something
	head    []byte // members of the last chunk that held something back: `"id":"...",`
}

// maxTails bounds the fields that hold something back at once. Further ones hold nothing: a placeholder
// that is cut passes as it is.
const maxTails = 64

// maxHead bounds head, in bytes.
const maxHead = 4 << 10

// tail is what a field holds back.
type tail struct {
	key  fieldKey
	text []byte // the front of a placeholder
	// What stands around the text in the event that brought it, for fields that are framed.
	open, end []byte
}

// seen says how far the search for the end of an event went.
type seen struct {
	line int // where the line begins that is not whole yet
	next int // where to look on
}

// Stream returns a restorer for one answer. A nil vault gives a nil Stream.
func (v *Vault) Stream() *Stream {
	if v == nil {
		return nil
	}
	return &Stream{v: v, chunk: chunk{v: v}}
}

// Feed returns the whole events that piece completes, restored. The result may be empty, may share
// memory with piece, and is valid until the next call. Events without a bracket in a text cost no
// allocation, nor does anything once the buffers have grown.
func (s *Stream) Feed(piece []byte) []byte {
	if s == nil {
		return piece
	}
	if len(s.pending) == 0 {
		used, changed := s.events(piece)
		if used < len(piece) {
			s.pending = append(s.pending, piece[used:]...)
		}
		if !changed {
			return piece[:used]
		}
		return s.out
	}
	s.pending = append(s.pending, piece...)
	used, changed := s.events(s.pending)
	if !changed {
		s.out = append(s.out[:0], s.pending[:used]...)
	}
	s.pending = slices.Delete(s.pending, 0, used)
	if len(s.pending) > maxEvent {
		s.out = append(s.out, s.pending...)
		s.pending, s.seen = s.pending[:0], seen{}
	}
	return s.out
}

// Rest returns what is left at the end of the answer: an event without its blank line, and what fields
// still hold back.
func (s *Stream) Rest() []byte {
	if s == nil {
		return nil
	}
	s.out = s.out[:0]
	if len(s.pending) > 0 {
		if !s.event(s.pending) {
			s.out = append(s.out, s.pending...)
		}
		s.pending, s.seen = s.pending[:0], seen{}
	}
	if s.holds() {
		s.flush(everyChoice)
	}
	return s.out
}

// events restores the whole events at the front of b, which begins with pending. It returns their
// length and whether anything changed; only then they are in out.
func (s *Stream) events(b []byte) (used int, changed bool) {
	s.out = s.out[:0]
	for {
		n := s.seen.eventEnd(b[used:])
		if n == 0 {
			return used, changed
		}
		event := b[used : used+n]
		switch {
		case s.event(event):
			if !changed {
				s.out = slices.Insert(s.out, 0, b[:used]...)
			}
			changed = true
		case changed:
			s.out = append(s.out, event...)
		}
		used += n
	}
}

// eventEnd returns the offset behind the first blank line of b, 0 without one. Lines end in LF, CRLF or
// CR (WHATWG HTML, section 9.2.5). Without one it goes on where it stopped when b has grown.
func (s *seen) eventEnd(b []byte) int {
	for {
		k := bytes.IndexAny(b[s.next:], "\r\n")
		if k < 0 {
			s.next = len(b)
			return 0
		}
		at := s.next + k
		end := at + 1
		switch {
		case b[at] == '\n':
		case end < len(b) && b[end] == '\n':
			end++
		case end == len(b) && at > s.line:
			s.next = at // an LF may follow
			return 0
		}
		if at == s.line {
			*s = seen{}
			return end
		}
		s.line, s.next = end, end
	}
}

// event appends a restored event to out and reports whether it did: when nothing is to change it does
// not.
func (s *Stream) event(event []byte) bool {
	data, at := s.data(event)
	switch {
	case len(data) == 0:
		return false
	case bytes.HasPrefix(data, []byte("[DONE]")):
		if !s.holds() {
			return false
		}
		s.flush(everyChoice)
		s.out = append(s.out, event...)
		return true
	case !s.holds() && !brackets(data):
		return false
	}
	s.chunk.read(data)
	if at >= 0 {
		s.before, s.behind = event[:at], event[at+len(data):]
	} else {
		s.before, s.behind = []byte("data: "), []byte("\n\n")
	}
	if !s.touched() {
		return false
	}
	if len(s.chunk.finished) > 0 {
		s.keepHead(data)
	}
	for _, c := range s.chunk.finished {
		s.flush(c)
	}
	s.out = append(s.out, s.before...)
	s.rewrite(data)
	s.out = append(s.out, s.behind...)
	return true
}

// data returns the data of an event and its offset. That of several lines is joined by blanks, which
// JSON may have wherever it has line breaks; it has no offset, -1.
func (s *Stream) data(event []byte) (data []byte, at int) {
	lines := 0
	for i := 0; i < len(event); {
		end := len(event)
		if k := bytes.IndexAny(event[i:], "\r\n"); k >= 0 {
			end = i + k
		}
		if line := event[i:end]; bytes.HasPrefix(line, []byte("data:")) {
			value := bytes.TrimPrefix(line[len("data:"):], []byte(" "))
			switch lines++; lines {
			case 1:
				data, at = value, end-len(value)
			case 2:
				s.line = append(append(append(s.line[:0], data...), ' '), value...)
			default:
				s.line = append(append(s.line, ' '), value...)
			}
		}
		i = end + 1
	}
	if lines > 1 {
		return s.line, -1
	}
	return data, at
}

// brackets reports whether a string of data may hold the front of a placeholder: a bracket that opens
// no list.
func brackets(data []byte) bool {
	inside := false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			inside = !inside
		case '\\':
			i++
		case '[':
			if inside {
				return true
			}
		}
	}
	return false
}

// holds reports whether some field holds something back.
func (s *Stream) holds() bool { return len(s.tails) > 0 }

// touched reports whether the chunk has to change: a text with a bracket, a field that holds something
// and goes on, or a choice that holds something and ends.
func (s *Stream) touched() bool {
	for i := range s.chunk.fields {
		f := &s.chunk.fields[i]
		if f.bracket || f.key.goesOn() && len(s.tailOf(f.key)) > 0 {
			return true
		}
	}
	for _, c := range s.chunk.finished {
		for i := range s.tails {
			if c == everyChoice || s.tails[i].key.choice == c {
				return true
			}
		}
	}
	return false
}

func (s *Stream) tailOf(k fieldKey) []byte {
	for i := range s.tails {
		if s.tails[i].key == k {
			return s.tails[i].text
		}
	}
	return nil
}

// full reports whether a field cannot hold anything back.
func (s *Stream) full(k fieldKey) bool { return len(s.tails) >= maxTails && s.tailOf(k) == nil }

// hold keeps text for the next chunk of a field.
func (s *Stream) hold(k fieldKey, text []byte) {
	i := slices.IndexFunc(s.tails, func(t tail) bool { return t.key == k })
	if i < 0 {
		if len(text) == 0 {
			return
		}
		i = len(s.tails)
		s.tails = slices.Grow(s.tails, 1)[:i+1] // with the buffer of a tail that was dropped
		s.tails[i].key = k
	}
	s.tails[i].text = append(s.tails[i].text[:0], text...)
	if len(text) == 0 {
		s.drop()
	}
}

// drop forgets the fields that hold nothing any more; their buffers stay behind the end of tails.
func (s *Stream) drop() {
	n := 0
	for i := range s.tails {
		if len(s.tails[i].text) > 0 {
			s.tails[n], s.tails[i] = s.tails[i], s.tails[n]
			n++
		}
	}
	s.tails = s.tails[:n]
}

// everyChoice stands for all choices.
const everyChoice = -1

// flush appends an event of its own for each field of a choice that holds something back and does not go
// on in the present chunk.
func (s *Stream) flush(c int) {
	for i := range s.tails {
		t := &s.tails[i]
		if c != everyChoice && (t.key.choice != c || s.goesOn(t.key)) {
			continue
		}
		if t.key.framed() {
			s.out = append(append(append(s.out, t.open...), t.text...), t.end...)
			t.text = t.text[:0]
			continue
		}
		s.out = append(append(s.out, "data: {"...), s.head...)
		s.out = strconv.AppendInt(append(s.out, `"choices":[{"index":`...), int64(t.key.choice), 10)
		s.out = append(s.out, ',')
		if t.key.kind == argumentsField || t.key.kind == nameField {
			s.out = strconv.AppendInt(append(s.out, `"delta":{"tool_calls":[{"index":`...), int64(t.key.tool), 10)
		}
		wrap := wraps[t.key.kind]
		s.out = append(append(append(s.out, wrap[0]...), t.text...), wrap[1]...)
		s.out = append(s.out, `,"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
		t.text = t.text[:0]
	}
	s.drop()
}

func (s *Stream) goesOn(k fieldKey) bool {
	for i := range s.chunk.fields {
		if s.chunk.fields[i].key == k {
			return true
		}
	}
	return false
}

// keepHead remembers the members that every chunk of the stream repeats.
func (s *Stream) keepHead(data []byte) {
	s.head = s.head[:0]
	for _, m := range s.chunk.members {
		if len(s.head)+m[1]-m[0] < maxHead {
			s.head = append(append(s.head, data[m[0]:m[1]]...), ',')
		}
	}
}

// frame keeps what stands around a text that is held back.
func (s *Stream) frame(f *field, data []byte) {
	for i := range s.tails {
		if t := &s.tails[i]; t.key == f.key && f.key.framed() {
			t.open = append(append(t.open[:0], s.before...), data[:f.start]...)
			t.end = append(append(t.end[:0], data[f.end:]...), s.behind...)
		}
	}
}

// rewrite appends data with its texts restored.
func (s *Stream) rewrite(data []byte) {
	pos := 0
	for i := range s.chunk.fields {
		f := &s.chunk.fields[i]
		held := s.tailOf(f.key)
		if !f.bracket && len(held) == 0 {
			continue
		}
		_, ends := slices.BinarySearch(s.chunk.finished, f.key.choice)
		whole := ends || !f.key.goesOn() || s.full(f.key) || f.key.framed() && len(data) > maxHead
		s.text = append(append(s.text[:0], held...), data[f.start:f.end]...)
		s.out = append(s.out, data[pos:f.start]...)
		var rest []byte
		s.out, rest = s.v.restore(s.out, s.text, f.key.nested() || f.key.answer() && s.v.json, whole)
		s.hold(f.key, rest)
		if len(rest) > 0 {
			s.keepHead(data)
			s.frame(f, data)
		}
		pos = f.end
	}
	s.out = append(s.out, data[pos:]...)
}
