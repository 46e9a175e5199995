package guard

import (
	"bytes"
	"slices"

	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// builder returns the reader that creates the guard's own events. In the Responses API they must be
// consistent with what the client has received.
func (s *stream) builder() *response.Reader {
	if s.in.Shape() == response.Response {
		return &s.back
	}
	return s.in
}

// pass writes a unit to the sink. Nothing is written after [DONE].
func (s *stream) pass(c *response.Chunk) {
	if s.closed {
		return
	}
	s.state, s.closed = s.state.After(c.Name, c.Data), sse.IsDone(c.Data)
	s.wrote = true
	c.LeftOut, s.leftOut = c.LeftOut || s.leftOut, false
	if s.cuts && c.IsMessage() && s.in.Shape() == response.Response {
		if s.given == nil {
			s.given = new(response.Partial)
		}
		s.given.Add(c.Data)
	}
	s.dst.Put(c)
}

// inject writes an event of the guard.
func (s *stream) inject(name string, data []byte) {
	s.late.Build(name, data, &s.back)
	s.pass(&s.late)
}

func (s *stream) chunk(it *item) *response.Chunk {
	if it.chunk != nil {
		return it.chunk
	}
	s.late.Reset(it.event, &s.back)
	return &s.late
}

// release writes the waiting items that may go now, in order.
func (s *stream) release() {
	s.moved = false
	kept := s.kept[:0] // choices of earlier items that remain
	items := s.queue.items
	n := 0
	for _, it := range items {
		switch {
		case slices.ContainsFunc(kept, func(ahead int) bool { return blocks(ahead, it.choice) }), !it.ready(), s.cutting && it.last:
		case s.free(it):
			s.emit(it)
			s.queue.drop(it)
			continue
		default:
			s.emitFront(it)
		}
		items[n] = it
		n++
		if !slices.Contains(kept, it.choice) {
			kept = append(kept, it.choice)
		}
	}
	clear(items[n:])
	s.queue.items, s.kept = items[:n], kept
}

func (s *stream) emit(it *item) {
	switch {
	case it.synthetic:
		p := it.texts[0]
		s.emitText(p, it.spare)
	case it.done:
		s.total()
		s.pass(s.chunk(it))
	default:
		s.emitEvent(it)
	}
	for _, c := range it.ends {
		if !slices.Contains(s.goesOn, c) {
			s.ended = append(s.ended, c)
		}
	}
	for _, p := range it.texts {
		if p.lane.last == it {
			p.lane.last = nil
		}
	}
	for _, r := range it.marks {
		p := it.passage(r.lane)
		s.insertMark(r, p.to, p.tail)
	}
}

// total writes the final summary at the end of the stream if a choice continued after its own end,
// where the summary came too early.
func (s *stream) total() {
	if !s.Summary || len(s.goesOn) == 0 {
		return
	}
	b := s.builder()
	s.buf = extend(b.AppendDelta(s.buf[:0], response.Delta{Choice: s.goesOn[0]}, nil), s.summary())
	s.inject(b.DeltaName(), s.buf)
	s.goesOn = nil
}

// emitText writes text that has no event of its own, as far as it may go.
func (s *stream) emitText(p passage, text []byte) {
	text = p.lane.mend(nil, text, p.from, s.bare)
	if len(text) == 0 {
		return
	}
	r := s.builder()
	s.buf = r.AppendDelta(s.buf[:0], p.lane.like, text)
	s.inject(r.DeltaName(), s.buf)
}

// emitEvent writes an event, with its original bytes if nothing in it changes.
func (s *stream) emitEvent(it *item) {
	summed := len(it.ends) > 0 && s.Summary
	if !summed && !s.changes(it) {
		if s.in.Shape() == response.Response && s.Mode > Observe {
			s.back.Read(it.event.Data)
		}
		s.pass(s.chunk(it))
		return
	}
	a := s.back.Read(it.event.Data)
	w := response.Rewrite{Changes: s.edits(it, a), Unspelled: it.spelled}
	if it.bare && emptied(a, w.Changes) {
		s.leftOut = true
		return
	}
	switch {
	case summed:
		w.Extension = s.summary()
	case it.forged:
		w.Extension = nothing
	}
	s.buf = a.Append(s.buf[:0], w)
	c := s.chunk(it)
	c.SetData(s.buf)
	c.Unsupported = len(it.ends) > 0 && s.rejected()
	s.pass(c)
}

// nothing replaces what a server wrote into the guard's own member.
var nothing = []byte("null") //nolint:gochecknoglobals // constant

// changes reports whether an event changes, apart from a summary.
func (s *stream) changes(it *item) bool {
	if it.strip || it.forged || it.spelled || len(it.inside) > 0 || len(it.marks) > 0 && len(it.ends) > 0 {
		return true
	}
	for _, p := range it.texts {
		if s.Mode == Hold && p.lane.touches(p.from, p.to) {
			return true
		}
	}
	return slices.ContainsFunc(it.wholes, func(p passage) bool {
		return len(p.lane.refused) > 0 || len(p.lane.marked) > 0
	})
}

// edits returns the changes in the texts of an event.
func (s *stream) edits(it *item, a *response.Event) []response.Change {
	list := s.insert[:0]
	for _, p := range it.texts {
		switch {
		case it.strip:
			list = append(list, response.Change{Delta: p.delta, To: len(a.Deltas[p.delta].Text)})
		case s.Mode == Hold:
			list = p.lane.changes(list, p.delta, p.from, p.to, s.bare)
		}
	}
	for _, p := range it.wholes {
		list = p.lane.changes(list, p.delta, 0, p.to, s.bare)
		for _, m := range p.lane.marked {
			list = append(list, response.Change{Delta: p.delta, From: m.at, To: m.at, Text: m.text})
		}
	}
	for _, m := range it.inside {
		list = append(list, response.Change{Delta: m.delta, From: m.at, To: m.at, Text: m.text})
	}
	if len(it.ends) > 0 {
		list = s.markInside(it, list)
	}
	s.insert = list
	return list
}

// markInside puts the marks of an event that ends a choice into its text, because after the event
// they would be too late.
func (s *stream) markInside(it *item, list []response.Change) []response.Change {
	for _, r := range it.marks {
		if s.aside(r) {
			p := it.passage(r.lane)
			s.insertMark(r, p.to, p.tail)
		}
	}
	for _, p := range it.texts {
		var text []byte
		for _, r := range it.marks {
			if r.lane == p.lane && !s.aside(r) {
				one := s.textOf(r, p.tail)
				p.lane.marked = append(p.lane.marked, mark{p.to, one})
				text = append(text, one...)
			}
		}
		if len(text) > 0 {
			list = append(list, response.Change{Delta: p.delta, From: p.to - p.from, To: p.to - p.from, Text: text})
		}
	}
	it.marks = it.marks[:0]
	return list
}

// emptied reports whether the changes leave no text in an event.
func emptied(a *response.Event, list []response.Change) bool {
	left := 0
	for i := range a.Deltas {
		left += len(a.Deltas[i].Text)
	}
	for _, c := range list {
		left -= c.To - c.From - len(c.Text)
	}
	return left <= 0
}

// emitFront writes the part of an item's text that is free to go. The event goes with this part,
// and the rest follows separately.
func (s *stream) emitFront(it *item) {
	if len(it.texts) != 1 || it.last || it.strip {
		return
	}
	p := &it.texts[0]
	n := p.lane.clear - p.from
	if n <= 0 || s.in.Shape() == response.Response && p.lane.kind == response.Reasoning {
		// In the Responses API the guard has no event of its own for reasoning.
		return
	}
	if it.synthetic {
		s.emitText(passage{delta: p.delta, lane: p.lane, from: p.from, to: p.lane.clear}, it.spare[:n])
		it.spare = append(it.spare[:0], it.spare[n:]...)
	} else {
		s.emitCut(it, n)
	}
	p.from += n
}

// emitCut writes an event with the first n bytes of its text, and turns the item into the remaining
// text.
func (s *stream) emitCut(it *item, n int) {
	p := it.texts[0]
	a := s.back.Read(it.event.Data)
	text := a.Deltas[p.delta].Text
	list := p.lane.changes(s.insert[:0], p.delta, p.from, p.from+n, s.bare)
	if k := len(list); k > 0 && list[k-1].To == n {
		list[k-1].To = len(text)
	} else {
		list = append(list, response.Change{Delta: p.delta, From: n, To: len(text)})
	}
	s.insert = list
	rest := bytes.Clone(text[n:])
	if !it.bare || !emptied(a, list) {
		s.buf = a.Append(s.buf[:0], response.Rewrite{Changes: list, Unspelled: it.spelled})
		c := s.chunk(it)
		c.SetData(s.buf)
		s.pass(c)
	} else {
		s.leftOut = true
	}
	s.queue.bytes -= it.size()
	it.spare = append(it.spare[:0], rest...)
	s.queue.bytes += it.size()
	it.event, it.synthetic, it.bare = sse.Event{}, true, true
}
