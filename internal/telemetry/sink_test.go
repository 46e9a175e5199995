package telemetry

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"signalbox/internal/testkit"
)

// A collector takes traces at a path of the protocol, which nobody has to name.
func TestTracesGoToThePathOfTheProtocol(t *testing.T) {
	paths := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.Path }))
	t.Cleanup(collector.Close)
	for at, want := range map[string]string{"": "/v1/traces", "/": "/v1/traces", "/otlp/v1/traces": "/otlp/v1/traces"} {
		o := DefaultOptions()
		o.OTLPEndpoint = collector.URL + at
		tel, err := New(t.Context(), o, "test", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		_, span := tel.Tracer.Start(t.Context(), "chat")
		span.End()
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-paths; got != want {
			t.Errorf("%q leads to %s, want %s", at, got, want)
		}
	}
}

// What /metrics tells is sent to a collector too, in the protocol's own words.
func TestMetricsGoToACollector(t *testing.T) {
	type push struct {
		path string
		body *collectormetrics.ExportMetricsServiceRequest
	}
	pushes := make(chan push, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			in, _ = gzip.NewReader(r.Body)
		}
		b, _ := io.ReadAll(in)
		p := push{r.URL.Path, &collectormetrics.ExportMetricsServiceRequest{}}
		if err := proto.Unmarshal(b, p.body); err != nil {
			t.Error(err)
		}
		pushes <- p
	}))
	t.Cleanup(collector.Close)
	o := DefaultOptions()
	o.OTLPMetricsEndpoint = collector.URL
	tel, err := New(t.Context(), o, "v1", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	tel.Metrics.Request("math", "math-70b", 200, time.Second)
	tel.Metrics.Reloaded(true, 3, time.Unix(5, 0))
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-pushes
	names := map[string]bool{}
	for _, r := range got.body.GetResourceMetrics() {
		for _, s := range r.GetScopeMetrics() {
			for _, m := range s.GetMetrics() {
				names[m.GetName()] = true
			}
		}
	}
	for _, want := range []string{"signalbox_requests_total", "signalbox_request_seconds", "signalbox_build_info", "signalbox_config_generation"} {
		if !names[want] {
			t.Errorf("%s was not sent to %s: %v", want, got.path, names)
		}
	}
	if got.path != "/v1/metrics" {
		t.Errorf("sent to %s", got.path)
	}
}

// F4: spans that a collector does not take are dropped: they fill no memory and hold up nobody,
// whether it is down or hangs.
func TestF4ACollectorThatTakesNothingCostsLittle(t *testing.T) {
	running := runtime.NumGoroutine()
	hangs := make(chan struct{})
	stalled := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, at := range map[string]string{"down": gone.URL, "hanging": stalled.URL} {
		o := DefaultOptions()
		o.OTLPEndpoint = at
		tel, err := New(t.Context(), o, "test", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const spans = 100_000
		begun := time.Now()
		for range spans {
			_, span := tel.Tracer.Start(t.Context(), "chat")
			span.SetAttributes(AttrRoute.String("a route of this name"), AttrErrorType.String("upstream_error"))
			span.End()
		}
		took := time.Since(begun)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
			t.Errorf("%s: %d spans hold %d MiB", name, spans, grown>>20)
		}
		if testkit.Timed() && took > time.Minute {
			t.Errorf("%s: %d spans took %s", name, spans, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		begun = time.Now()
		_ = tel.Shutdown(ctx) // what was not taken is lost, and it says so
		if took := time.Since(begun); testkit.Timed() && took > 10*time.Second {
			t.Errorf("%s: to stop took %s", name, took)
		}
		cancel()
	}
	close(hangs)
	stalled.Close()
	for end := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > running; time.Sleep(10 * time.Millisecond) { // an export has its own time limit
		if time.Now().After(end) {
			t.Fatalf("%d goroutines go on", runtime.NumGoroutine()-running)
		}
	}
}
