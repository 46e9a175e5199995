package proxy

import (
	"bytes"
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
	"signalbox/proxy/escalate"
	"signalbox/proxy/fault"
	"signalbox/proxy/framing"
	"signalbox/proxy/headers"
	"signalbox/proxy/pool"
	"signalbox/rules"
	"signalbox/stream/response"
)

// call is one request as every attempt sends it.
type call struct {
	in        http.Header // the client's
	id        string
	to        *surface
	body      payload
	direct    bool // the body is of the Messages API, as the client sent it
	streaming bool
	plain     bool // the answer has to be read, so it must not be compressed
	extra     []rules.Header
	choices   int           // asked for
	quiet     bool          // the client did not ask for the usage
	unweighed bool          // nor for log probabilities, which the proxy did
	trial     *trial        // that judges the answer; nil for none
	alive     bool          // comments in the answer are progress
	patience  time.Duration // the longest Retry-After that counts
}

// upstream is an answer of which the client has seen nothing yet.
type upstream struct {
	model    *model
	endpoint *pool.Endpoint
	lease    *pool.Lease // of endpoint; closed with the answer
	effort   string      // asked for; set on refusals that are held
	status   int
	header   http.Header
	length   int64         // of the body; -1 when not known
	events   bool          // the body is a stream of server-sent events
	took     time.Duration // to the head

	body     io.ReadCloser
	buf      *window // the first bytes of the body are in it
	err      error   // of the last read of body; io.EOF when all of it is in buf
	watch    *watchdog
	flow     *flow            // nil for what is no stream of events that can be read
	copied   *escalate.Answer // that reads the events for a comparison; nil when none does
	tape     *tape            // that takes the events down; nil when none does
	patience time.Duration    // the longest Retry-After that counts
	names    bool             // the id of the answer is to be looked for
	id       string           // of a response, as it is spelled; empty where none was found
	fresh    bool             // there was progress since the watchdog was told
	closed   bool
	direct   bool // it is of the Messages API
	told     bool // what the client has ends with an error event of the upstream itself
}

// attempt sends the request to the endpoint of a lease and waits for the head and the first bytes
// of the body: until then, the attempt can fail without the client noticing. It takes the lease
// over, and closes it on an error; else the caller closes what it returns, and the lease with it.
func (p *Proxy) attempt(
	ctx context.Context, c call, m *model, lease *pool.Lease,
) (*upstream, error) {
	begun, e := time.Now(), lease.Endpoint()
	limit := m.answer
	if c.streaming {
		limit = m.firstByte
	}
	attemptCtx, watch := newWatchdog(ctx, limit)
	res, err := e.Via(p.transport).RoundTrip(c.request(framing.Trace(attemptCtx), e))
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
	u := &upstream{
		model: m, endpoint: e, lease: lease,
		status: res.StatusCode, header: res.Header, length: res.ContentLength, body: res.Body,
		events: c.to.api != openai.Other && res.StatusCode < 300 && hasType(res.Header, "text/event-stream"), took: time.Since(begun),
		buf: takeWindow(), watch: watch, patience: c.patience, names: c.to.api == openai.Response,
		direct: c.direct,
	}
	if u.events && u.plain() && c.streaming {
		u.flow = takeFlow(response.StreamOptions{
			API: c.to.api, Choices: c.choices, Quiet: c.quiet, Alive: c.alive, Messages: c.direct,
			Unweighed: c.unweighed,
		})
	}
	if u.misfit(c.streaming) == "" {
		err := c.trial.hold(u, &c)
		if err == nil {
			err = u.peek()
		}
		if err != nil {
			err = blame(ctx, watch, m, e, err)
			u.close()
			return nil, err
		}
	}
	u.tell(time.Now())
	return u, nil
}

// passTrace puts the place in its trace into the head of a request: the proxy's own span where
// there is one, else what the client sent. A Tracestate goes with a Traceparent that was
// understood, or not at all (W3C Trace Context, processing model).
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

// request makes the upstream request. The query of the client's URL is not passed on.
func (c call) request(ctx context.Context, e *pool.Endpoint) *http.Request {
	h := headers.ForUpstream(c.in, c.id, e.Credential(c.in))
	if len(h["Content-Type"]) == 0 && !c.to.form {
		// As it was read here. vLLM refuses a body without.
		h["Content-Type"] = []string{"application/json"}
	}
	if c.plain {
		h["Accept-Encoding"] = []string{"identity"} // RFC 9110, section 12.5.3; without the header a server may choose
	}
	for _, x := range c.extra {
		h[http.CanonicalHeaderKey(x.Name)] = []string{x.Value}
	}
	passTrace(ctx, h)
	path := c.to.path
	if c.to.messages && !c.direct {
		path = chatPath
		dropAnthropic(h)
	}
	to := e.URL(strings.TrimPrefix(path, "/v1/"))
	body := func() (io.ReadCloser, error) { return c.body.reader(), nil }
	if e.HTTP2() {
		body = once(body)
	}
	req := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Header: h,
		Body: c.body.reader(), GetBody: body, ContentLength: c.body.size(),
	}
	return req.WithContext(ctx)
}

var errRefused = errors.New("the server refused the request twice")

// once gives a body until one that it gave was read. The transport of HTTP/2 sends a request again
// whose stream was refused, or whose connection takes no more, for which nothing was done: at once,
// and then six times within 63 s (net/http of Go 1.26). Behind the first, another endpoint is the
// better place.
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

// repeated is a body that notes that it was read.
type repeated struct {
	io.ReadCloser

	read *atomic.Bool
}

func (r *repeated) Read(b []byte) (int, error) {
	r.read.Store(true)
	return r.ReadCloser.Read(b)
}

// tell tells the endpoint what its status means for it.
func (u *upstream) tell(now time.Time) {
	switch u.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait, ok := headers.RetryAfter(u.header, now); ok {
			u.endpoint.Rest(now.Add(min(wait, u.patience)))
		}
	}
	if u.status >= http.StatusInternalServerError {
		u.model.Failed(u.endpoint, now)
	}
}

// blame classifies the error of an attempt and counts it against the endpoint, unless the client
// has gone.
func blame(ctx context.Context, watch *watchdog, m *model, e *pool.Endpoint, err error) error {
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

// refused reports an answer that another endpoint may well not give: busy, or a gateway before it
// that did not reach it. 500 and 504 are final, since the work was done or may still be going on.
func (u *upstream) refused() bool {
	switch u.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// misfit says why the answer must not reach the client; empty when it may.
func (u *upstream) misfit(streaming bool) string {
	switch {
	case u.status < 200 || u.status >= 300 && u.status < 400:
		return "a redirect or protocol switch" // not followed: it could lead anywhere
	case u.status >= http.StatusInternalServerError && !isJSON(u.header):
		return "an error page"
	case u.good() && u.events != streaming:
		// Official SDKs take either mismatch for an answer without content.
		return "a body of another kind than asked for"
	}
	return ""
}

// good reports whether the status says that the body is an answer.
func (u *upstream) good() bool { return u.status >= 200 && u.status < 300 }

// plain reports whether the body's bytes can be read as they come.
func (u *upstream) plain() bool {
	enc := u.header.Get("Content-Encoding")
	return enc == "" || strings.EqualFold(enc, "identity")
}

// better keeps the one of two refusals that helps the client more, and closes the other: of two 429
// the one that may be repeated sooner, else the later one.
func better(held, u *upstream) *upstream {
	if held != nil && held.status == http.StatusTooManyRequests && u.status == http.StatusTooManyRequests &&
		retryAfter(held.header) < retryAfter(u.header) {
		u.close()
		return held
	}
	held.close()
	return u
}

// retryAfter reads Retry-After; without one that can be read it is late.
func retryAfter(h http.Header) time.Duration {
	if d, ok := headers.RetryAfter(h, time.Now()); ok {
		return d
	}
	return 365 * 24 * time.Hour
}

// hasType reports whether the body is of the given media type, whatever its parameters.
func hasType(h http.Header, media string) bool {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(t), media)
}

func isJSON(h http.Header) bool { return hasType(h, "application/json") }

// peek reads what decides whether the answer is usable: all of a short body, the first bytes of a
// long one, the first event of a stream. An upstream that breaks off before can still be replaced
// by another.
func (u *upstream) peek() error {
	if u.flow != nil {
		return u.peekEvents()
	}
	whole := u.length >= 0 || isJSON(u.header)
	for u.err == nil && !u.buf.full() && (whole || len(u.buf.bytes()) == 0) {
		u.read()
		u.watch.expect(u.model.gap)
	}
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return u.err
	}
	return nil
}

func (u *upstream) peekEvents() error {
	f := u.flow
	for !f.Peek() && f.Ahead() < windowSize {
		u.fresh = u.fresh || f.Progress()
		u.advance(u.model.firstByte)
	}
	switch ended, err := f.Ended(); {
	case f.Done():
		return nil
	case ended && !f.Begun():
		return err
	case u.err != nil && !errors.Is(u.err, io.EOF):
		return u.err
	}
	u.fresh = true
	return nil
}

// identify looks for the id of a response where its answer begins, once.
func (u *upstream) identify() {
	if u.names && len(u.buf.bytes()) > 0 {
		u.names = false
		if id := responseID.FindSubmatch(u.buf.bytes()); id != nil {
			u.id = string(id[1])
		}
	}
}

// advance reads on in a stream of events. Progress has to come within limit of asking for more
// after the last; bytes that complete no event are none.
func (u *upstream) advance(limit time.Duration) {
	if u.fresh {
		u.fresh = false
		u.watch.expect(limit)
	}
	u.read()
	u.identify()
	u.flow.Feed(u.buf.bytes())
	u.buf.clear()
	if u.err != nil {
		u.flow.End(u.err)
	}
}

// read adds to the window what the upstream has, at least one byte unless it fails.
func (u *upstream) read() {
	u.watch.asleep.Store(false)
	u.err = u.buf.read(u.body)
	u.watch.asleep.Store(true)
}

// close gives everything back; the upstream request is cancelled if it still runs. A second call,
// and a call on nil, do nothing.
func (u *upstream) close() {
	if u == nil || u.closed {
		return
	}
	u.closed = true
	u.watch.stop()
	_ = u.body.Close()
	u.buf.release()
	u.flow.release()
	u.buf, u.flow = nil, nil
	u.lease.Close()
}

// readWhole reads the body, up to maxWhole bytes or a little more; u.err is io.EOF when that was
// all.
func (u *upstream) readWhole() ([]byte, error) {
	all := bytes.Clone(u.buf.bytes())
	for u.err == nil && len(all) < maxWhole {
		u.buf.clear()
		u.watch.expect(u.model.gap)
		u.read()
		all = append(all, u.buf.bytes()...)
	}
	u.watch.expect(0)
	if u.err != nil && !errors.Is(u.err, io.EOF) {
		return nil, &fault.NoResponseError{Err: u.err} // nothing was sent yet
	}
	return all, nil
}
