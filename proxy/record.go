package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/affinity"
	"signalbox/proxy/answer"
	"signalbox/proxy/pool"
	"signalbox/proxy/redact"
	"signalbox/stream/guard"
)

// outcome is what the stages of one request made, for its record.
type outcome struct {
	*decision // nil until the request was decided

	surface  *surface
	req      *openai.Request // nil until it was decoded
	memo     *memo           // of the cache; nil where it is off everywhere
	held     *resolved       // what its pointers lead to; nil without any
	vault    *redact.Vault   // nil when nothing was hidden from the model
	model    *model          // of the last attempt; nil when there was none
	endpoint *pool.Endpoint
	wanted   *model        // that the attempts began with
	asked                  // of the last attempt
	told     answer.Tally  // by its answer
	guarding *guarding     // nil when the answer is not checked
	guarded  guard.Outcome // what the check found; Mode is off when there was none
	sent     time.Time     // when the last attempt was
	first    time.Time     // when its answer began
	queue    time.Duration
	where    *plan  // nil until the request was sent
	placed   placed // how its endpoint was picked
	unsaved  error  // why the answer was not stored as a context; nil when it was, or was not to be
}

// record counts the request, once, and writes its log line. It holds no text of the request.
func (p *Proxy) record(ctx context.Context, st *State, w *reply, o *outcome, err error) {
	took := time.Since(w.start)
	status := w.status
	if err != nil {
		status = wire(err, w.id).Status
	}
	route, model, endpoint := "none", "none", ""
	if o.decision != nil {
		route = cmp.Or(o.Route, route)
	}
	if o.model != nil {
		model, endpoint = o.model.Name, o.endpoint.Name
	}
	if a := o.memo.given(); a != nil {
		model = a.Model
	}
	m := p.tel.Metrics
	if found := o.memo.found(); found != "" {
		m.Cache(found)
	}
	p.keep(ctx, w, o, err)
	w.settle(ctx, o, status)
	m.Request(route, model, status, took)
	st.ended(o, w.status, err)
	p.settle(o, status, err)
	if st.learn(o) {
		m.LimitWidened(o.model.Name)
	}
	st.logDecision(p.tel.Decisions, w.id, o, status)
	if used := o.told.Usage; used != (answer.Usage{}) {
		m.Tokens("prompt", used.Prompt)
		m.Tokens("cached", used.Cached)
		m.Tokens("completion", used.Completion)
		prompt, completion := float64(used.Prompt), float64(used.Completion)
		m.Cost(model, o.model.Price.Of(prompt, completion), st.priciest.Of(prompt, completion))
	}
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	if !p.tel.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs, slog.String("id", w.id), slog.String("route", route), slog.String("model", model),
		slog.String("endpoint", endpoint), slog.Int("status", status), slog.Duration("took", took))
	if o.decision != nil {
		attrs = append(attrs, slog.Duration("decide", o.elapsed), slog.Duration("classify", o.classified))
	}
	if o.told.Usage != (answer.Usage{}) {
		attrs = append(attrs, slog.Int64("prompt_tokens", o.told.Usage.Prompt), slog.Int64("completion_tokens", o.told.Usage.Completion))
	}
	attrs = append(append(attrs, o.placed.attrs()...), o.guardAttrs()...)
	if found := o.memo.found(); found != "" {
		attrs = append(attrs, slog.String("cache", found))
	}
	if o.unsaved != nil {
		attrs = append(attrs, slog.String("unsaved", o.unsaved.Error()))
	}
	if err != nil {
		attrs = append(attrs, slog.String("cause", err.Error()))
	}
	p.tel.Log.LogAttrs(ctx, level, "request", attrs...)
}

// guardAttrs tells what the check of the answer found; nothing when there was none.
func (o *outcome) guardAttrs() []slog.Attr {
	g := &o.guarded
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

// trace opens the span of a request and returns what ends it.
func (p *Proxy) trace(r *http.Request, name string) (ctx context.Context, end func(o *outcome, err error)) {
	ctx = r.Context()
	if len(r.Header["Traceparent"]) > 0 {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	ctx, span := p.tel.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(o *outcome, err error) {
		defer span.End()
		if !span.IsRecording() {
			return
		}
		span.SetAttributes(telemetry.AttrOperation.String(name))
		if o.decision != nil {
			span.SetAttributes(telemetry.AttrRoute.String(o.Route))
		}
		if o.model != nil {
			span.SetAttributes(telemetry.AttrRequestModel.String(o.model.Name), telemetry.AttrEndpoint.String(o.endpoint.Name))
		}
		if o.told.Usage != (answer.Usage{}) {
			span.SetAttributes(telemetry.AttrInputTokens.Int64(o.told.Usage.Prompt), telemetry.AttrOutputTokens.Int64(o.told.Usage.Completion))
		}
		if err != nil {
			e := wire(err, "")
			span.SetAttributes(telemetry.AttrErrorType.String(cmp.Or(e.Code, e.Type)))
			span.SetStatus(codes.Error, "")
		}
	}
}

// decide wraps the stage in its span and counts what it computed and what it did not have to.
func (p *Proxy) decide(ctx context.Context, st *State, who Principal, h http.Header, o *outcome) (*decision, error) {
	ctx, span := p.tel.Tracer.Start(ctx, "decide")
	defer span.End()
	d, err := st.decide(ctx, who, o.req, h, o.held, o.memo)
	if d == nil || errors.Is(err, errClientGone) {
		return d, err
	}
	m := p.tel.Metrics
	m.Decide(d.elapsed)
	mentioned := d.program.Kinds()
	for k := range signal.NumKinds {
		v := &d.set.Values[k]
		switch {
		case v.State == signal.Unknown:
			m.SignalUnknown(k.String(), string(v.Reason))
		case v.State == signal.NotExtracted && mentioned.Has(k):
			m.SignalSkipped(k.String())
		}
	}
	return d, err
}

// meter is a tally that measures the pace of a stream as well. It belongs to one answer.
type meter struct {
	answer.Tally

	metrics *telemetry.Metrics
	model   string
	usage   bool             // the client asked for usage, so the stream carries it
	last    time.Time        // when the last piece came
	ticket  *affinity.Ticket // told of the first text
	asked   time.Time        // when the client did; zero when the time to the first token was measured at the head
	first   time.Time        // when the first text came
}

// pace records the mean time between two tokens of a stream that has ended. Tokens are those of its
// usage, else an estimate from its text: an event may carry several. A stream that came at once has
// none.
func (t *meter) pace() {
	tokens := t.Usage.Completion
	if tokens == 0 {
		tokens = t.Length()
	}
	if took := t.last.Sub(t.first); tokens > 1 && took > 0 && !t.first.IsZero() {
		t.metrics.InterToken(t.model, took/time.Duration(tokens-1))
	}
}

// chunk notes one piece of the stream f.
func (t *meter) chunk(f *flow, b []byte, now time.Time) {
	t.last = now
	t.Counts(b)
	if f.finished() {
		t.Ends(b)
	}
	if t.first.IsZero() && t.Began() {
		t.first = now
		t.ticket.First(now)
		if !t.asked.IsZero() {
			t.metrics.TTFT(t.model, now.Sub(t.asked))
		}
	}
	if t.usage {
		t.FindUsage(b)
	}
}
