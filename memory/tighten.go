package memory

import (
	"context"
	"log/slog"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/page"
)

// Contexts are packed fast when they are stored, because a client waits, and tightly later: once
// one has left the hot tier, a goroutine of Run packs it again and replaces it in RAM and in the
// Remote.

// tightShare is the inverse of the share of one processor that packing in Run may use.
const tightShare = 10

// tightenAll packs resting objects, until ctx is done.
func (s *Store) tightenAll(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.tightenLoose(ctx, func(took time.Duration) { pause(ctx, (tightShare-1)*took) })
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// tightenLoose packs all objects that wait for it. It calls between with the time taken for each.
func (s *Store) tightenLoose(ctx context.Context, between func(took time.Duration)) {
	for ctx.Err() == nil {
		l, ok := s.pager.Loose()
		if !ok {
			return
		}
		between(s.tighten(ctx, l))
	}
}

// tighten packs an object again and returns how long that took. If it cannot be written to the
// Remote, it stays unchanged.
func (s *Store) tighten(ctx context.Context, l page.Loose) time.Duration {
	if _, reachable := s.Reachable(); l.Safe && !reachable {
		return 0
	}
	begun := time.Now()
	packed, err := blob.Repack(l.Packed, l.Object.Size, l.Object.Sum)
	took := time.Since(begun)
	if err != nil {
		return took // the next caller gets an error
	}
	if l.Safe && len(packed) < len(l.Packed) {
		if err := s.remote.Replace(ctx, l.Key.Tenant, l.Object, packed); err != nil {
			s.o.Log.LogAttrs(ctx, slog.LevelDebug, "object stays as it was packed first", slog.String("object", l.Object.Sum.String()), slog.String("error", err.Error()))
			return took
		}
	}
	s.pager.Replace(l, packed)
	return took
}
