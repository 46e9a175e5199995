package simulator

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// collector exports the counts of an engine under vLLM's names. Its methods are safe for concurrent
// use.
type collector struct {
	engine *engine
	descs  map[string]*prometheus.Desc // by metric; not changed after newCollector
	config prometheus.Metric
	sleep  *prometheus.Desc
}

func newCollector(o Options, e *engine) *collector {
	labels := prometheus.Labels{"engine": "0", "model_name": o.Model}
	c := &collector{engine: e, descs: map[string]*prometheus.Desc{}}
	counters := e.counters()
	counters.Each(func(name string, _ float64) {
		of := labels
		if !strings.HasPrefix(name, "vllm:") { // of the process, not of the engine
			of = nil
		}
		c.descs[name] = prometheus.NewDesc(name, "See vllm/v1/metrics/loggers.py.", nil, of)
	})
	c.config = prometheus.MustNewConstMetric(prometheus.NewDesc("vllm:cache_config_info", "Size of the prefix cache.", nil, prometheus.Labels{
		"engine": "0", "block_size": strconv.Itoa(o.KV.BlockTokens), "num_gpu_blocks": strconv.Itoa(o.KV.Blocks),
	}), prometheus.GaugeValue, 1)
	c.sleep = prometheus.NewDesc("vllm:engine_sleep_state", "1 in the state that the engine is in.",
		[]string{"sleep_state"}, labels)
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
	ch <- c.sleep
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counters := c.engine.counters()
	counters.Each(func(name string, value float64) {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(c.descs[name], kind, value)
	})
	ch <- c.config
	awake := 1.0
	if c.engine.sleeping() {
		awake = 0
	}
	state := func(name string, value float64) {
		ch <- prometheus.MustNewConstMetric(c.sleep, prometheus.GaugeValue, value, name)
	}
	state("awake", awake)
	state("weights_offloaded", 1-awake)
	state("discard_all", 0)
}
