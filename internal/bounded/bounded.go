// Package bounded caches values by 32-byte digests, up to a limit. The least requested values are
// evicted first (W-TinyLFU). The cache is otter (docs/adr/0047), instantiated once: Go compiles a
// generic cache in a struct again in every package that uses the struct, 950 functions for each
// type of value.
package bounded

import (
	"crypto/sha256"
	"time"

	"github.com/maypok86/otter/v2"
)

// Key is a SHA-256 digest.
type Key = [sha256.Size]byte

// Cache holds values of one type. The zero Cache cannot be used; create one with New or Weighed. It
// is safe for concurrent use. Maintenance runs within calls, so it starts no goroutine.
type Cache[V any] struct {
	kept table
}

// table is the part of otter's API that is used.
type table interface {
	GetIfPresent(key Key) (value any, ok bool)
	Set(key Key, value any) (old any, inserted bool)
	EstimatedSize() int
	WeightedSize() uint64
	StopAllGoroutines() bool
}

// New returns a Cache of at most n values, at least one.
func New[V any](n int) *Cache[V] { return &Cache[V]{counted(n)} }

// Weighed returns a Cache whose values have a total weight of at most most. Each value expires ttl
// after it was set. now returns the current time. No value may weigh more than math.MaxUint32.
func Weighed[V any](most int, weigh func(V) int, ttl func(V) time.Duration, now func() time.Time) *Cache[V] {
	of := func(value any) V { v, _ := value.(V); return v }
	return &Cache[V]{weighed(most, now,
		func(value any) int { return weigh(of(value)) },
		func(value any) time.Duration { return ttl(of(value)) })}
}

// Neither of these is inlined, so that packages that create a Cache need not compile otter.

//go:noinline
func counted(n int) table {
	return otter.Must(&otter.Options[Key, any]{MaximumSize: max(n, 1), Executor: atOnce})
}

//go:noinline
func weighed(most int, now func() time.Time, weigh func(any) int, ttl func(any) time.Duration) table {
	return otter.Must(&otter.Options[Key, any]{
		Clock:         clock(now),
		Executor:      atOnce,
		MaximumWeight: uint64(max(most, 1)),
		Weigher:       func(_ Key, value any) uint32 { return uint32(weigh(value)) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[Key, any]) time.Duration {
			return ttl(e.Value)
		}),
	})
}

// atOnce runs maintenance before Set returns, so that the limit always holds.
func atOnce(tidy func()) { tidy() }

// clock is the time source of a Cache. It does not tick.
type clock func() time.Time

// NowNano returns the time in nanoseconds since 1970.
func (c clock) NowNano() int64 { return c().UnixNano() }

// Tick returns nil: there are no ticks.
func (clock) Tick(time.Duration) <-chan time.Time { return nil }

// Get returns the value of a key, if there is one.
func (c *Cache[V]) Get(key Key) (v V, ok bool) {
	value, ok := c.kept.GetIfPresent(key)
	v, _ = value.(V)
	return v, ok
}

// Set stores a value and replaces a previous value of the key.
func (c *Cache[V]) Set(key Key, v V) { c.kept.Set(key, v) }

// Len returns the approximate number of values.
func (c *Cache[V]) Len() int { return c.kept.EstimatedSize() }

// Weight returns the approximate total weight of the values; 0 for a Cache from New.
func (c *Cache[V]) Weight() int { return int(c.kept.WeightedSize()) }

// Close releases the cache of the underlying library. It is idempotent.
func (c *Cache[V]) Close() { c.kept.StopAllGoroutines() }
