package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// PageIn records the time to bring an object of a context in from a tier, l2 or l3.
func (m *Metrics) PageIn(from string, d time.Duration) {
	direction := "l3_to_hot"
	if from == "l2" {
		direction = "l2_to_hot"
	}
	m.pageSeconds.record(d.Seconds(), direction)
}

// PageOut records the time to make the copy of an object that a tier holds: to pack it for l2, or
// to write it to l3.
func (m *Metrics) PageOut(to string, d time.Duration) {
	direction := "hot_to_l3"
	if to == "l2" {
		direction = "hot_to_l2"
	}
	m.pageSeconds.record(d.Seconds(), direction)
}

// WatchContexts reports what census tells whenever the metrics are read: for each tier how many
// contexts are there, and their bytes. census is called from any goroutine. It is called once.
func (m *Metrics) WatchContexts(census func(tell func(tier string, contexts, bytes int64))) error {
	objects, err := m.meter.Int64ObservableGauge("signalbox_contexts", metric.WithDescription("Contexts by where their latest version is, as seen from this process: hot, l2, and l3 for those that are only in Redis."))
	size, sizeErr := m.meter.Int64ObservableGauge("signalbox_context_bytes", metric.WithDescription("Bytes of contexts by tier: hot, ready for use; l2, packed in RAM, those of hot ones too; l3, of all in Redis, unpacked."))
	if err = errors.Join(err, sizeErr); err != nil {
		return fmt.Errorf("metrics of contexts: %w", err)
	}
	_, err = m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		census(func(tier string, n, bytes int64) {
			of := metric.WithAttributes(attribute.String("tier", tier))
			o.ObserveInt64(objects, n, of)
			o.ObserveInt64(size, bytes, of)
		})
		return nil
	}, objects, size)
	if err != nil {
		return fmt.Errorf("metrics of contexts: %w", err)
	}
	return nil
}
