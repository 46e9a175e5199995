package proxy

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"signalbox/proxy/fault"
	"signalbox/proxy/redact"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

// spellStream turns a whole stream of our own.
func (w *reply) spellStream(events []byte) []byte {
	if !w.translates() {
		return events
	}
	s := response.TakeStream(response.StreamOptions{})
	defer s.Release()
	client := clientSink{w: w}
	s.Feed(events)
	s.End(io.EOF)
	for c := s.Next(); c != nil; c = s.Next() {
		client.Put(c)
	}
	return client.out
}

// clientSink sends a stream to the client.
type clientSink struct {
	w   *reply
	out []byte
	now time.Time // when what comes next came; zero where that is longer ago
}

var sinks = sync.Pool{New: func() any { return new(clientSink) }} //nolint:gochecknoglobals // buffers, no state

// takeSink returns the sink of a client, which release gives back.
func takeSink(w *reply) *clientSink {
	s := sinks.Get().(*clientSink) //nolint:errcheck,forcetypeassert // only sinks are in it
	*s = clientSink{w: w, out: s.out[:0]}
	return s
}

func (s *clientSink) release() {
	s.w = nil
	sinks.Put(s)
}

// Put implements response.Sink.
func (s *clientSink) Put(c *response.Chunk) {
	if s.w != nil && s.w.translates() {
		s.out = s.w.messages.Put(s.out, c)
		return
	}
	s.out = append(s.out, c.Raw...)
}

// Flush implements guard.Sink.
func (s *clientSink) Flush() error {
	if len(s.out) == 0 {
		return s.w.unreadable()
	}
	if s.now.IsZero() {
		s.now = time.Now()
	}
	err := s.w.send(s.out, s.now)
	s.now = time.Time{}
	if s.out = s.out[:0]; cap(s.out) > keptOut {
		s.out = nil
	}
	if err != nil {
		return clientError(err)
	}
	return s.w.unreadable()
}

// keptOut is how much of a buffer that has grown is kept, in bytes.
const keptOut = 64 << 10

// clientError classifies a failed write.
func clientError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.ErrClientStalled
	}
	return fault.ErrClientGone
}

// drain passes on what comes after the last event.
func drain(u *upstream.Response, client *clientSink) {
	u.Drain(func() {
		u.Deliver(client)
		_ = client.Flush() // the client has its response, and may be gone
	})
}

// copyBody passes on a body that is no stream of events, through r when hidden values are to be put
// back.
func copyBody(w *reply, u *upstream.Response, t *meter, r *redact.Body) error {
	for {
		piece, err := u.Piece(), u.Err()
		if len(piece) > 0 {
			w.renew(time.Now())
			if err := send(w, r.Feed(piece)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			t.Body(u.Previous(), piece)
			return send(w, r.Rest())
		}
		if err != nil {
			return &fault.InterruptedError{Err: err}
		}
		if u.Length < 0 {
			if err := w.rc.Flush(); err != nil {
				return clientError(err)
			}
		}
		u.Next()
	}
}

// send writes a part of a body.
func send(w *reply, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return clientError(err)
	}
	return nil
}
