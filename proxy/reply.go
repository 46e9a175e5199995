package proxy

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/fault"
	"signalbox/proxy/rate"
)

// reply is the answer to one request: the response writer, with the deadline that a client has to
// read it, and what every answer and log line carries. It belongs to the request's goroutine.
type reply struct {
	http.ResponseWriter
	rc        http.ResponseController
	id        string
	start     time.Time
	status    int           // 0 until the head is written
	patient   time.Duration // how long the client may leave the answer unread; 0 is for ever
	renewed   time.Time     // when the write deadline was set last
	expects   time.Time     // the deadline of a body that nobody reads; zero when there is no body
	limiter   *rate.Limiter
	lease     *rate.Lease         // of limits; nil for none
	cost      *budget.Reservation // of the caller's budgets; nil for none
	shares    []share             // of the budgets of models
	bytes     *inFlight
	held      int64      // of bytes in flight
	heartbeat *heartbeat // nil: nobody else writes

	messages *dialogue // of the Messages API; nil for any other
}

func newReply(w http.ResponseWriter, r *http.Request) *reply {
	out := &reply{ResponseWriter: w, rc: *http.NewResponseController(w), id: requestID(r.Header), start: time.Now()}
	w.Header()["X-Request-Id"] = []string{out.id}
	return out
}

// done gives back what the request held of limits.
func (w *reply) done() {
	w.lease.Close()
	w.bytes.leave(w.held)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status that went out.
func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.renew(time.Now())
		if w.messages != nil {
			renameHeaders(w.Header(), w.id, time.Now())
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes the body. The head goes out before it.
func (w *reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b) //nolint:gosec // a proxy hands on; what is text says nosniff
}

// renew moves the deadline of the writes to come. Setting it costs more than writing a small chunk,
// so it is moved only when a quarter of it has passed. The server lifts it after the request.
func (w *reply) renew(now time.Time) {
	if w.patient <= 0 || now.Sub(w.renewed) < w.patient/4 {
		return
	}
	w.renewed = now
	_ = w.rc.SetWriteDeadline(now.Add(w.patient)) // a writer without deadlines has none to miss
}

// send writes and flushes one piece of a stream.
func (w *reply) send(b []byte, now time.Time) error {
	if k := w.heartbeat; k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.wrote(now, b)
	}
	return w.write(b, now)
}

// write is send without a heartbeat.
func (w *reply) write(b []byte, now time.Time) error {
	w.renew(now)
	if _, err := w.ResponseWriter.Write(b); err != nil { //nolint:gosec // as in Write
		return err
	}
	return w.rc.Flush()
}

// maxRequestID bounds the client's x-request-id, in bytes.
const maxRequestID = 128

// idWithAddresses stands in ids by which parts of a serving system tell each other where blocks
// are: ___prefill_addr_HOST:PORT___decode_addr_HOST:PORT_UUID (vLLM 0.11,
// distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_connector.py).
const idWithAddresses = "___"

// requestID takes the client's id when it is one that headers and logs can carry, and that tells
// the model server nothing, else makes one.
func requestID(h http.Header) string {
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

// translates reports whether answers have to be turned into messages.
func (w *reply) translates() bool { return w.messages != nil && !w.messages.direct }

// errorEvent spells an error in a stream.
func (w *reply) errorEvent(e *openai.Error) []byte {
	if w.messages != nil {
		return anthropic.AppendStreamError(nil, e, w.id)
	}
	return openai.StreamError(e)
}

// unreadable is the fault of a stream that could not be turned; nil without one.
func (w *reply) unreadable() error {
	if w == nil || w.messages == nil {
		return nil
	}
	if err := w.messages.Err(); err != nil {
		return &fault.InterruptedError{Err: err}
	}
	return nil
}

// spell turns a body into a message, where the client wants one.
func (w *reply) spell(body []byte) ([]byte, error) {
	if !w.translates() {
		return body, nil
	}
	out, err := w.messages.Body(body)
	if err != nil {
		return nil, &fault.UnusableError{Problem: err.Error()}
	}
	return out, nil
}

// inFlight counts the bytes of bodies. It is safe for concurrent use; the zero value is ready.
type inFlight struct{ n atomic.Int64 }

// leave gives bytes back.
func (f *inFlight) leave(n int64) {
	if n > 0 {
		f.n.Add(-n)
	}
}

// hold counts that the request holds n bytes of a body, which is not less than before. It reports
// false, and counts nothing, when the bodies of all requests together are more than most then.
func (w *reply) hold(n int64, most option.Bytes) bool {
	more := n - w.held
	if w.bytes == nil || more <= 0 {
		return true
	}
	if w.bytes.n.Add(more) > int64(most) {
		w.bytes.n.Add(-more)
		return false
	}
	w.held = n
	return true
}

// share is what a request has reserved of the budget of a model.
type share struct {
	of   *backend.Model
	cost *budget.Reservation
}
