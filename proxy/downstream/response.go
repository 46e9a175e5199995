package downstream

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/fault"
	"signalbox/proxy/rate"
	"signalbox/proxy/redact"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

// Response is the response to one request: the writer, with the deadline that the client has to read
// it, and what every response and log line carries. It belongs to the request's goroutine.
type Response struct {
	http.ResponseWriter
	Control   http.ResponseController
	ID        string
	Start     time.Time
	Status    int           // 0 until the head is written
	Patience  time.Duration // how long the client may leave the response unread; 0 is for ever
	renewed   time.Time     // when the write deadline was set last
	Expects   time.Time     // the deadline of a body that nobody reads; zero when there is no body
	Limiter   *rate.Limiter
	Lease     *rate.Lease         // of limits; nil for none
	Cost      *budget.Reservation // of the caller's budgets; nil for none
	Shares    []ModelShare        // of the budgets of models
	Bytes     *InFlight
	held      int64      // of bytes in flight
	Heartbeat *Heartbeat // nil: nobody else writes

	Messages *Dialogue // of the Messages API; nil for any other
}

// New makes the response to r, which has a request id from here on.
func New(w http.ResponseWriter, r *http.Request) *Response {
	out := &Response{ResponseWriter: w, Control: *http.NewResponseController(w), ID: RequestID(r.Header), Start: time.Now()}
	w.Header()["X-Request-Id"] = []string{out.ID}
	return out
}

// Done gives back what the request held of limits.
func (w *Response) Done() {
	w.Lease.Close()
	w.Bytes.leave(w.held)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status that went out.
func (w *Response) WriteHeader(status int) {
	if w.Status == 0 {
		w.Status = status
		w.renew(time.Now())
		if w.Messages != nil {
			renameHeaders(w.Header(), w.ID, time.Now())
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes the body. The head goes out before it.
func (w *Response) Write(b []byte) (int, error) {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// renew moves the deadline of the writes to come. Setting it costs more than writing a small chunk,
// so it is moved only when a quarter of it has passed. The server lifts it after the request.
func (w *Response) renew(now time.Time) {
	if w.Patience <= 0 || now.Sub(w.renewed) < w.Patience/4 {
		return
	}
	w.renewed = now
	_ = w.Control.SetWriteDeadline(now.Add(w.Patience)) // a writer without deadlines has none to miss
}

// SendEvent writes and flushes one piece of a stream.
func (w *Response) SendEvent(b []byte, now time.Time) error {
	if k := w.Heartbeat; k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.wrote(now, b)
	}
	return w.writeUnlocked(b, now)
}

// writeUnlocked is SendEvent without the lock of a heartbeat.
func (w *Response) writeUnlocked(b []byte, now time.Time) error {
	w.renew(now)
	if _, err := w.ResponseWriter.Write(b); err != nil {
		return err
	}
	return w.Control.Flush()
}

// maxRequestID bounds the client's x-request-id, in bytes.
const maxRequestID = 128

// idWithAddresses stands in ids by which parts of a serving system tell each other where blocks
// are: ___prefill_addr_HOST:PORT___decode_addr_HOST:PORT_UUID (vLLM 0.11,
// distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_connector.py).
const idWithAddresses = "___"

// RequestID takes the client's id when it is one that headers and logs can carry, and that tells
// the model server nothing, else makes one.
func RequestID(h http.Header) string {
	ids := h["X-Request-Id"]
	if len(ids) == 1 && ids[0] != "" && len(ids[0]) <= maxRequestID &&
		option.VisibleASCII(ids[0]) &&
		!strings.Contains(ids[0], idWithAddresses) {
		return ids[0]
	}
	return freshID()
}

// idLetters are those of an id that is made here, 5 bits each: base 32 of RFC 4648.
const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// freshID makes an id that nobody can guess, of 130 random bits. Random bytes are drawn for many
// ids at a time, for a draw costs more than all else here.
func freshID() string {
	const prefix = "req_"
	d := draws.Get().(*draw) //nolint:errcheck,forcetypeassert // only draws are in it
	defer draws.Put(d)
	var id [len(prefix) + 26]byte
	copy(id[:], prefix)
	if len(d.left) < len(id)-len(prefix) {
		_, _ = rand.Read(d.bytes[:]) // never fails
		d.left = d.bytes[:]
	}
	for i := len(prefix); i < len(id); i++ {
		id[i] = idLetters[d.left[0]%32]
		d.left[0], d.left = 0, d.left[1:]
	}
	return string(id[:])
}

// draw is random bytes, of which left are not used yet.
type draw struct {
	bytes [1 << 10]byte
	left  []byte
}

var draws = sync.Pool{New: func() any { return new(draw) }} //nolint:gochecknoglobals // buffers

// Translates reports whether the response is to be turned into a message of Anthropic's API.
func (w *Response) Translates() bool { return w.Messages != nil && !w.Messages.Direct }

// ErrorEvent spells an error in a stream.
func (w *Response) ErrorEvent(e *openai.Error) []byte {
	if w.Messages != nil {
		return anthropic.AppendStreamError(nil, e, w.ID)
	}
	return openai.StreamError(e)
}

// unreadable is the fault of a stream that could not be turned; nil without one.
func (w *Response) unreadable() error {
	if w == nil || w.Messages == nil {
		return nil
	}
	if err := w.Messages.Err(); err != nil {
		return &fault.InterruptedError{Err: err}
	}
	return nil
}

// Translate turns a body into a message, where the client wants one.
func (w *Response) Translate(body []byte) ([]byte, error) {
	if !w.Translates() {
		return body, nil
	}
	out, err := w.Messages.Body(body)
	if err != nil {
		return nil, &fault.UnusableError{Problem: err.Error()}
	}
	return out, nil
}

// InFlight counts the bytes of bodies. It is safe for concurrent use; the zero value is ready.
type InFlight struct{ n atomic.Int64 }

// Held is how many bytes are in memory.
func (f *InFlight) Held() int64 { return f.n.Load() }

// leave gives bytes back.
func (f *InFlight) leave(n int64) {
	if n > 0 {
		f.n.Add(-n)
	}
}

// Hold counts that the request holds n bytes of a body, which is not less than before. It reports
// false, and counts nothing, when the bodies of all requests together are more than most then.
func (w *Response) Hold(n int64, most option.Bytes) bool {
	more := n - w.held
	if w.Bytes == nil || more <= 0 {
		return true
	}
	if w.Bytes.n.Add(more) > int64(most) {
		w.Bytes.n.Add(-more)
		return false
	}
	w.held = n
	return true
}

// ModelShare is what a request has reserved of the budget of a model.
type ModelShare struct {
	Of   *backend.Model
	Cost *budget.Reservation
}

// Count counts a request in the limits of its caller.
func (w *Response) Count(r *http.Request, who *auth.Principal) (err error) {
	if len(who.Limits) == 0 || w.Limiter == nil {
		return nil
	}
	limits := make([]rate.Limit, len(who.Limits))
	for i, l := range who.Limits {
		limits[i] = rate.Limit{Scope: l.Scope, Requests: l.Rate.RPM, Tokens: l.Rate.TPM, Parallel: l.Rate.Concurrency}
	}
	if w.Lease, err = w.Limiter.Admit(r.Context(), who.Tenant, limits); err != nil {
		return err
	}
	w.Lease.Describe(w.Header())
	return nil
}

// translateStream turns a whole stream of our own.
func (w *Response) translateStream(events []byte) []byte {
	if !w.Translates() {
		return events
	}
	s := response.TakeStream(response.StreamOptions{})
	defer s.Release()
	client := Sink{W: w}
	s.Feed(events)
	s.End(io.EOF)
	for c := s.Next(); c != nil; c = s.Next() {
		client.Put(c)
	}
	return client.out
}

// Sink sends a stream to the client.
type Sink struct {
	W   *Response
	out []byte
	Now time.Time // when what comes next came; zero where that is longer ago
}

var sinks = sync.Pool{New: func() any { return new(Sink) }} //nolint:gochecknoglobals // buffers, no state

// TakeSink returns the sink of a client, which Release gives back.
func TakeSink(w *Response) *Sink {
	s := sinks.Get().(*Sink) //nolint:errcheck,forcetypeassert // only sinks are in it
	*s = Sink{W: w, out: s.out[:0]}
	return s
}

// Release gives the sink back, which is not used afterwards.
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

// keptOut is how much of a buffer that has grown is kept, in bytes.
const keptOut = 64 << 10

// ClientError classifies a failed write.
func ClientError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.ErrClientStalled
	}
	return fault.ErrClientGone
}

// Drain passes on what comes after the last event.
func Drain(u *upstream.Response, client *Sink) {
	u.Drain(func() {
		u.Deliver(client)
		_ = client.Flush() // the client has its response, and may be gone
	})
}

// CopyBody passes on a body that is no stream of events, through r when hidden values are to be put
// back.
func CopyBody(w *Response, u *upstream.Response, t *response.Tally, r *redact.Body) error {
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
func WritePart(w *Response, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return ClientError(err)
	}
	return nil
}
