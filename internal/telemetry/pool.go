package telemetry

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// PoolStatus describes the endpoints at one moment.
type PoolStatus struct {
	Endpoints []EndpointStatus
	Queued    []QueueStatus
}

// EndpointStatus is one endpoint.
type EndpointStatus struct {
	Model, Endpoint string
	Up              bool // it accepts requests normally
	Asleep          bool // it reports that it does not run requests
	Inflight        int64
}

// QueueStatus describes the requests that wait for an endpoint of a model.
type QueueStatus struct {
	Model    string
	Requests int
}

// poolGauges are read when the metrics are read, so that endpoints removed from the configuration
// are no longer exported.
type poolGauges struct {
	source atomic.Pointer[func() PoolStatus]
}

// WatchPool sets the source of the endpoints' status; f is called from many goroutines.
func (m *Metrics) WatchPool(f func() PoolStatus) { m.pool.source.Store(&f) }

func (g *poolGauges) register(m *maker) {
	up := m.watched("signalbox_endpoint_up",
		"1 while the endpoint is used normally, including while it is suspect "+
			"or resting; 0 while it is down or asleep, and from its ejection until "+
			"a request to it succeeds.")
	asleep := m.watched("signalbox_endpoint_asleep",
		"1 while the endpoint reports that it sleeps or is paused, else 0.")
	flight := m.watched("signalbox_endpoint_inflight", "Requests in flight per endpoint.")
	queued := m.watched("signalbox_queued_requests",
		"Requests that wait for an endpoint of a model, because all are full.")
	m.read(func(o metric.Observer) {
		f := g.source.Load()
		if f == nil {
			return
		}
		s := (*f)()
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			of := metric.WithAttributeSet(attribute.NewSet(attribute.String("model", e.Model), attribute.String("endpoint", e.Endpoint)))
			o.ObserveInt64(up, bit(e.Up), of)
			o.ObserveInt64(asleep, bit(e.Asleep), of)
			o.ObserveInt64(flight, e.Inflight, of)
		}
		for _, q := range s.Queued {
			o.ObserveInt64(queued, int64(q.Requests), metric.WithAttributes(attribute.String("model", q.Model)))
		}
	}, up, asleep, flight, queued)
}

// bit returns 1 if fact is true, else 0.
func bit(fact bool) int64 { //nolint:revive // it converts, and decides nothing
	if fact {
		return 1
	}
	return 0
}
