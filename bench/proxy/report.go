package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// results are the samples of all rounds, by workload and variant.
type results struct {
	loads []workload
	ways  []string
	all   [][][]sample

	first, others int // columns of the first program and of the following ones, which are compared with it
}

// measure runs the rounds. The first one is a warm-up and does not count. Every second one runs the
// variants in reverse order, so that none profits from its position.
func (b *bench) measure(ctx context.Context, only string, rounds int, length time.Duration) (*results, error) { //nolint:gocognit // rounds of ways of loads
	r := &results{loads: slices.DeleteFunc(workloads(), func(x workload) bool { return !strings.Contains(x.name, only) })}
	for i, w := range b.ways {
		r.ways = append(r.ways, w.name)
		switch {
		case !w.product:
		case r.first == 0: // column 0 is never a program: the bare proxy precedes it
			r.first = i
		default:
			r.others++
		}
	}
	r.all = make([][][]sample, len(r.loads))
	for i := range r.all {
		r.all[i] = make([][]sample, len(b.ways))
	}
	for round := range rounds + 1 {
		for i := range r.loads {
			for j := range b.ways {
				if round%2 == 1 {
					j = len(b.ways) - 1 - j
				}
				w := b.ways[j]
				s := put(ctx, w, &r.loads[i], length)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if s.failed != nil {
					return nil, fmt.Errorf("%s, %s: %w", r.loads[i].name, w.name, s.failed)
				}
				if round > 0 {
					r.all[i][j] = append(r.all[i][j], s)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round, rounds)
	}
	return r, nil
}

// figure is a number of a sample with its format.
type figure struct {
	name, unit string
	of         func(s *sample) float64
}

func (x *workload) figures() []figure {
	perRequest := figure{"CPU/request", "us", func(s *sample) float64 { return micros(s.cpu) / float64(max(s.requests, 1)) }}
	throughput := figure{"requests", "/s", func(s *sample) float64 { return float64(s.requests) / s.took.Seconds() }}
	latency := func(q float64, name string) figure {
		return figure{"first byte " + name, "ms", func(s *sample) float64 { return micros(quantile(s.first, q)) / 1000 }}
	}
	switch {
	case x.memory:
		return []figure{{"RSS", "MB", func(s *sample) float64 { return float64(s.rss) / 1e6 }}}
	case x.each:
		return []figure{perRequest}
	case x.rate > 0, x.alone:
		return []figure{latency(0.5, "p50"), latency(0.99, "p99"), perRequest}
	case x.chunks:
		return []figure{{"CPU/chunk", "us", func(s *sample) float64 { return micros(s.cpu) / float64(max(s.chunks, 1)) }}, {"reads and writes/chunk", "", func(s *sample) float64 { return float64(s.calls) / float64(max(s.chunks, 1)) }}, {"chunks", "/s", func(s *sample) float64 { return float64(s.chunks) / s.took.Seconds() }}}
	}
	return []figure{throughput, perRequest, latency(0.5, "p50")}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}

// print writes the medians, and in brackets the medians of the ratios to the bare reverse proxy in
// the same round, because other load on the machine changes from round to round. They are followed
// by the medians of the ratios of additional programs to the first, with the lowest and the
// highest.
func (r *results) print(out io.Writer) { //nolint:gocognit // a row for each figure
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = tw.Flush() }()
	_, _ = fmt.Fprint(tw, "workload\tfigure\t")
	for _, name := range r.ways {
		_, _ = fmt.Fprintf(tw, "%s\t", name)
	}
	for j := range r.others {
		_, _ = fmt.Fprintf(tw, "%s / %s\t", r.ways[r.first+1+j], r.ways[r.first])
	}
	_, _ = fmt.Fprintln(tw)
	bare := slices.Index(r.ways, bareWay)
	for i := range r.loads {
		for _, f := range r.loads[i].figures() {
			_, _ = fmt.Fprintf(tw, "%s\t%s, %s\t", r.loads[i].name, f.name, f.unit)
			base := r.values(i, bare, f)
			for j := range r.ways {
				values := r.values(i, j, f)
				v := median(values)
				if v == 0 {
					_, _ = fmt.Fprint(tw, "-\t")
					continue
				}
				for k := range values {
					values[k] /= base[k]
				}
				_, _ = fmt.Fprintf(tw, "%.4g (%.2f)\t", v, median(values))
			}
			base = r.values(i, r.first, f)
			for j := range r.others {
				values := r.values(i, r.first+1+j, f)
				for k := range values {
					values[k] /= base[k]
				}
				_, _ = fmt.Fprintf(tw, "%.3f (%.2f-%.2f)\t", median(values), slices.Min(values), slices.Max(values))
			}
			_, _ = fmt.Fprintln(tw)
		}
	}
}

// values returns the figures of the rounds.
func (r *results) values(load, way int, f figure) []float64 {
	var values []float64
	for i := range r.all[load][way] {
		values = append(values, f.of(&r.all[load][way][i]))
	}
	return values
}
