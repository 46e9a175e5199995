package redis

import (
	"sync"
	"sync/atomic"
	"time"

	"signalbox/memory/ledger"
)

// breaker refuses calls for a while after several failures in a row; then it lets one through at a time, and
// the first that succeeds closes it. While somebody mends what is broken it lets none through: whoever mends closes it.
// Safe for concurrent use.
type breaker struct {
	failures int64
	rest     time.Duration
	now      func() time.Time

	inRow atomic.Int64
	until atomic.Int64 // Unix nanoseconds; 0: closed

	mended atomic.Bool // somebody mends
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

func (b *breaker) failed() {
	if b.inRow.Add(1) >= b.failures {
		b.until.Store(b.now().Add(b.rest).UnixNano())
	}
}

// tenants remembers which tenants were noted in Redis.
type tenants struct {
	mu    sync.Mutex // guards known
	known map[ledger.Tenant]bool
}

// most tenants that are remembered; noting one again is cheap.
const mostTenants = 1 << 16

func (t *tenants) has(name ledger.Tenant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[name]
}

func (t *tenants) add(name ledger.Tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= mostTenants {
		t.known = map[ledger.Tenant]bool{}
	}
	t.known[name] = true
}

func (t *tenants) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
}
