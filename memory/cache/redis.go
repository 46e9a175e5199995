package cache

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

var _ Store = (*Redis)(nil)

// Redis is a Store that several processes share. What it keeps is bounded by the time to live and by the memory limit of
// the server. It owns no goroutine and does not close its client.
type Redis struct {
	client rueidis.Client
	o      RedisOptions
}

// RedisOptions tunes a Redis.
type RedisOptions struct {
	// Prefix stands in front of every key. Default "signalbox:answer:".
	Prefix string
	// MaxAnswer bounds one answer, in bytes. Default 1 MiB.
	MaxAnswer int
	// Timeout bounds one command. A cache that answers late is worth less than a miss. Default 50ms.
	Timeout time.Duration
}

// DefaultRedisOptions returns the defaults.
func DefaultRedisOptions() RedisOptions {
	return RedisOptions{Prefix: "signalbox:answer:", MaxAnswer: 1 << 20, Timeout: 50 * time.Millisecond}
}

// NewRedis returns a Store that uses a client.
func NewRedis(client rueidis.Client, o RedisOptions) *Redis { return &Redis{client: client, o: o} }

// Get returns the answer of a key. Errors are ErrMiss and the client's; an answer that cannot be read counts as none.
func (r *Redis) Get(ctx context.Context, key Key) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	data, err := r.client.Do(ctx, r.client.B().Get().Key(r.name(key)).Build()).AsBytes()
	if rueidis.IsRedisNil(err) {
		return nil, ErrMiss
	}
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	a, err := parseAnswer(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMiss, err) // of another version: the next answer replaces it
	}
	return a, nil
}

// Put keeps an answer. Errors are ErrTooLarge and the client's.
func (r *Redis) Put(ctx context.Context, key Key, a *Answer, ttl time.Duration) error {
	if a.Size() > r.o.MaxAnswer {
		return ErrTooLarge
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	data := rueidis.BinaryString(appendAnswer(make([]byte, 0, a.Size()), a))
	cmd := r.client.B().Set().Key(r.name(key)).Value(data).Px(max(ttl, time.Millisecond)).Build()
	if err := r.client.Do(ctx, cmd).Error(); err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}
	return nil
}

func (r *Redis) name(key Key) string { return r.o.Prefix + key.String() }
