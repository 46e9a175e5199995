package memory

import (
	"context"
	"errors"
	"testing"
	"time"

	"signalbox/internal/testkit"
)

func TestWhatCouldNotBeDerivedIsDerivedAgainAlsoInConstantUse(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o, away, words := testOptions(clock), true, new(wordCount)
	tries := 0
	o.Derive = func(ctx context.Context, t Text) (Derived, error) {
		if tries++; away {
			return Derived{Partial: true}, nil
		}
		return words.derive(ctx, t)
	}
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("two words"))
	use := func() string { // once a minute, for seven minutes
		var got string
		for range 7 {
			clock.Pass(time.Minute)
			s.Sweep(t.Context())
			snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
			if err != nil {
				t.Fatal(err)
			}
			got = string(snap.Derived.Verdicts)
			snap.Release()
		}
		return got
	}
	if got := use(); got != "" || tries != 2 {
		t.Errorf("without a model: %q after %d tries, want 2", got, tries)
	}
	away = false
	if got := use(); got != `{"jailbreak":0.1}` || tries != 3 {
		t.Errorf("with the model: %q after %d tries, want 3", got, tries)
	}
	if use(); tries != 3 {
		t.Errorf("what lacks nothing was derived again: %d tries", tries)
	}
}

func TestWhatLacksSomethingServesWhereMakingItAnewFails(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o, tries, broken := testOptions(clock), 0, false
	o.Derive = func(context.Context, Text) (Derived, error) {
		tries++
		return Derived{Partial: true}, nil
	}
	o.Ground = func(ctx context.Context, t Text) (any, error) {
		if broken {
			return nil, errors.New("broken")
		}
		return ground(ctx, t)
	}
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("two words"))
	tries, broken = 0, true
	for range 7 { // once a minute
		clock.Pass(time.Minute)
		s.Sweep(t.Context())
		for range 3 {
			snap, err := s.Resolve(t.Context(), alice, Ref{ID: c.ID})
			if err != nil {
				t.Fatalf("after %d tries: %v", tries, err)
			}
			snap.Release()
		}
	}
	if tries != 1 {
		t.Errorf("%d tries, want 1", tries)
	}
}
