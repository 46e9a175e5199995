package redact

import (
	"bytes"
	"slices"

	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// Stream restores an answer that is a stream and passes it on. A placeholder may be cut anywhere
// between the texts of two chunks. What may be its front is held back, for each text of each choice
// by itself, and leaves with the next piece of that text or, at the latest, before the choice, or
// the output item, is finished.
type Stream struct {
	v     *Vault
	next  response.Sink
	body  Body // restores what is no text that goes on
	texts []text
	tails []tail // those that hold something
	out   []byte // the data of the event, restored
	line  []byte
	ahead response.Chunk
}

// The bounds of what is held back.
const (
	maxTails = 64      // texts that hold something at once; what is cut in a further one passes
	maxFrame = 4 << 10 // bytes of an event whose text is held back by repeating the event
)

// key names a text of a stream; that of a twin by itself.
type key struct {
	like response.Delta
	twin bool
}

func (k *key) is(o *key) bool { return k.twin == o.twin && k.like.Same(&o.like) }

// text is a piece of one: the inside of the JSON string [start, end) of the data.
type text struct {
	key
	start, end int
}

// tail is what a text holds back.
type tail struct {
	key
	held   []byte           // the front of a placeholder
	reader *response.Reader // of the stream
	// The event that brought it, but for the text, where no other can be built.
	name, open, end []byte

	due bool // it leaves now
}

// Stream returns what restores one answer on its way to next. A nil vault gives next itself.
func (v *Vault) Stream(next response.Sink) response.Sink {
	if v == nil {
		return next
	}
	return &Stream{v: v, next: next, body: Body{v: v}}
}

// Put implements response.Sink. A chunk without what brackets looks for costs no allocation, nor
// does anything once the buffers have grown.
func (s *Stream) Put(c *response.Chunk) {
	switch {
	case sse.IsDone(c.Data):
		s.flush(nil)
	case !c.IsMessage(), len(s.tails) == 0 && !brackets(c.Data):
	default:
		s.restore(c)
	}
	s.next.Put(c)
}

// brackets reports whether a string of data may hold the front of a placeholder: a bracket that
// opens no list, or at its end a backslash, which may escape one.
func brackets(data []byte) bool {
	inside := false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			inside = !inside
		case '\\':
			if i++; i+1 < len(data) && data[i] == '\\' && data[i+1] == '"' {
				return true
			}
		case '[':
			if inside {
				return true
			}
		}
	}
	return false
}

// restore changes an event, and passes on ahead of it what must not come later.
func (s *Stream) restore(c *response.Chunk) {
	e := c.Content()
	s.texts = s.texts[:0]
	for i := range e.Deltas {
		d := &e.Deltas[i]
		if !d.GoesOn() {
			continue
		}
		s.texts = append(s.texts, text{key{like: d.Like()}, d.At.Start, d.At.End})
		if twin := d.Twin(); twin.Present() {
			s.texts = append(s.texts, text{key{d.Like(), true}, twin.Start, twin.End})
		}
	}
	slices.SortFunc(s.texts, func(a, b text) int { return a.start - b.start })
	s.rewrite(c, e)
	s.flush(e)
	if !bytes.Equal(s.out, c.Data) {
		c.SetData(s.out)
	}
}

// rewrite makes out of the data of an event.
func (s *Stream) rewrite(c *response.Chunk, e *response.Event) {
	data := c.Data
	s.out, s.body = s.out[:0], Body{v: s.v, out: s.body.out, in: s.body.in, held: s.body.held[:0]}
	pos := 0
	for i := range s.texts {
		t := &s.texts[i]
		s.out = append(s.out, s.body.Feed(data[pos:t.start])...)
		pos = t.end
		framed := e.Shape == response.Response
		held := s.tailOf(&t.key)
		whole := e.Ends(t.like.Choice) || len(s.tails) >= maxTails && held == nil ||
			framed && len(data) > maxFrame
		nested := t.like.JSON() || t.like.Kind == response.Text && s.v.json
		s.line = append(append(s.line[:0], held...), data[t.start:t.end]...)
		var rest []byte
		s.out, rest = s.v.restore(s.out, s.line, nested, whole)
		if to := s.hold(t.key, rest); to != nil {
			to.reader, to.name, to.open = c.Reader(), to.name[:0], to.open[:0]
			if framed {
				to.name = append(to.name, c.Name...)
				to.open = append(to.open, data[:t.start]...)
				to.end = append(to.end[:0], data[t.end:]...)
			}
		}
	}
	s.out = append(append(s.out, s.body.Feed(data[pos:])...), s.body.Rest()...)
}

func (s *Stream) tailOf(k *key) []byte {
	for i := range s.tails {
		if s.tails[i].is(k) {
			return s.tails[i].held
		}
	}
	return nil
}

// hold keeps the end of a text for its next piece, and returns where; nil for an empty one.
func (s *Stream) hold(k key, rest []byte) *tail {
	i := slices.IndexFunc(s.tails, func(t tail) bool { return t.is(&k) })
	switch {
	case len(rest) == 0 && i < 0:
		return nil
	case len(rest) == 0:
		s.drop(i)
		return nil
	case i < 0:
		i = len(s.tails)
		s.tails = slices.Grow(s.tails, 1)[:i+1] // with the buffers of one that was dropped
		s.tails[i].key = k
	}
	s.tails[i].held = append(s.tails[i].held[:0], rest...)
	return &s.tails[i]
}

// drop forgets a tail; its buffers stay behind the end of tails.
func (s *Stream) drop(i int) {
	n := len(s.tails) - 1
	dropped := s.tails[i]
	copy(s.tails[i:], s.tails[i+1:])
	s.tails[n] = dropped
	s.tails = s.tails[:n]
}

// flush passes on an event of its own for each text of a choice that ends with event e, and has no
// piece in it, but something held back. Without an event everything ends.
func (s *Stream) flush(e *response.Event) {
	due := 0
	for i := range s.tails {
		t := &s.tails[i]
		t.due = e == nil || e.Ends(t.like.Choice) &&
			!slices.ContainsFunc(s.texts, func(x text) bool { return x.is(&t.key) })
		if t.due {
			due++
		}
	}
	for i := 0; due > 0; { // what is passed on is read by what has read e
		if !s.tails[i].due {
			i++
			continue
		}
		s.pass(&s.tails[i])
		s.drop(i)
		due--
	}
}

// pass passes on what a text holds back.
func (s *Stream) pass(t *tail) {
	switch {
	case len(t.open) > 0:
		s.line = append(append(append(s.line[:0], t.open...), t.held...), t.end...)
	case t.twin: // comes with its text
		return
	default:
		t.held = unescaped(t.held)
		s.line = t.reader.AppendDelta(s.line[:0], t.like, t.held)
	}
	s.ahead.Build(string(t.name), s.line, t.reader)
	s.next.Put(&s.ahead)
}
