package guard

import (
	"slices"

	"signalbox/stream/check"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// Put implements response.Sink: it processes one unit of the upstream's stream.
func (s *stream) Put(c *response.Chunk) {
	if s.over || s.cutting {
		return
	}
	if r := c.Reader(); r != nil {
		s.in = r
	}
	s.now.reset(c.Event)
	s.now.chunk = c
	s.moved = true
	switch {
	case sse.IsDone(c.Data):
		s.done()
	case s.idle, !c.IsMessage():
		s.pass(c) // clients see no content in it
	default:
		s.message(c.Content())
	}
	s.relieve()
	if s.moved {
		s.release()
	}
}

func (s *stream) done() {
	if s.idle {
		s.pass(s.now.chunk)
		s.over = true
		return
	}
	s.endHalves(s.judge)
	s.close(response.Everything)
	s.settle()
	s.now.choice, s.now.done = response.Everything, true
	if s.Mode > Observe {
		s.await(response.Everything)
	}
	s.dispatch()
	s.over = true
}

// message processes an event with JSON.
func (s *stream) message(a *response.Event) {
	it := &s.now
	it.bare, it.forged = a.Bare(), s.Summary && a.Extension.Present()
	for i := range a.Deltas {
		d := &a.Deltas[i]
		switch {
		case s.checked(d.Kind):
			s.text(it, i, d, a.Shape)
		case a.Shape == response.Chat && (d.Kind == response.Tool || d.Kind == response.ToolName):
			s.toolCall(d.Choice)
		}
	}
	it.spelled = s.Mode == Hold && a.Spelled() // the texts may have changed the mode
	s.resolve(a)
	for i := range a.Finishes {
		s.finished(&a.Finishes[i])
	}
	if a.Failed {
		it.fails, s.broken = true, true
		s.endHalves(s.leave)
		s.abandon(response.Everything)
	}
	s.settle()
	if a.Shape == response.Opaque || a.Unread {
		s.unread()
	}
	it.choice = s.order(a)
	s.last(a)
	s.faulty = s.faulty || a.Failed
	s.dispatch()
}

// toolCall ends the text of a choice that calls a tool, because the text must not wait for the end
// of the call. If verdicts may end the answer, the call waits for them: a client runs a call that
// it has received, whatever happens to the answer.
func (s *stream) toolCall(choice int) {
	if slices.Contains(s.now.calls, choice) {
		return
	}
	s.now.calls = append(s.now.calls, choice)
	for _, ln := range s.lanes {
		if ln.choice == choice && !ln.closed {
			s.enter(ln, ln.close())
			s.now.moves = true
		}
	}
	if s.limit > 0 || s.Mode == Hold || s.blocks(check.Unchecked) {
		s.await(choice)
	}
}

// finished processes the end of a choice. It is ignored for a choice that continued after an
// earlier end, because servers send several.
func (s *stream) finished(f *response.Finish) {
	choice := f.Choice
	s.now.stops = append(s.now.stops, choice)
	if slices.Contains(s.goesOn, choice) {
		return
	}
	if !slices.Contains(s.stopped, choice) {
		s.stopped = append(s.stopped, choice)
	}
	s.now.ends = append(s.now.ends, choice)
	if f.Broken() {
		s.abandon(choice)
		return
	}
	s.close(choice)
}

// resume records text of a choice that had ended. Such a choice ends with the stream.
func (s *stream) resume(choice int) {
	if len(s.stopped) == 0 || !slices.Contains(s.stopped, choice) || slices.Contains(s.goesOn, choice) {
		return
	}
	s.goesOn = append(s.goesOn, choice)
	s.ended = slices.DeleteFunc(s.ended, func(c int) bool { return c == choice })
}

// text processes one text that is checked.
func (s *stream) text(it *item, delta int, d *response.Delta, shape response.Shape) {
	part := 0
	if shape == response.Response || d.Whole {
		part = d.Part
	}
	if d.Whole {
		ln := s.whole(d, part)
		it.wholes = append(it.wholes, passage{delta: delta, lane: ln, to: ln.fed})
		return
	}
	if s.Reasoning && d.Kind == response.Text {
		s.closeThoughts(d.Choice)
	}
	if shape != response.Response {
		s.resume(d.Choice)
	}
	ln := s.lane(d, part)
	ln.like, ln.last, ln.streamed = *d, it, true
	ln.like.Text = nil
	from, tail, free, within := ln.fed, ln.tail, ln.free(), ln.within()
	s.look(ln, d.Text)
	list := ln.feed(d.Text)
	it.texts = append(it.texts, passage{
		delta: delta, lane: ln, from: from, to: ln.fed, text: d.Text, ahead: tail, tail: ln.tail, free: free, within: within,
	})
	s.enter(ln, list)
	before := ln.clear
	s.advance(ln)
	it.moves = it.moves || ln.clear != before
}

// advance releases text as far as the verdicts allow.
func (s *stream) advance(ln *lane) {
	if !s.fallen(ln.choice) {
		ln.advance()
	}
}

// closeThoughts ends the reasoning of a choice when its answer begins, so that the answer does not
// wait for more reasoning.
func (s *stream) closeThoughts(choice int) {
	for _, ln := range s.lanes {
		if ln.choice == choice && ln.kind == response.Reasoning && !ln.closed {
			s.enter(ln, ln.close())
			s.now.moves = true
		}
	}
}

// whole returns the lane of a text in one piece: the lane whose deltas brought it, or a new one.
func (s *stream) whole(d *response.Delta, part int) *lane {
	ln := s.lane(d, part)
	if ln.is(d.Text) {
		s.enterLast(ln)
		return ln
	}
	if ln.fed > 0 {
		s.enterLast(ln)
		ln = s.newLane(d, part)
	}
	s.look(ln, d.Text)
	s.enter(ln, ln.feed(d.Text))
	s.enterLast(ln)
	return ln
}

// order returns the choice whose order an event has to keep. Events of the Responses API are
// numbered and keep their order.
func (s *stream) order(a *response.Event) int {
	it := &s.now
	if a.Shape != response.Chat && a.Shape != response.Completion || a.Failed {
		return response.Everything
	}
	choice := anyTime
	add := func(c int) {
		if choice != anyTime && choice != c {
			c = response.Everything
		}
		choice = c
	}
	for i := range a.Deltas {
		add(a.Deltas[i].Choice)
	}
	for _, c := range it.stops {
		add(c)
	}
	for _, c := range it.calls {
		add(c)
	}
	if choice == anyTime && a.HasUsage {
		return response.Everything // the total at the end
	}
	return choice
}

// last makes an event wait for verdicts if it must: the end of a choice, which a mark or a cut has
// to precede and which carries the summary, and a text in one piece.
func (s *stream) last(a *response.Event) {
	it := &s.now
	if s.Mode <= Observe && !s.Summary {
		return
	}
	for _, c := range it.ends {
		s.await(c)
	}
	if s.Mode <= Observe {
		return
	}
	for _, p := range it.wholes {
		it.waits = append(it.waits, wait{p.lane, p.lane.entered})
		it.last = true
	}
	if a.Failed {
		s.await(response.Everything)
	}
}

// await makes the event wait for the verdicts on a choice.
func (s *stream) await(choice int) {
	it := &s.now
	it.last = true
	for _, ln := range s.lanes {
		if (choice == response.Everything || ln.choice == choice) && len(ln.open) > 0 {
			it.waits = append(it.waits, wait{ln, ln.entered})
		}
	}
}

// dispatch writes the current event, or keeps it until it may go.
func (s *stream) dispatch() {
	it := &s.now
	if s.cutting {
		if it.fails {
			s.queue.putCopy(it)
		}
		return
	}
	if s.Mode == Hold && len(it.texts) > 1 {
		if s.split(it); it.bare {
			return
		}
	}
	if !s.queue.blocks(it.choice) && it.ready() && s.free(it) {
		s.emit(it)
		return
	}
	s.queue.putCopy(it)
	s.moved = it.moves || len(it.texts) != 1 || len(it.stops) > 0
}

func (it *item) ready() bool {
	return !slices.ContainsFunc(it.waits, func(w wait) bool { return w.lane.passed < w.claims })
}

// free reports whether all text of an item may go.
func (s *stream) free(it *item) bool {
	if s.Mode != Hold || it.strip {
		return true
	}
	for i := range it.texts {
		p := &it.texts[i]
		s.advance(p.lane)
		if p.lane.clear < p.to {
			return false
		}
	}
	return true
}

// split lets each of several texts of an event go separately, as soon as it may. The event follows
// without them, unless it holds nothing else, such as reasoning that is not checked.
func (s *stream) split(it *item) {
	a := s.back.Read(it.event.Data)
	it.bare = it.bare && len(a.Deltas) == len(it.texts)
	for _, p := range it.texts {
		s.keepText(p, a.Deltas[p.delta].Text)
	}
	it.strip = true
}

// keepText queues text that is separated from its event.
func (s *stream) keepText(p passage, text []byte) {
	it := s.queue.take()
	it.reset(sse.Event{})
	it.choice, it.synthetic = p.lane.choice, true
	it.spare = append(it.spare, text...)
	it.texts = append(it.texts, p)
	s.queue.put(it)
}
