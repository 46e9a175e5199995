// Package record records an ended request, whatever its result: metrics, its log line and its
// decision log line, what operators see, the settlement of limits and budgets, what is learned from
// the response, and the response in the cache.
//
// It makes no decisions and writes nothing to the client. It is safe for concurrent use.
package record

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/telemetry"
	"signalbox/memory/cache"
	"signalbox/memory/outcomes/signs"
	"signalbox/proxy/auth"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/framing"
	"signalbox/proxy/mirror"
	"signalbox/proxy/recall"
	"signalbox/proxy/recent"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// Recorder records the requests of one process. It starts no goroutine; see Run.
type Recorder struct {
	Tel       *telemetry.Telemetry
	Transport framing.Transport // for copies of requests
	Recent    *recent.Decisions

	refused refusals
	doubts  doubts
}

// Book is what the requests of one configuration are recorded with.
type Book struct {
	*decide.Base

	Generation    uint64
	Prompts       map[string]string // that routes name
	Priciest      choose.Price      // price for the baseline of every response
	Tenants       map[string]bool   // configured tenants, which have their own metrics
	Copies        *mirror.Pool      // copies in flight, of all configurations
	Seen          *signs.Watch      // turns that await signs from the next turn
	MaxRetryAfter time.Duration
}

// Record counts the request, once, and writes its log line, which contains no text of the request.
func (r *Recorder) Record(ctx context.Context, b *Book, w *downstream.Writer, o *exchange.Exchange, err error) {
	took := time.Since(w.Start)
	status := w.Status
	if err != nil {
		e := fault.Wire(err, w.ID)
		status, o.Failure = e.Status, cmp.Or(e.Code, e.Type)
	} else if o.Tally.Failed {
		o.Failure = fault.CodeUpstream
	}
	o.Took = took
	o.Estimated = r.Believe(ctx, o, &o.Tally)
	if o.Tally.Began() && o.First.After(w.Start) && o.Req.Streams() {
		o.TTFT = o.First.Sub(w.Start)
	}
	route, model, endpoint := "none", "none", ""
	if o.Decision != nil {
		route = cmp.Or(o.Route, route)
	} else {
		r.noteRefusal(b, w.ID, &o.Who, status, o.Failure, err)
	}
	if o.Model != nil {
		model, endpoint = o.Model.Name, o.Endpoint.Name
	}
	if a := o.Lookup.Given(); a != nil {
		model = a.Model
	}
	m := r.Tel.Metrics
	if found := o.Lookup.Found(); found != "" {
		m.Cache(found)
	}
	r.keep(ctx, b, w, o, err)
	settleLimits(ctx, w, o, status)
	settleBudgets(ctx, w, o, status)
	m.Request(route, model, status, took)
	tenant := b.tenantLabel(&o.Who)
	m.TenantRequest(tenant)
	if _, spent := errors.AsType[*budget.ExceededError](err); spent {
		m.TenantRefused(tenant)
	}
	b.observeSpeed(o, w.Status, err)
	b.NoteLength(o.Decision, w.ID, o.Tally.Usage.Output)
	r.watchSigns(ctx, b, o, w.ID, status, err)
	recordPlacement(o, status, err)
	if b.learnLength(o) {
		m.LimitWidened(o.Model.Name)
	}
	estimate(w, o, status, err)
	r.finish(b, w, o, status, err) //nolint:contextcheck // a copy outlives its request
	r.Note(ctx, b, w, o, status)
	r.countArm(o, status)
	r.countDiscarded(o, tenant)
	r.countUsage(b, o, model, tenant, status)
	r.logRequest(ctx, w, o, requestLine{route, model, endpoint, status, took, err})
}

// countUsage counts the tokens and cost of a response, or that it reported no usage.
func (r *Recorder) countUsage(b *Book, o *exchange.Exchange, model, tenant string, status int) {
	m, used := r.Tel.Metrics, o.Tally.Usage
	if used == (response.Usage{}) {
		if tells(o, status) {
			m.Untold(model)
		}
		return
	}
	m.Tokens("prompt", int64(used.Input))
	if used.Cached > 0 {
		m.Tokens("cached", int64(used.Cached))
	}
	m.Tokens("completion", int64(used.Output))
	prompt, completion := float64(used.Input), float64(used.Output)
	usd := o.Model.Price.Of(prompt, completion)
	m.Cost(model, usd, b.Priciest.Of(prompt, completion))
	m.TenantUsage(tenant, int64(used.Input), int64(used.Cached), int64(used.Output), usd)
}

// tells reports whether a model answered a request whose response should report usage. Audio, token
// counts and some rankings report none.
func tells(o *exchange.Exchange, status int) bool {
	return o.Model != nil && status < http.StatusBadRequest &&
		(o.Surface.API != openai.Other || o.Surface.Operation == exchange.Embeddings)
}

// estimate estimates the usage of a response that ended before it reported usage, for example
// because its client left or the guard cut it. Limits and budgets are settled by the estimate.
func estimate(w *downstream.Writer, o *exchange.Exchange, status int, err error) {
	cut := err != nil || o.Guarded.Cut && o.Req.Streams()
	if cut && o.Req != nil && o.Tally.Partial() && !unanswered(w, o, status) {
		told := o.Tally.Usage
		o.Tally.Usage = o.Tally.Taken(o.PromptTokens())
		o.Estimated = o.Tally.Usage != told
	}
}

// requestLine is what the log line of a request contains besides its result.
type requestLine struct {
	route, model, endpoint string
	status                 int
	took                   time.Duration
	err                    error
}

// The causes of failed responses with a success status: a complete stream with a server error, and
// a body.
var (
	errTold    = errors.New("the server reported an error in its stream")
	errUseless = errors.New("the server's response is empty, truncated JSON, or an error object")
)

// logRequest writes the log line of a request, as a warning if the proxy or a server failed.
func (r *Recorder) logRequest(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, l requestLine) {
	level := slog.LevelInfo
	told := l.err == nil && o.Tally.Failed
	if told {
		if l.err = errUseless; o.Req.Streams() {
			l.err = errTold
		}
	}
	if l.status >= http.StatusInternalServerError || told {
		level = slog.LevelWarn
	}
	if !r.Tel.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 21)
	attrs = append(attrs, slog.String("route", l.route), slog.String("model", l.model),
		slog.String("endpoint", l.endpoint), slog.Int("status", l.status))
	if o.Tally.Usage != (response.Usage{}) {
		attrs = append(attrs, slog.Int("prompt_tokens", o.Tally.Usage.Input),
			slog.Int("completion_tokens", o.Tally.Usage.Output))
	}
	if o.Estimated {
		attrs = append(attrs, slog.Bool("tokens_estimated", true))
	}
	if o.TTFT > 0 {
		attrs = append(attrs, brief("ttft", o.TTFT))
	}
	attrs = append(attrs, brief("took", l.took))
	if o.Decision != nil {
		attrs = append(attrs, brief("decide", o.Elapsed), brief("classify", o.Classified))
	}
	if o.Who.Tenant != "" {
		attrs = append(attrs, slog.String("tenant", o.Who.Tenant))
	}
	if o.Who.Name != "" {
		attrs = append(attrs, slog.String("key", o.Who.Name))
	}
	attrs = append(attrs, slog.String("id", w.ID))
	attrs = append(append(attrs, o.Placed.Attrs()...), guardAttrs(o)...)
	if found := o.Lookup.Found(); found != "" {
		attrs = append(attrs, slog.String("cache", found))
	}
	attrs = append(attrs, o.Escalation.Attrs()...)
	if o.Decision != nil && o.Arm != "" {
		attrs = append(attrs, slog.String("arm", o.Arm))
	}
	if o.Unsaved != nil {
		attrs = append(attrs, slog.String("unsaved", fault.Cause(o.Unsaved)))
	}
	if l.err != nil {
		attrs = append(attrs, slog.String("cause", fault.Cause(l.err)))
	}
	r.Tel.Log.LogAttrs(ctx, level, "request", attrs...)
}

// brief formats a duration to a hundredth of a millisecond.
func brief(key string, d time.Duration) slog.Attr {
	return slog.Duration(key, d.Round(10*time.Microsecond))
}

// guardAttrs returns the result of checking the response; nothing if it was not checked.
func guardAttrs(o *exchange.Exchange) []slog.Attr {
	g := &o.Guarded
	if g.Mode == guard.Off {
		return nil
	}
	attrs := []slog.Attr{
		slog.String("guard", g.Mode.String()), slog.String("verdict", g.Verdict.String()),
		slog.Int("claims", g.Claims), slog.Int("claims_failed", g.Failed),
	}
	if g.Shed > 0 {
		attrs = append(attrs, slog.Int("claims_shed", g.Shed))
	}
	if g.Pending > 0 {
		attrs = append(attrs, slog.Int("claims_pending", g.Pending))
	}
	if g.Cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	return attrs
}

// finish logs the decision, after the response to a copy if there is one. The copy is sent now that
// the client has its response.
func (r *Recorder) finish(b *Book, w *downstream.Writer, o *exchange.Exchange, status int, err error) {
	m := o.Mirror
	if !m.Comparable() || err != nil || status != http.StatusOK {
		b.logDecision(r.Tel.Decisions, w.ID, o, status)
		return
	}
	line, route := b.line(r.Tel.Decisions, w.ID, o, status), o.Route
	c := &upstream.Call{
		Headers: http.Header{}, ID: w.ID, Path: o.Surface.UpstreamPath(false), API: o.Surface.API,
		Translated: o.Surface.Messages, Body: m.Body, Extra: o.Action.Headers,
		Streaming: o.Req.Streams(), Choices: o.Req.Choices(),
		MaxRetryAfter: b.MaxRetryAfter,
	}
	tell := func(x *decisionlog.Mirror) {
		r.Tel.Metrics.Mirror(route, m.Model.Name, x.Result)
		if line != nil {
			line.mirror = x
			line.log.Offer(line)
		}
	}
	if !b.Copies.Start(func(ctx context.Context) { tell(m.Send(ctx, r.Transport, r.Tel, c)) }) {
		tell(&decisionlog.Mirror{Model: m.Model.Name, Result: mirror.Dropped})
	}
}

// countArm counts a request in its arm.
func (r *Recorder) countArm(o *exchange.Exchange, status int) {
	if o.Decision == nil || o.Arm == "" || o.Lookup.Given() != nil {
		return
	}
	m, u := r.Tel.Metrics, &o.Tally.Usage
	m.Arm(o.Route, o.Arm, status)
	if o.Model != nil && u.Input+u.Output > 0 {
		usd := o.Model.Price.Of(float64(u.Input), float64(u.Output))
		m.ArmUsed(o.Route, o.Arm, int64(u.Input), int64(u.Output), usd)
	}
}

// countDiscarded counts the usage of discarded responses. They would not have been requested
// without the route, so they add nothing to the baseline.
func (r *Recorder) countDiscarded(o *exchange.Exchange, tenant string) {
	m := r.Tel.Metrics
	for _, x := range o.Escalation.Thrown() {
		u, usd := &x.Usage, x.Price()
		m.Tokens("prompt", int64(u.Input))
		m.Tokens("cached", int64(u.Cached))
		m.Tokens("completion", int64(u.Output))
		m.Cost(x.Model.Name, usd, 0)
		m.TenantUsage(tenant, int64(u.Input), int64(u.Cached), int64(u.Output), usd)
	}
}

// Note records an ended request for operators.
func (r *Recorder) Note(ctx context.Context, b *Book, w *downstream.Writer, o *exchange.Exchange, status int) {
	if o.Decision == nil || o.Action == nil {
		return
	}
	x := recent.Request{
		ID: w.ID, Tenant: o.Who.Tenant, Route: o.Route, Fate: o.Talk.Fate(), Model: o.Model, Used: o.Tally.Usage,
		Tells: tells(o, status), Dearest: b.Priciest, Took: o.Took, At: w.Start.Add(o.Took),
	}
	if o.First.After(w.Start) {
		x.First = o.First.Sub(w.Start)
	}
	if turn, ok := o.Turn(); ok {
		t := turn // allocated only here
		x.Turn = &t
	}
	thrown := o.Escalation.Thrown()
	for i := range thrown {
		x.Thrown = append(x.Thrown, recent.Paid{Model: thrown[i].Model, Usage: thrown[i].Usage})
	}
	if !r.Recent.Count(ctx, &x) {
		return
	}
	l := b.snapshotOf(o, w.ID, status, r.Recent.Quotes())
	if l.size > recent.Longest {
		l = b.snapshotOf(o, w.ID, status, false)
	}
	k := &recent.Kept{ID: w.ID, Of: b, Line: l, Size: l.size, Classified: o.Classified}
	if o.Action.Verb != rules.Use {
		k.Message = o.Action.Text
	}
	r.Recent.Add(&x, k)
}

// settleBudgets replaces the reservation by the cost of the request, including discarded responses.
// Each model's budget pays for the responses of that model.
func settleBudgets(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, status int) {
	if w.Cost == nil && len(w.Shares) == 0 {
		return
	}
	last := 0.0
	if u := takenLast(w, o, status); u != (response.Usage{}) {
		last = o.Model.Price.Of(float64(u.Input), float64(u.Output))
	}
	ctx = context.WithoutCancel(ctx)
	usd, thrown := last, o.Escalation.Thrown()
	for i := range thrown {
		usd += thrown[i].Price()
	}
	w.Cost.Settle(ctx, usd)
	for _, s := range w.Shares {
		usd = 0
		if s.Of == o.Model {
			usd = last
		}
		for i := range thrown {
			if thrown[i].Model == s.Of {
				usd += thrown[i].Price()
			}
		}
		s.Cost.Settle(ctx, usd)
	}
}

// settleLimits charges the actual usage of a request; nothing if no model received it.
func settleLimits(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, status int) {
	if w.Lease == nil || o.Req == nil {
		return
	}
	last, thrown := takenLast(w, o, status), o.Escalation.Used()
	used := min(last.Input+last.Output+thrown.Input+thrown.Output, math.MaxInt32)
	w.Lease.Settle(context.WithoutCancel(ctx), used)
}

// takenLast returns the usage of the response that the client received; nothing if no model gave
// one.
func takenLast(w *downstream.Writer, o *exchange.Exchange, status int) response.Usage {
	if unanswered(w, o, status) {
		return response.Usage{}
	}
	u := o.Tally.Taken(o.PromptTokens())
	if o.Tally.Unread() && !o.Tally.Failed {
		u.Output = o.MaxOutputTokens(o.Model.Window)
	}
	return u
}

// unanswered reports whether no model answered, so that nothing was used: none was asked, or the
// request failed before a response began for a reason other than the client leaving.
func unanswered(w *downstream.Writer, o *exchange.Exchange, status int) bool {
	return o.Model == nil ||
		status >= http.StatusBadRequest && status != fault.StatusClientGone && (w.Status != http.StatusOK || o.Silent)
}

// cacheable reports whether the response to a request may be given to others: it came from the
// model that the rules chose, no signal was missing, and the guard found nothing in it.
func (b *Book) cacheable(o *exchange.Exchange, status int, err error) bool {
	m := o.Lookup
	return m != nil && m.Recording != nil && err == nil && status == http.StatusOK &&
		o.Vault == nil && o.Model != nil && o.Model == o.Wanted &&
		o.Failed == 0 && o.Arm != decide.ArmCanary && o.Saving == (budget.Saving{}) &&
		passedGuard(o) && o.Escalation.Storable() && m.Taught == b.Caching.Answers.Taught.Load()
}

// passedGuard reports whether the guard, if there is one, has no objection to the response. A guard
// that only observes may still be checking when the response has ended; a later reader's copy is
// observed again.
func passedGuard(o *exchange.Exchange) bool {
	g := &o.Guarded
	if o.Guarding == nil {
		return true
	}
	return g.Failed == 0 && !g.Cut && (g.Mode == guard.Observe || g.Shed == 0 && g.Pending == 0)
}

// keep stores the response to an ended request in the cache, in the background.
func (r *Recorder) keep(ctx context.Context, b *Book, w *downstream.Writer, o *exchange.Exchange, err error) {
	if !b.cacheable(o, w.Status, err) {
		return
	}
	c, id, tape := b.Caching, o.Lookup.ID, o.Lookup.Recording
	model, route, kind := o.Model.Name, o.Route, w.Header().Get("Content-Type")
	partition, vector := c.Partition(model, o.Action), o.Vector()
	if o.Caches() != recall.ModeSemantic {
		vector = nil
	}
	id.Question = strings.Clone(id.Question)
	var list []cache.Header // returned together with it
	for _, name := range [...]string{"X-Signalbox-Domain", "X-Signalbox-Confidence", "X-Signalbox-Reasoning"} {
		if value := w.Header().Get(name); value != "" {
			list = append(list, cache.Header{Name: name, Value: value})
		}
	}
	c.Store(ctx, func(ctx context.Context) error {
		a, err := tape.Complete(model, route, kind)
		if err != nil {
			return err
		}
		a.Headers = list
		return c.Cache.Keep(ctx, &id, partition, vector, a)
	}, r.Tel.Metrics.CacheKept)
}

// otherTenants is the label of all tenants that are not configured. Tenant names also come from
// tokens, so their number is unlimited.
const otherTenants = "other"

// TenantsOf returns the tenants in a section: the listed ones, those of keys, and the default.
func TenantsOf(o *auth.Options) map[string]bool {
	out := map[string]bool{otherTenants: true}
	if o.DefaultTenant != "" {
		out[o.DefaultTenant] = true
	}
	for i := range o.Tenants {
		out[o.Tenants[i].Name] = true
	}
	for i := range o.Keys {
		if t := o.Keys[i].Tenant; t != "" {
			out[t] = true
		}
	}
	return out
}

// tenantLabel returns the label of a caller in metrics. An unidentified caller has no configured
// tenant.
func (b *Book) tenantLabel(who *auth.Principal) string {
	if b.Tenants[who.Tenant] {
		return who.Tenant
	}
	return otherTenants
}
