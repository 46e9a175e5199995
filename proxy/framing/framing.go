// Package framing refuses answers whose head net/http would read in a way of its own: two lengths, a length beside a transfer
// coding, a lone CR or a NUL in a field, more fields than any server sends. Such an answer means something else to another
// reader, which is how one answer is smuggled into the place of the next (RFC 9112, sections 6.3 and 11.2), so its connection
// ends.
//
// It looks at plain connections only; what is inside of TLS passes as it is. It starts no goroutine. A Conn is read by one
// goroutine at a time, as net/http does, and Expect may be called from another while no answer is under way.
package framing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// ErrMalformed is the error of reading an answer that is refused.
var ErrMalformed = errors.New("malformed head of an answer")

// maxFields is how many fields a head may have: Go, Envoy and vLLM's server send fewer than 40.
const maxFields = 256

// Dialer opens connections.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Dial opens connections by d that are looked at.
func (d Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	out := &Conn{Conn: c}
	out.Expect()
	return out, nil
}

// Plain opens connections by d that are not looked at, even if d is a Dialer's: those of HTTP/2, of which any piece may begin like a
// head while another request is sent.
func (d Dialer) Plain(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d(ctx, network, address)
	if looked, ok := c.(*Conn); ok {
		return looked.Conn, err
	}
	return c, err
}

// TooMany reports whether a head that came over HTTP/2 has more fields than one over HTTP/1.1 may have.
func TooMany(h http.Header) bool {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n > maxFields
}

// Trace tells a request's connection that a new answer is expected. Its result is for RoundTrip.
func Trace(ctx context.Context) context.Context { return httptrace.WithClientTrace(ctx, trace) }

var trace = &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { //nolint:gochecknoglobals // constant
	if c, ok := i.Conn.(*Conn); ok {
		c.Expect()
	}
}}

// Conn is a connection whose answers are looked at.
type Conn struct {
	net.Conn

	expected atomic.Bool // an answer is expected whose head was not begun
	inHead   bool
	err      error
	head     head
}

// Expect says that the next bytes begin an answer.
func (c *Conn) Expect() { c.expected.Store(true) }

// Read implements io.Reader. A refused head gives ErrMalformed, behind one byte of it: an answer has begun, so that nobody takes
// the request for one that was never seen, and repeats it.
func (c *Conn) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(b)
	if n > 0 && c.expected.Load() && c.expected.CompareAndSwap(true, false) {
		c.head, c.inHead = head{}, b[0] == 'H' // or it is no HTTP in the clear
	}
	if !c.inHead {
		return n, err //nolint:wrapcheck // as it came
	}
	switch c.head.read(b[:n]) {
	case more:
	case complete:
		c.inHead = false
	case refused:
		c.err = ErrMalformed
		return 1, nil
	}
	return n, err //nolint:wrapcheck // as it came
}

// verdict is what is known of a head.
type verdict uint8

const (
	more     verdict = iota // it goes on
	complete                // it is in order
	refused
)

// head reads the head of an answer byte by byte. The zero value is at its start.
type head struct {
	fields   int
	col      int // of the line
	named    bool
	name     [len("transfer-encoding")]byte
	status   [3]byte
	length   bool // Content-Length was there
	transfer bool // Transfer-Encoding was
	cr       bool // the byte before was a CR
}

// The columns of the status in the first line, HTTP/1.1 200.
const statusAt = len("HTTP/1.1 ")

func (h *head) read(b []byte) verdict {
	for _, c := range b {
		switch {
		case c == 0, h.cr && c != '\n':
			return refused
		case c == '\r':
			h.cr = true
		case c != '\n':
			h.add(c)
		default:
			if v := h.line(); v != more {
				return v
			}
		}
	}
	return more
}

// add reads a byte of a line.
func (h *head) add(c byte) {
	switch {
	case h.fields == 0:
		if i := h.col - statusAt; i >= 0 && i < len(h.status) {
			h.status[i] = c
		}
	case h.named:
	case c == ':':
		h.named = true
		return // col stays: the length of the name
	case h.col < len(h.name):
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		h.name[h.col] = c
	}
	if !h.named {
		h.col++
	}
}

// line ends a line.
func (h *head) line() verdict {
	col, named, first := h.col, h.named, h.fields == 0
	h.col, h.named, h.cr = 0, false, false
	switch {
	case first:
	case col == 0 && !named:
		return h.end()
	case named && col <= len(h.name):
		switch string(h.name[:col]) {
		case "content-length":
			if h.length || h.transfer {
				return refused
			}
			h.length = true
		case "transfer-encoding":
			if h.length || h.transfer {
				return refused
			}
			h.transfer = true
		}
	}
	if h.fields++; h.fields > maxFields {
		return refused
	}
	return more
}

// end ends the head; behind one of 1xx follows another (RFC 9110, section 15.2).
func (h *head) end() verdict {
	if h.status[0] == '1' && string(h.status[:]) != "101" {
		*h = head{}
		return more
	}
	return complete
}
