package redis

import (
	"sync/atomic"
	"time"
)

// breaker is a circuit breaker. It refuses calls for a while after several consecutive failures;
// then it lets one through at a time, and the first success closes it. While mend is active it lets
// none through: mend closes it. Safe for concurrent use.
type breaker struct {
	failures int64
	rest     time.Duration
	now      func() time.Time

	inRow atomic.Int64
	until atomic.Int64 // Unix nanoseconds; 0: closed

	mended atomic.Bool // mend is active
}

func (b *breaker) allows() bool {
	until := b.until.Load()
	if until == 0 {
		return true
	}
	if b.mended.Load() {
		return false
	}
	now := b.now()
	return now.UnixNano() >= until && b.until.CompareAndSwap(until, now.Add(b.rest).UnixNano())
}

func (b *breaker) isOpen() bool { return b.until.Load() != 0 }

func (b *breaker) succeeded() {
	b.inRow.Store(0)
	b.until.Store(0)
}

// failed records a failure and reports whether the breaker is open now.
func (b *breaker) failed() bool {
	if b.inRow.Add(1) < b.failures {
		return false
	}
	b.open()
	return true
}

// open opens the breaker.
func (b *breaker) open() { b.until.Store(b.now().Add(b.rest).UnixNano()) }
