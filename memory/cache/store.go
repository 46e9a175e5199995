package cache

import (
	"context"
	"errors"
	"time"

	"signalbox/internal/bounded"
)

// ErrMiss is the error of a key that has no answer.
var ErrMiss = errors.New("no answer is kept")

// Store keeps answers by key. Implementations are safe for concurrent use and bound what they keep.
type Store interface {
	// Get returns the answer of a key. Errors are ErrMiss, and others of a store that cannot be
	// reached. The caller must not change the answer.
	Get(ctx context.Context, key Key) (*Answer, error)
	// Put keeps an answer for a time, which is more than 0, and the question that it answers, where
	// other wordings may get it; nil for none. It may drop others for it, or refuse it
	// (ErrTooLarge). The caller must not change either any more.
	Put(ctx context.Context, key Key, a *Answer, q *Question, ttl time.Duration) error
}

// Question is a question that has an answer.
type Question struct {
	Part   Key       // the partition in which it may meet others, of one model
	Text   string    // as it was asked
	Vector []float32 // L2-normalised embedding of Text
}

var _ Store = (*Local)(nil)

// Local is a Store in this process. It tidies up while it is used and starts no goroutine of its
// own.
type Local struct {
	max     int
	answers *bounded.Cache[timed]
}

// timed is an answer and how long it is kept.
type timed struct {
	*Answer

	ttl time.Duration
}

// NewLocal returns a Store that keeps about size bytes, at least the one answer it got last if that
// is no longer than a quarter of them. now tells the time.
func NewLocal(size int, now func() time.Time) *Local {
	answers := bounded.Weighed(size, func(t timed) int { return t.Size() }, func(t timed) time.Duration { return t.ttl }, now)
	return &Local{max: size / largestShare, answers: answers}
}

// largestShare is which part of a store one answer may take.
const largestShare = 4

// Get returns the answer of a key, or ErrMiss.
func (l *Local) Get(_ context.Context, key Key) (*Answer, error) {
	t, ok := l.answers.Get(bounded.Key(key))
	if !ok {
		return nil, ErrMiss
	}
	return t.Answer, nil
}

// Put keeps an answer; questions are for an Index. The error is ErrTooLarge for one that takes more
// than a quarter of the store.
func (l *Local) Put(_ context.Context, key Key, a *Answer, _ *Question, ttl time.Duration) error {
	if a.Size() > l.max {
		return ErrTooLarge
	}
	l.answers.Set(bounded.Key(key), timed{Answer: a, ttl: ttl})
	return nil
}

// Size is about how many bytes are kept.
func (l *Local) Size() int { return l.answers.Weight() }

// Close tells the library below that the store is not used any more. It is idempotent.
func (l *Local) Close() { l.answers.Close() }
