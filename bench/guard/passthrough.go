package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"signalbox/bench/lab"
)

// lanes is the number of concurrent streams of the pass-through: enough that the scheduler does not
// search for work, which would count as processor time.
const lanes = 8

// passthrough compares the cost of a chunk with the guard off and behind the standard library's
// reverse proxy. Every chunk waits until the previous one has arrived, so none are merged.
func (b *bench) passthrough(ctx context.Context, r *report) error {
	proxy, err := lab.Bare(b.upstream.URL, newTransport())
	if err != nil {
		return err
	}
	bare := httptest.NewServer(proxy)
	defer bare.Close()
	ways := []struct{ name, base string }{{"direct", b.upstream.URL}, {"reverse proxy", bare.URL}, {"signalbox", b.url}}
	cpu, allocs := make([][]float64, len(ways)), make([][]float64, len(ways))
	for round := range b.rounds + 1 {
		for i, way := range ways {
			c, a, err := b.perChunk(ctx, way.base)
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			if round > 0 { // the first round warms up
				cpu[i], allocs[i] = append(cpu[i], c), append(allocs[i], a)
			}
		}
	}
	direct, rp, sb := median(cpu[0]), median(cpu[1]), median(cpu[2])
	r.figure("guard off: processor time a chunk, over a bare reverse proxy", fmt.Sprintf("%.2f x", (sb-direct)/(rp-direct)), "at most 1.3 x")
	r.figure("guard off: allocations a chunk", fmt.Sprintf("%.2f", max(0, median(allocs[2])-median(allocs[0]))), "0 to 1")
	r.note("Processor time a chunk, median of %d rounds in turn, %d streams of %d chunks each: direct %.1f µs, reverse proxy %.1f µs, signalbox %.1f µs; the ratio is taken without the direct part. Rounds of signalbox: %.1f.",
		b.rounds, lanes, b.chunks, direct, rp, sb, slices.Clone(cpu[2]))
	r.note("Allocations a chunk: direct %.2f, reverse proxy %.2f, signalbox %.2f.", median(allocs[0]), median(allocs[1]), median(allocs[2]))
	return nil
}

// perChunk runs all lanes once. It returns processor time in microseconds and allocations, per
// chunk.
func (b *bench) perChunk(ctx context.Context, base string) (cpu, allocs float64, err error) {
	pieces := slices.Repeat([]string{" token"}, b.chunks)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := lab.Spent()
	g, ctx := errgroup.WithContext(ctx)
	for range lanes {
		g.Go(func() error {
			next := make(chan struct{}, 1)
			f := newFeed(pieces, stepped(next, 1))
			return b.ask(ctx, base, "", question(b.upstream.take(f), nil), func(data []byte) {
				if n := number(data, `"seq":`); n >= 0 && n < len(pieces)-1 {
					next <- struct{}{}
				}
			})
		})
	}
	if err := g.Wait(); err != nil {
		return 0, 0, err
	}
	ended := lab.Spent()
	runtime.ReadMemStats(&after)
	n := float64(lanes * b.chunks)
	return float64((ended - began).Nanoseconds()) / 1000 / n, float64(after.Mallocs-before.Mallocs) / n, nil
}
