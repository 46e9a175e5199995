package guard

import (
	"bytes"
	"slices"

	"signalbox/stream/claims"
	"signalbox/stream/response"
)

// cutReason is the finish_reason of an answer that is ended.
const cutReason = response.FinishFilter

// mark marks a claim, behind its text. Where the text has come to code or into a word meanwhile, the
// mark waits for what follows.
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

// markWithin marks a claim in the text of the event that has just been read, where the claim ends,
// or at the front of that text when it ended before: only what follows tells that a sentence is
// over. Where that is within a word, it stands behind the word. It returns false where there is no
// place for a mark.
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

// settle gives marks their place that waited for the end of a block of code, of a word or of the
// text.
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

// aside reports whether the mark of a claim stands beside the text: the claim ends in JSON, or the
// text in code.
func (s *stream) aside(r *record) bool { return r.place == claims.Inside || s.beside(r.lane) }

// textOf is the mark of a claim as it stands in the text behind a byte.
func (s *stream) textOf(r *record, tail byte) []byte {
	if r.place == claims.Behind && tail != '\n' {
		return append([]byte{'\n'}, s.bare...)
	}
	return s.behind(tail)
}

// insertMark writes the event that marks a claim, behind the text that was written: at is its
// length and tail its last byte. In the Responses API it can only bring the answer's text, and a
// text that did not come in pieces gets its marks inside.
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
	bare   []byte // in place of a claim, which has its blanks before it already
	spaced []byte // behind a blank
	lined  []byte // behind a line break
}

func newMarkers(marker string) markers {
	bare := bytes.TrimLeft([]byte(marker), " ")
	return markers{
		marker: []byte(marker), bare: bare,
		spaced: append(slices.Clone(bare), ' '), lined: append(slices.Clone(bare), '\n'),
	}
}

// behind is the marker as it stands behind a byte: behind white space it has its own behind it.
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

// cut ends the answer for the client. What was let go before stands.
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

// open lists the choices whose end the client has not seen.
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
