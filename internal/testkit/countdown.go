package testkit

import (
	"context"
	"sync/atomic"
)

// Countdown is a context that ends after a given number of calls of Err, to interrupt work at any
// point. Only its Err ends: Done is that of the parent context. It is safe for concurrent use.
type Countdown struct {
	context.Context //nolint:containedctx // it is one

	left  int64
	cause error
	looks atomic.Int64
}

// NewCountdown returns a context whose Err returns nil left times, and then cause.
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

// Looks returns the number of calls of Err.
func (c *Countdown) Looks() int { return int(c.looks.Load()) }
