package proxy

import (
	"bytes"
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
	"signalbox/proxy/redact"
)

// outcome is what the stages of one request made, for its record.
type outcome struct {
	*decision // nil until the request was decided

	req      *openai.Request // nil until it was decoded
	vault    *redact.Vault   // nil when nothing was hidden from the model
	model    *model          // of the last attempt; nil when there was none
	endpoint *endpoint
	wanted   *model    // that the attempts began with
	asked              // of the last attempt
	measure  measure   // of its answer
	sent     time.Time // when the last attempt was
	first    time.Time // when its answer began
	queue    time.Duration
	tokens   tokens
}

// tokens is what an answer said about its usage; zero where it said nothing.
type tokens struct{ prompt, cached, completion int64 }

// record counts the request, once, and writes its log line. It holds no text of the request.
func (p *Proxy) record(ctx context.Context, st *State, w *reply, o *outcome, err error) {
	took := time.Since(w.start)
	status := w.status
	if err != nil {
		status = wire(err, w.id).Status
	}
	route, model, endpoint := "none", "none", ""
	if o.decision != nil {
		route = or(o.Route, route)
	}
	if o.model != nil {
		model, endpoint = o.model.name, o.endpoint.name
	}
	m := p.tel.Metrics
	m.Request(route, model, status, took)
	st.speeds.ended(o, w.status, err)
	if st.learn(o) {
		m.LimitWidened(o.model.name)
	}
	st.logDecision(p.tel.Decisions, w.id, o, status)
	if o.tokens != (tokens{}) {
		m.Tokens("prompt", o.tokens.prompt)
		m.Tokens("cached", o.tokens.cached)
		m.Tokens("completion", o.tokens.completion)
		m.Cost(model, o.model.price.of(o.tokens), st.priciest.of(o.tokens))
	}
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	if !p.tel.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("id", w.id), slog.String("route", route), slog.String("model", model),
		slog.String("endpoint", endpoint), slog.Int("status", status), slog.Duration("took", took))
	if o.decision != nil {
		attrs = append(attrs, slog.Duration("decide", o.elapsed), slog.Duration("classify", o.classified))
	}
	if o.tokens != (tokens{}) {
		attrs = append(attrs, slog.Int64("prompt_tokens", o.tokens.prompt), slog.Int64("completion_tokens", o.tokens.completion))
	}
	if err != nil {
		attrs = append(attrs, slog.String("cause", err.Error()))
	}
	p.tel.Log.LogAttrs(ctx, level, "request", attrs...)
}

// of is the price of some tokens in USD.
func (o PriceOptions) of(t tokens) float64 {
	return (float64(t.prompt)*o.Input + float64(t.completion)*o.Output) / 1e6
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
		span.SetAttributes(telemetry.AttrOperation.String("chat"))
		if o.decision != nil {
			span.SetAttributes(telemetry.AttrRoute.String(o.Route))
		}
		if o.model != nil {
			span.SetAttributes(telemetry.AttrRequestModel.String(o.model.name), telemetry.AttrEndpoint.String(o.endpoint.name))
		}
		if o.tokens != (tokens{}) {
			span.SetAttributes(telemetry.AttrInputTokens.Int64(o.tokens.prompt), telemetry.AttrOutputTokens.Int64(o.tokens.completion))
		}
		if err != nil {
			e := wire(err, "")
			span.SetAttributes(telemetry.AttrErrorType.String(or(e.Code, e.Type)))
			span.SetStatus(codes.Error, "")
		}
	}
}

// decide wraps the stage in its span and counts what it computed and what it did not have to.
func (p *Proxy) decide(ctx context.Context, st *State, who Principal, req *openai.Request, h http.Header) (*decision, error) {
	ctx, span := p.tel.Tracer.Start(ctx, "decide")
	defer span.End()
	d, err := st.decide(ctx, who, req, h)
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

// tally reads what an answer tells while it passes. It belongs to one answer.
type tally struct {
	metrics *telemetry.Metrics
	model   string
	usage   bool // the client asked for usage, so the stream carries it
	tokens  tokens
	measure measure
	chunks  uint
	last    time.Time
}

// everyGap is of how many gaps between chunks one is measured: a histogram does not need them all.
const everyGap = 16

// chunk notes one piece of a stream.
func (t *tally) chunk(b []byte, now time.Time) {
	if t.chunks%everyGap == 1 {
		t.metrics.InterToken(t.model, now.Sub(t.last))
	}
	t.chunks++
	t.last = now
	t.measure.chunk(b)
	if t.usage {
		t.find(b)
	}
}

// tailSize is how much of the end of a body is searched for usage when it came in several pieces.
const tailSize = 1 << 10

// body notes the end of an answer that is no stream: before is the end of what was passed on before last.
func (t *tally) body(before, last []byte) {
	if len(last) < tailSize && len(before) > 0 {
		last = append(bytes.Clone(before), last...)
	}
	t.find(last)
	t.measure.end(last)
}

// find reads the last usage object of b. It knows the few numbers by name and no more of JSON; inside
// a text the quotes around "usage" would be escaped.
func (t *tally) find(b []byte) {
	i := bytes.LastIndex(b, []byte(`"usage"`))
	if i < 0 {
		return
	}
	b = bytes.TrimLeft(b[i+len(`"usage"`):], ": \t\r\n")
	if len(b) == 0 || b[0] != '{' {
		return
	}
	t.tokens = tokens{
		prompt: numberAfter(b, `"prompt_tokens"`), cached: numberAfter(b, `"cached_tokens"`), completion: numberAfter(b, `"completion_tokens"`),
	}
}

// numberAfter reads the digits that follow a name in b; 0 without any.
func numberAfter(b []byte, name string) int64 {
	i := bytes.Index(b, []byte(name))
	if i < 0 {
		return 0
	}
	var n int64
	for _, c := range bytes.TrimLeft(b[i+len(name):], ": \t\r\n") {
		if c < '0' || c > '9' || n > 1<<40 {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
