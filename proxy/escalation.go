package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/affinity"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/escalate"
	"signalbox/proxy/fault"
	"signalbox/rules"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// What became of the answers of a route that escalates, as header, metric and log call it.
const (
	escalationKept   = "kept"      // the answer was judged and stands
	escalationLate   = "late"      // it went out before its end, since it was held long enough
	escalationUnread = "unread"    // it is too long, or cannot be read, so it stands unjudged
	escalationDone   = "escalated" // it was thrown away, and another model has answered
	escalationFailed = "failed"    // it was to be, but no other model answered, so it stands
)

// escalation is what becomes of the answers to one request of a route that escalates. It belongs to
// the request's goroutine. nil stands for a request whose first answer stands.
type escalation struct {
	look     *rules.Escalate
	sent     *openai.Request // to the models; values may be hidden in it
	expected *escalate.Expected
	order    []rules.Choice // of the models, from the first to ask
	trial    *trial         // of the attempt under way; nil where its answer stands as it is
	result   string         // empty until an answer was judged
	why      rules.Sign     // that an answer was, or was to be, thrown away for; empty for none
	from     []thrown       // the answers that were, in order
	spare    *spare         // the last of them
}

// thrown is an answer that nobody gets.
type thrown struct {
	model *model
	why   rules.Sign
	told  response.Tally
}

// usage is what the answer took; what it does not tell is estimated.
func (x *thrown) usage(req *openai.Request) response.Usage {
	u := x.told.Usage
	if u.Input+u.Output == 0 {
		u.Input, u.Output = estimateTokens(req), int(max(x.told.Length(), 0))
	}
	return u
}

// escalates prepares the judgement of answers; nil where they stand as they are. The answer to a
// result of a tool stands: the model that made the call knows why. So does one that goes on with
// what the server of a model keeps, which no other server has.
func (o *exchange) escalates(req *openai.Request) *escalation {
	look := o.Action.Escalate
	if look == nil || req.API == openai.Other || bringsResults(req) {
		return nil
	}
	if textField(req, "previous_response_id") != "" || objectField(req) != "" ||
		string(req.Field("background")) == "true" {
		return nil
	}
	return &escalation{look: look, sent: req, expected: escalate.Expect(req), order: o.Action.Models}
}

// behind reports whether a model comes behind another one in the order of the route.
func (e *escalation) behind(m, other *model) bool {
	at := func(m *model) int {
		return slices.IndexFunc(e.order, func(c rules.Choice) bool { return c.Name == m.Name })
	}
	return at(m) > at(other)
}

// try prepares the judgement of the answer of m, where there is another model to ask.
func (e *escalation) try(m *model, where *plan) *trial {
	if e == nil {
		return nil
	}
	e.trial = nil
	if slices.ContainsFunc(where.models, func(next *model) bool { return e.behind(next, m) }) {
		e.trial = &trial{escalation: e}
	}
	return e.trial
}

// judging reports whether the answer of the attempt under way is judged.
func (e *escalation) judging() bool { return e != nil && e.trial != nil }

// passes reports that an answer was judged and found wanting, so that the next model is to be
// asked: the plan begins with that one, and the answer is kept for the case that nobody gives
// another.
func (e *escalation) passes(st *State, p *Proxy, o *exchange, u *upstream) bool {
	if !e.judging() {
		return false
	}
	t := e.trial
	if e.result = t.result; t.sign == "" {
		return false
	}
	u.endpoint.Succeeded()
	o.endAttempt(nil)
	o.upstream = nil
	e.from = append(e.from, thrown{model: u.model, why: t.sign, told: t.answer.Tally})
	e.why, e.result = t.sign, escalationDone
	e.spare = u.spare(o, t)
	was := *o
	was.told = t.answer.Tally
	st.ended(&was, u.status, nil)
	st.learn(&was)
	p.settlePlacement(&was, u.status, nil)
	p.tel.Metrics.Escalation(o.Route, u.model.Name, string(t.sign))
	where := o.where
	where.ticket, where.by = affinity.Ticket{}, affinity.NoSource
	where.models = slices.DeleteFunc(where.models, func(m *model) bool { return !e.behind(m, u.model) })
	where.tried = where.tried[:0] // a request that comes to a model for the first time may wait
	o.wanted = where.models[0]
	if c := o.talk; c != nil && c.before != nil {
		c.result, c.why = talkMoved, whyEscalated
	}
	return true
}

// worse reports an answer that is none, where there is one that was thrown away.
func (e *escalation) worse(u *upstream, streaming bool) bool {
	return e.spared() && (!u.good() || u.misfit(streaming) != "")
}

// spared reports whether there is an answer that was thrown away.
func (e *escalation) spared() bool { return e != nil && e.spare != nil }

// falls reports whether the answer that was thrown away is given after all: no other came, and
// nothing of one went out.
func (e *escalation) falls(ctx context.Context, w *reply, err error) bool {
	return e.spared() && err != nil && ctx.Err() == nil && !errors.Is(err, fault.ErrClientGone) &&
		!errors.Is(err, fault.ErrClientStalled) && (w.status == 0 || w.keeper.silent())
}

// storable reports whether the answer that the client got may be given to others.
func (e *escalation) storable() bool {
	return e == nil || e.result == "" || e.result == escalationKept || e.result == escalationDone
}

// describe writes the headers that say what became of the answers.
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

// used is what all answers took that nobody gets.
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

// countThrown counts what answers took that nobody got. They would not have been asked for without
// the route, so they add nothing to what the same would have cost elsewhere.
func (p *Proxy) countThrown(o *exchange, tenant string) {
	m := p.tel.Metrics
	for _, x := range o.escalation.thrown() {
		u, usd := x.usage(o.req), x.price(o.req)
		m.Tokens("prompt", int64(u.Input))
		m.Tokens("cached", int64(u.Cached))
		m.Tokens("completion", int64(u.Output))
		m.Cost(x.model.Name, usd, 0)
		m.TenantUsage(tenant, int64(u.Input), int64(u.Cached), int64(u.Output), usd)
	}
}

// thrown are the answers that were thrown away.
func (e *escalation) thrown() []thrown {
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

// logged is what the decision log tells; nil where no answer was judged.
func (e *escalation) logged(req *openai.Request) *decisionlog.Escalation {
	if e == nil || e.result == "" {
		return nil
	}
	out := &decisionlog.Escalation{Result: e.result, Reason: string(e.why)}
	for i := range e.from {
		x := &e.from[i]
		u := x.usage(req)
		out.From = append(out.From, decisionlog.Thrown{
			Model: x.model.Name, Reason: string(x.why),
			Tokens: *loggedTokens(u), Cost: x.model.Price.Of(float64(u.Input), float64(u.Output)),
		})
	}
	return out
}

// Escalation is what is said of the judgement of answers: what is looked for, and of an answer that
// is here what was found.
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

// spare is an answer that was thrown away, as it can be given after all.
type spare struct {
	asked asked
	model *model
	head  upstream // without what belongs to its connection
	body  []byte
}

// spare keeps the answer of u and gives its connection back.
func (u *upstream) spare(o *exchange, t *trial) *spare {
	s := &spare{asked: o.asked, model: u.model, body: t.held.all, head: upstream{
		model: u.model, endpoint: u.endpoint, lease: u.lease, status: u.status, header: u.header, length: u.length,
		events: u.events, took: u.took, patience: u.patience, names: u.names,
	}}
	u.close()
	return s
}

// open makes an answer of it again.
func (s *spare) open(ctx context.Context, c response.StreamOptions) *upstream {
	u := s.head
	_, u.watch = newWatchdog(ctx, 0)
	u.buf, u.body = takeWindow(), io.NopCloser(&held{all: s.body, err: io.EOF})
	if u.events {
		u.flow = takeFlow(c)
	}
	return &u
}

// relaySpare gives the answer that was thrown away, since no other came.
func (p *Proxy) relaySpare(ctx context.Context, w *reply, o *exchange) error {
	e := o.escalation
	s := e.spare
	e.spare, e.result = nil, escalationFailed
	e.from = e.from[:len(e.from)-1] // it is the answer now
	p.tel.Metrics.Escalation(o.Route, s.model.Name, escalationFailed)
	o.where.leave(time.Now())
	o.where.of = nil // what it took is settled
	u := s.open(ctx, response.StreamOptions{
		API: o.req.API, Choices: choices(o.req), Quiet: s.asked.usage && w.messages == nil, Unweighed: s.asked.logprobs,
	})
	if err := u.peek(); err != nil { // it was read before
		u.close()
		return &fault.NoResponseError{Err: err}
	}
	o.model, o.endpoint, o.asked = u.model, u.endpoint, s.asked
	o.describeAnswer(w, u.model)
	o.state.follow(ctx, o.decision, e.sent, u)
	o.state.await(o.decision, w.id, u.model, o.effort)
	return p.relay(ctx, w, u, o)
}

// describeAnswer writes the headers of an answer that was judged, unless the head is gone.
func (o *exchange) describeAnswer(w *reply, first *model) {
	if w.status != 0 {
		return
	}
	o.decision.describePlace(w.Header(), o.model, o.endpoint, o.effort, first)
	o.where.describe(w.Header())
	o.escalation.describe(w.Header(), o.req)
}

// trial is the judgement of one answer.
type trial struct {
	*escalation

	answer *escalate.Answer
	held   *held
	sign   rules.Sign
	result string
}

// maxHeld bounds an answer that is held to be judged, in bytes; a longer one stands unjudged.
const maxHeld = maxWhole

// hold reads an answer ahead, to its end or as long as it may be held, and judges it. What was read
// is read again afterwards. The error is that of an answer that broke off: nothing of it has gone
// to the client, so another endpoint may give a whole one.
func (t *trial) hold(u *upstream, c *call) error {
	if t == nil {
		return nil
	}
	if !u.good() {
		return nil
	}
	t.result = escalationUnread
	if !u.plain() || u.flow == nil && !isJSON(u.header) {
		return nil
	}
	t.answer = escalate.New(c.to.api, t.expected)
	t.held = &held{ReadCloser: u.body}
	u.body = t.held
	var whole bool
	var err error
	if u.flow != nil {
		whole, err = t.holdStream(u, c.to.api, c.choices)
	} else {
		whole, err = t.holdBody(u)
	}
	u.watch.asleep.Store(true)
	if err != nil || !whole {
		return err
	}
	t.sign, t.result = t.answer.Judge(t.look), escalationKept
	if !t.answer.Readable() {
		t.result = escalationUnread
	}
	if c.unweighed {
		t.unweigh(u)
	}
	return nil
}

// holdBody reads a body to its end.
func (t *trial) holdBody(u *upstream) (whole bool, err error) {
	h, piece := t.held, make([]byte, windowSize)
	for h.err == nil && len(h.all) < maxHeld {
		n, err := h.ReadCloser.Read(piece)
		h.take(piece[:n], err)
		u.watch.expect(u.model.gap)
	}
	switch {
	case h.err == nil:
		return false, nil
	case !errors.Is(h.err, io.EOF):
		return false, h.err
	}
	t.answer.Body(h.all)
	return true, nil
}

// holdStream reads a stream to its end, for as long as it may be held.
func (t *trial) holdStream(u *upstream, api openai.API, choices int) (whole bool, err error) {
	h := t.held
	flow := takeFlow(response.StreamOptions{API: api, Choices: choices})
	defer flow.release()
	timer := time.NewTimer(t.look.Hold)
	defer timer.Stop()
	piece := make([]byte, windowSize)
	for len(h.all) < maxHeld {
		h.begin(piece)
		select {
		case <-timer.C:
			t.result = escalationLate
			return false, nil
		case r := <-h.came:
			h.came = nil
			h.take(piece[:r.n], r.err)
			flow.Feed(piece[:r.n])
		}
		if h.err != nil {
			flow.End(h.err)
		}
		for c := flow.Next(); c != nil; c = flow.Next() {
			t.answer.Put(c)
		}
		if flow.Progress() {
			u.watch.expect(u.model.gap)
		}
		ended, err := flow.Ended()
		switch {
		case flow.Done(), flow.Failed():
			return true, nil
		case ended:
			return false, err
		}
	}
	return false, nil
}

// conclude has the guard check an answer that shows no other sign, where the route looks for that.
func (t *trial) conclude(ctx context.Context, o *exchange) {
	if t == nil || t.result != escalationKept || t.sign != "" || o.guarding == nil ||
		!slices.Contains(t.look.When, rules.SignGuard) {
		return
	}
	body := t.held.all
	if streams(o.req) {
		var err error
		if body, _, err = response.As(body, true, false, false); err != nil {
			return // it has no body to check
		}
	}
	if r := o.vault.Body(); r != nil {
		body = append(slices.Clone(r.Feed(body)), r.Rest()...)
	}
	job := o.guarding.job
	job.Policy.Mode, job.Policy.Summary = guard.Observe, false
	if _, found, err := o.guarding.engine.Body(ctx, body, job); err == nil && found.Failed > 0 {
		t.sign = rules.SignGuard
	}
}

// unweigh takes the log-probabilities out of a body that the client did not ask for them in.
func (t *trial) unweigh(u *upstream) {
	if u.flow != nil {
		return
	}
	out := new(response.Reader).ReadBody(t.held.all).Append(nil, response.Rewrite{Unweighed: true})
	if len(out) == len(t.held.all) {
		return
	}
	t.held.all = out
	if u.header = u.header.Clone(); u.length >= 0 {
		u.length = int64(len(out))
		u.header["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	for _, name := range [...]string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5", "Etag"} {
		delete(u.header, name)
	}
}

// held is a body of which the beginning was read ahead, and is read again.
type held struct {
	io.ReadCloser

	all  []byte // read ahead
	at   int    // how much of it was read again
	err  error  // that came behind it
	came chan piece
	last []byte // that the read under way fills
}

// piece is what a read has brought.
type piece struct {
	n   int
	err error
}

// begin starts a read in the background, which nobody has to wait for: the next to read takes what
// it brings.
func (h *held) begin(b []byte) {
	came := make(chan piece, 1)
	h.came, h.last = came, b
	go func(from io.Reader) {
		n, err := from.Read(b)
		came <- piece{n, err}
	}(h.ReadCloser)
}

// take notes what a read has brought.
func (h *held) take(b []byte, err error) { h.all, h.err = append(h.all, b...), err }

// Read implements io.Reader.
func (h *held) Read(b []byte) (int, error) {
	if h.at == len(h.all) && h.came != nil {
		r := <-h.came
		h.came, h.err = nil, r.err
		h.all, h.at = append(h.all[:0], h.last[:r.n]...), 0
	}
	if h.at < len(h.all) {
		n := copy(b, h.all[h.at:])
		h.at += n
		return n, nil
	}
	if h.err != nil {
		return 0, h.err
	}
	h.all, h.last = nil, nil
	h.at = 0
	return h.ReadCloser.Read(b)
}

// Close implements io.Closer. It waits for a read under way.
func (h *held) Close() error {
	if h.ReadCloser == nil {
		return nil
	}
	err := h.ReadCloser.Close()
	if h.came != nil {
		<-h.came
		h.came = nil
	}
	return err
}
