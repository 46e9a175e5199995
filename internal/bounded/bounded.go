// Package bounded remembers values by 32-byte digests, up to a bound. What is looked for least goes
// first (W-TinyLFU). It is otter (docs/adr/0047), instantiated once: a generic cache in a struct is
// compiled again in every package that has to do with the struct, 950 functions for each type of
// value.
package bounded

import (
	"crypto/sha256"
	"time"

	"github.com/maypok86/otter/v2"
)

// Key is a SHA-256 digest.
type Key = [sha256.Size]byte

// Cache remembers values of one type. The zero Cache cannot be used; make one with New or Weighed.
// Safe for concurrent use. It tidies up while it is used and starts no goroutine of its own.
type Cache[V any] struct {
	kept table
}

// table is the part of otter that is used.
type table interface {
	GetIfPresent(key Key) (value any, ok bool)
	Set(key Key, value any) (old any, inserted bool)
	EstimatedSize() int
	WeightedSize() uint64
	StopAllGoroutines() bool
}

// New returns a Cache of at most n values, at least one.
func New[V any](n int) *Cache[V] { return &Cache[V]{counted(n)} }

// Weighed returns a Cache of values that weigh no more than most together, each of which is
// forgotten ttl after it was set. now tells the time. No value may weigh more than math.MaxUint32.
func Weighed[V any](most int, weigh func(V) int, ttl func(V) time.Duration, now func() time.Time) *Cache[V] {
	of := func(value any) V { v, _ := value.(V); return v }
	return &Cache[V]{weighed(most, now,
		func(value any) int { return weigh(of(value)) },
		func(value any) time.Duration { return ttl(of(value)) })}
}

// Neither of these is inlined, so that those who make a Cache need not compile what it is made of.

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

// atOnce tidies up before Set returns, so that the bound holds.
func atOnce(tidy func()) { tidy() }

// clock is the time of a Cache. It does not tick.
type clock func() time.Time

// NowNano is the time in nanoseconds since 1970.
func (c clock) NowNano() int64 { return c().UnixNano() }

// Tick returns nil, which stands for no ticks.
func (clock) Tick(time.Duration) <-chan time.Time { return nil }

// Get returns the value of a key, if it is known.
func (c *Cache[V]) Get(key Key) (v V, ok bool) {
	value, ok := c.kept.GetIfPresent(key)
	v, _ = value.(V)
	return v, ok
}

// Set remembers a value in place of the one that the key has.
func (c *Cache[V]) Set(key Key, v V) { c.kept.Set(key, v) }

// Len is about how many values are remembered.
func (c *Cache[V]) Len() int { return c.kept.EstimatedSize() }

// Weight is about what the values weigh together; 0 for a Cache that New made.
func (c *Cache[V]) Weight() int { return int(c.kept.WeightedSize()) }

// Close tells the library below that the Cache is not used any more. It is idempotent.
func (c *Cache[V]) Close() { c.kept.StopAllGoroutines() }
