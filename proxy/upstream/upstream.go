// Package upstream sends one request to one endpoint and reads its response: whole, in pieces, or
// as a stream of events. It makes no decisions: the caller chooses the endpoint, whether to try
// another, and what the client receives.
//
// A Response belongs to one goroutine at a time. It owns a watchdog timer, which Close stops. Each
// read of a body that is read ahead has a goroutine of its own, which Close waits for.
package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/fault"
	"signalbox/proxy/framing"
	"signalbox/proxy/headers"
	"signalbox/proxy/pool"
	"signalbox/rules"
	"signalbox/stream/response"
)

// MaxWhole limits a response that is read in one piece, in bytes.
const MaxWhole = 8 << 20

// Response is an endpoint's response.
type Response struct {
	Model    *backend.Model
	Endpoint *pool.Endpoint
	Status   int
	Header   http.Header
	Length   int64 // length of the body in bytes; -1 if unknown
	Events   bool  // the body is a stream of events
	Direct   bool  // it is a response of the Messages API
	Took     time.Duration
	// Stream parses the events; nil when the body is not a readable stream of events.
	Stream        *response.Stream
	MaxRetryAfter time.Duration

	lease     *pool.Lease // slot at Endpoint; closed with the response; nil in tests
	body      io.ReadCloser
	buf       *window // body bytes that were read and not yet passed on
	err       error   // from the last read of body; io.EOF when all of it is in buf
	watch     *watchdog
	observers []Observer
	ahead     *ahead // what was read ahead; nil if nothing was
	names     bool   // the id has not been searched for yet
	id        string // as spelled in JSON; empty when none was found
	asks      bool   // the names have not been searched for yet
	told      Names
	page      bool // it is an HTML page, which the API never returns
	due       bool // should be JSON
	useless   bool // see Useless
	counted   bool // the result was already reported to the endpoint
	fresh     bool // there was progress that the watchdog does not know of yet
	closed    bool
}

// Observer receives everything that arrives in a stream, before the client does.
type Observer interface {
	response.Sink
	// Mark reports when chunks arrived; it is called after the last one available.
	Mark(now time.Time)
}

// Observe adds an observer. The body must be a stream of events.
func (u *Response) Observe(o Observer) { u.observers = append(u.observers, o) }

// Tee makes w receive what was read of the body and all that will be. Errors of w are ignored.
func (u *Response) Tee(w io.Writer) {
	_, _ = w.Write(u.buf.bytes())
	u.body = &teed{u.body, w}
}

// teed is a body that is copied while it is read.
type teed struct {
	io.ReadCloser

	to io.Writer
}

// Read implements io.Reader.
func (t *teed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	_, _ = t.to.Write(b[:n])
	return n, err
}

// Misfit explains why the response must not reach a client; empty when it may.
func (u *Response) Misfit(streaming bool) string {
	switch {
	case u.Status < 200 || u.Status >= 300 && u.Status < 400:
		return "a redirect or protocol switch" // not followed, since it could lead anywhere
	case u.Status >= http.StatusInternalServerError && !u.JSON():
		return "an error page"
	case u.page:
		return "a page"
	case u.Good() && u.Events != streaming:
		// Official SDKs treat either mismatch as a response without content.
		return "unexpected content type"
	}
	return ""
}

// failure returns the error of a response that only shows a problem of the endpoint; nil for any
// other response. The endpoint refuses the proxy's own credentials, or something other than a model
// server returns a page. When the endpoint receives the client's credentials, their refusal is a
// response for the client.
func (u *Response) failure() error {
	if u.page {
		return &fault.UnusableError{Problem: "a page"}
	}
	if u.Status == http.StatusUnauthorized && !u.Endpoint.ForwardsAuth() {
		return &fault.CredentialsError{Model: u.Model.Name, Endpoint: u.Endpoint.Name}
	}
	return nil
}

// Good reports whether the status is 2xx.
func (u *Response) Good() bool { return u.Status >= 200 && u.Status < 300 }

// Plain reports whether the body has no content encoding.
func (u *Response) Plain() bool {
	enc := u.Header.Get("Content-Encoding")
	return enc == "" || strings.EqualFold(enc, "identity")
}

// JSON reports whether the media type of the body is JSON.
func (u *Response) JSON() bool { return hasType(u.Header, "application/json") }

// Peek reads what decides whether the response is usable: all of a short body, the first bytes of a
// long one, the first event of a stream. If the endpoint breaks off before that, another one can
// still be tried.
func (u *Response) Peek() error {
	if u.Stream != nil {
		return u.peekEvents()
	}
	whole := u.Length >= 0 || u.JSON()
	for u.err == nil && !u.buf.full() && (whole || len(u.buf.bytes()) == 0) {
		u.read()
		u.watch.expect(u.Model.Gap)
	}
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return u.err
	}
	return nil
}

func (u *Response) peekEvents() error {
	s := u.Stream
	for !s.Peek() && s.Ahead() < WindowSize {
		u.fresh = u.fresh || s.Progress()
		u.Advance(u.Model.FirstByte)
	}
	switch ended, err := s.Ended(); {
	case s.Done():
		return nil
	case ended && !s.Begun():
		return err
	case u.err != nil && !errors.Is(u.err, io.EOF):
		return u.err
	}
	u.fresh = true
	return nil
}

// responseID matches the id of a response near the beginning of its body or stream.
var responseID = regexp.MustCompile(`"id"\s*:\s*("[^"\\]{1,200}")`)

// ID returns the id of a Responses API response as spelled, including quotes. Only the beginning of
// the body is searched; the result is empty when it has no id.
func (u *Response) ID() string {
	if u.names && u.buf != nil && len(u.buf.bytes()) > 0 {
		u.names = false
		if id := responseID.FindSubmatch(u.buf.bytes()); id != nil {
			u.id = string(id[1])
		}
	}
	return u.id
}

// Advance continues reading a stream of events. The next event must be complete within limit,
// counted from the first read after the previous event. Bytes that complete no event do not count
// as progress.
func (u *Response) Advance(limit time.Duration) {
	if u.fresh {
		u.fresh = false
		u.watch.expect(limit)
	}
	u.read()
	u.ID()
	u.find(u.buf.bytes())
	u.Stream.Feed(u.buf.bytes())
	u.buf.clear()
	if u.err != nil {
		u.Stream.End(u.err)
	}
}

// Deliver puts the available chunks of a stream to the observers and to. It reports whether there
// were any, and when.
func (u *Response) Deliver(to response.Sink) (now time.Time, came bool) {
	for c := u.Stream.Next(); c != nil; c = u.Stream.Next() {
		came = true
		for _, t := range u.observers {
			t.Put(c)
		}
		to.Put(c)
	}
	u.fresh = u.fresh || u.Stream.Progress()
	if came {
		now = time.Now()
		for _, t := range u.observers {
			t.Mark(now)
		}
	}
	return now, came
}

// After the end mark the client has the whole response. The endpoint gets a short time to end its
// body properly, so that the connection can be reused. Anything else that it sends is dropped,
// except a [DONE] after the last event of a response: some servers send one, and their clients may
// wait for it.
const (
	drainTime  = 50 * time.Millisecond
	drainReads = 4
)

// Drain reads the end of a stream after its last event. put is called after each read.
func (u *Response) Drain(put func()) {
	u.watch.expect(drainTime)
	u.fresh = false
	if u.Direct {
		return // nothing follows the last event
	}
	for range drainReads {
		if u.err != nil {
			return
		}
		u.Advance(drainTime)
		put()
	}
}

// Piece returns the part of the body that was read and not passed on. It is valid until the next
// call of another method.
func (u *Response) Piece() []byte { return u.buf.bytes() }

// Previous returns the end of the previous piece, as much as Tally.Body needs.
func (u *Response) Previous() []byte { return u.buf.last() }

// Next reads the next piece.
func (u *Response) Next() {
	u.buf.pass()
	u.watch.expect(u.Model.Gap)
	u.read()
	if errors.Is(u.err, io.EOF) && u.readable() && response.EndsUseless(u.buf.last(), u.buf.bytes()) {
		u.useless = true
	}
}

// Discard drops the current piece.
func (u *Response) Discard() { u.buf.clear() }

// Err returns the error of the last read; io.EOF when Piece is the last one.
func (u *Response) Err() error { return u.err }

// read adds available bytes to the window, at least one unless it fails.
func (u *Response) read() {
	u.watch.asleep.Store(false)
	u.err = u.buf.read(u.body)
	u.watch.asleep.Store(true)
}

// ReadWhole reads the body, up to slightly more than MaxWhole bytes; Err is io.EOF when that was
// all.
func (u *Response) ReadWhole() ([]byte, error) {
	all := bytes.Clone(u.buf.bytes())
	for u.err == nil && len(all) < MaxWhole {
		u.buf.clear()
		u.watch.expect(u.Model.Gap)
		u.read()
		all = append(all, u.buf.bytes()...)
	}
	u.watch.expect(0)
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return nil, &fault.NoResponseError{Err: u.err} // nothing was sent yet
	}
	if u.err != nil && u.readable() && response.Useless(all) {
		u.useless = true
	}
	return all, nil
}

// ReadEvents reads a stream of events to its end.
func (u *Response) ReadEvents(to response.Sink) error {
	for {
		u.Deliver(to)
		ended, err := u.Stream.Ended()
		switch {
		case u.Stream.Done():
			return nil
		case ended:
			return &fault.InterruptedError{Err: err}
		}
		u.Advance(u.Model.Gap)
	}
}

// Waive suspends the timeout until the next Advance or Next, while the client is reading.
func (u *Response) Waive() {
	u.watch.expect(0)
	u.fresh = true
}

// Late reports whether the response was cancelled for lack of progress.
func (u *Response) Late() bool { return u.watch.expired() }

// Cancel makes a waiting read, and later ones, fail soon. It may be called from another goroutine
// than the reading one.
func (u *Response) Cancel() { u.watch.cancel() }

// Vacate returns the slot at the endpoint before Close, when the endpoint has no more work for the
// request. What it sent can still be read.
func (u *Response) Vacate() { u.lease.Close() }

// Close releases everything and cancels the request to the endpoint if it is still running. A
// second call, and a call on nil, do nothing.
func (u *Response) Close() {
	if u == nil || u.closed {
		return
	}
	u.closed = true
	u.watch.stop()
	_ = u.body.Close()
	u.buf.release()
	u.Stream.Release()
	u.buf, u.Stream = nil, nil
	u.lease.Close()
}

// Body is the body of a request. Every attempt reads it from its start.
type Body interface {
	Reader() io.ReadCloser
	Size() int64 // in bytes
}

// Call is one request as an attempt sends it.
type Call struct {
	ID      string      // request id, for X-Request-Id
	Headers http.Header // the client's headers
	Extra   []rules.Header
	Body    Body

	Path string // relative to the endpoint's base URL, such as chat/completions
	API  openai.API
	// Form means that the body is multipart/form-data.
	Form bool
	// Translated means that the client sent a request to the Messages API and Body is a chat
	// completion.
	Translated bool
	// Messages means that the response is one of the Messages API.
	Messages bool

	Streaming bool
	Choices   int  // number of choices requested
	Quiet     bool // the usage was requested by the proxy, not the client
	Unweighed bool // log-probabilities were requested by the proxy, not the client
	// CommentsAreProgress makes the server's comments count as progress, like events.
	CommentsAreProgress bool
	MaxRetryAfter       time.Duration // a longer Retry-After is reduced to this
	Named               bool          // search for the names of the response

	// Hold, if set, is called with a response that may be delivered, before its first bytes are
	// read. It may read the response ahead.
	Hold func(u *Response) error
}

// Do sends the request to the lease's endpoint and waits for the head and the first bytes of the
// body. Up to this point an attempt can fail without the client noticing. Do takes over the lease
// and closes it on an error; otherwise the caller closes the response, which closes the lease.
// Errors are ErrClientGone, *ConnectError, *NoResponseError, *CredentialsError and *UnusableError
// of package fault.
func Do(
	ctx context.Context, t framing.Transport, c *Call, m *backend.Model, lease *pool.Lease,
) (*Response, error) {
	begun, e := time.Now(), lease.Endpoint()
	limit := m.Answer
	if c.Streaming {
		limit = m.FirstByte
	}
	attemptCtx, watch := newWatchdog(ctx, limit)
	res, err := e.Via(t).RoundTrip(c.request(framing.Trace(attemptCtx), e))
	if err == nil && e.HTTP2() && framing.TooMany(res.Header) {
		err = framing.ErrMalformed
		_ = res.Body.Close()
	}
	if err != nil {
		err = blame(ctx, watch, m, e, err)
		watch.stop()
		lease.Close()
		return nil, err
	}
	u := &Response{
		Model: m, Endpoint: e, lease: lease, Status: res.StatusCode, Header: res.Header,
		Length: res.ContentLength, Took: time.Since(begun),
		Events: c.API != openai.Other && res.StatusCode < 300 && hasType(res.Header, "text/event-stream"),
		Direct: c.Messages, MaxRetryAfter: c.MaxRetryAfter,
		body: res.Body, buf: takeWindow(), watch: watch, names: c.API == openai.Response,
		asks: c.Named,
	}
	u.due = u.Good() && !u.Events && c.answersInJSON()
	u.page = u.Good() && c.answersInJSON() && hasType(res.Header, "text/html")
	if u.Events && u.Plain() && c.Streaming {
		u.Stream = response.TakeStream(response.StreamOptions{
			API: c.API, Choices: c.Choices, Quiet: c.Quiet, Alive: c.CommentsAreProgress,
			Messages: c.Messages, Unweighed: c.Unweighed,
		})
	}
	if u.Misfit(c.Streaming) == "" {
		if c.Hold != nil {
			err = c.Hold(u)
		}
		if err == nil {
			err = u.Peek()
		}
		if err != nil {
			err = blame(ctx, watch, m, e, err)
			u.Close()
			return nil, err
		}
		u.useless = u.beginsUseless()
	}
	if err = u.failure(); err != nil {
		m.Erred(e, time.Now())
		u.Close()
		return nil, err
	}
	u.tell(time.Now())
	return u, nil
}

// answersInJSON reports whether the API responds in JSON or events. Audio does neither.
func (c *Call) answersInJSON() bool { return c.API != openai.Other || c.Path == embeddings }

// embeddings is the path of the one API other than the completions that is known to respond in
// JSON.
const embeddings = "embeddings"

// request builds the request to the endpoint. The query of the client's URL is not passed on.
func (c *Call) request(ctx context.Context, e *pool.Endpoint) *http.Request {
	h := headers.ForUpstream(c.Headers, c.ID, e.Credential(c.Headers))
	if len(h["Content-Type"]) == 0 && !c.Form {
		// The proxy has parsed the body as JSON. vLLM refuses a body without a type.
		h["Content-Type"] = []string{"application/json"}
	}
	for _, x := range c.Extra {
		h[http.CanonicalHeaderKey(x.Name)] = []string{x.Value}
	}
	passTrace(ctx, h)
	if c.Translated {
		headers.DropAnthropic(h)
	}
	to := e.URL(c.Path)
	body := func() (io.ReadCloser, error) { return c.Body.Reader(), nil }
	if e.HTTP2() {
		body = once(body)
	}
	req := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Header: h,
		Body: c.Body.Reader(), GetBody: body, ContentLength: c.Body.Size(),
	}
	return req.WithContext(ctx)
}

// passTrace sets the trace headers of the request to the endpoint: those of the proxy's own span if
// there is one, otherwise the client's. A Tracestate is passed only with a valid Traceparent (W3C
// Trace Context, processing model).
func passTrace(ctx context.Context, h http.Header) {
	w3c, carrier := propagation.TraceContext{}, propagation.HeaderCarrier(h)
	switch {
	case trace.SpanContextFromContext(ctx).IsValid():
		delete(h, "Tracestate")
		w3c.Inject(ctx, carrier)
	case h["Traceparent"] == nil && h["Tracestate"] == nil:
	case !trace.SpanContextFromContext(w3c.Extract(ctx, carrier)).IsValid():
		delete(h, "Traceparent")
		delete(h, "Tracestate")
	}
}

var errRefused = errors.New("the server rejected the request twice")

// once returns bodies until one of them was read. The HTTP/2 transport repeats a request whose
// stream was refused, or whose connection accepts no more, so that nothing was processed:
// immediately, and then six times within 63 s (net/http of Go 1.26). After the first repetition,
// another endpoint is the better choice.
func once(body func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	var sent atomic.Bool
	return func() (io.ReadCloser, error) {
		if sent.Load() {
			return nil, errRefused
		}
		b, err := body()
		return &repeated{b, &sent}, err
	}
}

// repeated is a body that records that it was read.
type repeated struct {
	io.ReadCloser

	read *atomic.Bool
}

// Read implements io.Reader.
func (r *repeated) Read(b []byte) (int, error) {
	r.read.Store(true)
	return r.ReadCloser.Read(b)
}

// blame classifies the error of an attempt, and counts it as a failure of the endpoint unless the
// client has disconnected.
func blame(
	ctx context.Context, watch *watchdog, m *backend.Model, e *pool.Endpoint, err error,
) error {
	if ctx.Err() != nil {
		return fault.ErrClientGone
	}
	m.Failed(e, time.Now())
	if watch.expired() {
		return &fault.NoResponseError{Err: fault.ErrNoProgress}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return &fault.ConnectError{Err: err}
	}
	return &fault.NoResponseError{Err: err}
}

// hasType reports whether the body has the given media type, ignoring parameters.
func hasType(h http.Header, media string) bool {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(t), media)
}
