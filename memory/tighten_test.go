package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// stored is the text of a context as Redis has it.
func stored(tb testing.TB, s *Store, id string) (packed []byte) {
	tb.Helper()
	t := ledger.TenantOf(alice.Tenant)
	e, err := s.book.Load(tb.Context(), t, id)
	if err == nil {
		packed, err = s.remote.Get(tb.Context(), t, e.Record.Versions[0].Segments[0])
	}
	if err != nil {
		tb.Fatal(err)
	}
	return packed
}

func TestWhatRestsIsPackedTightlyEverywhere(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	a := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	text := prose("x", 3*blob.Small)
	idle, left := create(t, a, alice, draft(text)), create(t, a, alice, draft("y"+text))
	first := stored(t, a, idle.ID)
	if blob.Tight(first) || blob.Tight(stored(t, a, left.ID)) {
		t.Fatal("it is packed tightly while somebody waits")
	}
	a.Sweep(t.Context())
	if got := stored(t, a, idle.ID); blob.Tight(got) {
		t.Error("it is packed tightly while it is hot")
	}
	if _, err := a.PageOut(t.Context(), alice, Ref{ID: left.ID}, page.L3); err != nil {
		t.Fatal(err)
	}
	clock.Pass(31 * time.Second)
	a.Sweep(t.Context())
	for _, c := range []Context{idle, left} {
		if got := stored(t, a, c.ID); !blob.Tight(got) || len(got) >= len(first) {
			t.Errorf("%s rests in %d bytes, tight %t; it was stored in %d", c.ID, len(got), blob.Tight(got), len(first))
		}
	}
	wantText(t, a, alice, Ref{ID: idle.ID}, text, page.L2)
	wantText(t, a, alice, Ref{ID: left.ID}, "y"+text, page.L3)
	b := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	wantText(t, b, alice, Ref{ID: idle.ID}, text, page.L3)
	// Stored again by a replica that packs it fast, it is the same object.
	again := create(t, b, alice, draft(text))
	if got := stored(t, b, again.ID); !blob.Tight(got) {
		t.Error("storing it again has made it larger")
	}
	for _, id := range []string{idle.ID, again.ID} {
		c := newStore(t, testOptions(clock), connect(t, server, clock.Now))
		wantText(t, c, alice, Ref{ID: id}, text, page.L3)
	}
}

func TestWithoutRedisRestingTextsTakeLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(testkit.NewClock())
		o.Now = time.Now
		s := newStore(t, o, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		text := prose("x", 3*blob.Small)
		c := create(t, s, alice, draft(text))
		before := s.Stats().L2Bytes
		time.Sleep(40 * time.Second) // of the bubble
		synctest.Wait()
		if after := s.Stats().L2Bytes; after >= before {
			t.Errorf("at rest it takes %d bytes, and %d before", after, before)
		}
		wantText(t, s, alice, Ref{ID: c.ID}, text, page.L2)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAnOutageLeavesThePackingAsItIs(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), connect(t, server, clock.Now))
	text := prose("x", 3*blob.Small)
	c := create(t, s, alice, draft(text))
	before := s.Stats().L2Bytes
	server.Stop()
	clock.Pass(31 * time.Second)
	s.Sweep(t.Context())
	if after := s.Stats().L2Bytes; after != before {
		t.Errorf("RAM has %d bytes, and %d before, so it has another form than Redis", after, before)
	}
	wantText(t, s, alice, Ref{ID: c.ID}, text, page.L2)
}
