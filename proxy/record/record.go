package record

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/memory/outcomes/signs"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/framing"
	"signalbox/proxy/mirror"
	"signalbox/proxy/recent"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// Recorder records the requests of one process.
type Recorder struct {
	Tel       *telemetry.Telemetry
	Transport framing.Transport // copies of requests go by
	Recent    *recent.Decisions
}

// Book is by what the requests of one configuration are recorded.
type Book struct {
	*decide.Base

	Generation    uint64
	Prompts       map[string]string // that routes name
	Priciest      choose.Price      // what every response is compared with
	Tenants       map[string]bool   // that the configuration names: they have metrics of their own
	Copies        *mirror.Pool      // of requests that are under way
	Seen          *signs.Watch      // turns, for what the next ones say of their answers
	MaxRetryAfter time.Duration
}

// Record counts the request, once, and writes its log line. It holds no text of the request.
func (r *Recorder) Record(ctx context.Context, b *Book, w *downstream.Writer, o *exchange.Exchange, err error) {
	took := time.Since(w.Start)
	status := w.Status
	if err != nil {
		e := fault.Wire(err, w.ID)
		status, o.Failure = e.Status, cmp.Or(e.Code, e.Type)
	}
	o.Took = took
	if o.Tally.Began() && o.First.After(w.Start) && o.Req.Streams() {
		o.TTFT = o.First.Sub(w.Start)
	}
	route, model, endpoint := "none", "none", ""
	if o.Decision != nil {
		route = cmp.Or(o.Route, route)
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
	if isSpent(err) {
		m.TenantRefused(tenant)
	}
	b.observeSpeed(o, w.Status, err)
	b.NoteLength(o.Decision, w.ID, o.Tally.Usage.Output)
	r.watchSigns(ctx, b, o, w.ID, status, err)
	recordPlacement(o, status, err)
	if b.learnLength(o) {
		m.LimitWidened(o.Model.Name)
	}
	r.finish(b, w, o, status, err) //nolint:contextcheck // a copy outlives its request
	r.Note(ctx, b, w, o, status)
	r.countArm(o, status)
	r.countDiscarded(o, tenant)
	if used := o.Tally.Usage; used != (response.Usage{}) {
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
	r.logRequest(ctx, w, o, requestLine{route, model, endpoint, status, took, err})
}

// requestLine is what the log line of a request says beside its outcome.
type requestLine struct {
	route, model, endpoint string
	status                 int
	took                   time.Duration
	err                    error
}

// logRequest writes the log line of a request: as a warning where the proxy or a server failed.
func (r *Recorder) logRequest(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, l requestLine) {
	level := slog.LevelInfo
	if l.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	if !r.Tel.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 20)
	attrs = append(attrs, slog.String("route", l.route), slog.String("model", l.model),
		slog.String("endpoint", l.endpoint), slog.Int("status", l.status))
	if o.Tally.Usage != (response.Usage{}) {
		attrs = append(attrs, slog.Int("prompt_tokens", o.Tally.Usage.Input), slog.Int("completion_tokens", o.Tally.Usage.Output))
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
		attrs = append(attrs, slog.String("unsaved", o.Unsaved.Error()))
	}
	if l.err != nil {
		attrs = append(attrs, slog.String("cause", l.err.Error()))
	}
	r.Tel.Log.LogAttrs(ctx, level, "request", attrs...)
}

// brief is a time as a person reads it: to a hundredth of a millisecond.
func brief(key string, d time.Duration) slog.Attr {
	return slog.Duration(key, d.Round(10*time.Microsecond))
}

// guardAttrs tells what the check of the response found; nothing when there was none.
func guardAttrs(o *exchange.Exchange) []slog.Attr {
	g := &o.Guarded
	if g.Mode == guard.Off {
		return nil
	}
	attrs := []slog.Attr{
		slog.String("guard", g.Mode.String()), slog.String("verdict", g.Verdict.String()), slog.Int("claims", g.Claims), slog.Int("claims_failed", g.Failed),
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

// finish hands the decision to the log, behind the response to a copy where there is one: that is
// asked for now, when the client has its response.
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
		Streaming: o.Req.Streams(), Readable: true, Choices: o.Req.Choices(),
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

// countArm counts a request of an arm.
func (r *Recorder) countArm(o *exchange.Exchange, status int) {
	if o.Decision == nil || o.Arm == "" || o.Lookup.Given() != nil {
		return
	}
	m, u := r.Tel.Metrics, &o.Tally.Usage
	m.Arm(o.Route, o.Arm, status)
	if o.Model != nil && u.Input+u.Output > 0 {
		m.ArmUsed(o.Route, o.Arm, int64(u.Input), int64(u.Output), o.Model.Price.Of(float64(u.Input), float64(u.Output)))
	}
}

// countDiscarded counts what answers took that nobody got. They would not have been asked for
// without the route, so they add nothing to what the same would have cost elsewhere.
func (r *Recorder) countDiscarded(o *exchange.Exchange, tenant string) {
	m := r.Tel.Metrics
	for _, x := range o.Escalation.Thrown() {
		u, usd := x.Usage(o.Req), x.Price(o.Req)
		m.Tokens("prompt", int64(u.Input))
		m.Tokens("cached", int64(u.Cached))
		m.Tokens("completion", int64(u.Output))
		m.Cost(x.Model.Name, usd, 0)
		m.TenantUsage(tenant, int64(u.Input), int64(u.Cached), int64(u.Output), usd)
	}
}

// Note takes a request that has ended in for operators.
func (r *Recorder) Note(ctx context.Context, b *Book, w *downstream.Writer, o *exchange.Exchange, status int) {
	if o.Decision == nil || o.Action == nil {
		return
	}
	x := recent.Request{
		ID: w.ID, Tenant: o.Who.Tenant, Route: o.Route, Fate: o.Talk.Fate(), Model: o.Model, Used: o.Tally.Usage,
		Dearest: b.Priciest, Took: o.Took, At: w.Start.Add(o.Took),
	}
	if o.First.After(w.Start) {
		x.First = o.First.Sub(w.Start)
	}
	if t, ok := o.Turn(); ok {
		x.Turn = &t
	}
	thrown := o.Escalation.Thrown()
	for i := range thrown {
		x.Thrown = append(x.Thrown, recent.Paid{Model: thrown[i].Model, Usage: thrown[i].Usage(o.Req)})
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
