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

// New prepares the judgement of the responses to a request, as it is sent to models; nil
// where they stand as they are. The response to a result of a tool stands: the model that made the
// call knows why. So does one that goes on with what the server of a model keeps, which no other
// server has.
func New(a *rules.Action, sent *openai.Request) *Course {
	look := a.Escalate
	if look == nil || sent.API == openai.Other || sent.BringsToolResult() || sent.Continues() {
		return nil
	}
	return &Course{look: look, Sent: sent, expected: escalate.Expect(sent), order: a.Models}
}

// Course is what becomes of the responses to one request of a route that escalates. It belongs
// to the request's goroutine. nil stands for a request whose first response stands.
type Course struct {
	look     *rules.Escalate
	Sent     *openai.Request // to the models; values may be hidden in it
	expected *escalate.Expected
	order    []rules.Choice // of the models, from the first to ask
	trial    *Trial         // of the attempt under way; nil where its response stands as it is
	result   string         // empty until a response was judged
	why      rules.Sign     // that a response was, or was to be, thrown away for, or that was unread; empty for none
	idle     bool           // the response stands unread only as the guard has nothing to check it against
	from     []Discarded    // the responses that were, in order
	spare    *Spare         // the last of them
}

// Discarded is a response that nobody gets.
type Discarded struct {
	Model *backend.Model
	Sign  rules.Sign
	Tally response.Tally
	Usage response.Usage // what it took; what it does not tell is estimated
}

// Spare is a response that was thrown away, as it can be given after all.
type Spare struct {
	*upstream.Kept

	Params rewrite.Params // that it was asked with
}

// Trial is the judgement of one response.
type Trial struct {
	*Course

	answer   *escalate.Answer
	response *upstream.Response // that is held
	sign     rules.Sign
	unread   rules.Sign // the sign that could not be looked for; empty for none, or where none could
	idle     bool       // unread is the guard's, and there is nothing to check the response against
	result   string
}

// The fates of responses, as header, metric and log call it.
const (
	fateKept   = "kept"      // the response was judged and stands
	fateLate   = "late"      // it went out before its end, since it was held long enough
	fateUnread = "unread"    // it, or what the guard says of it, cannot be read, so it stands unjudged
	fateDone   = "escalated" // it was thrown away, and another model has answered
	Failed     = "failed"    // it was to be, but no other model answered, so it stands
)

// Behind reports whether a model comes behind another one in the order of the route.
func (e *Course) Behind(m, other *backend.Model) bool {
	at := func(m *backend.Model) int {
		return slices.IndexFunc(e.order, func(c rules.Choice) bool { return c.Name == m.Name })
	}
	return at(m) > at(other)
}

// Try prepares the judgement of the response of m, where there is another model to ask: one of
// those that are left. nil stands for none.
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

// Judging reports whether the response of the attempt under way is judged.
func (e *Course) Judging() bool { return e != nil && e.trial != nil }

// Worse reports a response that is none, where there is one that was thrown away.
func (e *Course) Worse(u *upstream.Response, streaming bool) bool {
	return e.HasSpare() && (!u.Good() || u.Misfit(streaming) != "")
}

// HasSpare reports whether there is a response that was thrown away.
func (e *Course) HasSpare() bool { return e != nil && e.spare != nil }

// Storable reports whether the response that the client got may be given to others.
func (e *Course) Storable() bool {
	return e == nil || e.result == "" || e.result == fateKept || e.result == fateDone || e.idle
}

// Describe writes the headers that say what became of the responses.
func (e *Course) Describe(h http.Header) {
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
		used := e.Used()
		h[name+"-From"] = []string{e.from[n-1].Model.Name}
		h[name+"-Tokens"] = []string{"prompt=" + strconv.Itoa(used.Input) + ", completion=" + strconv.Itoa(used.Output)}
	}
}

// Used is what all responses took that nobody gets.
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

// Thrown are the responses that were thrown away.
func (e *Course) Thrown() []Discarded {
	if e == nil {
		return nil
	}
	return e.from
}

// Attrs is what the log line of a request tells.
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

// Logged is what the decision log tells; nil where no response was judged.
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

// Escalation is what is said of the judgement of responses: what is looked for, and of a response
// that is here what was found.
type Escalation struct {
	When       []string `json:"when,omitempty"`
	MinLogprob *float64 `json:"min_logprob,omitempty"`
	Hold       string   `json:"hold"` // how long a stream is held at most
	// kept, late, unread, escalated or failed; absent where nothing was judged
	Result string `json:"result,omitempty"`
	Reason string `json:"reason,omitempty"` // the sign that was found; of unread the one that was not looked for
	From   string `json:"from,omitempty"`   // whose answer was thrown away
}

// Explain tells what is looked for; nil where answers stand as they are.
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

// Found adds what was found.
func (x *Escalation) Found(e *Course) {
	if x == nil || e == nil {
		return
	}
	x.Result, x.Reason = e.result, string(e.why)
	if n := len(e.from); n > 0 {
		x.From = e.from[n-1].Model.Name
	}
}

// Hold reads a response ahead, to its end or as long as it may be held, and judges it. limit is
// what the proxy has put into its request. The error is that of a response that broke off: nothing
// of it has gone to the client, so another endpoint may give a whole one.
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

// dropLogprobs takes the log-probabilities out of a body whose client did not ask for them.
func (*Trial) dropLogprobs(u *upstream.Response) {
	body := u.Ahead()
	out := new(response.Reader).ReadBody(body).Append(nil, response.Rewrite{Unweighed: true})
	if len(out) != len(body) {
		u.ReplaceAhead(out)
	}
}

// Price is what a response cost that was thrown away, in USD.
func (x *Discarded) Price() float64 {
	return x.Model.Price.Of(float64(x.Usage.Input), float64(x.Usage.Output))
}

// Conclude has check, which is nil without a guard or facts, look at a response that shows no other
// sign, where the route looks for that: with the values put back that were hidden from the model. A
// response of which the guard has not told stands unread. req is what the client sent.
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

// observe reports whether check finds a claim that fails, and whether it could tell.
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

// Discard takes a response that was judged and found wanting: it is kept, with what it was asked
// with, for the case that nobody gives another. taken says what it took by what it tells of that;
// ok is false where it stands.
func (e *Course) Discard(
	u *upstream.Response, params rewrite.Params, taken func(told *response.Tally) response.Usage,
) (x Discarded, ok bool) {
	if !e.Judging() {
		return x, false
	}
	t := e.trial
	if e.result = t.result; t.sign == "" {
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

// TakeSpare takes the response that was thrown away last, since no other came: it is the response
// now.
func (e *Course) TakeSpare() *Spare {
	s := e.spare
	e.spare, e.result = nil, Failed
	e.from = e.from[:len(e.from)-1]
	return s
}
