package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/downstream"
	"signalbox/proxy/escalate"
	"signalbox/proxy/fault"
	"signalbox/proxy/placement"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/response"
)

// The fates of the responses of a route that escalates, as header, metric and log call it.
const (
	escalationKept   = "kept"      // the response was judged and stands
	escalationLate   = "late"      // it went out before its end, since it was held long enough
	escalationUnread = "unread"    // it is too long, or cannot be read, so it stands unjudged
	escalationDone   = "escalated" // it was thrown away, and another model has answered
	escalationFailed = "failed"    // it was to be, but no other model answered, so it stands
)

// usage is what the response took; what it does not tell is estimated.
func (x *discarded) usage(req *openai.Request) response.Usage {
	u := x.tally.Usage
	if u.Input+u.Output == 0 {
		u.Input, u.Output = req.EstimateTokens(), int(max(x.tally.Length(), 0))
	}
	return u
}

// escalates prepares the judgement of responses; nil where they stand as they are. The response to
// a result of a tool stands: the model that made the call knows why. So does one that goes on with
// what the server of a model keeps, which no other server has.
func (o *exchange) escalates(req *openai.Request) *escalation {
	look := o.Action.Escalate
	if look == nil || req.API == openai.Other || req.EndsWithToolResult() || req.Continues() {
		return nil
	}
	return &escalation{look: look, sent: req, expected: escalate.Expect(req), order: o.Action.Models}
}

// behind reports whether a model comes behind another one in the order of the route.
func (e *escalation) behind(m, other *backend.Model) bool {
	at := func(m *backend.Model) int {
		return slices.IndexFunc(e.order, func(c rules.Choice) bool { return c.Name == m.Name })
	}
	return at(m) > at(other)
}

// try prepares the judgement of the response of m, where there is another model to ask.
func (e *escalation) try(m *backend.Model, where *placement.Plan) *trial {
	if e == nil {
		return nil
	}
	e.trial = nil
	if slices.ContainsFunc(where.Models, func(next *backend.Model) bool { return e.behind(next, m) }) {
		e.trial = &trial{escalation: e}
	}
	return e.trial
}

// judging reports whether the response of the attempt under way is judged.
func (e *escalation) judging() bool { return e != nil && e.trial != nil }

// discards reports that a response was judged and found wanting, so that the next model is to be
// asked: the plan begins with that one, and the response is kept for the case that nobody gives
// another.
func (e *escalation) discards(st *State, p *Proxy, o *exchange, u *upstream.Response) bool {
	if !e.judging() {
		return false
	}
	t := e.trial
	if e.result = t.result; t.sign == "" {
		return false
	}
	u.Endpoint.Succeeded()
	o.endAttempt(nil)
	o.upstream = nil
	e.from = append(e.from, discarded{model: u.Model, sign: t.sign, tally: t.answer.Tally})
	e.why, e.result = t.sign, escalationDone
	e.spare = &spare{u.Keep(), o.Params}
	was := *o
	was.tally = t.answer.Tally
	st.observeSpeed(&was, u.Status, nil)
	st.learnLength(&was)
	p.recordPlacement(&was, u.Status, nil)
	p.tel.Metrics.Escalation(o.Route, u.Model.Name, string(t.sign))
	where := o.where
	where.Restart(func(m *backend.Model) bool { return e.behind(m, u.Model) })
	o.wanted = where.Models[0]
	o.Talk.Escalated()
	return true
}

// worse reports a response that is none, where there is one that was thrown away.
func (e *escalation) worse(u *upstream.Response, streaming bool) bool {
	return e.hasSpare() && (!u.Good() || u.Misfit(streaming) != "")
}

// hasSpare reports whether there is a response that was thrown away.
func (e *escalation) hasSpare() bool { return e != nil && e.spare != nil }

// givesSpare reports whether the response that was thrown away is given after all: no other came, and
// nothing of one went out.
func (e *escalation) givesSpare(ctx context.Context, w *downstream.Writer, err error) bool {
	return e.hasSpare() && err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClientGone) &&
		!errors.Is(err, fault.ErrClientStalled) && (w.Status == 0 || w.Heartbeat.Silent())
}

// storable reports whether the response that the client got may be given to others.
func (e *escalation) storable() bool {
	return e == nil || e.result == "" || e.result == escalationKept || e.result == escalationDone
}

// describe writes the headers that say what became of the responses.
func (e *escalation) describe(h http.Header, req *openai.Request) {
	const name = "X-Signalbox-Escalation"
	if e == nil || e.result == "" {
		return
	}
	for _, part := range [...]string{"-Reason", "-From", "-Tokens"} {
		delete(h, name+part) // an attempt before this one may have set it
	}
	h[name] = []string{e.result}
	if e.why != "" {
		h[name+"-Reason"] = []string{string(e.why)}
	}
	if n := len(e.from); n > 0 {
		used := e.used(req)
		h[name+"-From"] = []string{e.from[n-1].model.Name}
		h[name+"-Tokens"] = []string{"prompt=" + strconv.Itoa(used.Input) + ", completion=" + strconv.Itoa(used.Output)}
	}
}

// used is what all responses took that nobody gets.
func (e *escalation) used(req *openai.Request) (sum response.Usage) {
	if e == nil {
		return sum
	}
	for i := range e.from {
		u := e.from[i].usage(req)
		sum.Input, sum.Output, sum.Cached = sum.Input+u.Input, sum.Output+u.Output, sum.Cached+u.Cached
	}
	return sum
}

// countDiscarded counts what answers took that nobody got. They would not have been asked for
// without the route, so they add nothing to what the same would have cost elsewhere.
func (p *Proxy) countDiscarded(o *exchange, tenant string) {
	m := p.tel.Metrics
	for _, x := range o.escalation.discarded() {
		u, usd := x.usage(o.req), x.price(o.req)
		m.Tokens("prompt", int64(u.Input))
		m.Tokens("cached", int64(u.Cached))
		m.Tokens("completion", int64(u.Output))
		m.Cost(x.model.Name, usd, 0)
		m.TenantUsage(tenant, int64(u.Input), int64(u.Cached), int64(u.Output), usd)
	}
}

// discarded are the responses that were thrown away.
func (e *escalation) discarded() []discarded {
	if e == nil {
		return nil
	}
	return e.from
}

// attrs is what the log line of a request tells.
func (e *escalation) attrs() []slog.Attr {
	if e == nil || e.result == "" {
		return nil
	}
	out := []slog.Attr{slog.String("escalation", e.result)}
	if e.why != "" {
		out = append(out, slog.String("escalated_for", string(e.why)))
	}
	if n := len(e.from); n > 0 {
		out = append(out, slog.String("escalated_from", e.from[n-1].model.Name))
	}
	return out
}

// logged is what the decision log tells; nil where no response was judged.
func (e *escalation) logged(req *openai.Request) *decisionlog.Escalation {
	if e == nil || e.result == "" {
		return nil
	}
	out := &decisionlog.Escalation{Result: e.result, Reason: string(e.why)}
	for i := range e.from {
		x := &e.from[i]
		u := x.usage(req)
		out.From = append(out.From, decisionlog.Thrown{
			Model: x.model.Name, Reason: string(x.sign),
			Tokens: *loggedTokens(u), Cost: x.model.Price.Of(float64(u.Input), float64(u.Output)),
		})
	}
	return out
}

// Escalation is what is said of the judgement of responses: what is looked for, and of a response
// that is here what was found.
type Escalation struct {
	When       []string `json:"when,omitempty"`
	MinLogprob *float64 `json:"min_logprob,omitempty"`
	Hold       string   `json:"hold"` // how long a stream is held at most
	// kept, late, unread, escalated or failed; absent where nothing was judged
	Result string `json:"result,omitempty"`
	Reason string `json:"reason,omitempty"` // the sign that was found
	From   string `json:"from,omitempty"`   // whose answer was thrown away
}

// explain tells what is looked for; nil where answers stand as they are.
func explainEscalation(a *rules.Action) *Escalation {
	if a.Escalate == nil {
		return nil
	}
	out := &Escalation{Hold: a.Escalate.Hold.String()}
	for _, s := range a.Escalate.When {
		out.When = append(out.When, string(s))
	}
	if a.Escalate.Logprobs {
		out.MinLogprob = &a.Escalate.MinLogprob
	}
	return out
}

// found adds what was found.
func (x *Escalation) found(e *escalation) {
	if x == nil || e == nil {
		return
	}
	x.Result, x.Reason = e.result, string(e.why)
	if n := len(e.from); n > 0 {
		x.From = e.from[n-1].model.Name
	}
}

// relaySpare gives the response that was thrown away, since no other came.
func (p *Proxy) relaySpare(ctx context.Context, w *downstream.Writer, o *exchange) error {
	e := o.escalation
	s := e.spare
	e.spare, e.result = nil, escalationFailed
	e.from = e.from[:len(e.from)-1] // it is the response now
	p.tel.Metrics.Escalation(o.Route, s.Model.Name, escalationFailed)
	o.where.Withdraw(time.Now()) // what it took is settled
	u := s.Open(ctx, response.StreamOptions{
		API: o.req.API, Choices: o.req.Choices(), Quiet: s.params.Usage && w.Messages == nil, Unweighed: s.params.Logprobs,
	})
	if err := u.Peek(); err != nil { // it was read before
		u.Close()
		return &fault.NoResponseError{Err: err}
	}
	o.model, o.endpoint, o.Params = u.Model, u.Endpoint, s.params
	o.describeResponse(w, u.Model)
	o.storeTurn(ctx, e.sent, u)
	o.state.AwaitOutcome(o.decision, w.ID, u.Model, o.Params.Kind.Effort)
	return p.relay(ctx, w, u, o)
}

// hold reads a response ahead, to its end or as long as it may be held, and judges it. The error is
// that of a response that broke off: nothing of it has gone to the client, so another endpoint may
// give a whole one.
func (t *trial) hold(u *upstream.Response, c *upstream.Call) (err error) {
	if !u.Good() {
		return nil
	}
	t.result = escalationUnread
	if !u.Plain() || u.Stream == nil && !u.JSON() {
		return nil
	}
	t.answer, t.response = escalate.New(c.API, t.expected), u
	var whole, late bool
	if u.Stream != nil {
		o := response.StreamOptions{API: c.API, Choices: c.Choices}
		whole, late, err = u.ReadEventsAhead(o, t.look.Hold, t.answer)
	} else if whole, err = u.ReadAhead(); whole {
		t.answer.Body(u.Ahead())
	}
	if late {
		t.result = escalationLate
	}
	if err != nil || !whole {
		return err
	}
	t.sign, t.result = t.answer.Judge(t.look), escalationKept
	if !t.answer.Readable() {
		t.result = escalationUnread
	}
	if c.Unweighed && u.Stream == nil {
		t.dropLogprobs(u)
	}
	return nil
}

// conclude has the guard check a response that shows no other sign, where the route looks for that.
func (t *trial) conclude(ctx context.Context, o *exchange) {
	if t == nil || t.result != escalationKept || t.sign != "" || o.guarding == nil ||
		!slices.Contains(t.look.When, rules.SignGuard) {
		return
	}
	body := t.response.Ahead()
	if o.req.Streams() {
		var err error
		if body, _, err = response.As(body, true, false, false); err != nil {
			return // it has no body to check
		}
	}
	if r := o.vault.Body(); r != nil {
		body = append(slices.Clone(r.Feed(body)), r.Rest()...)
	}
	if o.guarding.Observe(ctx, body) {
		t.sign = rules.SignGuard
	}
}

// dropLogprobs takes the log-probabilities out of a body whose client did not ask for them.
func (*trial) dropLogprobs(u *upstream.Response) {
	body := u.Ahead()
	out := new(response.Reader).ReadBody(body).Append(nil, response.Rewrite{Unweighed: true})
	if len(out) != len(body) {
		u.ReplaceAhead(out)
	}
}

// price is what a response cost that was thrown away, in USD.
func (x *discarded) price(req *openai.Request) float64 {
	u := x.usage(req)
	return x.model.Price.Of(float64(u.Input), float64(u.Output))
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
	o.escalation.describe(w.Header(), o.req)
}
