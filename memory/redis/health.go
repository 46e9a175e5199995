package redis

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// health is the state of Redis reported to operators, who get one log entry per change. Safe for
// concurrent use.
type health struct {
	away  atomic.Bool  // Redis is unreachable, and this was logged
	quiet atomic.Int32 // number of consecutive greetings answered since then, without a failed call
	full  atomic.Int64 // Unix nanoseconds until which Redis counts as full
}

// fullFor is how long Redis counts as full after it has refused a write because of insufficient
// memory: requests that succeed in between may need no memory.
const fullFor = time.Minute

// settled is the number of answered greetings without a failed call after which Redis counts as
// reachable again if there are no calls: a Redis that is too slow for calls still answers
// greetings.
const settled = 10

// lost records that Redis does not respond in time.
func (s *Store) lost(ctx context.Context, err error) {
	s.health.quiet.Store(0)
	if s.health.away.CompareAndSwap(false, true) {
		s.o.Log.LogAttrs(
			ctx,
			slog.LevelWarn,
			"redis does not answer in time: limits and budgets count per replica until it does",
			slog.String("error", err.Error()),
		)
	}
}

// back records that Redis responds.
func (s *Store) back(ctx context.Context) {
	if s.health.away.Load() && s.health.away.CompareAndSwap(true, false) {
		s.o.Log.LogAttrs(ctx, slog.LevelInfo, "redis answers again")
	}
}

// filled records that Redis has refused a write because of insufficient memory.
func (s *Store) filled(ctx context.Context, err error) {
	now := s.o.Now()
	if before := s.health.full.Swap(now.Add(fullFor).UnixNano()); before < now.UnixNano() {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn,
			"redis is full: limits and budgets count per replica, and nothing more is stored in it",
			slog.String("error", err.Error()))
	}
}

// greeted records that Redis has answered a greeting.
func (s *Store) greeted(ctx context.Context) {
	if s.health.away.Load() && s.health.quiet.Add(1) >= settled {
		s.back(ctx)
	}
}

// Healthy reports whether Redis is believed to respond in time.
func (s *Store) Healthy() bool {
	return s.client.Load() != nil && !s.brake.isOpen() && !s.health.away.Load()
}

// Full reports whether Redis has refused a write because of insufficient memory within the last
// minute.
func (s *Store) Full() bool { return s.o.Now().UnixNano() < s.health.full.Load() }
