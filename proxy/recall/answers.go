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

// Answers are the stored responses, and the questions that they are to. They outlive the
// states that use them, for keys tell configurations apart. Safe for concurrent use.
type Answers struct {
	Store cache.Store
	local *cache.Local
	Index *cache.Index
	size  [3]int64 // what of the options it was made for

	shared *cache.Redis // where other processes keep theirs as well; nil for none

	// Taught stands for the examples that intents were given while running: they change decisions,
	// and no file knows them.
	Taught atomic.Uint64
	// slots bounds the responses that are being stored. When none is free the next one is dropped,
	// and counted.
	slots *semaphore.Weighted
}

// The bounds of keeping answers. A body is read once more, to see whether it is whole.
const (
	keptAtOnce  = 64
	keepTime    = time.Second // for the store to take one
	LongestKept = 1 << 20     // bytes of one response
)

// NewAnswers makes room for responses as the options say. shared is where other processes keep
// theirs as well, which is used where the options say so; nil for none. before are those that the
// new ones replace, of which only what intents were taught is taken over; nil for none. Errors are
// those of the options.
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

// Fits reports whether a is what NewAnswers would make of the options and of what is shared.
func (a *Answers) Fits(o Options, shared *cache.Redis) bool {
	return a.size == o.room() && (a.shared != nil) == (o.Shared && shared != nil)
}

// Learn takes in a question that another process has the response to.
func (a *Answers) Learn(key cache.Key, q cache.Question, ttl time.Duration) {
	if a != nil && a.shared != nil {
		a.Index.Put(q.Part, key, q.Text, q.Vector, ttl)
	}
}

// Close gives up what is kept. Nobody may use a any more.
func (a *Answers) Close() { a.local.Close() }

// Teach notes that examples were added to an intent. Replicas that are taught the same share
// answers again.
func (a *Answers) Teach(intent string, examples []string) {
	if a == nil {
		return
	}
	for _, e := range examples {
		a.Taught.Add(xxhash.Sum64String(intent + "\x00" + e))
	}
}

// Cache is the cache of a state. nil stands for one that is off everywhere.
type Cache struct {
	Opts        Options
	Cache       *cache.Cache
	Identifier  cache.Identifier
	Answers     *Answers
	Fingerprint string
	Similar     bool                     // some route may be answered from another question
	Treatments  map[*rules.Action]string // what each action does to a request

	writes sync.WaitGroup // responses that are being stored
}

// Treatment tells actions apart that make other requests of one: responses to questions meet only
// where it agrees.
func Treatment(a *rules.Action) string {
	return fmt.Sprintf("%q %t %+v %+v %q %q %+v",
		a.Reasoning, a.Override, a.Prompt, a.MaxTokens, a.Body, a.Headers, a.Tools)
}

// Generation stands for what decides requests and is not in them.
func (c *Cache) Generation(taught uint64) string {
	if taught == 0 {
		return c.Fingerprint
	}
	return c.Fingerprint + " " + strconv.FormatUint(taught, 16)
}

// Partition names the responses of a model that was asked as an action says.
func (c *Cache) Partition(model string, a *rules.Action) string {
	return model + "\x00" + c.Treatments[a]
}

// Store keeps a response, unless too many are being kept already. finish makes it; it may take its
// time. It returns at once.
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

// Close waits for the responses that are being stored; c may be used on.
func (c *Cache) Close() {
	if c != nil {
		c.writes.Wait()
	}
}
