package cache

import (
	"bytes"
	"errors"
	"time"
)

// ErrTooLarge reports an answer that exceeds the maximum size.
var ErrTooLarge = errors.New("answer too large to be kept")

// maxPieces is the maximum number of times stored for one stream; later events belong to the last
// piece.
const maxPieces = 4096

// Recorder records an answer while it passes. It belongs to one goroutine. Write costs one copy.
type Recorder struct {
	answer   Answer
	streamed bool
	limit    int
	now      func() time.Time
	start    time.Time
	over     bool
}

// NewRecorder returns a Recorder for an answer of at most limit bytes. now returns the time;
// streamed means that the answer is a stream of events.
func NewRecorder(limit int, now func() time.Time, streamed bool) *Recorder {
	return &Recorder{streamed: streamed, limit: limit, now: now, start: now()}
}

// Write records the next bytes; for a stream whole events. It never fails: an answer that becomes
// too long is dropped, which Finish reports.
func (r *Recorder) Write(p []byte) (int, error) {
	if r.over || len(r.answer.Data)+len(p) > r.limit {
		r.over, r.answer.Data, r.answer.Pieces = true, nil, nil
		return len(p), nil
	}
	r.answer.Data = append(r.answer.Data, p...)
	return len(p), nil
}

// Mark records the arrival time of what was written last.
func (r *Recorder) Mark() {
	n, end := len(r.answer.Pieces), len(r.answer.Data)
	if end == 0 || n > 0 && r.answer.Pieces[n-1].End == end {
		return
	}
	after := r.now().Sub(r.start)
	if n == maxPieces || n > 0 && r.answer.Pieces[n-1].After == after {
		r.answer.Pieces[n-1].End = end
		return
	}
	r.answer.Pieces = append(r.answer.Pieces, Piece{End: end, After: after})
}

// Finish returns the recorded answer; the caller decides whether it may be stored. The error is
// ErrTooLarge. The Recorder must not be used afterwards.
func (r *Recorder) Finish(model, route, contentType string) (*Answer, error) {
	if r.over {
		return nil, ErrTooLarge
	}
	if r.streamed {
		r.Mark()
	}
	a := &r.answer
	a.Made = r.now()
	a.Took = a.Made.Sub(r.start)
	a.Model, a.Route, a.ContentType = model, route, contentType
	a.Data = bytes.Clone(a.Data) // without unused capacity
	return a, nil
}
