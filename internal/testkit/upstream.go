// Package testkit holds what tests of several packages share: an upstream whose answers are
// scripted, byte for byte where it matters, golden files, a clock and a log. Only tests import it.
package testkit

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Request is a request as the upstream received it.
type Request struct {
	Method, Path, Query string
	Header              http.Header
	Body                []byte
}

// Answer answers one request. An answer that breaks the protocol is made with Raw.
type Answer func(u *Upstream, w http.ResponseWriter, r *http.Request)

// Upstream is a model server on loopback. It is safe for concurrent use and stops with its test.
type Upstream struct {
	// Gone receives the time at which the other side of a Stall, Silent or Raw answer went away.
	Gone chan time.Time
	// Arrived receives a value for each chat request, once its body is read. A full channel drops
	// it.
	Arrived chan struct{}

	server *httptest.Server
	sick   atomic.Bool

	mu       sync.Mutex // guards what follows
	script   []Answer
	usual    Answer
	requests []Request
}

// NewUpstream starts an upstream that gives the usual answer whenever no other was scripted with
// Next.
func NewUpstream(tb testing.TB, usual Answer) *Upstream {
	tb.Helper()
	u := &Upstream{Gone: make(chan time.Time, 64), Arrived: make(chan struct{}, 64), usual: usual}
	u.server = httptest.NewServer(http.HandlerFunc(u.serve))
	tb.Cleanup(u.server.Close)
	return u
}

// URL is the base of the API, as a configuration names it.
func (u *Upstream) URL() string { return u.server.URL + "/v1" }

// Close stops the server, so that connections are refused.
func (u *Upstream) Close() { u.server.Close() }

// Next scripts the answers of the coming requests, one each.
func (u *Upstream) Next(answers ...Answer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script = append(u.script, answers...)
}

// SetSick lets health checks fail with 503, or succeed again.
func (u *Upstream) SetSick(sick bool) { u.sick.Store(sick) }

// Requests returns the chat requests received so far.
func (u *Upstream) Requests() []Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Request(nil), u.requests...)
}

// Last returns the last chat request; the test fails when there was none.
func (u *Upstream) Last(tb testing.TB) Request {
	tb.Helper()
	all := u.Requests()
	if len(all) == 0 {
		tb.Fatal("the upstream has received nothing")
	}
	return all[len(all)-1]
}

func (u *Upstream) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
		if u.sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return
	case "/metrics":
		w.WriteHeader(http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.mu.Lock()
	u.requests = append(u.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body})
	answer := u.usual
	if len(u.script) > 0 {
		answer, u.script = u.script[0], u.script[1:]
	}
	u.mu.Unlock()
	select {
	case u.Arrived <- struct{}{}:
	default:
	}
	answer(u, w, r)
}

// JSON answers with a status, a JSON body, and headers given as name, value pairs.
func JSON(status int, body string, header ...string) Answer {
	return Body(status, "application/json", body, header...)
}

// Body is JSON with another content type.
func Body(status int, contentType, body string, header ...string) Answer {
	return func(_ *Upstream, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Stream answers with a stream, one flush for each piece, and ends it in order.
func Stream(pieces ...string) Answer {
	return func(_ *Upstream, w http.ResponseWriter, _ *http.Request) { stream(w, pieces) }
}

// Stall streams the pieces and then falls silent until the other side has gone.
func Stall(pieces ...string) Answer {
	return func(u *Upstream, w http.ResponseWriter, r *http.Request) {
		stream(w, pieces)
		<-r.Context().Done()
		u.Gone <- time.Now()
	}
}

// Silent sends nothing until the other side has gone.
func Silent() Answer {
	return func(u *Upstream, _ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		u.Gone <- time.Now()
	}
}

// After gives an answer once gate is closed, unless the other side goes first.
func After(gate <-chan struct{}, answer Answer) Answer {
	return func(u *Upstream, w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
			answer(u, w, r)
		case <-r.Context().Done():
			u.Gone <- time.Now()
		}
	}
}

func stream(w http.ResponseWriter, pieces []string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	for _, p := range pieces {
		_, _ = io.WriteString(w, p)
		_ = rc.Flush()
	}
}

// End is how a Raw answer leaves its connection.
type End uint8

// The ends of a connection.
const (
	FIN      End = iota // closed in order
	RST                 // reset
	WaitGone            // silent until the other side has gone
	OneByte             // reset as soon as another byte arrives: the fate of a connection that was about to be reused
)

// Raw answers with exactly these bytes on the connection, then ends it.
func Raw(wire string, end End) Answer {
	return func(u *Upstream, w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, wire)
		switch end {
		case FIN:
		case RST:
			Linger(conn)
		case OneByte:
			_, _ = rw.ReadByte()
			Linger(conn)
		case WaitGone:
			_, _ = io.Copy(io.Discard, rw)
			u.Gone <- time.Now()
		}
	}
}

// Linger makes the next Close of a TCP connection an RST.
func Linger(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// StreamHead is the head of a chunked stream, for Raw.
const StreamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"

// Chunk frames s as one HTTP chunk, for Raw.
func Chunk(s string) string { return strconv.FormatInt(int64(len(s)), 16) + "\r\n" + s + "\r\n" }

// Event is one chunk of a chat completion with a text, as an event of a stream.
func Event(text string) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
}

// Finish is the last chunk of a stream, without Done.
const Finish = `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"

// Done ends a stream.
const Done = "data: [DONE]\n\n"

// Completion is a whole answer.
const Completion = `{"id":"c-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":4}}}`
