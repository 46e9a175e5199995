package downstream

import (
	"io"
	"net/http"
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
	"signalbox/stream/response"
)

// Writer writes the response to one request. It wraps the http.ResponseWriter, enforces the
// deadline for the client to read, and carries what every response and log line needs. It belongs
// to the request's goroutine.
type Writer struct {
	http.ResponseWriter
	Control   http.ResponseController
	ID        string
	Start     time.Time
	Status    int           // 0 until the head is written
	Told      bool          // the stream ended with a response marked as failed
	Patience  time.Duration // how long the client may leave the response unread; 0 for no limit
	renewed   time.Time     // when the write deadline was last set
	Expects   time.Time     // read deadline of a body that nobody reads; zero without a body
	Limiter   *rate.Limiter
	Lease     *rate.Lease         // in the caller's limits; nil if there are none
	Cost      *budget.Reservation // in the caller's budgets; nil if there are none
	Shares    []ModelShare        // in the budgets of models
	Bytes     *InFlight
	held      int64      // bytes counted in Bytes
	Heartbeat *Heartbeat // nil if there is none

	Messages *Dialogue // for the Messages API; nil for any other
}

// New returns the Writer for the response to r and assigns the request id.
func New(w http.ResponseWriter, r *http.Request) *Writer {
	out := &Writer{ResponseWriter: w, Control: *http.NewResponseController(w), ID: RequestID(r.Header), Start: time.Now()}
	w.Header()["X-Request-Id"] = []string{out.ID}
	return out
}

// Done releases what the request holds in limits.
func (w *Writer) Done() {
	w.Lease.Close()
	w.Bytes.leave(w.held)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader records and writes the status.
func (w *Writer) WriteHeader(status int) {
	if w.Status == 0 {
		w.Status = status
		w.renew(time.Now())
		if w.Messages != nil {
			renameHeaders(w.Header(), w.ID, time.Now())
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body, after the head.
func (w *Writer) Write(b []byte) (int, error) {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// renew moves the write deadline. Setting it costs more than writing a small chunk, so it is moved
// only after a quarter of the time has passed. The server removes it after the request.
func (w *Writer) renew(now time.Time) {
	if w.Patience <= 0 || now.Sub(w.renewed) < w.Patience/4 {
		return
	}
	w.renewed = now
	_ = w.Control.SetWriteDeadline(now.Add(w.Patience)) // not every writer supports deadlines
}

// Translates reports whether the response must be converted to Anthropic's Messages API.
func (w *Writer) Translates() bool { return w.Messages != nil && !w.Messages.Direct }

// TellError reports an error in a stream, whose next event would have the given number. The caller
// then breaks the connection, unless the error was sent as the end of a response (see Told). id is
// the JSON literal of the id in a Responses API response; empty if there is none.
func (w *Writer) TellError(e *openai.Error, req *openai.Request, number int, id string) {
	var event []byte
	whole := false
	switch {
	case w.Messages != nil:
		event = anthropic.AppendStreamError(nil, e, w.ID)
	case req.API == openai.Response:
		event, whole = append(openai.ResponseError(e, number), w.failedResponse(e, req, number+1, id)...), true
	default:
		event = openai.StreamError(e)
	}
	w.Told = w.SendEvent(event, time.Now()) == nil && whole
}

// unreadable returns the error of a stream that could not be converted; nil if there is none.
func (w *Writer) unreadable() error {
	if w == nil || w.Messages == nil {
		return nil
	}
	if err := w.Messages.Err(); err != nil {
		return &fault.InterruptedError{Err: err}
	}
	return nil
}

// Translate converts a body to the Messages API if the client uses it.
func (w *Writer) Translate(body []byte) ([]byte, error) {
	if !w.Translates() {
		return body, nil
	}
	out, err := w.Messages.Body(body)
	if err != nil {
		return nil, &fault.UnusableError{Problem: err.Error()}
	}
	return out, nil
}

// InFlight counts the bytes of bodies in memory. It is safe for concurrent use; the zero value is
// ready.
type InFlight struct{ n atomic.Int64 }

// Held returns the number of bytes in memory.
func (f *InFlight) Held() int64 { return f.n.Load() }

// leave subtracts n bytes.
func (f *InFlight) leave(n int64) {
	if n > 0 {
		f.n.Add(-n)
	}
}

// Hold records that the request holds n bytes of a body, at least as many as before. It returns
// false, and records nothing, when all requests together would then exceed most.
func (w *Writer) Hold(n int64, most option.Bytes) bool {
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

// ModelShare is what a request has reserved in the budget of a model.
type ModelShare struct {
	Of   *backend.Model
	Cost *budget.Reservation
}

// Count counts a request in its caller's limits.
func (w *Writer) Count(r *http.Request, who *auth.Principal) (err error) {
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

// translateStream converts a complete stream produced by the proxy.
func (w *Writer) translateStream(events []byte) []byte {
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
