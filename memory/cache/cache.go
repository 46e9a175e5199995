package cache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"signalbox/memory/cache/question"
)

// Options tunes a Cache.
type Options struct {
	// TTL is how long answers are kept. Default 1h.
	TTL time.Duration `yaml:"ttl"`
	// MinSimilarity is the cosine of two embeddings from which on their questions are compared word
	// by word, in [0,1]. The default fits the embedded model: see DefaultMinSimilarity.
	MinSimilarity float64 `yaml:"min_similarity"`
	// MaxEntries is how many questions are kept for other wordings. Default 10000.
	MaxEntries int `yaml:"max_entries"`
	// Index holds the questions; several caches may share one. Default one of its own for
	// MaxEntries.
	Index *Index `yaml:"-"`
	// Now tells the time. Default time.Now.
	Now func() time.Time `yaml:"-"`
}

// DefaultMinSimilarity was chosen on the even lines of testdata with the embedded bundle 2.4.0;
// TestChooseSimilarity tells how and says it again.
const DefaultMinSimilarity = 0.72

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{TTL: time.Hour, MinSimilarity: DefaultMinSimilarity, MaxEntries: 10_000, Now: time.Now}
}

// Validate reports every problem as "field: problem", joined, or nil.
func (o Options) Validate() error {
	var errs []error
	if o.TTL <= 0 {
		errs = append(errs, errors.New("ttl: must be more than 0"))
	}
	if !(o.MinSimilarity >= 0 && o.MinSimilarity <= 1) {
		errs = append(errs, errors.New("min_similarity: must be in [0,1]"))
	}
	if o.MaxEntries < 1 {
		errs = append(errs, errors.New("max_entries: must be 1 or more"))
	}
	return errors.Join(errs...)
}

// Cache stores and returns answers. It is safe for concurrent use.
type Cache struct {
	store Store
	index *Index
	o     Options
}

// New returns a Cache over a store, which it does not close. Errors are those of Options.Validate.
func New(store Store, o Options) (*Cache, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Index == nil {
		o.Index = NewIndex(o.MaxEntries, o.Now)
	}
	return &Cache{store: store, index: o.Index, o: o}, nil
}

// Exact returns the answer to the same request. Errors are ErrMiss, also if the request is not
// eligible, and those of an unreachable store.
func (c *Cache) Exact(ctx context.Context, id *Identity) (*Answer, error) {
	if id.Exact != Eligible {
		return nil, ErrMiss
	}
	return c.store.Get(ctx, id.Key)
}

// Hit is the answer to a question with the same meaning in other words.
type Hit struct {
	*Answer

	Question   string  // the question that it was the answer to
	Similarity float64 // cosine of the embeddings of both questions, in [-1,1]
}

// MissError reports that the nearest cached question was similar enough but differs. It wraps
// ErrMiss.
type MissError struct{ Difference question.Difference }

// Error names the difference.
func (e *MissError) Error() string { return "the nearest question differs: " + e.Difference.String() }

// Unwrap returns ErrMiss.
func (*MissError) Unwrap() error { return ErrMiss }

// Similar returns the answer to the nearest question with the same meaning, among those that the
// named model answered. vector is the L2-normalised embedding of id.Question. Errors are ErrMiss, a
// *MissError, and those of the store.
func (c *Cache) Similar(ctx context.Context, id *Identity, model string, vector []float32) (Hit, error) {
	if id.Similar != Eligible {
		return Hit{}, ErrMiss
	}
	found, ok := c.index.Find(partOf(id, model), id.Question, vector, c.o.MinSimilarity)
	switch {
	case !ok && found.Refused != question.Same:
		return Hit{}, &MissError{found.Refused}
	case !ok:
		return Hit{}, ErrMiss
	}
	a, err := c.store.Get(ctx, found.Key)
	if errors.Is(err, ErrMiss) {
		c.index.Forget(found.Key)
	}
	if err != nil {
		return Hit{}, err
	}
	return Hit{Answer: a, Question: found.Question, Similarity: found.Similarity}, nil
}

// Keep stores an answer for equal requests, and, given the embedding of id.Question, for requests
// with the same meaning. vector may be nil. Errors are ErrTooLarge and those of the store; an
// answer to a request that is not eligible is ignored without an error.
func (c *Cache) Keep(ctx context.Context, id *Identity, model string, vector []float32, a *Answer) error {
	if id.Exact != Eligible {
		return nil
	}
	var q *Question
	if id.Similar == Eligible && len(vector) > 0 {
		q = &Question{Part: partOf(id, model), Text: id.Question, Vector: vector}
	}
	err := c.store.Put(ctx, id.Key, a, q, c.o.TTL)
	// if a shared store failed to store it, it is still kept locally
	if q != nil && !errors.Is(err, ErrTooLarge) {
		c.index.Put(q.Part, id.Key, q.Text, q.Vector, c.o.TTL)
	}
	return err
}

// Len returns the number of questions kept for other wordings.
func (c *Cache) Len() int { return c.index.Len() }

// partOf returns the part of an identity's partition for one model.
func partOf(id *Identity, model string) Key {
	var buf [sha256.Size + 64]byte
	return sha256.Sum256(append(append(buf[:0], id.Partition[:]...), model...))
}
