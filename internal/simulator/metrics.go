package simulator

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// finishAbort is the finished_reason of a request whose client left (vLLM FinishReason.ABORT).
const finishAbort = "abort"

// metrics are the vLLM metrics that a router reads, with vLLM's names, labels and buckets
// (vllm/v1/metrics/loggers.py), and the simulator's own count of cancelled requests. All methods
// are safe for concurrent use.
type metrics struct {
	registry         *prometheus.Registry
	running          prometheus.Gauge
	waiting          prometheus.Gauge
	promptTokens     prometheus.Counter
	generationTokens prometheus.Counter
	ttft             prometheus.Histogram
	finished         map[string]prometheus.Counter // by finished_reason; not changed after newMetrics
	cancelled        prometheus.Counter
	held             atomic.Int64 // tokens of the running requests
}

// newMetrics starts counting. Metrics that e exports, if it is not nil, are not counted here as
// well.
func newMetrics(o Options, e *engine) *metrics {
	labels := prometheus.Labels{"engine": "0", "model_name": o.Model}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	m := &metrics{
		registry:         prometheus.NewRegistry(),
		running:          gauge("vllm:num_requests_running", "Requests being answered."),
		waiting:          gauge("vllm:num_requests_waiting", "Requests waiting for a seat."),
		promptTokens:     counter("vllm:prompt_tokens_total", "Prompt tokens of admitted requests."),
		generationTokens: counter("vllm:generation_tokens_total", "Tokens sent."),
		ttft: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vllm:time_to_first_token_seconds", Help: "Time from arrival to the first token.", ConstLabels: labels,
			Buckets: []float64{
				0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
			},
		}),
		finished:  make(map[string]prometheus.Counter),
		cancelled: counter("signalbox_sim_cancelled_total", "Requests whose client left before the answer was complete."),
	}
	success := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vllm:request_success_total", Help: "Finished choices by reason.", ConstLabels: labels,
	}, []string{"finished_reason"})
	for _, reason := range [...]string{finishStop, finishLength, finishAbort} {
		m.finished[reason] = success.WithLabelValues(reason)
	}
	kv := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "vllm:kv_cache_usage_perc", Help: "Tokens of running requests over the configured capacity, 1 at most.", ConstLabels: labels,
	}, func() float64 { return min(1, float64(m.held.Load())/float64(o.KVCacheTokens)) })
	m.registry.MustRegister(m.ttft, success, m.cancelled)
	if e == nil {
		m.registry.MustRegister(m.running, m.waiting, m.promptTokens, m.generationTokens, kv)
	} else {
		m.registry.MustRegister(newCollector(o, e))
	}
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// start and finish bracket a running request that holds the given tokens.
func (m *metrics) start(tokens int64) {
	m.running.Inc()
	m.held.Add(tokens)
}

func (m *metrics) finish(tokens int64) {
	m.held.Add(-tokens)
	m.running.Dec()
}

// succeeded counts a finished choice. The engine counts tool calls as stops.
func (m *metrics) succeeded(finish string) {
	if finish == finishToolCalls {
		finish = finishStop
	}
	m.finished[finish].Inc()
}
