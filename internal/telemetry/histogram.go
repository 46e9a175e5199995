package telemetry

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// histogram counts values by bucket and labels. Like a counter it stores its numbers itself: a
// request pays for an addition, not for a meter.
type histogram struct {
	*cells[*buckets]

	name, text string
	bounds     []float64 // ascending; each is the upper bound of its bucket
}

// buckets are the counts of one histogram for one combination of labels.
type buckets struct {
	of     attribute.Set
	counts []atomic.Uint64 // one more than there are bounds
	sum    atomic.Uint64   // the bits of a float64
}

// record records a value; values are those of the labels, in the order of their names.
func (h *histogram) record(x float64, values ...string) {
	b := h.get(values)
	at, _ := slices.BinarySearch(h.bounds, x)
	b.counts[at].Add(1)
	for {
		old := b.sum.Load()
		if b.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+x)) {
			return
		}
	}
}

// histograms are all histograms of a process. As a metric.Producer they are read with the
// instruments of the meter. No histogram may be added after the first read.
type histograms struct {
	since time.Time
	all   []*histogram
}

// Produce implements metric.Producer: cumulative histograms since the start. Values recorded
// meanwhile may be in a bucket but not yet in the sum.
func (p *histograms) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	now := time.Now()
	for _, h := range p.all {
		data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, b := range *h.cells.all.Load() {
			point := metricdata.HistogramDataPoint[float64]{
				Attributes: b.of, StartTime: p.since, Time: now, Bounds: h.bounds,
				BucketCounts: make([]uint64, len(b.counts)), Sum: math.Float64frombits(b.sum.Load()),
			}
			for i := range b.counts {
				n := b.counts[i].Load()
				point.BucketCounts[i], point.Count = n, point.Count+n
			}
			data.DataPoints = append(data.DataPoints, point)
		}
		if len(data.DataPoints) > 0 {
			told := metricdata.Metrics{Name: h.name, Description: h.text, Data: data}
			out.Metrics = append(out.Metrics, told)
		}
	}
	return []metricdata.ScopeMetrics{out}, nil
}

func (m *maker) histogram(name, text string, bounds []float64, names ...string) *histogram {
	h := &histogram{name: name, text: text, bounds: bounds, cells: newCells(names, func(of attribute.Set) *buckets {
		return &buckets{of: of, counts: make([]atomic.Uint64, len(bounds)+1)}
	})}
	m.histograms.all = append(m.histograms.all, h)
	return h
}
