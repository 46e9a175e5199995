package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The attribute keys of traces and resources. The GenAI names are those of the OpenTelemetry
// semantic conventions v1.41.0, the last version of the Go package that carries them.
const (
	attrServiceName    = attribute.Key("service.name")
	attrServiceVersion = attribute.Key("service.version")

	AttrRequestModel  = attribute.Key("gen_ai.request.model")
	AttrResponseModel = attribute.Key("gen_ai.response.model")
	AttrOperation     = attribute.Key("gen_ai.operation.name")
	AttrInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	AttrOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	AttrErrorType     = attribute.Key("error.type")
	AttrRoute         = attribute.Key("signalbox.route")
	AttrEndpoint      = attribute.Key("signalbox.endpoint")
	AttrSignals       = attribute.Key("signalbox.signals")
)

// Metrics records every metric of the product. Label values come from the configuration, never
// from a client; callers pass "other" for what a client made up. Safe for concurrent use.
type Metrics struct {
	requests        counter
	requestSeconds  histogram
	decideSeconds   histogram
	modelRuns       counter
	modelRunSeconds histogram
	batchSize       histogram
	skipped         counter
	unknown         counter
	ttft            histogram
	interToken      histogram
	tokens          counter
	prefixTokens    counter
	placements      counter
	splits          counter
	restarts        counter
	warms           counter
	cost            floatCounter
	costBaseline    floatCounter
	shed            counter
	pool            poolGauges
	retries         counter
	cache           counter
	cacheKept       counter
	widened         counter
	decisions       counter
	contextRequests counter
	guardClaims     counter
	guardActions    counter
	guardSeconds    histogram
	provider        gauge
	workerRestarts  counter
	pageSeconds     histogram
	meter           metric.Meter
	attrs           attrCache
}

type (
	counter      struct{ metric.Int64Counter }
	floatCounter struct{ metric.Float64Counter }
	histogram    struct{ metric.Float64Histogram }
	gauge        struct{ metric.Int64Gauge }
)

// Bucket bounds in seconds: neural passes and decisions take 10 us to 1 s, requests 1 ms to minutes.
func fastBuckets() []float64 {
	return []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
}

func slowBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
}

// maker collects the errors of instrument creation, so that the list below stays a list.
type maker struct {
	meter metric.Meter
	errs  []error
}

func (m *maker) counter(name, text string) counter {
	c, err := m.meter.Int64Counter(name, metric.WithDescription(text))
	m.errs = append(m.errs, err)
	return counter{c}
}

func (m *maker) floats(name, text string) floatCounter {
	c, err := m.meter.Float64Counter(name, metric.WithDescription(text))
	m.errs = append(m.errs, err)
	return floatCounter{c}
}

func (m *maker) histogram(name, text string, bounds []float64) histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
	m.errs = append(m.errs, err)
	return histogram{h}
}

func (m *maker) gauge(name, text string) gauge {
	g, err := m.meter.Int64Gauge(name, metric.WithDescription(text))
	m.errs = append(m.errs, err)
	return gauge{g}
}

func newMetrics(meter metric.Meter) (*Metrics, error) {
	m := &maker{meter: meter}
	out := &Metrics{
		requests:        m.counter("signalbox_requests_total", "Requests by route, model and status."),
		requestSeconds:  m.histogram("signalbox_request_seconds", "Time from the request's first byte to the answer's last.", slowBuckets()),
		decideSeconds:   m.histogram("signalbox_decide_seconds", "Time to a decision, signal extraction included.", fastBuckets()),
		modelRuns:       m.counter("signalbox_model_runs_total", "Runs of a classifier graph."),
		modelRunSeconds: m.histogram("signalbox_model_run_seconds", "Time of one run of a classifier graph.", fastBuckets()),
		batchSize:       m.histogram("signalbox_batch_size", "Rows in one run of a classifier graph.", []float64{1, 2, 4, 8, 16, 32, 64}),
		skipped:         m.counter("signalbox_signals_skipped_total", "Signals that some rule names and that did not have to be computed."),
		unknown:         m.counter("signalbox_unknown_signals_total", "Signals that could not be extracted, by reason."),
		ttft:            m.histogram("signalbox_ttft_seconds", "Time to the first byte of a streamed answer's body.", slowBuckets()),
		interToken:      m.histogram("signalbox_inter_token_seconds", "Time between chunks of a streamed answer.", slowBuckets()),
		tokens:          m.counter("signalbox_tokens_total", "Tokens by kind: prompt, cached, completion."),
		prefixTokens:    m.counter("signalbox_prefix_tokens_total", "Prompt tokens that the endpoint was expected to have cached (predicted), and those that it had (confirmed), of answers that tell."),
		placements:      m.counter("signalbox_placements_total", "Requests placed by what they belong to: at its home, or away from it."),
		splits:          m.counter("signalbox_prefix_class_splits_total", "Requests that cannot use what servers have cached of the same context or session, since the reasoning effort or the tools in front of it differ from the last ones."),
		restarts:        m.counter("signalbox_endpoint_restarts_total", "Restarts of endpoints that were noticed."),
		warms:           m.counter("signalbox_warm_calls_total", "Contexts read ahead of need by result: read, there (it was), busy, failed."),
		cost:            m.floats("signalbox_cost_usd_total", "Cost of answers at the configured prices."),
		costBaseline:    m.floats("signalbox_cost_baseline_usd_total", "What the same tokens would have cost on the most expensive model."),
		shed:            m.counter("signalbox_shed_total", "Requests that got no place at any endpoint of a model, by reason: full (the queue), late (too long in it)."),
		retries:         m.counter("signalbox_retries_total", "Attempts repeated on another endpoint or model, by reason."),
		widened:         m.counter("signalbox_auto_limit_widened_total", "Answers that an automatic max_tokens cut short, which widens it."),
		cache:           m.counter("signalbox_cache_total", "Requests by what became of them in the answer cache: exact, semantic, miss, off, ineligible, bypass, error."),
		cacheKept:       m.counter("signalbox_cache_kept_total", "Answers that might be kept, by result: kept, dropped, refused, failed."),
		decisions:       m.counter("signalbox_decision_log_total", "Lines of the decision log by result: written, dropped (the queue was full), failed."),
		contextRequests: m.counter("signalbox_context_requests_total", "Requests that named stored contexts, by the farthest tier that bytes came from: hot, l2, l3."),
		guardClaims:     m.counter("signalbox_guard_claims_total", "Claims of answers by verdict: supported, contradicted, unsupported, unchecked, not_checkable."),
		guardActions:    m.counter("signalbox_guard_actions_total", "What the guard did to answers, by action."),
		guardSeconds:    m.histogram("signalbox_guard_check_seconds", "Time from a claim's last byte to its verdict, the wait in the queue included.", fastBuckets()),
		pageSeconds:     m.histogram("signalbox_page_seconds", "Time to bring an object of a context into RAM ready for use (l2_to_hot, l3_to_hot), and to make the copies that paging out falls back on, once, when it is stored (hot_to_l2: packing; hot_to_l3: writing to Redis).", fastBuckets()),
		meter:           meter,
		provider:        m.gauge("signalbox_provider_info", "Execution providers in use; the value is always 1."),
		workerRestarts:  m.counter("signalbox_worker_restarts_total", "Times that the process of the models was started again after it ended."),
	}
	m.errs = append(m.errs, out.pool.register(meter))
	return out, errors.Join(m.errs...)
}

// attrCache keeps one measurement option per combination of label values: building the attribute
// set costs more than recording. It is bounded because label values come from the configuration.
type attrCache struct{ sets sync.Map }

type attrKey struct{ k1, v1, k2, v2, k3, v3 string }

func (c *attrCache) get(key attrKey) metric.MeasurementOption {
	if o, ok := c.sets.Load(key); ok {
		return o.(metric.MeasurementOption) //nolint:errcheck,forcetypeassert // only this method stores
	}
	kv := []attribute.KeyValue{attribute.String(key.k1, key.v1)}
	if key.k2 != "" {
		kv = append(kv, attribute.String(key.k2, key.v2))
	}
	if key.k3 != "" {
		kv = append(kv, attribute.String(key.k3, key.v3))
	}
	o := metric.WithAttributeSet(attribute.NewSet(kv...))
	c.sets.Store(key, o)
	return o
}

// Recording does not depend on a request's context: a metric counts even when the client is gone.
func background() context.Context { return context.Background() }

// Request counts one finished request.
func (m *Metrics) Request(route, model string, status int, d time.Duration) {
	o := m.attrs.get(attrKey{"route", route, "model", model, "status", statusText(status)})
	m.requests.Add(background(), 1, o)
	m.requestSeconds.Record(background(), d.Seconds(), m.attrs.get(attrKey{k1: "route", v1: route}))
}

// statusText avoids an allocation for the codes that occur all the time.
func statusText(status int) string {
	switch status {
	case 200:
		return "200"
	case 400:
		return "400"
	case 429:
		return "429"
	case 499:
		return "499"
	case 502:
		return "502"
	case 503:
		return "503"
	}
	if status < 100 || status > 999 {
		return "0"
	}
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}

// Decide records the time to one decision.
func (m *Metrics) Decide(d time.Duration) { m.decideSeconds.Record(background(), d.Seconds()) }

// ModelRun counts one run of a classifier graph over rows texts.
func (m *Metrics) ModelRun(bundle, provider string, d time.Duration, rows int) {
	o := m.attrs.get(attrKey{k1: "bundle", v1: bundle, k2: "provider", v2: provider})
	m.modelRuns.Add(background(), 1, o)
	m.modelRunSeconds.Record(background(), d.Seconds(), o)
	m.batchSize.Record(background(), float64(rows))
}

// SignalSkipped counts a signal that laziness saved.
func (m *Metrics) SignalSkipped(signal string) {
	m.skipped.Add(background(), 1, m.attrs.get(attrKey{k1: "signal", v1: signal}))
}

// SignalUnknown counts a signal that could not be extracted.
func (m *Metrics) SignalUnknown(signal, reason string) {
	m.unknown.Add(background(), 1, m.attrs.get(attrKey{k1: "signal", v1: signal, k2: "reason", v2: reason}))
}

// TTFT records the time to the first byte of a streamed body.
func (m *Metrics) TTFT(model string, d time.Duration) {
	m.ttft.Record(background(), d.Seconds(), m.attrs.get(attrKey{k1: "model", v1: model}))
}

// InterToken records the time between two chunks of a stream.
func (m *Metrics) InterToken(model string, d time.Duration) {
	m.interToken.Record(background(), d.Seconds(), m.attrs.get(attrKey{k1: "model", v1: model}))
}

// Tokens counts tokens of one answer. kind is prompt, cached or completion.
func (m *Metrics) Tokens(kind string, n int64) {
	m.tokens.Add(background(), n, m.attrs.get(attrKey{k1: "kind", v1: kind}))
}

// PrefixTokens counts prompt tokens of one answer by model. kind is predicted or confirmed.
func (m *Metrics) PrefixTokens(model, kind string, n int64) {
	m.prefixTokens.Add(background(), n, m.attrs.get(attrKey{k1: "model", v1: model, k2: "kind", v2: kind}))
}

// Placement counts a request that was placed by what it belongs to. where is home or away.
func (m *Metrics) Placement(model, where string) {
	m.placements.Add(background(), 1, m.attrs.get(attrKey{k1: "model", v1: model, k2: "where", v2: where}))
}

// PrefixClassSplit counts a request that is parted from the last one of its context or session by what leads the template.
func (m *Metrics) PrefixClassSplit(model string) {
	m.splits.Add(background(), 1, m.attrs.get(attrKey{k1: "model", v1: model}))
}

// WarmCall counts a context that was to be read ahead of need. result is read, there, busy or failed.
func (m *Metrics) WarmCall(model, result string) {
	m.warms.Add(background(), 1, m.attrs.get(attrKey{k1: "model", v1: model, k2: "result", v2: result}))
}

// EndpointRestarted counts a restart of an endpoint.
func (m *Metrics) EndpointRestarted(model, endpoint string) {
	m.restarts.Add(background(), 1, m.attrs.get(attrKey{k1: "model", v1: model, k2: "endpoint", v2: endpoint}))
}

// Cost adds what an answer cost and what it would have cost on the most expensive model, in USD.
func (m *Metrics) Cost(model string, usd, baseline float64) {
	m.cost.Add(background(), usd, m.attrs.get(attrKey{k1: "model", v1: model}))
	m.costBaseline.Add(background(), baseline)
}

// Shed counts a request that got no place at any endpoint of a model. reason is full, of the queue, or late.
func (m *Metrics) Shed(model, reason string) {
	m.shed.Add(background(), 1, m.attrs.get(attrKey{k1: "model", v1: model, k2: "reason", v2: reason}))
}

// Retry counts an attempt that was repeated elsewhere.
func (m *Metrics) Retry(reason string) {
	m.retries.Add(background(), 1, m.attrs.get(attrKey{k1: "reason", v1: reason}))
}

// Cache counts a look-up. result is exact, semantic, miss, off, ineligible, bypass or error.
func (m *Metrics) Cache(result string) {
	m.cache.Add(background(), 1, m.attrs.get(attrKey{k1: "result", v1: result}))
}

// CacheKept counts an answer that might be kept. result is kept, dropped, refused or failed.
func (m *Metrics) CacheKept(result string) {
	m.cacheKept.Add(background(), 1, m.attrs.get(attrKey{k1: "result", v1: result}))
}

// DecisionsLogged counts lines of the decision log. result is written, dropped or failed.
func (m *Metrics) DecisionsLogged(result string, n int64) {
	m.decisions.Add(background(), n, m.attrs.get(attrKey{k1: "result", v1: result}))
}

// LimitWidened counts an answer that an automatic limit cut short.
func (m *Metrics) LimitWidened(model string) {
	m.widened.Add(background(), 1, m.attrs.get(attrKey{k1: "model", v1: model}))
}

// ContextRequest counts a request that named stored contexts. tier is hot, l2 or l3.
func (m *Metrics) ContextRequest(tier string) {
	m.contextRequests.Add(background(), 1, m.attrs.get(attrKey{k1: "tier", v1: tier}))
}

// GuardClaim counts a verdict on one claim of an answer.
func (m *Metrics) GuardClaim(verdict string) {
	m.guardClaims.Add(background(), 1, m.attrs.get(attrKey{k1: "verdict", v1: verdict}))
}

// GuardAction counts one thing that the guard did to an answer, such as marking a claim.
func (m *Metrics) GuardAction(action string) {
	m.guardActions.Add(background(), 1, m.attrs.get(attrKey{k1: "action", v1: action}))
}

// GuardCheck records the time that the check of a claim took.
func (m *Metrics) GuardCheck(d time.Duration) { m.guardSeconds.Record(background(), d.Seconds()) }

// WorkerRestart counts a start of the process of the models after it ended.
func (m *Metrics) WorkerRestart() { m.workerRestarts.Add(background(), 1) }

// Provider records an execution provider in use.
func (m *Metrics) Provider(name, device string) {
	m.provider.Record(background(), 1, m.attrs.get(attrKey{k1: "provider", v1: name, k2: "device", v2: device}))
}
