package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// expected is a span that must be exported exactly once.
type expected struct {
	name   string
	kind   ptrace.SpanKind
	has    map[string]any
	status ptrace.StatusCode
	lacks  []string
}

// checkSpans compares spans with those expected for the requests of run. addresses are those of the
// endpoints.
func checkSpans(spans []span, addresses []string) error {
	asked := map[string]any{
		"gen_ai.request.temperature": 0.5, "gen_ai.request.max_tokens": int64(20),
		"gen_ai.request.seed": int64(7),
	}
	attempt := func(n, status int64) map[string]any {
		return map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.request.model": "sim/7B", "signalbox.attempt": n,
			"http.response.status_code": status,
		}
	}
	const server, client, internal = ptrace.SpanKindServer, ptrace.SpanKindClient, ptrace.SpanKindInternal
	decided := func(route string, keyword ...any) expected {
		e := expected{name: "decide", kind: internal, has: map[string]any{"signalbox.route": route}}
		if keyword != nil {
			e.has["signalbox.signal.keyword"] = keyword
		}
		return e
	}
	want := []expected{
		{name: "chat small", kind: server, has: with(asked, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.request.model": "small",
			"http.route": "/v1/chat/completions", "signalbox.route": "secret",
		})},
		{
			name: "chat small", kind: server, has: map[string]any{"signalbox.route": "default"},
			lacks: []string{"gen_ai.request.seed"},
		},
		{
			name: "chat", kind: server, status: ptrace.StatusCodeError,
			has:   map[string]any{"signalbox.route": "nothing", "error.type": "content_policy_violation"},
			lacks: []string{"gen_ai.request.model"},
		},
		{
			name: "chat sim/7B", kind: client, status: ptrace.StatusCodeError,
			has:   with(with(asked, attempt(1, 503)), map[string]any{"error.type": "503"}),
			lacks: []string{"http.request.resend_count"},
		},
		{name: "chat sim/7B", kind: client, has: with(with(asked, attempt(2, 200)), map[string]any{
			"http.request.resend_count": int64(1),
		})},
		{name: "chat sim/7B", kind: client, has: attempt(1, 200)},
		decided("secret", "titan"), decided("default"), decided("nothing", "no"),
	}
	var errs []error
	if len(spans) != len(want) {
		errs = append(errs, fmt.Errorf("%d spans, want %d", len(spans), len(want)))
	}
	for i := range want {
		at := slices.IndexFunc(spans, func(s span) bool { return want[i].is(&s) == nil })
		if at < 0 {
			errs = append(errs, missing(&want[i], spans))
			continue
		}
		errs = append(errs, answered(&want[i], &spans[at]))
	}
	for i := range spans {
		if spans[i].Kind() == ptrace.SpanKindClient {
			errs = append(errs, endpoint(&spans[i], addresses))
		}
	}
	return errors.Join(append(errs, family(spans))...)
}

// endpoint checks that an attempt names its endpoint.
func endpoint(s *span, addresses []string) error {
	got := s.Attributes().AsRaw()
	at := slices.Index([]string{"a", "b"}, fmt.Sprint(got["signalbox.endpoint"]))
	if at < 0 || addresses[at] != fmt.Sprintf("%v:%v", got["server.address"], got["server.port"]) {
		return fmt.Errorf("an attempt at %v of %v", got, addresses)
	}
	return nil
}

func with(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// is returns why a span differs from the expected one.
func (e *expected) is(s *span) error {
	got := s.Attributes().AsRaw()
	switch {
	case s.Name() != e.name || s.Kind() != e.kind:
		return fmt.Errorf("it is %s %q", s.Kind(), s.Name())
	case s.Status().Code() != e.status:
		return fmt.Errorf("its status is %s", s.Status().Code())
	case s.service != "signalbox":
		return fmt.Errorf("its service is %q", s.service)
	}
	for key, v := range e.has {
		if !reflect.DeepEqual(got[key], v) {
			return fmt.Errorf("%s is %v, not %v", key, got[key], v)
		}
	}
	for _, key := range e.lacks {
		if v, ok := got[key]; ok {
			return fmt.Errorf("%s is %v", key, v)
		}
	}
	return nil
}

// missing returns why no span is the expected one, among those with its name and kind.
func missing(e *expected, spans []span) error {
	var why []string
	for i := range spans {
		if spans[i].Name() == e.name && spans[i].Kind() == e.kind {
			why = append(why, fmt.Sprintf("%v (%v)", e.is(&spans[i]), spans[i].Attributes().AsRaw()))
		}
	}
	if why == nil {
		for i := range spans {
			why = append(why, fmt.Sprintf("%s %q", spans[i].Kind(), spans[i].Name()))
		}
	}
	return fmt.Errorf("no span is %s %q with %v: %s", e.kind, e.name, e.has, strings.Join(why, "; "))
}

// answered checks the response attributes of a span, if there was a response.
func answered(e *expected, s *span) error {
	if e.kind == ptrace.SpanKindInternal || e.status == ptrace.StatusCodeError {
		return nil
	}
	got := s.Attributes().AsRaw()
	var errs []error
	for _, key := range []string{"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} {
		if n, ok := got[key].(int64); !ok || n <= 0 {
			errs = append(errs, fmt.Errorf("%s %q: %s is %v", e.kind, e.name, key, got[key]))
		}
	}
	const finish = "gen_ai.response.finish_reasons"
	if reasons := fmt.Sprint(got[finish]); reasons != "[stop]" && reasons != "[length]" {
		errs = append(errs, fmt.Errorf("%s %q: %s is %s", e.kind, e.name, finish, reasons))
	}
	for _, key := range []string{"gen_ai.response.id", "gen_ai.response.model"} {
		if name, _ := got[key].(string); name == "" && e.kind == ptrace.SpanKindClient {
			errs = append(errs, fmt.Errorf("%s %q has no %s", e.kind, e.name, key))
		}
	}
	if provider, _ := got["gen_ai.provider.name"].(string); provider == "" {
		errs = append(errs, fmt.Errorf("%s %q has no gen_ai.provider.name", e.kind, e.name))
	}
	return errors.Join(errs...)
}

// family checks that attempts and decisions are children of a request, and that a client's trace is
// continued.
func family(spans []span) error {
	var errs []error
	requests, remote := map[string]bool{}, 0
	for i := range spans {
		if s := &spans[i]; s.Kind() == ptrace.SpanKindServer {
			requests[s.TraceID().String()+s.SpanID().String()] = true
			if parent == fmt.Sprintf("00-%s-%s-01", s.TraceID(), s.ParentSpanID()) {
				remote++
			}
		}
	}
	for i := range spans {
		s := &spans[i]
		if s.Kind() != ptrace.SpanKindServer && !requests[s.TraceID().String()+s.ParentSpanID().String()] {
			errs = append(errs, fmt.Errorf("%s %q is no child of a request", s.Kind(), s.Name()))
		}
	}
	if remote != 1 {
		errs = append(errs, fmt.Errorf("%d requests go on with the client's trace", remote))
	}
	return errors.Join(errs...)
}

// checkMetrics compares metrics with the requests of run.
func checkMetrics(metrics map[string]*metric) error {
	of := func(route, status string) map[string]any {
		return map[string]any{"route": route, "status": status}
	}
	var errs []error
	for _, want := range []struct {
		name, kind string
		at         map[string]any
		value      float64 // 0: at least one
	}{
		{"signalbox_requests_total", "Sum", of("secret", "200"), 1},
		{"signalbox_requests_total", "Sum", of("default", "200"), 1},
		{"signalbox_requests_total", "Sum", of("nothing", "400"), 1},
		{"signalbox_retries_total", "Sum", nil, 1},
		{"signalbox_tokens_total", "Sum", map[string]any{"kind": "completion"}, 0},
		{"signalbox_cost_usd_total", "Sum", map[string]any{"model": "small"}, -1},
		{"signalbox_ttft_seconds", "Histogram", map[string]any{"model": "small"}, 1},
		{"signalbox_decide_seconds", "Histogram", nil, 3},
		{"signalbox_endpoint_up", "Gauge", map[string]any{"endpoint": "a"}, 1},
		{"signalbox_build_info", "Gauge", nil, 1},
		{"signalbox_config_last_reload_successful", "Gauge", nil, 1},
		{"signalbox_config_last_reload_success_timestamp_seconds", "Gauge", nil, 0},
	} {
		m := metrics[want.name]
		if m == nil {
			errs = append(errs, fmt.Errorf("no metric %s came out", want.name))
			continue
		}
		if m.kind != want.kind {
			errs = append(errs, fmt.Errorf("%s is a %s", want.name, m.kind))
		}
		fit := func(p map[string]any) bool { return fits(p, want.at, want.value) }
		if !slices.ContainsFunc(m.points, fit) {
			errs = append(errs, fmt.Errorf("%s has no point %v of %v; it has %v",
				want.name, want.at, want.value, m.points))
		}
	}
	return errors.Join(errs...)
}

// fits reports whether a point has the given attributes and value: 0 means 1 or more, -1 means more
// than 0.
func fits(p, at map[string]any, value float64) bool {
	for key, v := range at {
		if fmt.Sprint(p[key]) != v {
			return false
		}
	}
	x, _ := p[""].(float64)
	switch value {
	case 0:
		return x >= 1
	case -1:
		return x > 0
	}
	return x == value
}
