package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/bench/lab"
)

// crowd is a number of streams at the same pace.
type crowd struct {
	streams int
	pace    time.Duration
	tokens  int
}

func (c crowd) String() string {
	return fmt.Sprintf("%d streams of %.3g tokens a second", c.streams, 1/c.pace.Seconds())
}

// timing holds the measurements of clients in milliseconds: the gaps between events, and the delay
// from sending to arrival of each.
type timing struct{ gaps, delays []float64 }

func (t *timing) add(o timing) {
	t.gaps, t.delays = append(t.gaps, o.gaps...), append(t.delays, o.delays...)
}

// smallTalk separates the claims of an answer, as in answers of models.
const smallTalk = " Let me know if you would like to hear more about this."

// answer generates facts and the pieces of an answer about them.
func answer(seed uint64, tokens int) (facts, pieces []string) {
	r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // nothing here is a secret
	facts, claims := sheets(seed)
	for len(pieces) < tokens {
		for w := range strings.SplitSeq(claims[r.IntN(len(claims))].Text+smallTalk, " ") {
			pieces = append(pieces, " "+w)
		}
	}
	return facts, pieces[:tokens]
}

// stream runs a crowd in a mode, empty for off.
func (b *bench) stream(ctx context.Context, c crowd, mode string) (timing, error) {
	all := make([]timing, c.streams)
	g, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i := range all {
		g.Go(func() error {
			facts, pieces := answer(uint64(i), c.tokens)
			offset := time.Duration(i) * c.pace / time.Duration(c.streams) // never two at the same time
			f := newFeed(pieces, paced(start.Add(100*time.Millisecond+offset), c.pace))
			last := time.Time{}
			t := &all[i]
			return b.ask(ctx, b.url, mode, question(b.upstream.take(f), facts), func(data []byte) {
				now := time.Now()
				n := number(data, `"seq":`)
				if n < 0 {
					return
				}
				t.delays = append(t.delays, ms(now.Sub(b.start)-time.Duration(f.sent[n].Load())))
				if !last.IsZero() {
					t.gaps = append(t.gaps, ms(now.Sub(last)))
				}
				last = now
			})
		})
	}
	err := g.Wait()
	var sum timing
	for _, t := range all {
		sum.add(t)
	}
	return sum, err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// gaps compares the gaps of eight streams in the modes that pass everything immediately with those
// without guard.
func (b *bench) gaps(ctx context.Context, r *report) error {
	c := crowd{8, 10 * time.Millisecond, b.tokens}
	modes := []string{"", "observe", "annotate"}
	all := make([]timing, len(modes))
	for round := range b.rounds + 1 {
		for i, mode := range modes {
			t, err := b.stream(ctx, c, mode)
			if err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
			if round > 0 {
				all[i].add(t)
			}
		}
	}
	for i, mode := range modes[1:] {
		r.figure(mode+", 8 streams: p50 gap between tokens, over guard off", fmt.Sprintf("%.3f x", median(all[i+1].gaps)/median(all[0].gaps)), "at most 1.05 x")
	}
	for i, name := range []string{"off", "observe", "annotate"} {
		r.note("8 streams, a token every %v, %s: gap p50 %.2f ms, p99 %.2f ms; from upstream to client p50 %.3f ms, p99 %.3f ms.",
			c.pace, name, median(all[i].gaps), quantile(all[i].gaps, 0.99), median(all[i].delays), quantile(all[i].delays, 0.99))
	}
	return nil
}

// load compares many streams in mode observe with the same number without guard.
func (b *bench) load(ctx context.Context, r *report) error {
	for _, c := range []crowd{{b.crowd[0], time.Second / 30, 0}, {b.crowd[1], time.Second / 2, 0}} {
		c.tokens = max(3, int(b.effort.load/c.pace))
		if err := b.loadOf(ctx, c, r); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
	}
	return nil
}

func (b *bench) loadOf(ctx context.Context, c crowd, r *report) error {
	var off, observed timing
	var ratios []float64
	var calm rest
	shed, claims, err := b.checks(ctx)
	if err != nil {
		return err
	}
	for round := range max(1, b.rounds/2) {
		a, err := b.stream(ctx, c, "")
		if err != nil {
			return fmt.Errorf("off: %w", err)
		}
		if round == 0 {
			calm = b.rest(rest{})
		}
		o, err := b.stream(ctx, c, "observe")
		if err != nil {
			return fmt.Errorf("observe: %w", err)
		}
		ratios = append(ratios, quantile(o.gaps, 0.99)/quantile(a.gaps, 0.99))
		off.add(a)
		observed.add(o)
	}
	after := b.rest(calm)
	shedNow, claimsNow, err := b.checks(ctx)
	if err != nil {
		return err
	}
	r.figure(fmt.Sprintf("observe, %v: p99 gap, over guard off", c), fmt.Sprintf("%.3f x", quantile(observed.gaps, 0.99)/quantile(off.gaps, 0.99)), "at most 1.15 x")
	r.note("%v: gap p50 %.2f and %.2f ms, p99 %.2f and %.2f ms (off, observe; ratio of p99 by round %.3f); from upstream to client p99 %.2f and %.2f ms. %.0f claims, %.0f of them shed. At rest before and after: %v, %v.",
		c, median(off.gaps), median(observed.gaps), quantile(off.gaps, 0.99), quantile(observed.gaps, 0.99), ratios,
		quantile(off.delays, 0.99), quantile(observed.delays, 0.99), claimsNow-claims, shedNow-shed, calm, after)
	return nil
}

// checks returns the number of unchecked claims, and of all claims.
func (b *bench) checks(ctx context.Context) (shed, claims float64, err error) {
	if shed, err = b.count(ctx, "signalbox_guard_actions_total", `action="shed"`); err != nil {
		return 0, 0, err
	}
	claims, err = b.count(ctx, "signalbox_guard_claims_total", "")
	return shed, claims, err
}

// rest is the resource use of the idle process.
type rest struct {
	goroutines int
	resident   int64 // bytes
}

func (r rest) String() string {
	return fmt.Sprintf("%d goroutines and %d MiB", r.goroutines, r.resident>>20)
}

// settleTime limits the wait for goroutines that are about to end.
const settleTime = 5 * time.Second

// rest waits until there are no more goroutines than in before, or no more end, and measures. Idle
// connections are closed first on the client's side.
func (b *bench) rest(before rest) rest {
	b.client.CloseIdleConnections()
	deadline := time.Now().Add(settleTime)
	n := runtime.NumGoroutine()
	for n > before.goroutines && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
		now := runtime.NumGoroutine()
		if before.goroutines == 0 && now == n {
			break
		}
		n = now
	}
	for range 3 { // pools retain objects for two collections
		debug.FreeOSMemory()
	}
	return rest{n, lab.Memory("self", "VmRSS")}
}
