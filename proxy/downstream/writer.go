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

// Writer writes the response to one request: the http.ResponseWriter, with the deadline that the
// client has to read it, and what every response and log line carries. It belongs to the request's
// goroutine.
type Writer struct {
	http.ResponseWriter
	Control   http.ResponseController
	ID        string
	Start     time.Time
	Status    int           // 0 until the head is written
	Told      bool          // the stream ends in a response that has failed
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
func New(w http.ResponseWriter, r *http.Request) *Writer {
	out := &Writer{ResponseWriter: w, Control: *http.NewResponseController(w), ID: RequestID(r.Header), Start: time.Now()}
	w.Header()["X-Request-Id"] = []string{out.ID}
	return out
}

// Done gives back what the request held of limits.
func (w *Writer) Done() {
	w.Lease.Close()
	w.Bytes.leave(w.held)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status that went out.
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

// Write writes the body. The head goes out before it.
func (w *Writer) Write(b []byte) (int, error) {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// renew moves the deadline of the writes to come. Setting it costs more than writing a small chunk,
// so it is moved only when a quarter of it has passed. The server lifts it after the request.
func (w *Writer) renew(now time.Time) {
	if w.Patience <= 0 || now.Sub(w.renewed) < w.Patience/4 {
		return
	}
	w.renewed = now
	_ = w.Control.SetWriteDeadline(now.Add(w.Patience)) // a writer without deadlines has none to miss
}

// Translates reports whether the response is to be turned into a message of Anthropic's API.
func (w *Writer) Translates() bool { return w.Messages != nil && !w.Messages.Direct }

// TellError tells of an error in the stream of a request, whose next event would have that number;
// the connection is to be broken off next, unless it is told as the end of a response (Told). id is
// what a response of the Responses API has called itself, as it is spelled, empty for none.
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

// unreadable is the fault of a stream that could not be turned; nil without one.
func (w *Writer) unreadable() error {
	if w == nil || w.Messages == nil {
		return nil
	}
	if err := w.Messages.Err(); err != nil {
		return &fault.InterruptedError{Err: err}
	}
	return nil
}

// Translate turns a body into a message, where the client wants one.
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

// ModelShare is what a request has reserved of the budget of a model.
type ModelShare struct {
	Of   *backend.Model
	Cost *budget.Reservation
}

// Count counts a request in the limits of its caller.
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

// translateStream turns a whole stream of our own.
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
