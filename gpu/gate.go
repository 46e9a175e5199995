package gpu

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// gate limits the number of threads occupied by runs. Runs that find no free slot wait in order of
// arrival, at most depth of them; the next one is refused.
type gate struct {
	places  *semaphore.Weighted
	size    int64
	depth   int64
	waiting atomic.Int64
}

func newGate(size, depth int) *gate {
	return &gate{places: semaphore.NewWeighted(int64(size)), size: int64(size), depth: int64(depth)}
}

// enter acquires weight slots, at most all of them, and returns the number to release. It returns
// ErrOverloaded if the queue is full, and an error that wraps ctx.Err() if ctx ended first.
func (g *gate) enter(ctx context.Context, weight int) (int64, error) {
	n := min(max(int64(weight), 1), g.size)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if g.places.TryAcquire(n) {
		return n, nil
	}
	if g.waiting.Add(1) > g.depth {
		g.waiting.Add(-1)
		return 0, fmt.Errorf("%w: %d of %d", ErrOverloaded, g.depth, g.depth)
	}
	defer g.waiting.Add(-1)
	if err := g.places.Acquire(ctx, n); err != nil {
		return 0, fmt.Errorf("wait for a free run: %w", err)
	}
	return n, nil
}

func (g *gate) leave(n int64) { g.places.Release(n) }
