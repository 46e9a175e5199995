package cache

import (
	"bytes"
	"errors"
	"time"
)

// ErrTooLarge is the error of an answer that is longer than answers may be.
var ErrTooLarge = errors.New("answer too large to be kept")

// maxPieces bounds the times that are kept of one stream; what comes later belongs to the last
// piece.
const maxPieces = 4096

// Recorder takes down an answer while it passes. It is for one goroutine. Write costs a copy.
type Recorder struct {
	answer   Answer
	streamed bool
	limit    int
	now      func() time.Time
	start    time.Time
	over     bool
}

// NewRecorder starts taking down an answer of at most limit bytes. now tells the time; streamed
// says that the answer is a stream of events.
func NewRecorder(limit int, now func() time.Time, streamed bool) *Recorder {
	return &Recorder{streamed: streamed, limit: limit, now: now, start: now()}
}

// Write takes down the next bytes, of a stream whole events. It never fails: an answer that grows
// too long is dropped, which Finish tells.
func (r *Recorder) Write(p []byte) (int, error) {
	if r.over || len(r.answer.Data)+len(p) > r.limit {
		r.over, r.answer.Data, r.answer.Pieces = true, nil, nil
		return len(p), nil
	}
	r.answer.Data = append(r.answer.Data, p...)
	return len(p), nil
}

// Mark notes the time at which what was written last had come.
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

// Finish returns what was taken down; whether it may be kept is the caller's to say. The error is
// ErrTooLarge. The Recorder must not be used any more.
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
	a.Data = bytes.Clone(a.Data) // without the room that appending left
	return a, nil
}
