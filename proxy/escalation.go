package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/trial"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

// discards reports that a response was judged and found wanting, so that the next model is to be
// asked: the plan begins with that one.
func (p *Proxy) discards(o *exchange, u *upstream.Response) bool {
	x, ok := o.escalation.Discard(u, o.Params)
	if !ok {
		return false
	}
	u.Endpoint.Succeeded()
	o.endAttempt(nil)
	o.upstream = nil
	was := *o
	was.tally = x.Tally
	o.state.observeSpeed(&was, u.Status, nil)
	o.state.learnLength(&was)
	p.recordPlacement(&was, u.Status, nil)
	p.tel.Metrics.Escalation(o.Route, u.Model.Name, string(x.Sign))
	o.where.Restart(func(m *backend.Model) bool { return o.escalation.Behind(m, u.Model) })
	o.wanted = o.where.Models[0]
	o.Talk.Escalated()
	return true
}

// givesSpare reports whether the response that was thrown away is given after all: no other came,
// and nothing of one went out.
func (o *exchange) givesSpare(ctx context.Context, w *downstream.Writer, err error) bool {
	return o.escalation.HasSpare() && err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClientGone) &&
		!errors.Is(err, fault.ErrClientStalled) && (w.Status == 0 || w.Heartbeat.Silent())
}

// relaySpare gives the response that was thrown away, since no other came.
func (p *Proxy) relaySpare(ctx context.Context, w *downstream.Writer, o *exchange) error {
	e := o.escalation
	s := e.TakeSpare()
	p.tel.Metrics.Escalation(o.Route, s.Model.Name, trial.Failed)
	o.where.Withdraw(time.Now()) // what it took is settled
	u := s.Open(ctx, response.StreamOptions{
		API: o.req.API, Choices: o.req.Choices(), Quiet: s.Params.Usage && w.Messages == nil, Unweighed: s.Params.Logprobs,
	})
	if err := u.Peek(); err != nil { // it was read before
		u.Close()
		return &fault.NoResponseError{Err: err}
	}
	o.model, o.endpoint, o.Params = u.Model, u.Endpoint, s.Params
	o.describeResponse(w, u.Model)
	o.storeTurn(ctx, e.Sent, u)
	o.state.AwaitOutcome(o.decision, w.ID, u.Model, o.Params.Kind.Effort)
	return p.relay(ctx, w, u, o)
}

// storeTurn keeps what a conversation was answered with.
func (o *exchange) storeTurn(ctx context.Context, req *openai.Request, u *upstream.Response) {
	if o.Talk != nil && u.Status == http.StatusOK {
		o.state.StoreTurn(ctx, o.decision, req, u.Model, u.ID())
	}
}

// describeResponse writes the headers of a response that was judged, unless the head is gone.
func (o *exchange) describeResponse(w *downstream.Writer, first *backend.Model) {
	if w.Status != 0 {
		return
	}
	o.decision.DescribePlace(w.Header(), o.model, o.endpoint, o.Effort, first)
	o.where.Describe(w.Header())
	o.escalation.Describe(w.Header(), o.req)
}
