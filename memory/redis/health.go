package redis

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// health is what operators are told of Redis: each change once. Safe for concurrent use.
type health struct {
	away atomic.Bool  // and the log says so
	full atomic.Int64 // Unix nanoseconds until which Redis counts as full
}

// fullFor is how long Redis counts as full after it has refused a write for want of memory: what it
// answers in between may need none.
const fullFor = time.Minute

// lost notes that Redis does not answer.
func (s *Store) lost(ctx context.Context, err error) {
	if s.health.away.CompareAndSwap(false, true) {
		s.o.Log.LogAttrs(ctx, slog.LevelWarn, "redis does not answer: limits and budgets count per replica until it does",
			slog.String("error", err.Error()))
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
			"redis is full: limits and budgets count per replica, and nothing more is kept there",
			slog.String("error", err.Error()))
	}
}

// Healthy tells whether calls are let through.
func (s *Store) Healthy() bool { return s.client.Load() != nil && !s.brake.isOpen() }

// Full tells whether Redis has refused a write for want of memory within the last minute.
func (s *Store) Full() bool { return s.o.Now().UnixNano() < s.health.full.Load() }
