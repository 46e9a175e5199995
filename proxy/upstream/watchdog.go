package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// watchdog cancels an attempt that makes no progress. It sleeps while nobody waits for the
// upstream, since the time that a client takes to read is not the upstream's. Progress is frequent
// and timeouts are rare, so the timer is not reset at each progress: when it fires early, it is set
// again.
type watchdog struct {
	cancel context.CancelFunc
	late   atomic.Bool
	asleep atomic.Bool

	mu    sync.Mutex // guards the fields below; a leaf lock
	timer *time.Timer
	due   time.Time // deadline for progress; zero for none
	rings time.Time // when the timer fires; zero when it is not set
}

// nap is when a watchdog that was asleep at its deadline checks again.
const nap = 100 * time.Millisecond

// newWatchdog starts a watchdog with a first deadline after limit, or none when limit is 0.
func newWatchdog(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{cancel: cancel}
	w.expect(limit)
	return ctx, w
}

// expect sets the deadline for the next progress to limit from now, or to none when limit is 0.
func (w *watchdog) expect(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if limit <= 0 {
		w.due = time.Time{}
		return
	}
	w.due = time.Now().Add(limit)
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(limit, w.ring)
	case w.rings.IsZero() || w.due.Before(w.rings):
		w.timer.Reset(limit)
	default:
		return
	}
	w.rings = w.due
}

// ring cancels the attempt if its deadline has passed.
func (w *watchdog) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rings = time.Time{}
	if w.due.IsZero() {
		return
	}
	left := time.Until(w.due)
	if left <= 0 && w.asleep.Load() {
		left = nap
	}
	if left > 0 {
		w.timer.Reset(left)
		w.rings = time.Now().Add(left)
		return
	}
	w.late.Store(true)
	w.cancel()
}

// stop ends the attempt.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asleep.Store(false)
	w.due = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel()
}

// expired reports whether the attempt was cancelled for lack of progress.
func (w *watchdog) expired() bool { return w.late.Load() }
