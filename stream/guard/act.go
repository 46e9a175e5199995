package guard

import (
	"bytes"
	"slices"

	"signalbox/stream/answer"
)

// cutReason is the finish_reason of an answer that is ended.
const cutReason = "content_filter"

// mark marks a claim, behind its text.
func (s *stream) mark(r *record) {
	if s.MarkerAs == Text {
		r.lane.marked = append(r.lane.marked, r.claim.Bytes.End)
	}
	if it := r.lane.last; it != nil {
		it.marks = append(it.marks, r)
		return
	}
	s.insertMark(r)
}

// insertMark writes the event that marks a claim. In the Responses API it can only bring the answer's text, and a text that did
// not come in pieces gets its marks inside.
func (s *stream) insertMark(r *record) {
	if !r.lane.streamed || s.in.Shape() == answer.Response && r.lane.kind == answer.Reasoning {
		return
	}
	b := s.builder()
	if s.MarkerAs == Text {
		s.buf = b.AppendDelta(s.buf[:0], r.lane.like, s.behind(r.lane))
	} else {
		s.buf = extend(b.AppendDelta(s.buf[:0], r.lane.like, nil), appendMark(nil, r))
	}
	s.w.Insert(b.DeltaName(), s.buf)
}

// behind is the marker as it stands behind a lane's text so far: where that ends in white space, the marker has its own behind it.
func (s *stream) behind(ln *lane) []byte {
	if ln.tail != ' ' && ln.tail != '\n' || len(s.bare) == len(s.marker) {
		return s.marker
	}
	return append(append(s.spaced[:0], s.bare...), ln.tail)
}

// cut ends the answer for the client. What was let go before stands.
func (s *stream) cut() {
	s.queue.clear()
	s.told, s.over, s.err = true, true, nil
	s.out.Cut = true
	s.pool.observer.Action(Cut)
	var told []byte
	if s.Summary {
		told = s.summary(nil)
	}
	b := s.builder()
	for _, choice := range s.open() {
		s.buf = b.AppendFinish(s.buf[:0], choice, cutReason)
		s.buf = extend(s.buf, told)
		s.w.Insert(b.FinishName(), s.buf)
	}
	if s.in.Shape() != answer.Response {
		s.w.InsertDone()
	}
	s.out.State = s.w.State()
}

// open lists the choices whose end the client has not seen.
func (s *stream) open() []int {
	if s.in.Shape() == answer.Response || s.in.Shape() == answer.Opaque {
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

// inPlace is the marker as it stands in place of a claim, which has its blanks before it already.
func inPlace(marker []byte) []byte { return bytes.TrimLeft(marker, " ") }
