package testkit

import (
	"context"
	"sync/atomic"
)

// Countdown is a context that ends when it has been looked at so many times, at whatever point of
// the work that is. Only its Err ends: Done is that of the context below it. It is safe for
// concurrent use.
type Countdown struct {
	context.Context //nolint:containedctx // it is one

	left  int64
	cause error
	looks atomic.Int64
}

// NewCountdown returns a context whose Err gives nil left times, and then cause.
func NewCountdown(ctx context.Context, left int, cause error) *Countdown {
	return &Countdown{Context: ctx, left: int64(left), cause: cause}
}

// Err implements context.Context, and counts.
func (c *Countdown) Err() error {
	if c.looks.Add(1) > c.left {
		return c.cause
	}
	return nil
}

// Looks is how often Err was called.
func (c *Countdown) Looks() int { return int(c.looks.Load()) }
