package telemetry

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ConnectionStatus describes the client connections of one listener at one moment.
type ConnectionStatus struct {
	Listener string // main or admin
	Limit    int    // maximum number
	New      int    // that have sent nothing yet
	Active   int    // with a request in flight
	Idle     int    // between two requests
	Evicted  int64  // connections closed so far to make room
}

// connectionGauges are read when the metrics are read.
type connectionGauges struct {
	source atomic.Pointer[func() []ConnectionStatus]
}

// WatchConnections sets the source of the listeners' status; f is called from many goroutines.
func (m *Metrics) WatchConnections(f func() []ConnectionStatus) { m.connections.source.Store(&f) }

func (g *connectionGauges) register(m *maker) {
	open := m.watched("signalbox_connections", "Client connections per listener, by state: new, active, idle.")
	limit := m.watched("signalbox_connections_limit", "Maximum number of connections of a listener.")
	evicted, err := m.meter.Int64ObservableCounter("signalbox_connections_evicted_total",
		metric.WithDescription("Connections without a request that were closed to make room for "+
			"others."))
	m.errs = append(m.errs, err)
	m.read(func(o metric.Observer) {
		f := g.source.Load()
		if f == nil {
			return
		}
		for _, s := range (*f)() {
			of := attribute.String("listener", s.Listener)
			for state, n := range map[string]int{"new": s.New, "active": s.Active, "idle": s.Idle} {
				in := attribute.String("state", state)
				o.ObserveInt64(open, int64(n), metric.WithAttributes(of, in))
			}
			o.ObserveInt64(limit, int64(s.Limit), metric.WithAttributes(of))
			o.ObserveInt64(evicted, s.Evicted, metric.WithAttributes(of))
		}
	}, open, limit, evicted)
}
