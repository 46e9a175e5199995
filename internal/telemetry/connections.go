package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ConnectionStatus is what is known of the connections of clients to one listener at one moment.
type ConnectionStatus struct {
	Listener string // main or admin
	Limit    int    // how many there may be
	New      int    // that have said nothing yet
	Active   int    // with a request under way
	Idle     int    // between two requests
	Evicted  int64  // that were closed so far, because their place was needed
}

// connectionGauges are read when metrics are.
type connectionGauges struct {
	source atomic.Pointer[func() []ConnectionStatus]
}

// WatchConnections says where the status of the listeners is read; f is called from many
// goroutines.
func (m *Metrics) WatchConnections(f func() []ConnectionStatus) { m.connections.source.Store(&f) }

func (g *connectionGauges) register(meter metric.Meter) error {
	open, err1 := meter.Int64ObservableGauge("signalbox_connections",
		metric.WithDescription("Connections of clients per listener, by state: new, active, idle."))
	limit, err2 := meter.Int64ObservableGauge("signalbox_connections_limit",
		metric.WithDescription("How many connections a listener may have."))
	evicted, err3 := meter.Int64ObservableCounter("signalbox_connections_evicted_total",
		metric.WithDescription("Connections without a request that were closed, because their "+
			"place was needed."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("connection metrics: %w", err)
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		f := g.source.Load()
		if f == nil {
			return nil
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
		return nil
	}, open, limit, evicted)
	if err != nil {
		return fmt.Errorf("connection metrics: %w", err)
	}
	return nil
}
