// Package telemetry sets up logging, metrics and tracing, and owns every metric and attribute name
// of the product. Callers pass values in; the package holds no logic of theirs.
//
// Everything here is safe for concurrent use. Shutdown flushes the exporters.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"signalbox/internal/option"
)

// Options configures logging, metrics and tracing.
type Options struct {
	// Log is the minimum severity of log lines that are written: debug, info, warn or error.
	// Default info. Restart needed.
	Log string `yaml:"log" words:"debug info warn error"`
	// LogFormat is the format of log lines: text or json. Durations, such as took, are written as
	// 1.5ms in text and as a number of nanoseconds in JSON. Default text. Restart needed.
	LogFormat string `yaml:"log_format" words:"text json"`
	// OTLPEndpoint is the OTLP/HTTP endpoint to which traces are sent, such as
	// http://collector:4318. Credentials for the collector are set in the environment variable
	// OTEL_EXPORTER_OTLP_HEADERS, such as Authorization=Basic%20TOKEN. Empty, the default, disables
	// tracing. Restart needed.
	OTLPEndpoint string `yaml:"otlp_endpoint"`
	// OTLPMetricsEndpoint is the OTLP/HTTP endpoint to which the metrics of /metrics are sent every
	// minute, such as http://collector:4318. Empty, the default, disables this. Restart needed.
	OTLPMetricsEndpoint string `yaml:"otlp_metrics_endpoint"`
	// SampleRatio is the share of requests without a sampled parent that are traced, 0 to 1.
	// Default 1. Restart needed.
	SampleRatio float64 `yaml:"sample_ratio"`
	// Prometheus serves /metrics on the admin listener. Default true. Restart needed.
	Prometheus bool `yaml:"prometheus"`
	// RecordPrompts permits prompt text in logs, spans and the decision log. Default false. Turning
	// it off takes effect on reload; turning it on needs a restart.
	RecordPrompts bool `yaml:"record_prompts"`
	// Decisions configures the decision log.
	Decisions DecisionOptions `yaml:"decisions"`
}

// DefaultOptions returns options that log at info, serve metrics and send no traces.
func DefaultOptions() Options {
	return Options{Log: "info", LogFormat: "text", SampleRatio: 1, Prometheus: true, Decisions: DefaultDecisionOptions()}
}

// Validate returns every invalid option as "field: problem".
func (o Options) Validate() error {
	var p option.Problems
	if _, err := level(o.Log); err != nil {
		p.Join("log", err)
	}
	if o.LogFormat != "text" && o.LogFormat != "json" {
		p.Addf("log_format", "%q is neither text nor json", o.LogFormat)
	}
	option.Between(&p, "sample_ratio", o.SampleRatio, 0, 1)
	p.Join("otlp_endpoint", checkCollector(o.OTLPEndpoint))
	p.Join("otlp_metrics_endpoint", checkCollector(o.OTLPMetricsEndpoint))
	if o.Decisions != (DecisionOptions{}) {
		o.Decisions.check(&p, "decisions.")
	}
	return p.Err()
}

// checkCollector returns the problem of a collector's URL. Exporters do not use the part before the
// host, which may contain a password and is never shown in errors.
func checkCollector(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil
	case strings.Contains(s, "@") && (err != nil || u.User != nil || !strings.Contains(s, "://")):
		return errors.New("the URL names a user or a password, which are not sent: " +
			"put them into a header by the environment variable OTEL_EXPORTER_OTLP_HEADERS")
	case !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"):
		return fmt.Errorf("%q must start with http:// or https://", s)
	case err != nil:
		return fmt.Errorf("%q is not a URL", s)
	}
	return option.Port(u) //nolint:wrapcheck // the caller does
}

func level(name string) (slog.Level, error) {
	switch name {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("%q is not one of debug, info, warn, error", name)
}

// Telemetry is the set of instruments that the process shares.
type Telemetry struct {
	Log     *slog.Logger
	Tracer  trace.Tracer
	Metrics *Metrics
	// Decisions is the decision log; nil when there is none.
	Decisions *Decisions

	handler  http.Handler
	shutdown []func(context.Context) error
}

// ofTheRuntime returns the collector of the Go runtime. It is independent of a registry, and
// creating one takes milliseconds of regular expressions.
//
//nolint:gochecknoglobals // made once
var ofTheRuntime = sync.OnceValue(func() prometheus.Collector { return collectors.NewGoCollector() })

// New builds the instruments. Logs go to w. The caller calls Shutdown.
func New(ctx context.Context, o Options, version string, w io.Writer) (*Telemetry, error) {
	lv, err := level(o.Log)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	t := &Telemetry{Log: slog.New(handler(w, o.LogFormat, lv))}

	registry := prometheus.NewRegistry()
	registry.MustRegister(ofTheRuntime(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	shapes := &histograms{since: time.Now()}
	exporter, err := otelprom.New(
		otelprom.WithProducer(shapes),
		otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes),
	)
	if err != nil {
		return nil, fmt.Errorf("prometheus exporter: %w", err)
	}
	// No measurement has the context of a request, so there would be no exemplars.
	res := resource.NewSchemaless(attrServiceName.String("signalbox"), attrServiceVersion.String(version))
	with := []sdkmetric.Option{
		sdkmetric.WithReader(exporter), sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), sdkmetric.WithResource(res),
	}
	if o.OTLPMetricsEndpoint != "" {
		pushed, err := push(ctx, o.OTLPMetricsEndpoint, shapes)
		if err != nil {
			return nil, err
		}
		with = append(with, sdkmetric.WithReader(pushed))
	}
	provider := sdkmetric.NewMeterProvider(with...)
	t.shutdown = append(t.shutdown, provider.Shutdown)
	if t.Metrics, err = newMetrics(provider.Meter(scope), shapes); err != nil {
		return nil, err
	}
	t.Metrics.Build(version, runtime.Version())
	t.handler = http.NotFoundHandler()
	if o.Prometheus {
		t.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	}
	if err := t.trace(ctx, o, res); err != nil {
		return t, err
	}
	if o.Decisions.File == "" && o.Decisions.To == nil {
		return t, nil
	}
	if t.Decisions, err = openDecisions(o.Decisions, o.RecordPrompts, t.Log, t.Metrics); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	t.shutdown = append(t.shutdown, t.Decisions.shutdown)
	return t, nil
}

func handler(w io.Writer, format string, lv slog.Level) slog.Handler {
	opts := &slog.HandlerOptions{Level: lv}
	if format == "json" {
		return slog.NewJSONHandler(w, opts)
	}
	return slog.NewTextHandler(w, opts)
}

// untraced starts no spans. Unlike the tracer of package noop it leaves the context unchanged, so
// that a client's trace context stays in it, at no cost for a request.
type untraced struct{ embedded.Tracer }

// Start implements trace.Tracer.
func (untraced) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, noop.Span{}
}

// Traced reports whether spans are exported: if not, callers need not compute their names.
func (t *Telemetry) Traced() bool {
	_, off := t.Tracer.(untraced)
	return !off
}

// scope is the instrumentation scope.
const scope = "signalbox"

// push sends metrics by OTLP.
func push(ctx context.Context, endpoint string, more sdkmetric.Producer) (sdkmetric.Reader, error) {
	at, err := collector(endpoint, "/v1/metrics")
	if err != nil {
		return nil, fmt.Errorf("otlp_metrics_endpoint: %w", err)
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(at))
	if err != nil {
		return nil, fmt.Errorf("otlp exporter of metrics: %w", err)
	}
	return sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(more)), nil
}

// collector returns the address for a signal at a collector: an address without a path gets that of
// the protocol (OpenTelemetry Protocol Exporter, endpoint URLs for OTLP/HTTP).
func collector(endpoint, path string) (string, error) {
	at, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("not a URL: %w", err)
	}
	if strings.Trim(at.Path, "/") == "" {
		at.Path = path
	}
	return at.String(), nil
}

func (t *Telemetry) trace(ctx context.Context, o Options, res *resource.Resource) error {
	if o.OTLPEndpoint == "" {
		t.Tracer = untraced{}
		return nil
	}
	at, err := collector(o.OTLPEndpoint, "/v1/traces")
	if err != nil {
		return fmt.Errorf("otlp_endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(at))
	if err != nil {
		return fmt.Errorf("otlp exporter: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(res),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.SampleRatio))),
	)
	t.Tracer = provider.Tracer("signalbox")
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return nil
}

// Discard returns instruments that record only in memory, for tests and for commands that run once
// and print.
func Discard() *Telemetry {
	t, err := New(context.Background(), Options{Log: "error"}, "", io.Discard)
	if err != nil {
		panic(err) // cannot happen: the options are constant
	}
	return t
}

// Handler serves the Prometheus page, or 404 if it is disabled.
func (t *Telemetry) Handler() http.Handler { return t.handler }

// Shutdown flushes and stops the exporters.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	errs := make([]error, 0, len(t.shutdown))
	for _, f := range t.shutdown {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}
