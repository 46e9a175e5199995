package proxy

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"signalbox/memory/cache"
	"signalbox/rules"
)

// Answers are the answers that are kept, and the questions that they are to. They outlive the
// states that use them, for keys tell configurations apart. Safe for concurrent use.
type Answers struct {
	store cache.Store
	local *cache.Local
	index *cache.Index
	size  [3]int64 // what of the options it was made for

	shared *cache.Redis // where other processes keep theirs as well; nil for none

	// taught stands for the examples that intents were given while running: they change decisions,
	// and no file knows them.
	taught atomic.Uint64
	// slots holds a value for each answer that is being kept. When it is full the next one is
	// dropped, and counted.
	slots chan struct{}
}

// The bounds of keeping answers. A body is read once more, to see whether it is whole.
const (
	keptAtOnce  = 64
	keepTime    = time.Second // for the store to take one
	longestKept = 1 << 20     // bytes of one answer
)

// NewAnswers makes room for answers as the options say. shared is where other processes keep theirs
// as well, which is used where the options say so; nil for none. before are those that the new ones
// replace, of which only what intents were taught is taken over; nil for none. Errors are those of
// the options.
func NewAnswers(o CacheOptions, shared *cache.Redis, before *Answers) (*Answers, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	local, err := cache.NewLocal(int(o.MaxBytes), time.Now)
	if err != nil {
		return nil, err
	}
	a := &Answers{
		store: local, local: local, index: cache.NewIndex(o.MaxEntries, time.Now), size: o.room(), slots: make(chan struct{}, keptAtOnce),
	}
	if before != nil {
		a.taught.Store(before.taught.Load())
	}
	if shared != nil && o.Shared {
		a.shared = shared
		a.store = cache.NewTiers(local, shared, time.Duration(o.TTL), time.Now)
	}
	return a, nil
}

func (o CacheOptions) room() [3]int64 {
	return [3]int64{int64(o.MaxEntries), int64(o.MaxBytes), int64(o.TTL)}
}

// Fits reports whether a is what NewAnswers would make of the options and of what is shared.
func (a *Answers) Fits(o CacheOptions, shared *cache.Redis) bool {
	return a.size == o.room() && (a.shared != nil) == (o.Shared && shared != nil)
}

// learn takes in a question that another process has the answer to.
func (a *Answers) learn(key cache.Key, q cache.Question, ttl time.Duration) {
	if a != nil && a.shared != nil {
		a.index.Put(q.Part, key, q.Text, q.Vector, ttl)
	}
}

// Close gives up what is kept. Nobody may use a any more.
func (a *Answers) Close() { a.local.Close() }

// teach notes that examples were added to an intent. Replicas that are taught the same share
// answers again.
func (a *Answers) teach(intent string, examples []string) {
	if a == nil {
		return
	}
	for _, e := range examples {
		a.taught.Add(xxhash.Sum64String(intent + "\x00" + e))
	}
}

// caching is the cache of a state. nil stands for one that is off everywhere.
type caching struct {
	opts        CacheOptions
	cache       *cache.Cache
	identifier  cache.Identifier
	answers     *Answers
	fingerprint string
	similar     bool                     // some route may be answered from another question
	treatments  map[*rules.Action]string // what each action does to a request
	writes      sync.WaitGroup           // answers that are being kept
}

// treatment tells actions apart that make other requests of one: answers to questions meet only
// where it agrees.
func treatment(a *rules.Action) string {
	return fmt.Sprintf("%q %t %+v %+v %q %q", a.Reasoning, a.Override, a.Prompt, a.MaxTokens, a.Body, a.Headers)
}

// generation stands for what decides requests and is not in them.
func (c *caching) generation(taught uint64) string {
	if taught == 0 {
		return c.fingerprint
	}
	return c.fingerprint + " " + strconv.FormatUint(taught, 16)
}

// partition names the answers of a model that was asked as an action says.
func (c *caching) partition(model string, a *rules.Action) string {
	return model + "\x00" + c.treatments[a]
}

// store keeps an answer, unless too many are being kept already. finish makes it; it may take its
// time. It returns at once.
func (c *caching) store(ctx context.Context, finish func(ctx context.Context) error, done func(result string)) {
	select {
	case c.answers.slots <- struct{}{}:
	default:
		done(keptDropped)
		return
	}
	c.writes.Go(func() {
		defer func() { <-c.answers.slots }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
		defer cancel()
		done(keptAs(finish(ctx)))
	})
}

// close waits for the answers that are being kept.
func (c *caching) close() {
	if c != nil {
		c.writes.Wait()
	}
}
