package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/spans"
	"signalbox/proxy/trial"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

// discards reports that a response was judged and found wanting, so that the next model is to be
// asked: the plan begins with that one.
func (p *Proxy) discards(st *State, o *exchange.Exchange, u *upstream.Response) bool {
	x, ok := o.Escalation.Discard(u, o.Params)
	if !ok {
		return false
	}
	u.Endpoint.Succeeded()
	spans.EndAttempt(o, nil)
	o.Upstream = nil
	st.book.Discard(o, x.Tally, u.Status)
	p.tel.Metrics.Escalation(o.Route, u.Model.Name, string(x.Sign))
	o.Where.Restart(func(m *backend.Model) bool { return o.Escalation.Behind(m, u.Model) })
	o.Wanted = o.Where.Models[0]
	o.Talk.Escalated()
	return true
}

// givesSpare reports whether the response that was thrown away is given after all: no other came,
// and nothing of one went out.
func givesSpare(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, err error) bool {
	return o.Escalation.HasSpare() && err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClientGone) &&
		!errors.Is(err, fault.ErrClientStalled) && (w.Status == 0 || w.Heartbeat.Silent())
}

// relaySpare gives the response that was thrown away, since no other came.
func (p *Proxy) relaySpare(ctx context.Context, st *State, w *downstream.Writer, o *exchange.Exchange) error {
	e := o.Escalation
	s := e.TakeSpare()
	p.tel.Metrics.Escalation(o.Route, s.Model.Name, trial.Failed)
	o.Where.Withdraw(time.Now()) // what it took is settled
	u := s.Open(ctx, response.StreamOptions{
		API: o.Req.API, Choices: o.Req.Choices(), Quiet: s.Params.Usage && w.Messages == nil, Unweighed: s.Params.Logprobs,
	})
	if err := u.Peek(); err != nil { // it was read before
		u.Close()
		return &fault.NoResponseError{Err: err}
	}
	o.Model, o.Endpoint, o.Params = u.Model, u.Endpoint, s.Params
	describeResponse(w, o, u.Model)
	st.storeTurn(ctx, o, e.Sent, u)
	st.AwaitOutcome(o.Decision, w.ID, u.Model, o.Params.Kind.Effort)
	return st.relay.Relay(ctx, w, u, o)
}

// storeTurn keeps what a conversation was answered with.
func (st *State) storeTurn(ctx context.Context, o *exchange.Exchange, req *openai.Request, u *upstream.Response) {
	if o.Talk != nil && u.Status == http.StatusOK {
		st.StoreTurn(ctx, o.Decision, req, u.Model, u.ID())
	}
}

// describeResponse writes the headers of a response that was judged, unless the head is gone.
func describeResponse(w *downstream.Writer, o *exchange.Exchange, first *backend.Model) {
	if w.Status != 0 {
		return
	}
	o.Decision.DescribePlace(w.Header(), o.Model, o.Endpoint, o.Effort, first)
	o.Where.Describe(w.Header())
	o.Escalation.Describe(w.Header(), o.Req)
}
