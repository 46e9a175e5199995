package redis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
)

func TestBucketsAreSharedByReplicas(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	var stores [2]*Store
	for i := range stores {
		var err error
		// A busy machine answers late, and a charge of which no answer came may have been made.
		if stores[i], err = Open(t.Context(), Options{URL: server.URL(), RateBudget: testkit.Patience}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stores[i].Close)
	}
	tenant := ledger.TenantOf("acme")
	put := func(store int, charges ...Charge) ([]float64, bool) {
		t.Helper()
		full, fits, err := stores[store].Rate(t.Context(), tenant, charges)
		if err != nil {
			t.Fatal(err)
		}
		return full, fits
	}
	near := func(got, want float64) bool { return got <= want && got > want-5 } // a bucket leaks while the test runs
	if full, fits := put(0, Charge{Bucket: "a", Room: 100, N: 60}, Charge{Bucket: "b", Room: 1000, N: 60}); !fits || !near(full[0], 60) || !near(full[1], 60) {
		t.Errorf("first: %v, %v", full, fits)
	}
	if full, fits := put(1, Charge{Bucket: "a", Room: 100, N: 60}, Charge{Bucket: "b", Room: 1000, N: 60}); fits || !near(full[0], 60) || !near(full[1], 60) {
		t.Errorf("what does not fit: %v, %v", full, fits)
	}
	if full, fits := put(1, Charge{Bucket: "b", Room: 1000, N: 1}); !fits || !near(full[0], 61) {
		t.Errorf("the other bucket kept something of it: %v, %v", full, fits)
	}
	if full, fits := put(1, Charge{Bucket: "a", Room: 100, N: 500, Force: true}); !fits || full[0] < 500 {
		t.Errorf("by force: %v, %v", full, fits)
	}
	if full, fits := put(0, Charge{Bucket: "a", Room: 100, N: -10_000, Force: true}); !fits || full[0] != 0 {
		t.Errorf("taken out: %v, %v", full, fits)
	}
	put(0, Charge{Bucket: "c", Room: 100_000, N: 50_000})
	if full, fits := put(1, Charge{Bucket: "c", Room: 1000, N: 1}); !fits || full[0] > 501 || full[0] < 300 {
		t.Errorf("in a smaller room: %v, %v", full, fits)
	}
}

func TestARedisThatHangsCostsARequestLittle(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	clock := testkit.NewClock() // stands still: nothing is tried again meanwhile
	s, err := Open(t.Context(), Options{URL: server.URL(), Failures: 3, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	server.Pause()
	t.Cleanup(server.Resume)
	waited := 0
	for range 100 {
		_, _, err := s.Rate(t.Context(), ledger.TenantOf("acme"), []Charge{{Bucket: "a", Room: 10, N: 1}})
		switch {
		case err == nil:
			t.Fatal("a paused Redis answered")
		case errors.Is(err, context.DeadlineExceeded):
			waited++
		}
	}
	if waited < 1 || waited > 3 { // then the breaker is open
		t.Errorf("%d calls waited for Redis, want 3 at most", waited)
	}
}

func TestRequestsUnderWayAreSharedByReplicas(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	var stores [2]*Store
	for i := range stores {
		var err error
		if stores[i], err = Open(t.Context(), Options{URL: server.URL()}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stores[i].Close)
	}
	tenant := ledger.TenantOf("acme")
	eventually := func(try func() error) { // a busy machine may answer late
		t.Helper()
		for end := time.Now().Add(testkit.Patience); ; {
			err := try()
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	enter := func(store int, id string, ttl time.Duration, force bool) (used []int, fits bool) {
		t.Helper()
		eventually(func() (err error) {
			used, fits, err = stores[store].Enter(t.Context(), tenant, []Flight{{Scope: "caller", Room: 2, ID: id}, {Scope: "tenant", Room: 9, ID: id}}, ttl, force)
			return err
		})
		return used, fits
	}
	leave := func(store int, id string) {
		t.Helper()
		eventually(func() error {
			return stores[store].Leave(t.Context(), tenant, []Flight{{Scope: "caller", ID: id}, {Scope: "tenant", ID: id}})
		})
	}
	const long = time.Hour
	if used, fits := enter(0, "one", long, false); !fits || used[0] != 1 || used[1] != 1 {
		t.Errorf("the first: %v, %v", used, fits)
	}
	if used, fits := enter(1, "two", long, false); !fits || used[0] != 2 {
		t.Errorf("the second: %v, %v", used, fits)
	}
	if used, fits := enter(1, "three", long, false); fits || used[0] != 2 || used[1] != 2 {
		t.Errorf("the third: %v, %v", used, fits)
	}
	if used, fits := enter(0, "one", long, true); !fits || used[0] != 2 || used[1] != 2 {
		t.Errorf("the first again: %v, %v", used, fits)
	}
	leave(1, "two")
	leave(1, "two")
	if used, fits := enter(1, "three", time.Millisecond, false); !fits || used[0] != 2 {
		t.Errorf("after one has ended: %v, %v", used, fits)
	}
	eventually(func() error { // its process says nothing more of it
		if used, fits := enter(0, "four", long, false); !fits {
			return fmt.Errorf("%d are counted", used[0])
		}
		return nil
	})
	leave(0, "one")
	leave(0, "four")
	if used, _ := enter(0, "five", long, false); used[0] != 1 || used[1] != 1 {
		t.Errorf("all but one have ended: %v", used)
	}
}
