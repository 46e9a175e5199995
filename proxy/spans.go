package proxy

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/fault"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/response"
)

// Spans follow the OpenTelemetry conventions for generative AI: one of kind server for the request,
// named by its operation, and one of kind client for each attempt at a model server, named by
// operation and model. No text of a request is in them, and no word of a client but numbers. The
// model and the id of an answer are what the model server says.

// trace opens the span of a request and returns what ends it.
func (p *Proxy) trace(r *http.Request, name string) (ctx context.Context, end func(o *exchange, err error)) {
	ctx = r.Context()
	if len(r.Header["Traceparent"]) > 0 {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	ctx, span := p.tel.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(o *exchange, err error) {
		defer span.End()
		o.endAttempt(err)
		if !span.IsRecording() {
			return
		}
		span.SetAttributes(telemetry.AttrOperation.String(name), telemetry.AttrHTTPRoute.String(o.surface.path))
		if o.decision != nil {
			span.SetAttributes(telemetry.AttrRoute.String(o.Route))
		}
		if o.who.Tenant != "" {
			span.SetAttributes(telemetry.AttrTenant.String(o.who.Tenant))
		}
		if o.model != nil {
			span.SetName(name + " " + o.model.Name)
			span.SetAttributes(telemetry.AttrProvider.String(o.model.Provider(o.endpoint)),
				telemetry.AttrRequestModel.String(o.model.Name), telemetry.AttrEndpoint.String(o.endpoint.Name))
		}
		if o.req != nil {
			span.SetAttributes(requestAttributes(o.req)...)
		}
		span.SetAttributes(responseAttributes(&o.tally)...)
		failed(span, err)
	}
}

// failed notes why something ended without success, in the words of the error that a client sees.
func failed(span trace.Span, err error) {
	if err == nil {
		return
	}
	e := fault.Wire(err, "")
	span.SetAttributes(telemetry.AttrErrorType.String(cmp.Or(e.Code, e.Type)))
	span.SetStatus(codes.Error, "")
}

// attempting opens the span of an attempt; without tracing it costs nothing.
func (p *Proxy) attempting(ctx context.Context, o *exchange, n int) (context.Context, trace.Span) {
	if !p.tel.Traced() {
		return ctx, nil
	}
	operation := o.surface.operation
	ctx, span := p.tel.Tracer.Start(ctx, operation+" "+o.model.ServedAs, trace.WithSpanKind(trace.SpanKindClient))
	if !span.IsRecording() {
		return ctx, span
	}
	span.SetAttributes(telemetry.AttrOperation.String(operation),
		telemetry.AttrProvider.String(o.model.Provider(o.endpoint)),
		telemetry.AttrRequestModel.String(o.model.ServedAs), telemetry.AttrEndpoint.String(o.endpoint.Name),
		telemetry.AttrServerAddress.String(o.endpoint.Chat.Hostname()), telemetry.AttrAttempt.Int(n))
	if port, err := strconv.Atoi(o.endpoint.Chat.Port()); err == nil {
		span.SetAttributes(telemetry.AttrServerPort.Int(port))
	}
	if n > 1 {
		span.SetAttributes(telemetry.AttrResend.Int(n - 1))
	}
	span.SetAttributes(requestAttributes(o.req)...)
	return ctx, span
}

// attempted notes how an attempt began, and ends its span unless its response is the one that is
// passed on, which ends it then.
func (o *exchange) attempted(span trace.Span, u *upstream.Response, err error) {
	if span == nil {
		return
	}
	switch {
	case err != nil:
		failed(span, err)
		span.End()
	case u.Refused():
		span.SetAttributes(telemetry.AttrStatus.Int(u.Status), telemetry.AttrErrorType.String(strconv.Itoa(u.Status)))
		span.SetStatus(codes.Error, "")
		span.End()
	default:
		span.SetAttributes(telemetry.AttrStatus.Int(u.Status))
		names := u.Names()
		if names.ID != "" {
			span.SetAttributes(telemetry.AttrResponseID.String(names.ID))
		}
		if names.Model != "" {
			span.SetAttributes(telemetry.AttrResponseModel.String(names.Model))
		}
		o.upstream = span
	}
}

// endAttempt ends the span of the attempt that was answered.
func (o *exchange) endAttempt(err error) {
	if o.upstream == nil {
		return
	}
	o.upstream.SetAttributes(responseAttributes(&o.tally)...)
	failed(o.upstream, err)
	o.upstream.End()
}

// requestAttributes are the numbers that a request asks for a response with.
func requestAttributes(req *openai.Request) []attribute.KeyValue {
	var out []attribute.KeyValue
	for _, f := range [...]struct {
		field string
		key   attribute.Key
	}{
		{"max_completion_tokens", telemetry.AttrMaxTokens},
		{"max_tokens", telemetry.AttrMaxTokens},
		{"max_output_tokens", telemetry.AttrMaxTokens},
		{"n", telemetry.AttrChoices},
		{"seed", telemetry.AttrSeed},
	} {
		if n, err := strconv.ParseInt(string(req.Field(f.field)), 10, 64); err == nil {
			out = append(out, f.key.Int64(n))
		}
	}
	for _, f := range [...]struct {
		field string
		key   attribute.Key
	}{
		{"temperature", telemetry.AttrTemperature},
		{"top_p", telemetry.AttrTopP},
		{"frequency_penalty", telemetry.AttrFrequencyPenalty},
		{"presence_penalty", telemetry.AttrPresencePenalty},
	} {
		if x, err := strconv.ParseFloat(string(req.Field(f.field)), 64); err == nil && !math.IsNaN(x) {
			out = append(out, f.key.Float64(x))
		}
	}
	return out
}

// responseAttributes are what a response tells of itself.
func responseAttributes(told *response.Tally) []attribute.KeyValue {
	var out []attribute.KeyValue
	if told.Finish != "" {
		out = append(out, telemetry.AttrFinishReasons.StringSlice([]string{told.Finish}))
	}
	if told.Usage != (response.Usage{}) {
		out = append(out, telemetry.AttrInputTokens.Int(told.Usage.Input), telemetry.AttrOutputTokens.Int(told.Usage.Output))
	}
	if told.Usage.Cached > 0 {
		out = append(out, telemetry.AttrCachedTokens.Int(told.Usage.Cached))
	}
	return out
}

// traceDecision notes a decision and the signals that it rests on. Labels are words of models and of
// the configuration.
func traceDecision(span trace.Span, d *decision) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(telemetry.AttrRoute.String(cmp.Or(d.Route, rules.RouteDefault)))
	for k := range signal.NumKinds {
		v := d.Set.Value(k)
		key := telemetry.AttrSignal(k.String())
		switch v.State {
		case signal.Unknown:
			span.SetAttributes(attribute.String(key+".unknown", string(v.Reason)))
		case signal.Known:
			if v.Label != "" {
				span.SetAttributes(attribute.String(key, v.Label))
			} else if k == signal.Keyword || k == signal.PII {
				span.SetAttributes(attribute.StringSlice(key, v.Labels))
			}
			if v.Score > 0 {
				span.SetAttributes(attribute.Float64(key+".score", v.Score))
			}
		case signal.NotExtracted:
		}
	}
}
