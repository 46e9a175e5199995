package guard

import (
	"bytes"
	"slices"

	"signalbox/stream/claims"
	"signalbox/stream/response"
)

// cutReason is the finish_reason of an answer that the guard ends.
const cutReason = response.FinishFilter

// mark inserts the mark of a claim after its text. If the text has reached code or stopped within a
// word, the mark waits for what follows.
func (s *stream) mark(r *record) {
	it, ln := r.lane.last, r.lane
	inText := !s.beside(ln) && ln.streamed
	switch {
	case r.claim.Place == claims.Inside:
		r.place, inText = claims.Inside, false
	case inText && ln.closed:
		r.place = ln.split.Place()
	}
	switch {
	case inText && it == &s.now && s.markWithin(r):
	case inText && (!ln.free() || ln.within()):
		ln.owed = append(ln.owed, r)
	case it != nil:
		it.marks = append(it.marks, r)
	default:
		s.insertMark(r, ln.fed, ln.tail)
	}
}

// markWithin inserts a mark into the text of the current event, where the claim ends. If the claim
// ended before this text, because only what follows shows that a sentence is over, the mark is at
// the start of the text or, within a word, after the word. It returns false if there is no place
// for a mark.
func (s *stream) markWithin(r *record) bool {
	var p *passage
	for i := range s.now.texts {
		if p = &s.now.texts[i]; p.lane == r.lane && r.claim.Bytes.End <= p.to {
			break
		}
	}
	if r.claim.Bytes.End < p.from && !p.free {
		return false
	}
	at := max(r.claim.Bytes.End, p.from)
	if r.claim.Bytes.End < p.from && p.within {
		end, ok := wordEnd(p.text)
		if !ok {
			return false
		}
		at += end
	}
	tail := p.ahead
	if at > p.from {
		tail = p.text[at-p.from-1]
	}
	text := s.behind(tail)
	r.lane.marked = append(r.lane.marked, mark{at, text})
	s.now.inside = append(s.now.inside, splice{p.delta, at - p.from, text})
	return true
}

// settle inserts the marks that waited for the end of a code block, of a word or of the text.
func (s *stream) settle() {
	if s.cutting {
		return
	}
	for _, ln := range s.lanes {
		if len(ln.owed) == 0 || !ln.free() {
			continue
		}
		list := ln.owed
		ln.owed = nil
		for _, r := range list {
			s.mark(r)
		}
	}
}

// aside reports whether the mark of a claim is placed beside the text, because the claim ends in
// JSON or the text in code.
func (s *stream) aside(r *record) bool { return r.place == claims.Inside || s.beside(r.lane) }

// textOf returns the mark of a claim as inserted after the byte tail.
func (s *stream) textOf(r *record, tail byte) []byte {
	if r.place == claims.Behind && tail != '\n' {
		return append([]byte{'\n'}, s.bare...)
	}
	return s.behind(tail)
}

// insertMark writes an event with the mark of a claim. at is the length of the text written so far
// and tail its last byte. In the Responses API such an event can only belong to the answer's text,
// and a text that did not arrive in pieces gets its marks inside.
func (s *stream) insertMark(r *record, at int, tail byte) {
	if !r.lane.streamed || s.in.Shape() == response.Response && r.lane.kind == response.Reasoning {
		if !s.aside(r) {
			r.lane.marked = append(r.lane.marked, mark{r.claim.Bytes.End, s.marker})
		}
		return
	}
	b := s.builder()
	if !s.aside(r) {
		text := s.textOf(r, tail)
		r.lane.marked = append(r.lane.marked, mark{at, text})
		s.buf = b.AppendDelta(s.buf[:0], r.lane.like, text)
	} else {
		s.buf = extend(b.AppendDelta(s.buf[:0], r.lane.like, nil), s.appendMark(nil, r))
	}
	s.inject(b.DeltaName(), s.buf)
}

// markers are the forms of the marker.
type markers struct {
	marker []byte
	bare   []byte // in place of a claim, which has white space before it
	spaced []byte // after a space
	lined  []byte // after a line break
}

func newMarkers(marker string) markers {
	bare := bytes.TrimLeft([]byte(marker), " ")
	return markers{
		marker: []byte(marker), bare: bare,
		spaced: append(slices.Clone(bare), ' '), lined: append(slices.Clone(bare), '\n'),
	}
}

// behind returns the marker to insert after the byte tail. After white space, it ends with white
// space instead of beginning with it.
func (m *markers) behind(tail byte) []byte {
	switch {
	case len(m.bare) == len(m.marker):
	case tail == ' ':
		return m.spaced
	case tail == '\n':
		return m.lined
	}
	return m.marker
}

// cut ends the answer for the client. Text that was already released remains.
func (s *stream) cut() {
	s.queue.clear()
	s.told, s.over, s.err = true, true, nil
	s.out.Cut = true
	s.pool.observer.Action(Cut)
	var told []byte
	if s.Summary {
		told = s.summary()
	}
	b := s.builder()
	var output []byte
	if s.cuts = false; s.given != nil {
		output = s.given.Close(b, s.inject)
	}
	for _, choice := range s.open() {
		s.buf = b.AppendFinish(s.buf[:0], choice, cutReason, output)
		s.buf = extend(s.buf, told)
		s.inject(b.FinishName(), s.buf)
	}
	if s.in.Shape() != response.Response {
		if s.job.Usage != nil {
			s.buf = b.AppendUsage(s.buf[:0], s.job.Usage())
			s.inject("", s.buf)
		}
		s.inject("", []byte("[DONE]"))
	}
	s.out.State = s.state
}

// open returns the choices whose end the client has not seen.
func (s *stream) open() []int {
	if s.in.Shape() == response.Response || s.in.Shape() == response.Opaque {
		return []int{0}
	}
	var list []int
	for _, c := range s.in.Begun(nil) {
		if !slices.Contains(s.ended, c) {
			list = append(list, c)
		}
	}
	return list
}

// extend adds x_signalbox to a JSON object that has members. Without a value it adds nothing.
func extend(object, value []byte) []byte {
	if len(value) == 0 {
		return object
	}
	object = append(bytes.TrimSuffix(object, []byte("}")), `,"x_signalbox":`...)
	return append(append(object, value...), '}')
}
