package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/page"
)

func TestUseKeepsASlidingContextAliveAndAFixedOneNot(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), nil)
	sliding := create(t, s, alice, Draft{Content: Content{Text: "a"}, TTL: time.Hour})
	fixed := create(t, s, alice, Draft{Content: Content{Text: "b"}, TTL: time.Hour, Fixed: true})
	clock.Pass(40 * time.Minute)
	wantText(t, s, alice, Ref{ID: sliding.ID}, "a", page.Hot)
	wantText(t, s, alice, Ref{ID: fixed.ID}, "b", page.Hot)
	clock.Pass(40 * time.Minute)
	s.Sweep(t.Context())
	wantText(t, s, alice, Ref{ID: sliding.ID}, "a", page.L2)
	wantError(t, s, alice, Ref{ID: fixed.ID}, ErrExpired)
	clock.Pass(24 * time.Hour)
	s.Sweep(t.Context())
	wantError(t, s, alice, Ref{ID: fixed.ID}, ErrNotFound)
	wantError(t, s, alice, Ref{ID: sliding.ID}, ErrExpired)
	clock.Pass(24 * time.Hour)
	s.Sweep(t.Context())
	if st := s.Stats(); st.Hot+st.L2 != 0 {
		t.Errorf("%+v is left of what has expired", st)
	}
}

func TestALeaseKeepsADeletedContextForItsHolder(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), nil)
	c := create(t, s, alice, draft("leased"))
	first, err := s.Lease(t.Context(), alice, Ref{ID: c.ID}, 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Lease(t.Context(), alice, Ref{ID: c.ID}, 3*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), alice, Ref{ID: c.ID}); err != nil {
		t.Fatal(err)
	}
	wantError(t, s, alice, Ref{ID: c.ID}, ErrNotFound)
	wantError(t, s, alice, Ref{ID: c.ID, Lease: "other"}, ErrNotFound)
	clock.Pass(90 * time.Minute)
	s.Sweep(t.Context())
	wantText(t, s, alice, Ref{ID: c.ID, Lease: first.ID}, "leased", page.L2)
	if err := s.Unlease(t.Context(), alice, Ref{ID: c.ID, Lease: second.ID}); err != nil {
		t.Fatal(err)
	}
	wantText(t, s, alice, Ref{ID: c.ID, Lease: first.ID}, "leased", page.Hot)
	clock.Pass(31 * time.Minute)
	s.Sweep(t.Context())
	wantError(t, s, alice, Ref{ID: c.ID, Lease: first.ID}, ErrNotFound)
	if st := s.Stats(); st.Hot+st.L2 != 0 {
		t.Errorf("%+v is left", st)
	}
}

func TestALeaseDoesNotLengthenAFixedLife(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), nil)
	c := create(t, s, alice, Draft{Content: Content{Text: "a"}, TTL: time.Hour, Fixed: true})
	clock.Pass(50 * time.Minute)
	l, err := s.Lease(t.Context(), alice, Ref{ID: c.ID}, 5*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Unlease(t.Context(), alice, Ref{ID: c.ID, Lease: l.ID}); err != nil {
		t.Fatal(err)
	}
	wantText(t, s, alice, Ref{ID: c.ID}, "a", page.Hot)
	clock.Pass(11 * time.Minute)
	s.Sweep(t.Context())
	wantError(t, s, alice, Ref{ID: c.ID}, ErrExpired)
}

// What a patch says of a life holds behind a lease as well.
func TestALeaseDoesNotShortenALifeThatWasFixedLater(t *testing.T) {
	t.Parallel()
	fixed, sliding, ttl := true, false, 2*time.Hour
	for _, tt := range []struct {
		name    string
		patches []Patch
		lives   time.Duration
	}{
		{"fixed when it was used", []Patch{{Fixed: &fixed}}, time.Hour},
		{"and for longer", []Patch{{Fixed: &fixed}, {TTL: &ttl}}, ttl},
		{"fixed again", []Patch{{Fixed: &fixed, TTL: &ttl}, {Fixed: &sliding}, {Fixed: &fixed}}, ttl},
	} {
		clock := testkit.NewClock()
		s := newStore(t, testOptions(clock), nil)
		c := create(t, s, alice, Draft{Content: Content{Text: "a"}, TTL: time.Hour})
		for range 4 {
			clock.Pass(40 * time.Minute)
			wantText(t, s, alice, Ref{ID: c.ID}, "a", page.Hot)
		}
		for _, p := range tt.patches {
			if _, err := s.Patch(t.Context(), alice, Ref{ID: c.ID}, p); err != nil {
				t.Fatal(err)
			}
		}
		l, err := s.Lease(t.Context(), alice, Ref{ID: c.ID}, 9*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unlease(t.Context(), alice, Ref{ID: c.ID, Lease: l.ID}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), alice, Ref{ID: c.ID})
		if want := clock.Now().Add(tt.lives); err != nil || !got.Expires.Equal(want) {
			t.Errorf("%s: lives until %v, %v, want %v", tt.name, got.Expires, err, want)
		}
	}
}

func TestAContextOutlivesNoLeaseThatHasEnded(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s := newStore(t, testOptions(clock), nil)
	leased, brief := draft("leased"), draft("brief")
	leased.TTL, brief.TTL = time.Hour, time.Hour
	brief.Fixed = true
	c, d := create(t, s, alice, leased), create(t, s, alice, brief)
	lease := func(id string, d time.Duration) string {
		l, err := s.Lease(t.Context(), alice, Ref{ID: id}, d)
		if err != nil {
			t.Fatal(err)
		}
		return l.ID
	}
	unlease := func(id, lease string) {
		if err := s.Unlease(t.Context(), alice, Ref{ID: id, Lease: lease}); err != nil {
			t.Fatal(err)
		}
	}
	short, long := lease(c.ID, 2*time.Hour), lease(c.ID, 5*time.Hour)
	unlease(c.ID, long)
	unlease(d.ID, lease(d.ID, 5*time.Hour))
	clock.Pass(61 * time.Minute)
	s.Sweep(t.Context())
	wantText(t, s, alice, Ref{ID: c.ID, Lease: short}, "leased", page.L2)
	wantError(t, s, alice, Ref{ID: d.ID}, ErrExpired)
	clock.Pass(2 * time.Hour)
	s.Sweep(t.Context())
	wantError(t, s, alice, Ref{ID: c.ID}, ErrExpired)
}

func TestARequestInFlightKeepsWhatWasDeleted(t *testing.T) {
	t.Parallel()
	s := newStore(t, testOptions(testkit.NewClock()), nil)
	c := create(t, s, alice, draft("in flight"))
	snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), alice, Ref{ID: c.ID}); err != nil {
		t.Fatal(err)
	}
	if got, err := snap.Text(); got != "in flight" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	snap.Release()
	snap.Release()
	if st := s.Stats(); st.Hot+st.L2 != 0 {
		t.Errorf("%+v is left", st)
	}
}

// What only says that there was something takes no room from what is there.
func TestWhatHasExpiredFillsNoStore(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o := testOptions(clock)
	o.Contexts = 4
	s := newStore(t, o, nil)
	stays := create(t, s, alice, Draft{Content: Content{Text: "stays"}, TTL: 5 * time.Hour})
	brief, last := Draft{Content: Content{Text: "brief"}, TTL: time.Minute}, Context{}
	for i := range 20 {
		brief.Name = fmt.Sprint(i)
		last = create(t, s, Owner{Tenant: fmt.Sprint(i % 3)}, brief)
		clock.Pass(2 * time.Minute)
		s.Sweep(t.Context())
	}
	wantError(t, s, Owner{Tenant: fmt.Sprint(19 % 3)}, Ref{ID: last.ID}, ErrExpired)
	wantText(t, s, alice, Ref{ID: stays.ID}, "stays", page.L2)
	for i := range 3 {
		create(t, s, alice, draft(fmt.Sprint(i)))
	}
	if _, err := s.Create(t.Context(), alice, draft("one too many")); !errors.Is(err, ErrFull) {
		t.Errorf("beyond the bound: %v", err)
	}
	clock.Pass(30 * time.Hour)
	s.Sweep(t.Context())
	clock.Pass(30 * time.Hour)
	s.Sweep(t.Context())
	if names, err := s.book.Due(t.Context(), clock.Now().Add(100*time.Hour), 9); len(names) != 0 || err != nil {
		t.Errorf("%v is left, %v", names, err)
	}
}
