package recall

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/semaphore"

	"signalbox/memory/cache"
	"signalbox/rules"
)

// Answers stores responses and their questions. It outlives the states that use it, since cache
// keys distinguish configurations. It is safe for concurrent use.
type Answers struct {
	Store cache.Store
	local *cache.Local
	Index *cache.Index
	size  [3]int64 // the options that determine it

	shared *cache.Redis // shared store of several processes; nil if there is none

	// Taught stands for examples added to intents at run time, which change decisions but are in no
	// file.
	Taught atomic.Uint64
	// slots limits the responses being stored. When none is free, the next response is dropped and
	// counted.
	slots *semaphore.Weighted
}

// Limits of storing responses. A body is read again to see whether it is complete.
const (
	keptAtOnce  = 64
	keepTime    = time.Second // for storing one response
	LongestKept = 1 << 20     // bytes of one response
)

// NewAnswers returns a store with the size in the options. shared is the store of several
// processes, used if the options say so; nil for none. before is the Answers to be replaced, of
// which only Taught is taken over; nil for none. Errors are those of the options.
func NewAnswers(o Options, shared *cache.Redis, before *Answers) (*Answers, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	local := cache.NewLocal(int(o.MaxBytes), time.Now)
	a := &Answers{
		Store: local, local: local, Index: cache.NewIndex(o.MaxEntries, time.Now),
		size: o.room(), slots: semaphore.NewWeighted(keptAtOnce),
	}
	if before != nil {
		a.Taught.Store(before.Taught.Load())
	}
	if shared != nil && o.Shared {
		a.shared = shared
		a.Store = cache.NewTiers(local, shared, time.Duration(o.TTL), time.Now)
	}
	return a, nil
}

func (o Options) room() [3]int64 {
	return [3]int64{int64(o.MaxEntries), int64(o.MaxBytes), int64(o.TTL)}
}

// Fits reports whether NewAnswers would return an equivalent store for these arguments.
func (a *Answers) Fits(o Options, shared *cache.Redis) bool {
	return a.size == o.room() && (a.shared != nil) == (o.Shared && shared != nil)
}

// Learn adds a question whose response another process has stored.
func (a *Answers) Learn(key cache.Key, q cache.Question, ttl time.Duration) {
	if a != nil && a.shared != nil {
		a.Index.Put(q.Part, key, q.Text, q.Vector, ttl)
	}
}

// Close drops what is stored. a must not be used afterwards.
func (a *Answers) Close() { a.local.Close() }

// Teach records examples added to an intent. Replicas with the same additions share responses
// again.
func (a *Answers) Teach(intent string, examples []string) {
	if a == nil {
		return
	}
	for _, e := range examples {
		a.Taught.Add(xxhash.Sum64String(intent + "\x00" + e))
	}
}

// Cache is the cache of a state. nil means that caching is off everywhere.
type Cache struct {
	Opts        Options
	Cache       *cache.Cache
	Identifier  cache.Identifier
	Answers     *Answers
	Fingerprint string
	Similar     bool                     // some route may use the response to another question
	Treatments  map[*rules.Action]string // what each action does to a request

	writes sync.WaitGroup // responses being stored
}

// Treatment identifies what an action does to a request. Semantic hits require the same treatment.
func Treatment(a *rules.Action) string {
	return fmt.Sprintf("%q %t %+v %+v %q %q %+v",
		a.Reasoning, a.Override, a.Prompt, a.MaxTokens, a.Body, a.Headers, a.Tools)
}

// Generation identifies everything that affects decisions and is not part of requests.
func (c *Cache) Generation(taught uint64) string {
	if taught == 0 {
		return c.Fingerprint
	}
	return c.Fingerprint + " " + strconv.FormatUint(taught, 16)
}

// Partition identifies the responses of a model that was asked according to an action.
func (c *Cache) Partition(model string, a *rules.Action) string {
	return model + "\x00" + c.Treatments[a]
}

// Store stores a response in the background, unless too many are being stored. finish produces it
// and may be slow.
func (c *Cache) Store(ctx context.Context, finish func(ctx context.Context) error, done func(result string)) {
	if !c.Answers.slots.TryAcquire(1) {
		done(StoreDropped)
		return
	}
	c.writes.Go(func() {
		defer c.Answers.slots.Release(1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
		defer cancel()
		done(storeResult(finish(ctx)))
	})
}

// Close waits for the responses being stored; c may still be used.
func (c *Cache) Close() {
	if c != nil {
		c.writes.Wait()
	}
}
