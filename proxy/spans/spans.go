// Package spans traces requests according to the OpenTelemetry conventions for generative AI: one
// server span per request, named by its operation, and one client span per attempt at a model
// server, named by operation and model. Spans contain no text of a request and, from the client,
// only numbers. The model and id of a response are what the model server reports.
package spans

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
	"signalbox/proxy/decide"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/response"
)

// Begin opens the span of a request and returns the function that ends it.
func Begin(
	tel *telemetry.Telemetry, r *http.Request, name string,
) (ctx context.Context, end func(o *exchange.Exchange, err error)) {
	ctx = r.Context()
	if len(r.Header["Traceparent"]) > 0 {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	ctx, span := tel.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(o *exchange.Exchange, err error) {
		defer span.End()
		EndAttempt(o, err)
		if !span.IsRecording() {
			return
		}
		span.SetAttributes(telemetry.AttrOperation.String(name), telemetry.AttrHTTPRoute.String(o.Surface.Path))
		if o.Decision != nil {
			span.SetAttributes(telemetry.AttrRoute.String(o.Route))
		}
		if o.Who.Tenant != "" {
			span.SetAttributes(telemetry.AttrTenant.String(o.Who.Tenant))
		}
		if o.Model != nil {
			span.SetName(name + " " + o.Model.Name)
			span.SetAttributes(telemetry.AttrProvider.String(o.Model.Provider(o.Endpoint)),
				telemetry.AttrRequestModel.String(o.Model.Name), telemetry.AttrEndpoint.String(o.Endpoint.Name))
		}
		if o.Req != nil {
			span.SetAttributes(requestAttributes(o.Req)...)
		}
		span.SetAttributes(responseAttributes(&o.Tally)...)
		failed(span, err)
	}
}

// failed records why something failed, with the type of the error that a client sees.
func failed(span trace.Span, err error) {
	if err == nil {
		return
	}
	e := fault.Wire(err, "")
	span.SetAttributes(telemetry.AttrErrorType.String(cmp.Or(e.Code, e.Type)))
	span.SetStatus(codes.Error, "")
}

// Attempt opens the span of an attempt. Without tracing it costs nothing.
func Attempt(
	ctx context.Context, tel *telemetry.Telemetry, o *exchange.Exchange, n int,
) (context.Context, trace.Span) {
	if !tel.Traced() {
		return ctx, nil
	}
	operation := o.Surface.Operation
	ctx, span := tel.Tracer.Start(ctx, operation+" "+o.Model.ServedAs, trace.WithSpanKind(trace.SpanKindClient))
	if !span.IsRecording() {
		return ctx, span
	}
	span.SetAttributes(telemetry.AttrOperation.String(operation),
		telemetry.AttrProvider.String(o.Model.Provider(o.Endpoint)),
		telemetry.AttrRequestModel.String(o.Model.ServedAs), telemetry.AttrEndpoint.String(o.Endpoint.Name),
		telemetry.AttrServerAddress.String(o.Endpoint.Chat.Hostname()), telemetry.AttrAttempt.Int(n))
	if port, err := strconv.Atoi(o.Endpoint.Chat.Port()); err == nil {
		span.SetAttributes(telemetry.AttrServerPort.Int(port))
	}
	if n > 1 {
		span.SetAttributes(telemetry.AttrResend.Int(n - 1))
	}
	span.SetAttributes(requestAttributes(o.Req)...)
	return ctx, span
}

// Attempted records how an attempt began. It ends its span, unless the response is relayed; then
// the relay ends it.
func Attempted(o *exchange.Exchange, span trace.Span, u *upstream.Response, err error) {
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
	case u.Useless():
		span.SetAttributes(telemetry.AttrStatus.Int(u.Status), telemetry.AttrErrorType.String(fault.CodeUpstream))
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
		o.Upstream = span
	}
}

// EndAttempt ends the span of the answered attempt.
func EndAttempt(o *exchange.Exchange, err error) {
	if o.Upstream == nil {
		return
	}
	o.Upstream.SetAttributes(responseAttributes(&o.Tally)...)
	failed(o.Upstream, err)
	o.Upstream.End()
}

// requestAttributes returns the numeric parameters of a request.
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

// responseAttributes returns what a response reports about itself.
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

// Decide records a decision and its signals. Labels come from models and the configuration.
func Decide(span trace.Span, d *decide.Decision) {
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
