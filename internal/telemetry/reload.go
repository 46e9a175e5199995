package telemetry

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// reloadGauges report the result of the last reload of the configuration. They are read when the
// metrics are read.
type reloadGauges struct {
	failed     atomic.Bool
	at         atomic.Int64 // Unix seconds of the last successful one; 0: none yet
	generation atomic.Uint64
}

// Reloaded records a load of the configuration, including the first, and the generation of the one
// that is in use afterwards.
func (m *Metrics) Reloaded(ok bool, generation uint64, now time.Time) { //nolint:revive // it is what the gauge tells
	m.reload.failed.Store(!ok)
	if ok {
		m.reload.at.Store(now.Unix())
		m.reload.generation.Store(generation)
	}
}

func (g *reloadGauges) register(m *maker) {
	ok := m.watched("signalbox_config_last_reload_successful",
		"1 if the configuration was valid when it was last read, else 0.")
	at := m.watched("signalbox_config_last_reload_success_timestamp_seconds",
		"Unix time at which the configuration in use was read.")
	generation := m.watched("signalbox_config_generation",
		"Number of configurations that were taken into use since the start.")
	m.read(func(o metric.Observer) {
		if g.at.Load() == 0 {
			return
		}
		o.ObserveInt64(ok, bit(!g.failed.Load()))
		o.ObserveInt64(at, g.at.Load())
		o.ObserveInt64(generation, int64(g.generation.Load()))
	}, ok, at, generation)
}
