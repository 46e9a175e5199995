package lengths

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
)

func observed(l *Sketches, k Kind, how Ending, tokens ...int64) {
	for _, n := range tokens {
		l.Observe(k, n, how)
	}
}

func repeat(n int, tokens int64) []int64 { return slices.Repeat([]int64{tokens}, n) }

// near reports whether got is within a sketch's error of want.
func near(got, want float64) bool {
	return got >= want*(1-sketchError)-1 && got <= want*(1+sketchError)+1
}

func TestALimitLearnsFromAnswers(t *testing.T) {
	o := DefaultOptions()
	math, law := Kind{Model: "m", Domain: "math", Complexity: "high", Effort: "low"}, Kind{Model: "m", Domain: "law", Effort: "low"}
	other := Kind{Model: "other", Domain: "math", Complexity: "high", Effort: "low"}
	tests := []struct {
		name string
		see  func(l *Sketches)
		of   Kind
		want float64
	}{
		{"nothing seen: the table", func(*Sketches) {}, math, 4096},
		{"too few seen: the table", func(l *Sketches) { observed(l, math, Ended, repeat(99, 100)...) }, math, 4096},
		{"enough seen: their 99th percentile and headroom", func(l *Sketches) {
			observed(l, math, Ended, repeat(990, 1000)...)
			observed(l, math, Ended, repeat(5, 9000)...)
		}, math, 1500},
		{"one in fifty is longer", func(l *Sketches) {
			for i := range 1000 {
				l.Observe(math, []int64{1000, 3000}[(i%50)/49], Ended)
			}
		}, math, 4500},
		{"short answers: the floor", func(l *Sketches) { observed(l, math, Ended, repeat(200, 3)...) }, math, 256},
		{"very long ones: the bound", func(l *Sketches) { observed(l, math, Ended, repeat(200, 1<<40)...) }, math, longestAnswer},
		{"no tokens say nothing", func(l *Sketches) { observed(l, math, Ended, repeat(200, 0)...) }, math, 4096},
		{"another subject, too few of its own: all of the model", func(l *Sketches) { observed(l, math, Ended, repeat(100, 1000)...) }, law, 1500},
		{"a subject that is not known: all of the model", func(l *Sketches) {
			observed(l, math, Ended, repeat(60, 1000)...)
			observed(l, law, Ended, repeat(60, 2000)...)
		}, Kind{Model: "m", Effort: "low"}, 3000},
		{"another model: the table", func(l *Sketches) { observed(l, math, Ended, repeat(100, 1000)...) }, other, 4096},
		{"another effort: the table", func(l *Sketches) { observed(l, math, Ended, repeat(100, 1000)...) }, Kind{Model: "m", Domain: "math", Complexity: "high", Effort: "high"}, 16384},
		{"answers under the limits of others: the table", func(l *Sketches) { observed(l, math, Bounded, repeat(500, 10)...) }, math, 4096},
		{"an answer cut short: at once twice the limit", func(l *Sketches) { observed(l, math, Cut, 4096) }, math, 8192},
		{"cut again", func(l *Sketches) { observed(l, math, Cut, 4096, 8192) }, math, 16384},
		{"cut for ever", func(l *Sketches) { observed(l, math, Cut, repeat(1, longestAnswer)...) }, math, longestAnswer},
		{"widening does not reach other subjects", func(l *Sketches) { observed(l, math, Cut, 4096) }, law, 4096},
		{"widening fades when it is not needed", func(l *Sketches) {
			observed(l, math, Cut, 4096)
			observed(l, math, Ended, repeat(6*halfLife, 1000)...)
		}, math, 1500},
		{"old behaviour fades", func(l *Sketches) {
			observed(l, math, Ended, repeat(5000, 4000)...)
			observed(l, math, Ended, repeat(8*halfLife, 400)...)
		}, math, 600},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := New()
			tt.see(l)
			if got := l.Limit(tt.of, &o); !near(float64(got), tt.want) {
				t.Errorf("limit %d, want about %v", got, tt.want)
			}
		})
	}
}

func TestTheMeanLengthIsKnownAfterSomeAnswers(t *testing.T) {
	l := New()
	if n, known := l.Mean("m", "math"); known {
		t.Errorf("of no answers the mean is %v", n)
	}
	for range 20 {
		l.Observe(Kind{Model: "m", Domain: "math", Effort: "low"}, 100, Ended)
		l.Observe(Kind{Model: "m", Domain: "math", Effort: "high"}, 300, Bounded)
	}
	for range 5 {
		l.Observe(Kind{Model: "m", Domain: "law"}, 1000, Cut)
	}
	for domain, want := range map[string]float64{"math": 200, "law": (40*200 + 5*1000) / 45., "": (40*200 + 5*1000) / 45.} {
		if n, known := l.Mean("m", domain); !known || n < want-1e-6 || n > want+1e-6 {
			t.Errorf("domain %q: mean %v (known: %v), want %v", domain, n, known, want)
		}
	}
	for range 10 * halfLife {
		l.Observe(Kind{Model: "m", Domain: "math"}, 50, Ended)
	}
	if n, _ := l.Mean("m", "math"); n > 51 {
		t.Errorf("after many answers of 50 tokens the mean is %v", n)
	}
}

func TestTheMemoryOfSketchesIsBounded(t *testing.T) {
	l := New()
	o := DefaultOptions()
	busy := Kind{Model: "busy", Domain: "d", Effort: "low"}
	observed(l, busy, Ended, repeat(200, 1000)...)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 3 * maxSketches {
		l.Observe(Kind{Model: "m", Domain: fmt.Sprint(i), Effort: "low"}, rand.Int64N(longestAnswer)+1, Ended)
		if i%100 == 0 {
			l.Observe(busy, 1000, Ended)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(l.kinds) > maxSketches {
		t.Errorf("%d sketches, at most %d are allowed", len(l.kinds), maxSketches)
	}
	if size := int64(after.HeapAlloc) - int64(before.HeapAlloc); size > 5<<20 {
		t.Errorf("%d sketches take %d bytes", len(l.kinds), size)
	} else {
		t.Logf("%d sketches take %d bytes", len(l.kinds), size)
	}
	if got := l.Limit(busy, &o); !near(float64(got), 1500) {
		t.Errorf("a sketch in use was forgotten: limit %d", got)
	}
}

func TestNotingAnAnswerAllocatesNothing(t *testing.T) {
	l := New()
	o := DefaultOptions()
	k := Kind{Model: "m", Domain: "math", Complexity: "high", Effort: "low"}
	l.Observe(k, 1, Ended)
	n := int64(1)
	if got := testing.AllocsPerRun(4*halfLife, func() {
		n = n*5%longestAnswer + 1 // all over the range
		l.Observe(k, n, Ending(n%3))
		l.Limit(k, &o)
		l.Mean("m", "math")
	}); got > 0 {
		t.Errorf("%v allocations an answer", got)
	}
}

func TestLengthsAreSafeForConcurrentUse(t *testing.T) {
	l := New()
	o := DefaultOptions()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			k := Kind{Model: "m", Domain: fmt.Sprint(i % 3), Effort: "low"}
			for range 500 {
				l.Observe(k, 1000, Ended)
				l.Limit(k, &o)
				l.Mean("m", k.Domain)
			}
		})
	}
	wg.Wait()
	if got := l.Limit(Kind{Model: "m", Effort: "low"}, &o); !near(float64(got), 1500) {
		t.Errorf("limit %d, want about 1500", got)
	}
	if n, known := l.Mean("m", ""); !known || n != 1000 {
		t.Errorf("mean %v (known: %v), want 1000", n, known)
	}
}

func BenchmarkObserve(b *testing.B) {
	l := New()
	k := Kind{Model: "m", Domain: "math", Complexity: "high", Effort: "low"}
	b.ReportAllocs()
	for i := range b.N {
		l.Observe(k, int64(i%4096)+1, Ended)
	}
}

func BenchmarkLimit(b *testing.B) {
	l := New()
	o := DefaultOptions()
	k := Kind{Model: "m", Domain: "math", Complexity: "high", Effort: "low"}
	for i := range 1000 {
		l.Observe(k, int64(i)+1, Ended)
	}
	b.ReportAllocs()
	for range b.N {
		l.Limit(k, &o)
	}
}
