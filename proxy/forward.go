package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/mirror"
	"signalbox/proxy/placement"
	"signalbox/proxy/pool"
	"signalbox/proxy/redact"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/spans"
	"signalbox/proxy/trial"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

// forward sends the request along its plan until an endpoint answers, and relays the response. It
// makes no further attempt once the client has received a byte. When the last result is an upstream
// refusal, such as a 429, that refusal is the response.
func (p *Proxy) forward(
	ctx context.Context, st *State, w *downstream.Writer, in http.Header, where *placement.Plan,
	change rewrite.Change, o *exchange.Exchange,
) error {
	if change.Request.Streams() {
		w.Heartbeat = downstream.NewHeartbeat(w, time.Duration(st.opts.KeepaliveAfter))
		// in case a panic left it running: it must not write into a writer that another request
		// uses by then
		defer w.Heartbeat.Stop()
	}
	defer func() { where.Close() }() // in case a panic left it open
	o.Mirror = mirror.New(ctx, &change)
	err := p.send(ctx, st, w, in, where, change, o)
	if givesSpare(ctx, w, o, err) {
		err = p.relaySpare(ctx, st, w, o)
	}
	w.Heartbeat.Stop()
	err = fault.Stopped(ctx, err)
	var cut *fault.InterruptedError
	if err == nil || w.Heartbeat == nil || w.Status == 0 || errors.As(err, &cut) || errors.Is(err, fault.ErrClientGone) || errors.Is(err, fault.ErrClientStalled) {
		return err
	}
	o.Silent = w.Heartbeat.Silent()
	// the response head was already sent with a keep-alive comment
	w.TellError(fault.Wire(err, w.ID), o.Req, 0, "")
	return err
}

// send implements forward. When the head was already sent with a keep-alive comment, it returns the
// error for forward to write to the client.
func (p *Proxy) send(
	ctx context.Context, st *State, w *downstream.Writer, in http.Header, where *placement.Plan,
	change rewrite.Change, o *exchange.Exchange,
) error {
	p.retries.Earn(st.opts.RetryBudget)
	o.Wanted, o.Where = where.Models[0], where
	o.Escalation = trial.New(o.Action, change.Request)
	var (
		refusal *upstream.Response // the best refusal so far, kept while other attempts may succeed
		effort  string             // the effort requested in the attempt that was refused
		last    = fault.ErrNoEndpoint
		reason  string // why the next attempt is a retry; empty if it is not one
		body    = rewrite.Fitted{Change: change}
	)
	defer func() { refusal.Close() }()
	for n := 1; ; n++ {
		m, lease, err := nextSlot(ctx, w, where)
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
		o.Model, o.Endpoint = m, lease.Endpoint()
		u, err := p.attempt(ctx, st, w, in, o, lease, &body, n)
		switch {
		case errors.Is(err, fault.ErrClientGone):
			return err
		case err != nil:
			last = err
		case u.Refused(), outgrown(where, u):
			refusal, effort = hold(refusal, u, effort, o.Effort)
		case outdone(refusal, o, u, change.Request.Streams()):
			u.Close()
			n = st.opts.MaxAttempts
		case p.discards(ctx, st, o, u):
			refusal.Close()
			refusal, n, reason = nil, 0, ""
			continue
		case u.Useless():
			refusal, effort = hold(refusal, u, effort, o.Effort)
		default:
			refusal.Close()
			return p.deliver(ctx, st, w, o, change.Request, u)
		}
		var again bool
		reason, again = retry(u, err)
		if !again || n >= st.opts.MaxAttempts || committed(w, o) {
			break
		}
	}
	if refusal == nil || o.Escalation.HasSpare() {
		return last
	}
	return p.relayRefusal(ctx, st, w, refusal, effort, o)
}

// nextSlot returns the model and the slot of the coming attempt. While the request waits for them,
// comments keep its connection alive.
func nextSlot(ctx context.Context, w *downstream.Writer, where *placement.Plan) (*backend.Model, *pool.Lease, error) {
	w.Heartbeat.Start()
	defer w.Heartbeat.Pause()
	return where.Next(ctx)
}

// hold returns the better of two refusals with the effort requested for it. A held refusal keeps no
// slot, because its endpoint is done with the request.
func hold(held, u *upstream.Response, effort, asked string) (better *upstream.Response, of string) {
	u.Vacate()
	if better = upstream.Better(held, u); better == u {
		return better, asked
	}
	return better, effort
}

// outdone reports whether an earlier result is better than u: a discarded response, or the refusal
// of a server that has the state that the request continues from and is only busy.
func outdone(refusal *upstream.Response, o *exchange.Exchange, u *upstream.Response, streams bool) bool {
	if refusal != nil && lacksState(o, u) {
		u.Endpoint.Succeeded()
		return true
	}
	return o.Escalation.Worse(u, streams)
}

// lacksState reports whether u may mean that the server does not have the response that the request
// continues from. OpenAI reports this as a 400 (previous_response_not_found), vLLM as a 404.
func lacksState(o *exchange.Exchange, u *upstream.Response) bool {
	return o.Kept != nil && (u.Status == http.StatusNotFound || u.Status == http.StatusBadRequest)
}

// committed reports whether the client has received a response head, so that no other attempt may
// follow.
func committed(w *downstream.Writer, o *exchange.Exchange) bool {
	return w.Status != 0 && !o.Escalation.Judging()
}

// attempt makes attempt n at the endpoint of o, in the slot of lease.
func (p *Proxy) attempt(
	ctx context.Context, st *State, w *downstream.Writer, in http.Header, o *exchange.Exchange,
	lease *pool.Lease, body *rewrite.Fitted, n int,
) (*upstream.Response, error) {
	t := o.Escalation.Try(o.Model, o.Where.Models)
	if t == nil { // otherwise the response that is judged might differ from the one that is sent
		describeResponse(w, o, o.Wanted)
	}
	made, own := ownBody(w, o, o.Model, body)
	o.Queue = time.Since(o.Decided)
	attemptCtx, span := spans.Attempt(ctx, p.tel, o, n)
	call := &upstream.Call{
		ID: w.ID, Headers: headersFor(ctx, o, in, body.Made.Vault), Extra: o.Action.Headers, Body: made,
		Path: o.Surface.UpstreamPath(own), API: o.Surface.API, Form: o.Surface.Form,
		Translated: o.Surface.Messages && !own, Messages: own,
		Streaming: body.Request.Streams(), Choices: body.Request.Choices(),
		Quiet: body.Params.Usage && w.Messages == nil, Unweighed: body.Params.Logprobs,
		CommentsAreProgress: st.opts.CommentsAreProgress,
		MaxRetryAfter:       time.Duration(st.opts.MaxRetryAfter),
		Named:               span != nil && span.IsRecording(),
	}
	if t != nil {
		call.Hold = func(u *upstream.Response) error { return t.Hold(u, call, body.Params.Limit) }
	}
	o.Sent = st.Chooser.Speeds.Now()
	w.Heartbeat.Start()
	u, err := upstream.Do(attemptCtx, p.transport, call, o.Model, lease)
	p.warnBarred(ctx, w.ID, err)
	if err == nil {
		t.Conclude(attemptCtx, o.Guarding, o.Vault, o.Req)
	}
	w.Heartbeat.Pause()
	st.book.MarkFirstByte(o, err)
	spans.Attempted(o, span, u, err)
	return u, err
}

// warnBarred logs that an endpoint refused the credentials configured for it. When another endpoint
// answers, the log is the only place where this shows.
func (p *Proxy) warnBarred(ctx context.Context, id string, err error) {
	if e, ok := errors.AsType[*fault.CredentialsError](err); ok {
		p.tel.Log.LogAttrs(ctx, slog.LevelWarn, "endpoint rejected the proxy's credentials", slog.String("model", e.Model),
			slog.String("endpoint", e.Endpoint), slog.String("id", id))
	}
}

// deliver relays a response to the client.
func (*Proxy) deliver(
	ctx context.Context, st *State, w *downstream.Writer, o *exchange.Exchange,
	sent *openai.Request, u *upstream.Response,
) error {
	if o.Escalation.Judging() {
		describeResponse(w, o, o.Wanted)
	}
	st.storeTurn(ctx, o, sent, u)
	st.AwaitOutcome(o.Decision, w.ID, o.Model, o.Params.Kind.Effort)
	return st.relay.Relay(ctx, w, u, o)
}

// relayRefusal relays the refusal that remains when no later attempt was better.
func (*Proxy) relayRefusal(
	ctx context.Context, st *State, w *downstream.Writer, refusal *upstream.Response, effort string,
	o *exchange.Exchange,
) error {
	o.Where.Abandon(time.Now())
	o.Where.Describe(w.Header())
	o.Model, o.Endpoint, o.Effort = refusal.Model, refusal.Endpoint, effort
	o.Queue = time.Since(o.Decided) - refusal.Took
	o.Decision.DescribePlace(w.Header(), refusal.Model, refusal.Endpoint, effort, o.Wanted)
	return st.relay.Relay(ctx, w, refusal, o)
}

// The reasons for retries, as labels of the retry metric.
const (
	reasonConnect = "connect"
	reasonBroken  = "broken"
	reasonTimeout = "timeout"
	reasonStatus  = "status"
	reasonLength  = "length"
)

// mayRetry takes one retry from the budget and counts it. A retry needs no budget when the request
// never reached its endpoint or was refused because of its length: it has cost the pool nothing.
func (p *Proxy) mayRetry(reason string) bool {
	if reason != reasonConnect && reason != reasonLength && !p.retries.Spend() {
		return false
	}
	p.tel.Metrics.Retry(reason)
	return true
}

// retry returns the reason for repeating an attempt elsewhere; ok is false when it must not be
// repeated.
func retry(u *upstream.Response, err error) (reason string, ok bool) {
	var (
		unreached  *fault.ConnectError
		unanswered *fault.NoResponseError
		barred     *fault.CredentialsError
		unusable   *fault.UnusableError
	)
	switch {
	case u != nil && u.Status == http.StatusBadRequest:
		return reasonLength, true
	case u != nil, errors.As(err, &barred):
		return reasonStatus, true
	case errors.As(err, &unreached):
		return reasonConnect, true
	case errors.As(err, &unanswered) && errors.Is(err, fault.ErrNoProgress):
		return reasonTimeout, true
	case errors.As(err, &unanswered), errors.As(err, &unusable):
		return reasonBroken, true
	}
	return "", false
}

// headersFor returns the client's headers without those that contain a redacted value. With
// hideAll, body, the vault that was filled from the body, becomes the vault of the request.
func headersFor(ctx context.Context, o *exchange.Exchange, in http.Header, body *redact.Vault) http.Header {
	if o.HideAll {
		o.Vault = body
	}
	if o.Vault == nil {
		return in
	}
	out := make(http.Header, len(in))
	for name, values := range in {
		clean := true
		for _, value := range values {
			clean = clean && !o.Vault.Mentions(ctx, value)
		}
		if clean {
			out[name] = values
		}
	}
	return out
}

// discards reports whether the response was judged insufficient, so that the next model is to be
// asked. The plan then begins with that model.
func (p *Proxy) discards(ctx context.Context, st *State, o *exchange.Exchange, u *upstream.Response) bool {
	x, ok := o.Escalation.Discard(u, o.Params, func(told *response.Tally) response.Usage {
		p.records.Believe(ctx, o, told)
		return told.Taken(o.PromptTokens())
	})
	if !ok {
		return false
	}
	if x.Tally.Failed {
		u.Erred(time.Now())
	} else {
		u.Endpoint.Succeeded()
	}
	spans.EndAttempt(o, nil)
	o.Upstream = nil
	st.book.Discard(o, x.Tally, u.Status)
	p.tel.Metrics.Escalation(o.Route, u.Model.Name, string(x.Sign))
	o.Where.Restart(func(m *backend.Model) bool { return o.Escalation.Behind(m, u.Model) })
	o.Wanted = o.Where.Models[0]
	o.Talk.Escalated()
	return true
}

// givesSpare reports whether the discarded response is delivered after all: no other response
// arrived and nothing has been sent to the client.
func givesSpare(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, err error) bool {
	return o.Escalation.HasSpare() && err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClientGone) &&
		!errors.Is(err, fault.ErrClientStalled) && (w.Status == 0 || w.Heartbeat.Silent())
}

// relaySpare delivers the discarded response, because no other arrived.
func (p *Proxy) relaySpare(ctx context.Context, st *State, w *downstream.Writer, o *exchange.Exchange) error {
	e := o.Escalation
	s := e.TakeSpare()
	p.tel.Metrics.Escalation(o.Route, s.Model.Name, trial.Failed)
	o.Where.Withdraw(time.Now()) // its use of the plan is already settled
	u := s.Open(ctx, response.StreamOptions{
		API: o.Req.API, Choices: o.Req.Choices(),
		Quiet: s.Params.Usage && w.Messages == nil, Unweighed: s.Params.Logprobs,
	})
	if err := u.Peek(); err != nil { // the body was read before, to judge it
		u.Close()
		return &fault.NoResponseError{Err: err}
	}
	o.Model, o.Endpoint, o.Params = u.Model, u.Endpoint, s.Params
	describeResponse(w, o, u.Model)
	st.storeTurn(ctx, o, e.Sent, u)
	st.AwaitOutcome(o.Decision, w.ID, u.Model, o.Params.Kind.Effort)
	return st.relay.Relay(ctx, w, u, o)
}

// storeTurn stores the response of a conversation's turn.
func (st *State) storeTurn(ctx context.Context, o *exchange.Exchange, req *openai.Request, u *upstream.Response) {
	if u.Status == http.StatusOK {
		st.StoreTurn(ctx, o.Decision, req, u.Model, u.Endpoint, u.ID())
	}
}

// describeResponse writes the headers that describe a judged response, unless the response head was
// already sent.
func describeResponse(w *downstream.Writer, o *exchange.Exchange, first *backend.Model) {
	if w.Status != 0 {
		return
	}
	o.Decision.DescribePlace(w.Header(), o.Model, o.Endpoint, o.Effort, first)
	o.Where.Describe(w.Header())
	o.Escalation.Describe(w.Header())
}
