package cache

import (
	"context"
	"errors"
	"time"

	"signalbox/internal/bounded"
)

// ErrMiss reports that there is no answer for a key.
var ErrMiss = errors.New("no answer is kept")

// Store stores answers by key. Implementations must be safe for concurrent use and limit what they
// store.
type Store interface {
	// Get returns the answer of a key, which must not be modified. Errors are ErrMiss, and others
	// if the store is unreachable.
	Get(ctx context.Context, key Key) (*Answer, error)
	// Put stores an answer for ttl, which must be more than 0, with its question if other wordings
	// may get it; else q is nil. It may evict others, or refuse the answer (ErrTooLarge). The
	// caller must not modify either afterwards.
	Put(ctx context.Context, key Key, a *Answer, q *Question, ttl time.Duration) error
}

// Question is a question that has an answer.
type Question struct {
	Part   Key       // the partition in which it is compared with others, for one model
	Text   string    // as it was asked
	Vector []float32 // L2-normalised embedding of Text
}

var _ Store = (*Local)(nil)

// Local is a Store in this process. It removes expired answers while it is used and starts no
// goroutine of its own.
type Local struct {
	max     int
	answers *bounded.Cache[timed]
}

// timed is an answer with its expiry.
type timed struct {
	*Answer

	ttl time.Duration
}

// NewLocal returns a Store of about size bytes, which holds at least the last answer if that takes
// at most a quarter of them. now returns the time.
func NewLocal(size int, now func() time.Time) *Local {
	answers := bounded.Weighed(size, func(t timed) int { return t.Size() }, func(t timed) time.Duration { return t.ttl }, now)
	return &Local{max: size / largestShare, answers: answers}
}

// largestShare is the inverse of the share of a store that one answer may take.
const largestShare = 4

// Get returns the answer of a key, or ErrMiss.
func (l *Local) Get(_ context.Context, key Key) (*Answer, error) {
	t, ok := l.answers.Get(bounded.Key(key))
	if !ok {
		return nil, ErrMiss
	}
	return t.Answer, nil
}

// Put stores an answer; questions are for an Index. The error is ErrTooLarge for an answer that
// takes more than a quarter of the store.
func (l *Local) Put(_ context.Context, key Key, a *Answer, _ *Question, ttl time.Duration) error {
	if a.Size() > l.max {
		return ErrTooLarge
	}
	l.answers.Set(bounded.Key(key), timed{Answer: a, ttl: ttl})
	return nil
}

// Size returns the approximate number of stored bytes.
func (l *Local) Size() int { return l.answers.Weight() }

// Close releases the resources of the cache library. It is idempotent.
func (l *Local) Close() { l.answers.Close() }
