package cache

import (
	"time"

	"signalbox/internal/openai"
)

// Answer is a cached response of an upstream. It is immutable once it is stored; Data must not be
// modified.
type Answer struct {
	Model       string // the configured name of the model
	Route       string // of the decision that led to it
	ContentType string
	Headers     []Header      // of the response, about how it was produced; sent again with it
	Data        []byte        // the body, or the concatenated events of the stream
	Pieces      []Piece       // for a stream: where its pieces end; none for a whole body
	Made        time.Time     // when it was complete
	Took        time.Duration // from the request to its end
}

// Piece is a sequence of whole events that arrived together.
type Piece struct {
	End   int           // offset of its end in Data
	After time.Duration // since the request was sent
}

// Streamed reports whether the answer is a stream.
func (a *Answer) Streamed() bool { return len(a.Pieces) > 0 }

// overhead is the approximate size of an Answer without its data and pieces, in bytes.
const overhead = 256

// Size returns the memory used by the answer, in bytes.
func (a *Answer) Size() int {
	n := overhead + len(a.Data) + 16*len(a.Pieces) + len(a.Model) + len(a.Route) + len(a.ContentType)
	for i := range a.Headers {
		n += 32 + len(a.Headers[i].Name) + len(a.Headers[i].Value)
	}
	return n
}

// As returns the answer with other data: the equivalent body or, if streamed is set, stream. If a
// stream remains a stream, the range gone is left out.
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
