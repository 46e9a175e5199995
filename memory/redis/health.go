package redis

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// health is what operators are told of Redis: each change once. Safe for concurrent use.
type health struct {
	away  atomic.Bool  // and the log says so
	quiet atomic.Int32 // how many times in a row it has been greeted since, and no call failed
	full  atomic.Int64 // Unix nanoseconds until which Redis counts as full
}

// fullFor is how long Redis counts as full after it has refused a write for want of memory: what it
// answers in between may need none.
const fullFor = time.Minute

// settled is after how many greetings without a call that fails Redis is said to answer again where
// no call does: a Redis that is slower than the budgets of calls answers greetings.
const settled = 10

// lost notes that Redis does not answer in time.
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

// back notes that Redis answers.
func (s *Store) back(ctx context.Context) {
	if s.health.away.Load() && s.health.away.CompareAndSwap(true, false) {
		s.o.Log.LogAttrs(ctx, slog.LevelInfo, "redis answers again")
	}
}

// filled notes that Redis has refused a write for want of memory.
func (s *Store) filled(ctx context.Context, err error) {
	now := s.o.Now()
	if before := s.health.full.Swap(now.Add(fullFor).UnixNano()); before < now.UnixNano() {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn,
			"redis is full: limits and budgets count per replica, and nothing more is stored in it",
			slog.String("error", err.Error()))
	}
}

// greeted notes that Redis has answered a greeting.
func (s *Store) greeted(ctx context.Context) {
	if s.health.away.Load() && s.health.quiet.Add(1) >= settled {
		s.back(ctx)
	}
}

// Healthy tells whether Redis answers in time, as far as is known.
func (s *Store) Healthy() bool {
	return s.client.Load() != nil && !s.brake.isOpen() && !s.health.away.Load()
}

// Full tells whether Redis has refused a write for want of memory within the last minute.
func (s *Store) Full() bool { return s.o.Now().UnixNano() < s.health.full.Load() }
