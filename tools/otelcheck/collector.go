package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// collector is an OpenTelemetry Collector in this process: its receiver of OTLP over HTTP, its
// pipelines, and its exporter, which sends the output to a local server.
type collector struct {
	url  string // receives the telemetry
	sink *sink
	stop func() error
}

// newCollector starts a collector at a free address.
func newCollector(ctx context.Context, address string) (*collector, error) {
	s := &sink{}
	out := httptest.NewServer(s)
	text := fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters:
  otlp_http: {endpoint: %q, encoding: json, compression: none, sending_queue: {enabled: false}}
service:
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_http]}
    metrics: {receivers: [otlp], exporters: [otlp_http]}
`, address, out.URL)
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcheck", Version: "0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{text}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
		LoggingOptions:          []zap.Option{zap.IncreaseLevel(zapcore.WarnLevel)},
		DisableGracefulShutdown: true, // this program handles signals
	})
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("collector: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		c.Shutdown()
		err := <-ended
		out.Close()
		return errors.Join(err, s.err())
	})
	begun := func() bool { return c.GetState() != otelcol.StateStarting }
	if err := waitFor(ctx, "the collector", begun); err != nil {
		return nil, errors.Join(err, stop())
	}
	if c.GetState() != otelcol.StateRunning {
		return nil, fmt.Errorf("collector: %w", stop())
	}
	return &collector{url: "http://" + address, sink: s, stop: stop}, nil
}

func factories() (f otelcol.Factories, err error) {
	f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory())
	f.Telemetry = otelconftelemetry.NewFactory()
	return f, err
}

// sink stores the output of the collector.
type sink struct {
	mu      sync.Mutex // guards all below
	spans   []span
	metrics map[string]*metric
	errs    []error
}

// span is a span with the attributes of its resource.
type span struct {
	ptrace.Span
	service string
}

// metric describes the data of one name: form, unit and its latest points.
type metric struct {
	kind, unit string
	points     []map[string]any // attributes, and the value under the empty name
}

func (s *sink) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// ServeHTTP receives requests of an OTLP exporter over HTTP.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
	case r.URL.Path == "/v1/traces":
		req := ptraceotlp.NewExportRequest()
		if err = req.UnmarshalJSON(b); err == nil {
			s.keepSpans(req.Traces())
		}
	case r.URL.Path == "/v1/metrics":
		req := pmetricotlp.NewExportRequest()
		if err = req.UnmarshalJSON(b); err == nil {
			s.keepMetrics(req.Metrics())
		}
	default:
		err = fmt.Errorf("the collector sends to %s", r.URL.Path)
	}
	if err != nil {
		s.errs = append(s.errs, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

func (s *sink) keepSpans(t ptrace.Traces) {
	for _, r := range t.ResourceSpans().All() {
		service, _ := r.Resource().Attributes().Get("service.name")
		for _, scope := range r.ScopeSpans().All() {
			for _, x := range scope.Spans().All() {
				s.spans = append(s.spans, span{Span: x, service: service.AsString()})
			}
		}
	}
}

func (s *sink) keepMetrics(m pmetric.Metrics) {
	if s.metrics == nil {
		s.metrics = map[string]*metric{}
	}
	for _, r := range m.ResourceMetrics().All() {
		for _, scope := range r.ScopeMetrics().All() {
			for _, x := range scope.Metrics().All() {
				s.metrics[x.Name()] = &metric{kind: x.Type().String(), unit: x.Unit(), points: points(x)}
			}
		}
	}
}

func points(m pmetric.Metric) (out []map[string]any) {
	numbers := func(of pmetric.NumberDataPointSlice) {
		for _, p := range of.All() {
			x := p.Attributes().AsRaw()
			x[""] = p.DoubleValue() + float64(p.IntValue())
			out = append(out, x)
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			x := p.Attributes().AsRaw()
			x[""] = float64(p.Count())
			out = append(out, x)
		}
	}
	return out
}
