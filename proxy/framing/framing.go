// Package framing refuses answers whose head net/http would read in a way of its own: two lengths,
// a length beside a transfer coding, a lone CR or a NUL in a field, more fields than any server
// sends. Such a response means something else to another reader, which is how one response is
// smuggled into the place of the next (RFC 9112, sections 6.3 and 11.2), so its connection ends.
//
// What a server sends before it was asked, or behind a response of a known length, ends the
// connection too: it would begin the response of the next request.
//
// It looks at plain connections only; what is inside of TLS passes as it is. It starts no
// goroutine. A Conn is read by one goroutine and written by another at a time, as net/http does,
// and Expect may be called from a third while no request is sent.
package framing

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// ErrMalformed is the error of reading a response that is refused.
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
	out.Expect() // of TLS, whose requests tell nothing
	return out, nil
}

// Plain opens connections by d that are not looked at, even if d is a Dialer's: those of HTTP/2, of
// which any piece may begin like a head while another request is sent.
func (d Dialer) Plain(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d(ctx, network, address)
	if looked, ok := c.(*Conn); ok {
		return looked.Conn, err
	}
	return c, err
}

// TooMany reports whether a head that came over HTTP/2 has more fields than one over HTTP/1.1 may
// have.
func TooMany(h http.Header) bool {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n > maxFields
}

// Transport sends requests by a transport that dials by a Dialer. It is safe for concurrent use, as
// that is.
type Transport struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if ctx := Trace(r.Context()); ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	return t.Transport.RoundTrip(r) //nolint:wrapcheck // as it came
}

// Trace tells a request's connection that it asks, beside what traces ctx already. Its result is
// for RoundTrip, which copies a request that has none.
func Trace(ctx context.Context) context.Context {
	switch httptrace.ContextClientTrace(ctx) {
	case trace:
		return ctx
	case nil:
		return httptrace.WithClientTrace(ctx, trace)
	default: // what is composed is written to
		return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: expect})
	}
}

var trace = &httptrace.ClientTrace{GotConn: expect} //nolint:gochecknoglobals // constant

func expect(i httptrace.GotConnInfo) {
	if c, ok := i.Conn.(*Conn); ok {
		c.Expect()
	}
}

// Conn is a connection whose responses are looked at.
type Conn struct {
	net.Conn

	begins   atomic.Bool // the next bytes written begin a request
	expected atomic.Bool // an answer is expected whose head was not begun
	inHead   bool
	left     int64 // bytes of the body that are to come; unknown: where its head does not say
	err      error
	head     head
}

// unknown is the length of a body that its head does not tell.
const unknown = -1

// Expect says that the next bytes written begin a request.
func (c *Conn) Expect() { c.begins.Store(true) }

// Write implements io.Writer.
func (c *Conn) Write(b []byte) (int, error) {
	if c.begins.Load() && c.begins.CompareAndSwap(true, false) {
		c.expected.Store(true)
	}
	return c.Conn.Write(b) //nolint:wrapcheck // as it came
}

// Read implements io.Reader. A refused head gives ErrMalformed, behind one byte of it: a response
// has begun, so that nobody takes the request for one that was never seen, and repeats it. Behind a
// body of a known length the connection ends for the reader, so that what a server sends too much
// does not meet the next request.
func (c *Conn) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(b)
	if n > 0 && c.expected.Load() && c.expected.CompareAndSwap(true, false) {
		c.head, c.inHead, c.left = head{}, b[0] == 'H', unknown // or it is no HTTP in the clear
	}
	body := n
	if c.inHead {
		v, read := c.head.read(b[:n])
		switch v {
		case more:
			return n, err //nolint:wrapcheck // as it came
		case refused:
			c.err = ErrMalformed
			return 1, nil
		case complete:
			c.inHead, c.left, body = false, c.head.body(), n-read
		}
	}
	if c.left == unknown {
		return n, err //nolint:wrapcheck // as it came
	}
	if over := int64(body) - c.left; over > 0 {
		c.err, c.left = io.EOF, 0
		return n - int(over), io.EOF // at once, so that nobody takes the connection for one to use again
	}
	c.left -= int64(body)
	return n, err //nolint:wrapcheck // as it came
}

// verdict is what is known of a head.
type verdict uint8

const (
	more     verdict = iota // it goes on
	complete                // it is in order
	refused
)

// head reads the head of a response byte by byte. The zero value is at its start.
type head struct {
	fields   int
	col      int // of the line
	named    bool
	name     [len("transfer-encoding")]byte
	status   [3]byte
	length   bool // Content-Length was there
	sizes    bool // the line is that
	size     int64
	transfer bool // Transfer-Encoding was
	cr       bool // the byte before was a CR
}

// The columns of the status in the first line, HTTP/1.1 200.
const statusAt = len("HTTP/1.1 ")

func (h *head) read(b []byte) (v verdict, n int) {
	for i, c := range b {
		switch {
		case c == 0, h.cr && c != '\n':
			return refused, i
		case c == '\r':
			h.cr = true
		case c != '\n':
			h.add(c)
		default:
			if v := h.line(); v != more {
				return v, i + 1
			}
		}
	}
	return more, len(b)
}

// body is how long the body is behind a complete head (RFC 9112, section 6.3); that of a response
// to HEAD never comes.
func (h *head) body() int64 {
	switch status := string(h.status[:]); {
	case status == "204" || status == "304":
		return 0
	case !h.length || h.transfer || status == "101":
		return unknown
	}
	return h.size
}

// add reads a byte of a line.
func (h *head) add(c byte) {
	switch {
	case h.fields == 0:
		if i := h.col - statusAt; i >= 0 && i < len(h.status) {
			h.status[i] = c
		}
	case h.sizes:
		h.digit(c)
	case h.named:
	case c == ':':
		h.named, h.sizes = true, h.col <= len(h.name) && string(h.name[:h.col]) == "content-length"
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

// digit reads a byte of a length. What is no number is for net/http to refuse.
func (h *head) digit(c byte) {
	switch {
	case h.size == unknown, c == ' ', c == '\t':
	case c < '0' || c > '9' || h.size > math.MaxInt64/10-1:
		h.size = unknown
	default:
		h.size = 10*h.size + int64(c-'0')
	}
}

// line ends a line.
func (h *head) line() verdict {
	col, named, first := h.col, h.named, h.fields == 0
	h.col, h.named, h.sizes, h.cr = 0, false, false, false
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
