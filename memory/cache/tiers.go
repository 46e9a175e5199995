package cache

import (
	"context"
	"errors"
	"time"
)

var _ Store = (*Tiers)(nil)

// Tiers is a Store in front of a shared one: answers in near are returned without asking far, and
// answers from far are stored in near until they expire.
type Tiers struct {
	near, far Store
	ttl       time.Duration
	now       func() time.Time
}

// NewTiers returns a Store over two, neither of which it closes. Answers from far stay in near
// until they are ttl old; now returns the time.
func NewTiers(near, far Store, ttl time.Duration, now func() time.Time) *Tiers {
	return &Tiers{near, far, ttl, now}
}

// Get returns the answer of a key. Errors are ErrMiss and those of far.
func (t *Tiers) Get(ctx context.Context, key Key) (*Answer, error) {
	a, err := t.near.Get(ctx, key)
	if !errors.Is(err, ErrMiss) {
		return a, err
	}
	if a, err = t.far.Get(ctx, key); err != nil {
		return nil, err
	}
	if left := a.Made.Add(t.ttl).Sub(t.now()); left > 0 {
		_ = t.near.Put(ctx, key, a, nil, left) // one that is too large for near stays in far
	}
	return a, nil
}

// Put stores an answer in both. If far fails, the answer is still stored in near, and the error of
// far is returned.
func (t *Tiers) Put(ctx context.Context, key Key, a *Answer, q *Question, ttl time.Duration) error {
	near := t.near.Put(ctx, key, a, q, ttl)
	if far := t.far.Put(ctx, key, a, q, ttl); far != nil {
		return far
	}
	return near
}
