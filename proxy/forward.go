package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/placement"
	"signalbox/proxy/pool"
	"signalbox/proxy/redact"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/upstream"
)

// forward sends the request along its plan until an endpoint answers, and passes the response on.
// Nothing is repeated once the client has seen a byte. When the last word is an upstream's refusal,
// such as 429, that refusal is the response.
func (p *Proxy) forward(
	ctx context.Context, st *State, w *downstream.Writer, in http.Header, where *placement.Plan, change rewrite.Change, o *exchange,
) error {
	if change.Request.Streams() {
		w.Heartbeat = downstream.NewHeartbeat(w, time.Duration(st.opts.KeepaliveAfter))
	}
	defer func() { where.Close() }() // if a panic left it open
	o.mirror = st.mirror(ctx, change, o)
	err := p.send(ctx, st, w, in, where, change, o)
	if o.escalation.givesSpare(ctx, w, err) {
		err = p.relaySpare(ctx, w, o)
	}
	w.Heartbeat.Stop()
	err = fault.Stopped(ctx, err)
	var cut *fault.InterruptedError
	if err == nil || w.Heartbeat == nil || w.Status == 0 || errors.As(err, &cut) || errors.Is(err, fault.ErrClientGone) || errors.Is(err, fault.ErrClientStalled) {
		return err
	}
	// The head went out with a keep-alive comment; the connection is broken off next.
	_ = w.SendEvent(w.ErrorEvent(fault.Wire(err, w.ID)), time.Now())
	return err
}

// send does the work of forward. An error behind a keep-alive comment is left for forward to tell.
func (p *Proxy) send(
	ctx context.Context, st *State, w *downstream.Writer, in http.Header, where *placement.Plan, change rewrite.Change, o *exchange,
) error {
	p.retries.Earn(st.opts.RetryBudget)
	o.wanted, o.where = where.Models[0], where
	o.escalation = o.escalates(change.Request)
	var (
		refusal *upstream.Response // a refusal that another attempt may better
		effort  string             // that refusal was asked for
		last    = fault.ErrNoEndpoint
		reason  string // of the coming attempt, when it is a retry
		body    = rewrite.Fitted{Change: change}
	)
	defer func() { refusal.Close() }()
	for n := 1; ; n++ {
		m, lease, err := where.Next(ctx)
		switch {
		case errors.Is(err, fault.ErrEndpointsFull), errors.Is(err, fault.ErrAsleep):
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
		err = body.Fit(ctx, m, where.EndpointFields(m))
		if o.Params = body.Params; err != nil {
			lease.Close()
			return err
		}
		o.model, o.endpoint = m, lease.Endpoint()
		u, err := p.attempt(ctx, st, w, in, o, lease, &body, n)
		switch {
		case errors.Is(err, fault.ErrClientGone):
			return err
		case err != nil:
			last = err
		case u.Refused(), outgrown(where, u):
			if refusal = upstream.Better(refusal, u); refusal == u {
				effort = o.Effort
			}
		case o.escalation.worse(u, change.Request.Streams()):
			u.Close()
			n = st.opts.MaxAttempts // what was thrown away is better
		case o.escalation.discards(st, p, o, u):
			refusal.Close()
			refusal, n, reason = nil, 0, ""
			continue
		default:
			refusal.Close()
			return p.deliver(ctx, st, w, o, change.Request, u)
		}
		var again bool
		reason, again = retry(u, err)
		if !again || n >= st.opts.MaxAttempts || o.committed(w) {
			break
		}
	}
	if refusal == nil || o.escalation.hasSpare() {
		return last
	}
	return p.relayRefusal(ctx, w, refusal, effort, o)
}

// committed reports that the client has a head, so that no other attempt may follow.
func (o *exchange) committed(w *downstream.Writer) bool {
	return w.Status != 0 && !o.escalation.judging()
}

// attempt makes attempt n, at the endpoint of o, which lease is of.
func (p *Proxy) attempt(
	ctx context.Context, st *State, w *downstream.Writer, in http.Header, o *exchange, lease *pool.Lease, body *rewrite.Fitted, n int,
) (*upstream.Response, error) {
	t := o.escalation.try(o.model, o.where)
	if t == nil { // else what is judged may not be what is given
		o.describeResponse(w, o.wanted)
	}
	made, direct := o.direct(w, o.model, body)
	o.queue = time.Since(o.Decided)
	attemptCtx, span := p.attempting(ctx, o, n)
	call := &upstream.Call{
		ID: w.ID, Headers: o.headersFor(ctx, in, body.Made.Vault), Extra: o.Action.Headers, Body: made,
		Path: o.surface.upstreamPath(direct), API: o.surface.api, Form: o.surface.form,
		Translated: o.surface.messages && !direct, Messages: direct,
		Streaming: body.Request.Streams(), Choices: body.Request.Choices(),
		Readable: o.guarding != nil || o.lookup.Recorded() || w.Messages != nil || t != nil || o.mirror != nil ||
			body.Params.Usage,
		Quiet: body.Params.Usage && w.Messages == nil, Unweighed: body.Params.Logprobs,
		CommentsAreProgress: st.opts.CommentsAreProgress,
		MaxRetryAfter:       time.Duration(st.opts.MaxRetryAfter),
		Named:               span != nil && span.IsRecording(),
	}
	if t != nil {
		call.Hold = func(u *upstream.Response) error { return t.hold(u, call) }
	}
	o.sent = st.Chooser.Speeds.Now()
	w.Heartbeat.Start()
	u, err := upstream.Do(attemptCtx, p.transport, call, o.model, lease)
	if err == nil {
		t.conclude(attemptCtx, o)
	}
	w.Heartbeat.Pause()
	st.markFirstByte(o, err)
	o.attempted(span, u, err)
	return u, err
}

// deliver gives a response to what was sent to the client.
func (p *Proxy) deliver(
	ctx context.Context, st *State, w *downstream.Writer, o *exchange, sent *openai.Request, u *upstream.Response,
) error {
	if o.escalation.judging() {
		o.describeResponse(w, o.wanted)
	}
	o.storeTurn(ctx, sent, u)
	st.AwaitOutcome(o.decision, w.ID, o.model, o.Params.Kind.Effort)
	return p.relay(ctx, w, u, o)
}

// relayRefusal passes on the refusal that no attempt has bettered.
func (p *Proxy) relayRefusal(
	ctx context.Context, w *downstream.Writer, refusal *upstream.Response, effort string, o *exchange,
) error {
	o.where.Abandon(time.Now())
	o.where.Describe(w.Header())
	o.model, o.endpoint, o.Effort = refusal.Model, refusal.Endpoint, effort
	o.queue = time.Since(o.Decided) - refusal.Took
	o.decision.DescribePlace(w.Header(), refusal.Model, refusal.Endpoint, effort, o.wanted)
	return p.relay(ctx, w, refusal, o)
}

// The reasons of retries, as the metric calls them.
const (
	reasonConnect = "connect"
	reasonBroken  = "broken"
	reasonTimeout = "timeout"
	reasonStatus  = "status"
	reasonLength  = "length"
)

// mayRetry takes a retry from the budget and counts it. A request that never reached its endpoint,
// or was refused for its length, has cost the pool nothing and needs no budget.
func (p *Proxy) mayRetry(reason string) bool {
	if reason != reasonConnect && reason != reasonLength && !p.retries.Spend() {
		return false
	}
	p.tel.Metrics.Retry(reason)
	return true
}

// retry says why an attempt may be repeated elsewhere, or that it may not.
func retry(u *upstream.Response, err error) (reason string, ok bool) {
	var (
		unreached  *fault.ConnectError
		unanswered *fault.NoResponseError
	)
	switch {
	case u != nil && u.Status == http.StatusBadRequest:
		return reasonLength, true
	case u != nil:
		return reasonStatus, true
	case errors.As(err, &unreached):
		return reasonConnect, true
	case errors.As(err, &unanswered) && errors.Is(err, fault.ErrNoProgress):
		return reasonTimeout, true
	case errors.As(err, &unanswered):
		return reasonBroken, true
	}
	return "", false
}

// headersFor returns the client's headers without those that mention a value that was hidden. With
// hideAll, body, the vault that was filled from the body, becomes the vault of the request.
func (o *exchange) headersFor(ctx context.Context, in http.Header, body *redact.Vault) http.Header {
	if o.hideAll {
		o.vault = body
	}
	if o.vault == nil {
		return in
	}
	out := make(http.Header, len(in))
	for name, values := range in {
		clean := true
		for _, value := range values {
			clean = clean && !o.vault.Mentions(ctx, value)
		}
		if clean {
			out[name] = values
		}
	}
	return out
}
