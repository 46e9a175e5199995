package downstream

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"signalbox/internal/option"
	"signalbox/proxy/fault"
)

// BodyLimits bound the body of a request.
type BodyLimits struct {
	Bytes    int64         // of it
	InFlight option.Bytes  // of all bodies that are under way
	Pause    time.Duration // that a client may make; 0 for ever
	Rate     int           // bytes a second, on average, after a slow start; 0 for any
}

// firstRead bounds the memory that a client gets for announcing a length, in bytes.
const firstRead = 1 << 20

// ReadBody reads the body to its end. The transport never sees the client's own body: handing it
// over cut 39 of 2,000 fast streams of a stock reverse proxy with `use of closed network
// connection`, and a request that was read can be sent twice.
func ReadBody(w *Writer, r *http.Request, o BodyLimits) ([]byte, error) {
	limit := o.Bytes
	if r.ContentLength > limit {
		return nil, &fault.BodyTooLargeError{Limit: limit}
	}
	size := int64(4 << 10)
	if r.ContentLength >= 0 {
		size = min(r.ContentLength, firstRead) + 1 // one more than the body, so that its end is seen without growing
	}
	if !w.Hold(max(r.ContentLength, size), o.InFlight) {
		return nil, fault.ErrTooManyBytes
	}
	buf := make([]byte, 0, size)
	pace := o.pace(w)
	for {
		if len(buf) == cap(buf) {
			more := min(len(buf), int(limit)-len(buf)) + 1
			if !w.Hold(int64(len(buf)+more), o.InFlight) {
				return nil, fault.ErrTooManyBytes
			}
			buf = slices.Grow(buf, more)
		}
		pace.renew(w, len(buf))
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, &fault.BodyTooLargeError{Limit: limit}
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return nil, bodyError(err) // the deadline stays: the server reads on before it answers
		}
		pace.lift(w)
		return buf, nil
	}
}

func bodyError(err error) error {
	var network *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.ErrBodyTimeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return fault.ErrClientGone
	}
	return fault.ErrBodyBroken
}

// Begin bounds the time that a body may take which nobody reads: the server reads on before
// it answers.
func (o BodyLimits) Begin(w *Writer, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	limit := slowStart
	if pause := o.Pause; pause > 0 {
		limit = min(limit, pause)
	}
	w.Expects = w.Start.Add(limit)
	_ = w.Control.SetReadDeadline(w.Expects) // a reader without deadlines has none to miss
}

// pace goes on from the deadline that Begin set, which most bodies never need moved.
func (o BodyLimits) pace(w *Writer) pace {
	c := pace{begun: w.Start, pause: o.Pause, rate: o.Rate}
	if c.pause > 0 || c.rate > 0 {
		c.renewed, c.until = w.Start, w.Expects
	}
	return c
}

// slowStart is the time that a client has before its pace counts.
const slowStart = 5 * time.Second

// pace is how fast a client has to send a body. It belongs to one request.
type pace struct {
	begun   time.Time
	pause   time.Duration // that it may make; 0 for ever
	rate    int           // bytes a second on average; 0 for any
	renewed time.Time     // when the deadline was set
	until   time.Time     // the deadline
}

// renew moves the deadline of the read to come; read is how many bytes are here. Moving it costs a
// system call's worth, so it is moved when it matters.
func (c *pace) renew(w *Writer, read int) {
	now := time.Now()
	if c.pause <= 0 && c.rate <= 0 {
		if c.renewed.IsZero() {
			c.renewed = now
			_ = w.Control.SetReadDeadline(time.Time{})
		}
		return
	}
	var until time.Time
	if c.pause > 0 {
		until = now.Add(c.pause)
	}
	if c.rate > 0 {
		due := time.Duration(float64(read+1) / float64(c.rate) * float64(time.Second))
		if by := c.begun.Add(slowStart + due); until.IsZero() || by.Before(until) {
			until = by
		}
	}
	if step := c.step(); !c.until.IsZero() && until.Sub(c.until) < step && now.Sub(c.renewed) < step {
		return
	}
	c.renewed, c.until = now, until
	_ = w.Control.SetReadDeadline(until) // a reader without deadlines has none to miss
}

// step is by how much the deadline may lag behind.
func (c *pace) step() time.Duration {
	if c.pause <= 0 {
		return time.Second
	}
	return min(c.pause/4, time.Second)
}

// lift takes the deadline away when the body is here: what is read from then on only tells that the
// client has gone.
func (c *pace) lift(w *Writer) {
	if !c.until.IsZero() {
		_ = w.Control.SetReadDeadline(time.Time{})
	}
}
