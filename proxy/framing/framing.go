// Package framing refuses responses whose head net/http would interpret differently from other
// readers: two lengths, a length together with a transfer coding, a lone CR or a NUL in a field, or
// an implausible number of fields. Such responses allow smuggling one response into the place of
// the next (RFC 9112, sections 6.3 and 11.2), so the connection is closed.
//
// Bytes that a server sends before a request, or after a response of known length, also end the
// connection, since they would become the beginning of the next response.
//
// Only plain connections are checked; TLS passes unchanged. The package starts no goroutine. A Conn
// is read by one goroutine and written by another at a time, as net/http does; Expect may be called
// from a third while no request is sent.
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

// ErrMalformed is the error of reading a refused response.
var ErrMalformed = errors.New("malformed head of an answer")

// maxFields is the maximum number of fields in a head. Go, Envoy and vLLM's server send fewer than
// 40.
const maxFields = 256

// Dialer opens connections.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Dial opens a connection through d whose responses are checked.
func (d Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	out := &Conn{Conn: c}
	out.Expect() // a TLS connection, where requests cannot be seen
	return out, nil
}

// Plain opens an unchecked connection through d, even if d is a Dialer's. It is for HTTP/2, where
// any piece may look like a head while another request is sent.
func (d Dialer) Plain(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d(ctx, network, address)
	if looked, ok := c.(*Conn); ok {
		return looked.Conn, err
	}
	return c, err
}

// TooMany reports whether a head received over HTTP/2 has more fields than allowed over HTTP/1.1.
func TooMany(h http.Header) bool {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n > maxFields
}

// Transport is an http.Transport that dials through a Dialer. It is safe for concurrent use, like
// the http.Transport.
type Transport struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if ctx := Trace(r.Context()); ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	return t.Transport.RoundTrip(r) //nolint:wrapcheck // unchanged
}

// Trace lets the connection know when a request begins, in addition to any trace in ctx. Its result
// is meant for RoundTrip, which otherwise copies the request to add it.
func Trace(ctx context.Context) context.Context {
	switch httptrace.ContextClientTrace(ctx) {
	case trace:
		return ctx
	case nil:
		return httptrace.WithClientTrace(ctx, trace)
	default: // composing modifies the trace
		return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: expect})
	}
}

var trace = &httptrace.ClientTrace{GotConn: expect} //nolint:gochecknoglobals // constant

func expect(i httptrace.GotConnInfo) {
	if c, ok := i.Conn.(*Conn); ok {
		c.Expect()
	}
}

// Conn is a connection whose responses are checked.
type Conn struct {
	net.Conn

	begins   atomic.Bool // the next write begins a request
	expected atomic.Bool // a response is expected whose head has not begun
	inHead   bool
	left     int64 // remaining bytes of the body, or unknown
	err      error
	head     head
}

// unknown is the length of a body that its head does not state.
const unknown = -1

// Expect declares that the next write begins a request.
func (c *Conn) Expect() { c.begins.Store(true) }

// Write implements io.Writer.
func (c *Conn) Write(b []byte) (int, error) {
	if c.begins.Load() && c.begins.CompareAndSwap(true, false) {
		c.expected.Store(true)
	}
	return c.Conn.Write(b) //nolint:wrapcheck // unchanged
}

// Read implements io.Reader. For a refused head it returns ErrMalformed, after one byte of the
// head: since a response has begun, the transport will not treat the request as unprocessed and
// repeat it. After a body of known length the connection ends for the reader, so that surplus bytes
// do not reach the next request.
func (c *Conn) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(b)
	if n > 0 && c.expected.Load() && c.expected.CompareAndSwap(true, false) {
		c.head, c.inHead, c.left = head{}, b[0] == 'H', unknown // otherwise it is not plain HTTP
	}
	body := n
	if c.inHead {
		v, read := c.head.read(b[:n])
		switch v {
		case more:
			return n, err //nolint:wrapcheck // unchanged
		case refused:
			c.err = ErrMalformed
			return 1, nil
		case complete:
			c.inHead, c.left, body = false, c.head.body(), n-read
		}
	}
	if c.left == unknown {
		return n, err //nolint:wrapcheck // unchanged
	}
	if over := int64(body) - c.left; over > 0 {
		c.err, c.left = io.EOF, 0
		// immediately, so that the connection is not considered reusable
		return n - int(over), io.EOF
	}
	c.left -= int64(body)
	return n, err //nolint:wrapcheck // unchanged
}

// verdict is the state of parsing a head.
type verdict uint8

const (
	more     verdict = iota // not complete
	complete                // complete and valid
	refused
)

// head parses the head of a response byte by byte. The zero value is at its start.
type head struct {
	fields   int
	col      int // position in the line
	named    bool
	name     [len("transfer-encoding")]byte
	status   [3]byte
	length   bool // a Content-Length was seen
	sizes    bool // this line is a Content-Length
	size     int64
	transfer bool // a Transfer-Encoding was seen
	cr       bool // the previous byte was a CR
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

// body returns the length of the body after a complete head (RFC 9112, section 6.3). The body of a
// response to HEAD never arrives.
func (h *head) body() int64 {
	switch status := string(h.status[:]); {
	case status == "204" || status == "304":
		return 0
	case !h.length || h.transfer || status == "101":
		return unknown
	}
	return h.size
}

// add processes a byte of a line.
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
		return // col keeps the length of the name
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

// digit processes a byte of a length. net/http refuses what is not a number.
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

// end ends the head. After one with a 1xx status another follows (RFC 9110, section 15.2).
func (h *head) end() verdict {
	if h.status[0] == '1' && string(h.status[:]) != "101" {
		*h = head{}
		return more
	}
	return complete
}
