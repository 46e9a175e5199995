package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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

// Body is the body of a request, which every attempt reads from its start.
type Body interface {
	Reader() io.ReadCloser
	Size() int64 // in bytes
}

// Call is one request as an attempt sends it.
type Call struct {
	ID      string      // of the request, for X-Request-Id
	Headers http.Header // of the client
	Extra   []rules.Header
	Body    Body

	Path string // below the base of an endpoint, such as chat/completions
	API  openai.API
	// Form: the body is multipart/form-data.
	Form bool
	// Translated: the client's request was one to the Messages API and Body is a chat completion.
	Translated bool
	// Messages: the response is one of the Messages API.
	Messages bool

	Streaming bool
	Choices   int  // that the request asks for
	Readable  bool // the response will be read, so it must not be compressed
	Quiet     bool // the client did not ask for the usage, the proxy did
	Unweighed bool // the client did not ask for log-probabilities, the proxy did
	// CommentsAreProgress: comments of the server count for the timeouts as events do.
	CommentsAreProgress bool
	MaxRetryAfter       time.Duration // a longer Retry-After counts as this one
	Named               bool          // the names of the response are looked for

	// Hold, when set, is called with a response that the client may get, before its first bytes are
	// read. It may read the response ahead.
	Hold func(u *Response) error
}

// Do sends the request to the endpoint of a lease and waits for the head and the first bytes of the
// body: up to then an attempt can fail without the client noticing. It takes the lease over and
// closes it on an error; otherwise the caller closes the response, and the lease with it. Errors
// are ErrClientGone, *ConnectError and *NoResponseError of package fault.
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
	}
	u.tell(time.Now())
	return u, nil
}

// request makes the request to the endpoint. The query of the client's URL is not passed on.
func (c *Call) request(ctx context.Context, e *pool.Endpoint) *http.Request {
	h := headers.ForUpstream(c.Headers, c.ID, e.Credential(c.Headers))
	if len(h["Content-Type"]) == 0 && !c.Form {
		// The proxy has read it as JSON. vLLM refuses a body without a type.
		h["Content-Type"] = []string{"application/json"}
	}
	if c.Readable {
		// RFC 9110, section 12.5.3: without the header a server may choose.
		h["Accept-Encoding"] = []string{"identity"}
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

// passTrace sets the trace headers of the request to the endpoint: those of the proxy's own span
// where there is one, else those of the client. A Tracestate goes with a Traceparent that could be
// read, or not at all (W3C Trace Context, processing model).
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

var errRefused = errors.New("the server refused the request twice")

// once returns bodies until one of them was read. The HTTP/2 transport repeats a request whose
// stream was refused, or whose connection takes no more, for which nothing was done: at once, and
// then six times within 63 s (net/http of Go 1.26). After the first repetition another endpoint is
// the better choice.
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

// repeated is a body that notes when it is read.
type repeated struct {
	io.ReadCloser

	read *atomic.Bool
}

// Read implements io.Reader.
func (r *repeated) Read(b []byte) (int, error) {
	r.read.Store(true)
	return r.ReadCloser.Read(b)
}

// blame classifies the error of an attempt, and counts it against the endpoint unless the client
// has disconnected.
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
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &fault.ConnectError{Err: err}
	}
	return &fault.NoResponseError{Err: err}
}

// hasType reports whether the body is of the given media type, whatever its parameters.
func hasType(h http.Header, media string) bool {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(t), media)
}
