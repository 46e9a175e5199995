package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/testkit"
)

// Names and attributes are those of the OpenTelemetry conventions for generative AI.
func TestSpansFollowTheConventionsForGenerativeAI(t *testing.T) {
	t.Parallel()
	const reply = `{"id":"cmpl-1","object":"chat.completion","model":"sim-7b","choices":[{"index":0,"message":{"role":"assistant","content":"4"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":7,"completion_tokens":1}}`
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, reply))
	b := start(t, oneModel(u))
	spans := tracetest.NewInMemoryExporter()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { _ = traces.Shutdown(context.WithoutCancel(t.Context())) })
	b.tel.Tracer = traces.Tracer("test")
	u.Next(testkit.Body(http.StatusServiceUnavailable, "application/json", `{"error":{"message":"busy"}}`))
	if got := b.chat(`{"model":"auto","temperature":0.5,"max_tokens":9,"messages":[{"role":"user","content":"math 2+2"}]}`); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	find := func(kind trace.SpanKind, name string) (out []tracetest.SpanStub) {
		for _, s := range spans.GetSpans() {
			if s.SpanKind == kind && strings.HasPrefix(s.Name, name) {
				out = append(out, s)
			}
		}
		return out
	}
	has := func(s *tracetest.SpanStub, want ...attribute.KeyValue) {
		t.Helper()
		for _, kv := range want {
			if !slices.Contains(s.Attributes, kv) {
				t.Errorf("span %q lacks %s=%v; it has %v", s.Name, kv.Key, kv.Value.String(), s.Attributes)
			}
		}
	}
	server := find(trace.SpanKindServer, "chat ")
	if len(server) != 1 {
		t.Fatalf("spans: %v", spans.GetSpans())
	}
	has(&server[0], attribute.String("gen_ai.operation.name", "chat"), attribute.Float64("gen_ai.request.temperature", 0.5),
		attribute.Int64("gen_ai.request.max_tokens", 9), attribute.Int("gen_ai.usage.input_tokens", 7),
		attribute.Int("gen_ai.usage.output_tokens", 1), attribute.String("http.route", "/v1/chat/completions"),
		attribute.String("gen_ai.provider.name", "openai_compatible"))
	attempts := find(trace.SpanKindClient, "chat ")
	if len(attempts) != 2 {
		t.Fatalf("%d attempts: %v", len(attempts), attempts)
	}
	has(&attempts[0], attribute.Int("signalbox.attempt", 1), attribute.Int("http.response.status_code", 503),
		attribute.String("error.type", "503"))
	has(&attempts[1], attribute.Int("signalbox.attempt", 2), attribute.Int("http.request.resend_count", 1),
		attribute.Int("http.response.status_code", 200), attribute.Int("gen_ai.usage.output_tokens", 1),
		attribute.String("gen_ai.response.id", "cmpl-1"), attribute.String("gen_ai.response.model", "sim-7b"))
	if attempts[0].Status.Code != codes.Error || attempts[1].Status.Code != codes.Unset {
		t.Errorf("statuses %v and %v", attempts[0].Status, attempts[1].Status)
	}
	reasons := slices.ContainsFunc(attempts[1].Attributes, func(kv attribute.KeyValue) bool {
		return kv.Key == "gen_ai.response.finish_reasons" && slices.Equal(kv.Value.AsStringSlice(), []string{"stop"})
	})
	if !reasons || attempts[1].Parent.SpanID() != server[0].SpanContext.SpanID() {
		t.Errorf("%+v", attempts[1])
	}
	// The model server's own spans belong below the attempt.
	sent := u.Requests()
	if parent := sent[len(sent)-1].Header.Get("Traceparent"); !strings.Contains(parent, attempts[1].SpanContext.SpanID().String()) {
		t.Errorf("the model server is told %q", parent)
	}
	decide := find(trace.SpanKindInternal, "decide")
	if len(decide) != 1 || !slices.ContainsFunc(decide[0].Attributes, func(kv attribute.KeyValue) bool {
		return strings.HasPrefix(string(kv.Key), "signalbox.signal.")
	}) {
		t.Errorf("the decision tells no signal: %v", decide)
	}
}

// The line shows the caller, the model and the duration, in this order.
func TestTheRequestLineTellsWhoAndWhat(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.Stream(testkit.Event("four"), testkit.Finish, testkit.Done))
	b := start(t, oneModel(u))
	if got := b.chat(`{"model":"auto","stream":true,"messages":[{"role":"user","content":"math 2+2"}]}`); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	line := b.log.String()
	line = line[max(0, strings.Index(line, `"msg":"request"`)):]
	at := -1
	for _, word := range []string{`"route":`, `"model":`, `"endpoint":`, `"status":200`, `"ttft":`, `"took":`, `"tenant":`, `"id":`} {
		next := strings.Index(line, word)
		if next < at || next < 0 {
			t.Errorf("%q is not behind the words before it in %s", word, line)
		}
		at = next
	}
}
