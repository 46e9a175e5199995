package redact

import (
	"bytes"
	"slices"

	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// Stream restores a streamed response and passes it on. A placeholder may be split at any point
// between the texts of two chunks. A possible beginning is held back, separately for each text of
// each choice, and leaves with the next piece of that text or, at the latest, before the choice or
// output item is finished.
type Stream struct {
	v     *Vault
	next  response.Sink
	body  Body // for everything but the texts that continue
	texts []text
	tails []tail // the texts that hold something back
	out   []byte // the restored data of the event
	line  []byte
	ahead response.Chunk
}

// Limits of what is held back.
const (
	// Texts that hold something back at a time: two of each of 128 choices. A placeholder split in
	// a further one is not restored.
	maxTails = 256
	maxFrame = 4 << 10 // bytes of an event for which text is held back by repeating the event
)

// key identifies a text of a stream; its twin has a key of its own.
type key struct {
	like response.Delta
	twin bool
}

func (k *key) is(o *key) bool { return k.twin == o.twin && k.like.Same(&o.like) }

// text is one piece of a text: the contents of the JSON string [start, end) of the data.
type text struct {
	key
	start, end int
}

// tail is what is held back of a text.
type tail struct {
	key
	held   []byte           // the beginning of a placeholder
	reader *response.Reader // reader of the stream
	// The event that brought it, without the text, when no other event can be built for it.
	name, open, end []byte

	due bool // must leave now
}

// Stream returns a sink that restores one response on its way to next. A nil vault returns next
// itself.
func (v *Vault) Stream(next response.Sink) response.Sink {
	if v == nil {
		return next
	}
	return &Stream{v: v, next: next, body: Body{v: v}}
}

// Put implements response.Sink. It does not allocate for a chunk without a possible placeholder,
// nor once the buffers have grown.
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

// brackets reports whether a string in data may contain the beginning of a placeholder: a bracket
// inside a string, or a backslash at its end, which may escape one.
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

// restore rewrites an event, and first passes on what must not come after it.
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

// rewrite sets out to the restored data of an event.
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

// hold stores the end of a text until its next piece, and returns the tail; nil if rest is empty.
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
		s.tails = slices.Grow(s.tails, 1)[:i+1] // reuses the buffers of a dropped tail
		s.tails[i].key = k
	}
	s.tails[i].held = append(s.tails[i].held[:0], rest...)
	return &s.tails[i]
}

// drop removes a tail; its buffers remain after the end of tails.
func (s *Stream) drop(i int) {
	n := len(s.tails) - 1
	dropped := s.tails[i]
	copy(s.tails[i:], s.tails[i+1:])
	s.tails[n] = dropped
	s.tails = s.tails[:n]
}

// flush passes on one event for each held text of a choice that ends with event e, unless e has a
// piece of that text. With a nil e everything ends.
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
	for i := 0; due > 0; { // the events passed on are parsed by the reader that parsed e
		if !s.tails[i].due {
			i++
			continue
		}
		s.pass(&s.tails[i])
		s.drop(i)
		due--
	}
}

// pass passes on what is held back of a text.
func (s *Stream) pass(t *tail) {
	switch {
	case len(t.open) > 0:
		s.line = append(append(append(s.line[:0], t.open...), t.held...), t.end...)
	case t.twin: // leaves with its text
		return
	default:
		t.held = unescaped(t.held)
		s.line = t.reader.AppendDelta(s.line[:0], t.like, t.held)
	}
	s.ahead.Build(string(t.name), s.line, t.reader)
	s.next.Put(&s.ahead)
}
