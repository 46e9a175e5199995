package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/memory/cache"
	"signalbox/proxy/answer"
	"signalbox/proxy/framing"
	"signalbox/proxy/headers"
	"signalbox/proxy/pool"
	"signalbox/rules"
)

// forward sends the request along its plan until an endpoint answers, and passes the answer on.
// Nothing is repeated once the client has seen a byte. When the last word is an upstream's refusal,
// such as 429, that refusal is the answer.
func (p *Proxy) forward(ctx context.Context, st *State, w *reply, in http.Header, where *plan, change rewriter, o *outcome) error {
	if streams(change.req) {
		w.keeper = newKeeper(w, time.Duration(st.opts.KeepaliveAfter))
	}
	defer func() { where.lease.Close() }() // if a panic left it open
	err := p.send(ctx, st, w, in, where, change, o)
	w.keeper.end()
	err = stopped(ctx, err)
	var cut *cutError
	if err == nil || w.keeper == nil || w.status == 0 || errors.As(err, &cut) || errors.Is(err, errClientGone) || errors.Is(err, errClientStalled) {
		return err
	}
	_ = w.send(openai.StreamError(wire(err, w.id)), time.Now()) // the head went out with a comment; the connection is broken off next
	return err
}

// send is forward, but that what goes wrong behind a comment is not told yet.
func (p *Proxy) send(ctx context.Context, st *State, w *reply, in http.Header, where *plan, change rewriter, o *outcome) error {
	p.budget.Earn(st.opts.RetryBudget)
	first := where.models[0]
	o.wanted, o.where = first, where
	var (
		held   *upstream // an answer that another attempt may better
		last   = errNoEndpoint
		reason string // of the coming attempt, when it is a retry
		body   = fitted{rewriter: change}
	)
	defer func() { held.close() }()
	for n := 1; ; n++ {
		m, lease, err := where.next(ctx)
		switch {
		case errors.Is(err, errCrowded), errors.Is(err, errAsleep):
			last = err
		case err != nil:
			return err
		}
		if lease == nil {
			break
		}
		if n > 1 && !p.mayRetry(reason) {
			lease.Close()
			break
		}
		err = body.fit(ctx, m, where.dress(m))
		if o.asked = body.asked; err != nil {
			lease.Close()
			return err
		}
		o.model, o.endpoint = m, lease.Endpoint()
		o.decision.describePlace(w.Header(), m, o.endpoint, o.effort, first)
		where.describe(w.Header())
		begun := time.Now()
		u, err := p.try(ctx, st, w, o, lease, call{
			in: o.headersFor(in, body.made.vault), id: w.id, to: o.surface, body: body.made,
			streaming: streams(change.req), plain: o.guarding != nil || o.memo.taping(),
			extra: o.Action.Headers, choices: choices(change.req), quiet: body.asked.usage,
			alive: st.opts.CommentsAreProgress, patience: time.Duration(st.opts.MaxRetryAfter),
		})
		switch {
		case errors.Is(err, errClientGone):
			return err
		case err != nil:
			last = err
		case u.refused():
			u.effort = o.effort
			held = better(held, u)
		default:
			held.close()
			o.queue = begun.Sub(o.decided)
			return p.relay(ctx, w, u, o)
		}
		var again bool
		if reason, again = retry(u, err); !again || n >= st.opts.MaxAttempts || w.status != 0 {
			break
		}
	}
	if held == nil {
		return last
	}
	return p.relayRefusal(ctx, w, held, o)
}

// try makes one attempt at the endpoint of o, which lease is of.
func (p *Proxy) try(
	ctx context.Context, st *State, w *reply, o *outcome, lease *pool.Lease, c call,
) (*upstream, error) {
	o.sent = st.chooser.Speeds.Now()
	w.keeper.watch()
	u, err := p.attempt(ctx, c, o.model, lease)
	w.keeper.rest()
	st.answered(o, err)
	return u, err
}

// relayRefusal passes on the refusal that no attempt has bettered.
func (p *Proxy) relayRefusal(ctx context.Context, w *reply, held *upstream, o *outcome) error {
	o.where.leave(time.Now())
	o.where.describe(w.Header())
	o.model, o.endpoint, o.effort = held.model, held.endpoint, held.effort
	o.queue = time.Since(o.decided) - held.took
	o.decision.describePlace(w.Header(), held.model, held.endpoint, held.effort, o.wanted)
	return p.relay(ctx, w, held, o)
}

// The reasons of retries, as the metric calls them.
const (
	reasonConnect = "connect"
	reasonBroken  = "broken"
	reasonTimeout = "timeout"
	reasonStatus  = "status"
)

// mayRetry takes a retry from the budget and counts it. A request that never reached its endpoint
// has cost the pool nothing and needs no budget.
func (p *Proxy) mayRetry(reason string) bool {
	if reason != reasonConnect && !p.budget.Spend() {
		return false
	}
	p.tel.Metrics.Retry(reason)
	return true
}

// retry says why an attempt may be repeated elsewhere, or that it may not.
func retry(u *upstream, err error) (reason string, ok bool) {
	var (
		unreached  *unreachedError
		unanswered *unansweredError
	)
	switch {
	case u != nil:
		return reasonStatus, true
	case errors.As(err, &unreached):
		return reasonConnect, true
	case errors.As(err, &unanswered) && errors.Is(err, errNoProgress):
		return reasonTimeout, true
	case errors.As(err, &unanswered):
		return reasonBroken, true
	}
	return "", false
}

// call is one request as every attempt sends it.
type call struct {
	in        http.Header // the client's
	id        string
	to        *surface
	body      payload
	streaming bool
	plain     bool // the answer has to be read, so it must not be compressed
	extra     []rules.Header
	choices   int           // asked for
	quiet     bool          // the client did not ask for the usage
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
	buf      *answer.Window // the first bytes of the body are in it
	err      error          // of the last read of body; io.EOF when all of it is in buf
	watch    *watchdog
	flow     *flow           // nil for what is no stream of events that can be read
	tape     *cache.Recorder // that takes the events down; nil when none does
	alive    bool            // comments of the upstream are progress
	patience time.Duration   // the longest Retry-After that counts
	fresh    bool            // there was progress since the watchdog was told
	closed   bool
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
		buf: answer.Take(), watch: watch, alive: c.alive, patience: c.patience,
	}
	if u.events && u.plain() && c.streaming {
		u.flow = takeFlow(c.to.api, c.choices)
		u.flow.quiet = c.quiet
	}
	if u.misfit(c.streaming) == "" {
		if err := u.peek(); err != nil {
			err = blame(ctx, watch, m, e, err)
			u.close()
			return nil, err
		}
	}
	u.tell(time.Now())
	return u, nil
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

// blame classifies the error of an attempt and counts it against the endpoint, unless the client has gone.
func blame(ctx context.Context, watch *watchdog, m *model, e *pool.Endpoint, err error) error {
	if ctx.Err() != nil {
		return errClientGone
	}
	m.Failed(e, time.Now())
	if watch.barked() {
		return &unansweredError{errNoProgress}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &unreachedError{err}
	}
	return &unansweredError{err}
}

// passTrace puts the place in its trace into the head of a request: the proxy's own span where there is one, else what the client sent. A
// Tracestate goes with a Traceparent that was understood, or not at all (W3C Trace Context, processing model).
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
	to := e.URL(strings.TrimPrefix(c.to.path, "/v1/"))
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

// once gives a body until one that it gave was read. The transport of HTTP/2 sends a request again whose stream was refused, or whose
// connection takes no more, for which nothing was done: at once, and then six times within 63 s (net/http of Go 1.26). Behind the first,
// another endpoint is the better place.
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

// watchdog cancels an attempt that makes no progress. It sleeps while nobody waits for the upstream: the time that a client takes
// to read is not the upstream's. Progress is frequent and want of it is rare, so the timer is not put off each time: when it rings
// early, it is set again.
type watchdog struct {
	cancel context.CancelFunc
	late   atomic.Bool
	asleep atomic.Bool

	mu    sync.Mutex // guards what follows; a leaf
	timer *time.Timer
	due   time.Time // when progress has to have come; zero for never
	rings time.Time // when the timer does; zero when it is not set
}

// nap is how soon a watchdog that was asleep when the time was over looks again.
const nap = 100 * time.Millisecond

// newWatchdog starts one that waits for limit, or for ever when limit is 0.
func newWatchdog(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{cancel: cancel}
	w.expect(limit)
	return ctx, w
}

// expect gives the attempt limit from now until the next progress, or for ever when limit is 0.
func (w *watchdog) expect(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if limit <= 0 {
		w.due = time.Time{}
		return
	}
	w.due = time.Now().Add(limit)
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(limit, w.ring)
	case w.rings.IsZero() || w.due.Before(w.rings):
		w.timer.Reset(limit)
	default:
		return
	}
	w.rings = w.due
}

// ring ends the attempt if it is late.
func (w *watchdog) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rings = time.Time{}
	if w.due.IsZero() {
		return
	}
	left := time.Until(w.due)
	if left <= 0 && w.asleep.Load() {
		left = nap
	}
	if left > 0 {
		w.timer.Reset(left)
		w.rings = time.Now().Add(left)
		return
	}
	w.late.Store(true)
	w.cancel()
}

// stop ends the attempt.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asleep.Store(false)
	w.due = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel()
}

// barked reports whether the attempt was ended for want of progress.
func (w *watchdog) barked() bool { return w.late.Load() }
