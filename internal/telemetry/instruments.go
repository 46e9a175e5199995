package telemetry

import (
	"context"
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// labels are the values of an instrument's labels, in the order of their names.
type labels [3]string

// cells stores a value for each combination of label values. Existing values are found without a
// lock and without allocation. The number of combinations is limited by the label values: names of
// the configuration, and statuses. Safe for concurrent use.
type cells[T any] struct {
	names []string
	fresh func(of attribute.Set) T

	mu  sync.Mutex // taken to add one
	all atomic.Pointer[map[labels]T]
}

func newCells[T any](names []string, fresh func(of attribute.Set) T) *cells[T] {
	c := &cells[T]{names: names, fresh: fresh}
	c.all.Store(&map[labels]T{})
	return c
}

func (c *cells[T]) get(values []string) T {
	var key labels
	copy(key[:], values)
	if x, ok := (*c.all.Load())[key]; ok {
		return x
	}
	return c.add(key)
}

func (c *cells[T]) add(key labels) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.all.Load()
	if x, ok := old[key]; ok {
		return x
	}
	kv := make([]attribute.KeyValue, len(c.names))
	for i, name := range c.names {
		kv[i] = attribute.String(name, key[i])
	}
	x := c.fresh(attribute.NewSet(kv...))
	all := maps.Clone(old)
	all[key] = x
	c.all.Store(&all)
	return x
}

// sum is one value of a counter with its labels.
type sum struct {
	n  atomic.Int64 // in a floatCounter, the bits of a float64
	of metric.MeasurementOption
}

func newSum(of attribute.Set) *sum { return &sum{of: metric.WithAttributeSet(of)} }

// counter counts by labels. It stores its sums itself and exports them when metrics are read: this
// costs a request a tenth of passing each count to the meter.
type counter struct{ *cells[*sum] }

// add adds n; values are those of the labels, in the order of their names.
func (c counter) add(n int64, values ...string) { c.get(values).n.Add(n) }

func (m *maker) counter(name, text string, names ...string) counter {
	c := counter{newCells(names, newSum)}
	_, err := m.meter.Int64ObservableCounter(name, metric.WithDescription(text), metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		for _, s := range *c.all.Load() {
			o.Observe(s.n.Load(), s.of)
		}
		return nil
	}))
	m.errs = append(m.errs, err)
	return c
}

// floatCounter is a counter of non-integer values.
type floatCounter struct{ *cells[*sum] }

func (c floatCounter) add(x float64, values ...string) {
	s := c.get(values)
	for {
		old := s.n.Load()
		sum := math.Float64frombits(uint64(old)) + x
		if s.n.CompareAndSwap(old, int64(math.Float64bits(sum))) {
			return
		}
	}
}

func (m *maker) floats(name, text string, names ...string) floatCounter {
	c := floatCounter{newCells(names, newSum)}
	_, err := m.meter.Float64ObservableCounter(name, metric.WithDescription(text), metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
		for _, s := range *c.all.Load() {
			o.Observe(math.Float64frombits(uint64(s.n.Load())), s.of)
		}
		return nil
	}))
	m.errs = append(m.errs, err)
	return c
}

// Recording does not depend on a request's context: a metric counts even if the client has gone.
func background() context.Context { return context.Background() }

// gauge records the last value by labels.
type gauge struct {
	*cells[metric.MeasurementOption]

	to metric.Int64Gauge
}

func (g gauge) record(ctx context.Context, x int64, values ...string) {
	g.to.Record(ctx, x, g.get(values))
}

func (m *maker) gauge(name, text string, names ...string) gauge {
	g, err := m.meter.Int64Gauge(name, metric.WithDescription(text))
	m.errs = append(m.errs, err)
	return gauge{newCells(names, metric.WithAttributeSet), g}
}

// watched is a gauge that is observed by read.
func (m *maker) watched(name, text string) metric.Int64ObservableGauge {
	g, err := m.meter.Int64ObservableGauge(name, metric.WithDescription(text))
	m.errs = append(m.errs, err)
	return g
}

// read lets f observe instruments whenever metrics are read.
func (m *maker) read(f func(metric.Observer), of ...metric.Observable) {
	_, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		f(o)
		return nil
	}, of...)
	m.errs = append(m.errs, err)
}
