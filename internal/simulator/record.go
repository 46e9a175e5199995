package simulator

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
)

// Request is a recorded request as received. In the JSON of GET /sim/requests the body is base64.
type Request struct {
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// recorder keeps the last requests in a ring. Its methods are safe for concurrent use.
type recorder struct {
	limit int // 0: nothing is recorded

	mu   sync.Mutex // guards ring and next
	ring []Request
	next int // position of the next request once the ring is full
}

func newRecorder(limit int) *recorder { return &recorder{limit: limit} }

// add records a request with a copy of its body.
func (c *recorder) add(r *http.Request, body []byte) {
	if c.limit == 0 {
		return
	}
	kept := Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: bytes.Clone(body)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ring) < c.limit {
		c.ring = append(c.ring, kept)
		return
	}
	c.ring[c.next] = kept
	c.next = (c.next + 1) % c.limit
}

// list returns the recorded requests, oldest first.
func (c *recorder) list() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.ring[c.next:], c.ring[:c.next])
}
