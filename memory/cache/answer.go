package cache

import (
	"time"

	"signalbox/internal/openai"
)

// Answer is what an upstream answered. It is immutable once it is kept; whoever reads Data must not
// change it.
type Answer struct {
	Model       string // the name under which the model is configured
	Route       string // of the decision that led to it
	ContentType string
	Headers     []Header      // of the response that tell how the answer came about; given again with it
	Data        []byte        // the body, or the events of the stream one behind the other
	Pieces      []Piece       // of a stream: where its pieces end; none for a whole body
	Made        time.Time     // when it ended
	Took        time.Duration // from the request to the end
}

// Piece is a run of whole events that came together.
type Piece struct {
	End   int           // offset behind it in Data
	After time.Duration // since the request was sent
}

// Streamed reports whether the answer is a stream.
func (a *Answer) Streamed() bool { return len(a.Pieces) > 0 }

// overhead is about what an Answer takes beside its data and pieces, in bytes.
const overhead = 256

// Size is how much memory the answer takes, in bytes.
func (a *Answer) Size() int {
	n := overhead + len(a.Data) + 16*len(a.Pieces) + len(a.Model) + len(a.Route) + len(a.ContentType)
	for i := range a.Headers {
		n += 32 + len(a.Headers[i].Name) + len(a.Headers[i].Value)
	}
	return n
}

// As returns the answer with other data: those that it amounts to as a body or, streamed, as a
// stream. Of a stream that stays one, what stood at gone is left out.
func (a *Answer) As(data []byte, streamed bool, gone openai.Span) *Answer {
	out := *a
	out.Data = data
	switch {
	case !streamed:
		out.Pieces, out.ContentType = nil, "application/json"
	case !a.Streamed():
		out.Pieces, out.ContentType = []Piece{{End: len(data)}}, "text/event-stream; charset=utf-8"
	case gone.Present():
		out.Pieces = nil
		for _, p := range a.Pieces {
			switch {
			case p.End >= gone.End:
				p.End -= gone.End - gone.Start
			case p.End > gone.Start:
				p.End = gone.Start
			}
			if n := len(out.Pieces); n == 0 || p.End > out.Pieces[n-1].End {
				out.Pieces = append(out.Pieces, p)
			}
		}
	}
	return &out
}
