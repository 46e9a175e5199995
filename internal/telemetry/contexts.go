package telemetry

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// PageIn records the time to load an object of a context from a tier, l2 or l3.
func (m *Metrics) PageIn(from string, d time.Duration) {
	m.pageSeconds.record(d.Seconds(), from+"_to_hot")
}

// PageOut records the time to store an object in a tier: to pack it for l2, or to write it to l3.
func (m *Metrics) PageOut(to string, d time.Duration) {
	m.pageSeconds.record(d.Seconds(), "hot_to_"+to)
}

// contextGauges are read when the metrics are read.
type contextGauges struct {
	census atomic.Pointer[func(tell func(tier string, contexts, bytes int64))]
}

// WatchContexts exports the results of census whenever the metrics are read: for each tier the
// number of contexts and their bytes. census is called from any goroutine.
func (m *Metrics) WatchContexts(census func(tell func(tier string, contexts, bytes int64))) {
	m.contexts.census.Store(&census)
}

func (g *contextGauges) register(m *maker) {
	objects := m.watched("signalbox_contexts", "Contexts by the tier of their latest version, as seen from this "+
		"process: hot, l2, and l3 for those that are only in Redis.")
	size := m.watched("signalbox_context_bytes", "Bytes of contexts by tier: hot, ready for use; l2, packed in RAM, "+
		"including those of hot contexts; l3, all contexts in Redis, unpacked.")
	m.read(func(o metric.Observer) {
		if census := g.census.Load(); census != nil {
			(*census)(func(tier string, n, bytes int64) {
				of := metric.WithAttributes(attribute.String("tier", tier))
				o.ObserveInt64(objects, n, of)
				o.ObserveInt64(size, bytes, of)
			})
		}
	}, objects, size)
}
