package downstream

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

// Sink sends a stream to the client.
type Sink struct {
	W   *Writer
	out []byte
	num response.Numbering
	Now time.Time // arrival time of the next chunks; zero if unknown
}

var sinks = sync.Pool{New: func() any { return new(Sink) }} //nolint:gochecknoglobals // buffers, no state

// TakeSink returns a sink for a client; Release returns it to the pool.
func TakeSink(w *Writer) *Sink {
	s := sinks.Get().(*Sink) //nolint:errcheck,forcetypeassert // only sinks are in it
	s.num.Reset()
	*s = Sink{W: w, out: s.out[:0], num: s.num}
	return s
}

// Release returns the sink to the pool. It must not be used afterwards.
func (s *Sink) Release() {
	s.W = nil
	sinks.Put(s)
}

// Put implements response.Sink.
func (s *Sink) Put(c *response.Chunk) {
	if s.W != nil && s.W.Translates() {
		s.out = s.W.Messages.Put(s.out, c)
		return
	}
	s.num.Number(c)
	s.out = append(s.out, c.Raw...)
}

// Flush implements guard.Sink.
func (s *Sink) Flush() error {
	if len(s.out) == 0 {
		return s.W.unreadable()
	}
	if s.Now.IsZero() {
		s.Now = time.Now()
	}
	err := s.W.SendEvent(s.out, s.Now)
	s.Now = time.Time{}
	if s.out = s.out[:0]; cap(s.out) > keptOut {
		s.out = nil
	}
	if err != nil {
		return ClientError(err)
	}
	return s.W.unreadable()
}

// keptOut is the largest buffer that is kept for reuse, in bytes.
const keptOut = 64 << 10

// ClientError classifies a failed write.
func ClientError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.ErrClientStalled
	}
	return fault.ErrClientGone
}

// Drain passes on what follows the last event.
func Drain(u *upstream.Response, client *Sink) {
	u.Drain(func() {
		u.Deliver(client)
		_ = client.Flush() // the client has its response, and may have left
	})
}

// CopyBody passes on a body that is not a stream of events, through r if redacted values must be
// restored.
func CopyBody(w *Writer, u *upstream.Response, t *response.Tally, r *redact.Body) error {
	if u.Err() == nil {
		t.Begin(u.Piece())
	}
	for {
		piece, err := u.Piece(), u.Err()
		if len(piece) > 0 {
			w.renew(time.Now())
			if err := WritePart(w, r.Feed(piece)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			t.Body(u.Previous(), piece)
			return WritePart(w, r.Rest())
		}
		if err != nil {
			return &fault.InterruptedError{Err: err}
		}
		if u.Length < 0 {
			if err := w.Control.Flush(); err != nil {
				return ClientError(err)
			}
		}
		u.Next()
	}
}

// WritePart writes a part of a body.
func WritePart(w *Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return ClientError(err)
	}
	return nil
}

// SendEvent writes and flushes one piece of a stream.
func (w *Writer) SendEvent(b []byte, now time.Time) error {
	if k := w.Heartbeat; k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.wrote(now, b)
	}
	return w.writeUnlocked(b, now)
}

// writeUnlocked is SendEvent without the heartbeat's lock.
func (w *Writer) writeUnlocked(b []byte, now time.Time) error {
	w.renew(now)
	if _, err := w.ResponseWriter.Write(b); err != nil {
		return err
	}
	return w.Control.Flush()
}
