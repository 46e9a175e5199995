//go:build cgo

package gpu

import (
	"sync/atomic"
	"testing"
	"time"
)

// What several callers send at once, of several lengths, is computed in fewer runs, and everybody
// gets theirs.
func TestBatchesOfTheLibrary(t *testing.T) {
	seen := &countingObserver{}
	r := openRuntime(t, func(o *Options) {
		o.MaxConcurrent, o.QueueDepth, o.Observer = 1, 1000, seen
		o.Batch = BatchOptions{Mode: BatchOn, MaxBatch: 16, MaxWait: longestWait}
	})
	s := openSession(t, r, "tokens", func(o *SessionOptions) { o.Pad = map[string]int64{} })
	place, err := r.gate.enter(t.Context(), 1) // nothing runs until all are there
	if err != nil {
		t.Fatal(err)
	}
	var all runs
	for i := range int64(64) {
		all.start(t.Context(), t, s, i+1, 1+i%30)
	}
	waitFor(t, func() bool { return s.batch.about.Load() == 64 })
	r.gate.leave(place)
	if failed := all.wait(t); len(failed) > 0 {
		t.Error(failed)
	}
	if runs, rows := seen.runs.Load(), seen.rows.Load(); rows != 64 || runs >= 32 {
		t.Errorf("%d rows in %d runs", rows, runs)
	}
}

type countingObserver struct{ runs, rows atomic.Int64 }

func (c *countingObserver) ModelRun(_, _ string, _ time.Duration, rows int) {
	c.runs.Add(1)
	c.rows.Add(int64(rows))
}
