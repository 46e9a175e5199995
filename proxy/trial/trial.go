package trial

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/escalate"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/redact"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/response"
)

// New prepares to judge the responses to a request as sent to models; it returns nil if they are
// final. The response to a tool result is final, since only the model that made the call knows why.
// So is a response that continues state stored by one model's server, which no other server has.
func New(a *rules.Action, sent *openai.Request) *Course {
	look := a.Escalate
	if look == nil || sent.API == openai.Other || sent.BringsToolResult() || sent.Continues() {
		return nil
	}
	return &Course{look: look, Sent: sent, expected: escalate.Expect(sent), order: a.Models}
}

// Course is the course of the responses to one request of a route with escalation. It belongs to
// the request's goroutine. nil means that the first response is final.
type Course struct {
	look     *rules.Escalate
	Sent     *openai.Request // as sent to models; values may be redacted in it
	expected *escalate.Expected
	order    []rules.Choice // the models in the order to ask them
	trial    *Trial         // of the current attempt; nil if its response is final
	result   string         // empty until a response was judged
	// sign for which a response was, or was to be, discarded, or that could not be checked; empty
	// if there is none
	why   rules.Sign
	idle  bool        // unread only because the guard has no evidence
	from  []Discarded // discarded responses, in order
	spare *Spare      // the last of them
}

// Discarded is a discarded response.
type Discarded struct {
	Model *backend.Model
	Sign  rules.Sign
	Tally response.Tally
	Usage response.Usage // estimated where the response does not report it
}

// Spare is a discarded response that can still be delivered.
type Spare struct {
	*upstream.Kept

	Params rewrite.Params // that it was requested with
}

// Trial is the judgement of one response.
type Trial struct {
	*Course

	answer   *escalate.Answer
	response *upstream.Response // the held response
	sign     rules.Sign
	unread   rules.Sign // the sign that could not be checked; empty if all could, or none could
	idle     bool       // unread is the guard's sign, and there is no evidence
	result   string
}

// The results, as used in headers, metrics and logs.
const (
	fateKept = "kept" // the response was judged good enough
	fateLate = "late" // it was delivered before its end, after the maximum hold time
	// it could not be read, or not checked by the guard, so it is delivered unjudged.
	fateUnread = "unread"
	fateDone   = "escalated" // it was discarded, and another model has answered
	Failed     = "failed"    // discarded, but delivered because no other model answered
)

// Behind reports whether m comes after other in the order of the route.
func (e *Course) Behind(m, other *backend.Model) bool {
	at := func(m *backend.Model) int {
		return slices.IndexFunc(e.order, func(c rules.Choice) bool { return c.Name == m.Name })
	}
	return at(m) > at(other)
}

// Try prepares to judge the response of m if there is another model to ask among those in left;
// otherwise it returns nil.
func (e *Course) Try(m *backend.Model, left []*backend.Model) *Trial {
	if e == nil {
		return nil
	}
	e.trial, e.idle = nil, false
	if slices.ContainsFunc(left, func(next *backend.Model) bool { return e.Behind(next, m) }) {
		e.trial = &Trial{Course: e}
	}
	return e.trial
}

// Judging reports whether the response of the current attempt is judged.
func (e *Course) Judging() bool { return e != nil && e.trial != nil }

// Worse reports whether u is an error or unusable while a discarded response is available.
func (e *Course) Worse(u *upstream.Response, streaming bool) bool {
	return e.HasSpare() && (!u.Good() || u.Misfit(streaming) != "")
}

// HasSpare reports whether a discarded response is available.
func (e *Course) HasSpare() bool { return e != nil && e.spare != nil }

// Storable reports whether the delivered response may be given to others.
func (e *Course) Storable() bool {
	return e == nil || e.result == "" || e.result == fateKept || e.result == fateDone || e.idle
}

// Describe writes the headers that say what happened to the responses.
func (e *Course) Describe(h http.Header) {
	const name = "X-Signalbox-Escalation"
	if e == nil || e.result == "" {
		return
	}
	for _, part := range [...]string{"-Reason", "-From", "-Tokens"} {
		delete(h, name+part) // an earlier attempt may have set it
	}
	h[name] = []string{e.result}
	if e.why != "" {
		h[name+"-Reason"] = []string{string(e.why)}
	}
	if n := len(e.from); n > 0 {
		used := e.Used()
		h[name+"-From"] = []string{e.from[n-1].Model.Name}
		h[name+"-Tokens"] = []string{"prompt=" + strconv.Itoa(used.Input) + ", completion=" + strconv.Itoa(used.Output)}
	}
}

// Used returns the usage of all discarded responses.
func (e *Course) Used() (sum response.Usage) {
	if e == nil {
		return sum
	}
	for i := range e.from {
		u := &e.from[i].Usage
		sum.Input, sum.Output, sum.Cached = sum.Input+u.Input, sum.Output+u.Output, sum.Cached+u.Cached
	}
	return sum
}

// Thrown returns the discarded responses.
func (e *Course) Thrown() []Discarded {
	if e == nil {
		return nil
	}
	return e.from
}

// Attrs returns the attributes for the log line of a request.
func (e *Course) Attrs() []slog.Attr {
	if e == nil || e.result == "" {
		return nil
	}
	out := []slog.Attr{slog.String("escalation", e.result)}
	if e.why != "" {
		out = append(out, slog.String("escalated_for", string(e.why)))
	}
	if n := len(e.from); n > 0 {
		out = append(out, slog.String("escalated_from", e.from[n-1].Model.Name))
	}
	return out
}

// Logged returns the part of the decision log entry; nil if no response was judged.
func (e *Course) Logged() *decisionlog.Escalation {
	if e == nil || e.result == "" {
		return nil
	}
	out := &decisionlog.Escalation{Result: e.result, Reason: string(e.why)}
	for i := range e.from {
		x := &e.from[i]
		out.From = append(out.From, decisionlog.Thrown{
			Model: x.Model.Name, Reason: string(x.Sign),
			Tokens: *decisionlog.TokensOf(x.Usage), Cost: x.Price(),
		})
	}
	return out
}

// Escalation describes the judgement of responses: the signs looked for and, if there is a
// response, the result.
type Escalation struct {
	When       []string `json:"when,omitempty"`
	MinLogprob *float64 `json:"min_logprob,omitempty"`
	Hold       string   `json:"hold"` // maximum time that a stream is held
	// kept, late, unread, escalated or failed; absent if nothing was judged
	Result string `json:"result,omitempty"`
	// the sign found or, for unread, the one that could not be checked
	Reason string `json:"reason,omitempty"`
	From   string `json:"from,omitempty"` // model whose response was discarded
}

// Explain describes what is looked for; nil without escalation.
func Explain(a *rules.Action) *Escalation {
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

// Found adds the result.
func (x *Escalation) Found(e *Course) {
	if x == nil || e == nil {
		return
	}
	x.Result, x.Reason = e.result, string(e.why)
	if n := len(e.from); n > 0 {
		x.From = e.from[n-1].Model.Name
	}
}

// Hold reads a response ahead, to its end or for the maximum hold time, and judges it. limit is
// what the proxy put into its request. The error is that of a response that broke off; since none
// of it has reached the client, another endpoint may be tried.
func (t *Trial) Hold(u *upstream.Response, c *upstream.Call, limit rewrite.Limit) (err error) {
	if !u.Good() {
		return nil
	}
	t.result = fateUnread
	if !u.Plain() || u.Stream == nil && !u.JSON() {
		return nil
	}
	t.answer, t.response = escalate.New(c.API, t.expected), u
	t.answer.Bounded = limit.ClientsOwn(t.Sent)
	var whole, late bool
	if u.Stream != nil {
		o := response.StreamOptions{API: c.API, Choices: c.Choices}
		whole, late, err = u.ReadEventsAhead(o, t.look.Hold, t.answer)
	} else if whole, err = u.ReadAhead(); whole {
		t.answer.Body(u.Ahead())
	}
	if late {
		t.result = fateLate
	}
	if err != nil || !whole {
		return err
	}
	t.sign, t.result = t.answer.Judge(t.look), fateKept
	if !t.answer.Readable() {
		t.result = fateUnread
	}
	if c.Unweighed && u.Stream == nil {
		t.dropLogprobs(u)
	}
	return nil
}

// dropLogprobs removes log-probabilities that the client did not request from a body.
func (*Trial) dropLogprobs(u *upstream.Response) {
	body := u.Ahead()
	out := new(response.Reader).ReadBody(body).Append(nil, response.Rewrite{Unweighed: true})
	if len(out) != len(body) {
		u.ReplaceAhead(out)
	}
}

// Price returns the cost of a discarded response in USD.
func (x *Discarded) Price() float64 {
	return x.Model.Price.Of(float64(x.Usage.Input), float64(x.Usage.Output))
}

// Conclude lets check examine a response without other signs, if the route asks for it. check is
// nil without a guard or evidence. Redacted values are restored first. A response that the guard
// could not judge is delivered as unread. req is the client's request.
func (t *Trial) Conclude(ctx context.Context, check *guardrail.Check, hidden *redact.Vault, req *openai.Request) {
	if t == nil || t.result != fateKept || t.sign != "" || !slices.Contains(t.look.When, rules.SignGuard) {
		return
	}
	failed, told := t.observe(ctx, check, hidden, req)
	switch {
	case failed:
		t.sign = rules.SignGuard
	case !told:
		t.result, t.unread, t.idle = fateUnread, rules.SignGuard, check == nil
	}
}

// observe reports whether check finds a failed claim, and whether the result is reliable.
func (t *Trial) observe(
	ctx context.Context, check *guardrail.Check, hidden *redact.Vault, req *openai.Request,
) (failed, told bool) {
	if check == nil {
		return false, false
	}
	body := t.response.Ahead()
	if req.Streams() {
		var err error
		if body, err = response.Said(body); err != nil {
			return false, false // it has no body to check
		}
	}
	if r := hidden.Body(); r != nil {
		body = append(slices.Clone(r.Feed(body)), r.Rest()...)
	}
	return check.Observe(ctx, body)
}

// Discard discards a response that was judged insufficient and keeps it, with the parameters of its
// request, in case no other arrives. taken returns its usage from what the response reports. ok is
// false if the response is delivered instead.
func (e *Course) Discard(
	u *upstream.Response, params rewrite.Params, taken func(told *response.Tally) response.Usage,
) (x Discarded, ok bool) {
	if !e.Judging() {
		return x, false
	}
	t := e.trial
	if e.result = t.result; t.sign == "" {
		if e.result == fateKept && len(e.from) > 0 {
			e.result = fateDone
		}
		e.idle = t.idle
		e.why = cmp.Or(e.why, t.unread)
		return x, false
	}
	x = Discarded{Model: u.Model, Sign: t.sign, Usage: taken(&t.answer.Tally)}
	x.Tally = t.answer.Tally
	e.from = append(e.from, x)
	e.why, e.result = t.sign, fateDone
	e.spare = &Spare{u.Keep(), params}
	return x, true
}

// TakeSpare returns the response that was discarded last, which is delivered because no other
// arrived.
func (e *Course) TakeSpare() *Spare {
	s := e.spare
	e.spare, e.result = nil, Failed
	e.from = e.from[:len(e.from)-1]
	return s
}
