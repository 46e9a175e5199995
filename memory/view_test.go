package memory

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/page"
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

func TestNoRequestWaitsWhileWhatLacksSomethingIsReadAgain(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o, away, words := testOptions(clock), true, new(wordCount)
	reading, free := make(chan struct{}), make(chan struct{})
	o.Derive = func(ctx context.Context, t Text) (Derived, error) {
		if away {
			return Derived{Partial: true}, nil
		}
		reading <- struct{}{}
		select {
		case <-free:
		case <-ctx.Done():
		}
		return words.derive(ctx, t)
	}
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("two words"))
	away = false
	clock.Pass(7 * time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	use := func() string {
		snap, err := s.Resolve(ctx, alice, Ref{ID: c.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Release()
		return string(snap.Derived.Verdicts)
	}
	if got := use(); got != "" { // it would wait for reading, were it this request that reads
		t.Errorf("before it was read again: %q", got)
	}
	done := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { done <- s.Run(running) }()
	<-reading
	for range 3 {
		if got := use(); got != "" {
			t.Errorf("while it is read again: %q", got)
		}
	}
	close(free)
	for use() == "" {
		if ctx.Err() != nil {
			t.Fatal("what was read again does not serve")
		}
		time.Sleep(time.Millisecond)
	}
	if stop(); <-done != nil || words.calls != 1 {
		t.Errorf("it was read %d times, want once", words.calls)
	}
}

func TestReadingAgainEndsWithTheStore(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o, first, reading := testOptions(clock), true, make(chan struct{})
	o.Derive = func(ctx context.Context, _ Text) (Derived, error) {
		if first {
			first = false
			return Derived{Partial: true}, nil
		}
		close(reading)
		<-ctx.Done()
		return Derived{}, ctx.Err()
	}
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("two words"))
	clock.Pass(7 * time.Minute)
	wantText(t, s, alice, Ref{ID: c.ID}, "two words", page.Gone)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-reading
	if stop(); <-done != nil {
		t.Error("Run fails")
	}
	wantText(t, s, alice, Ref{ID: c.ID}, "two words", page.Gone)
}

func TestWhatNobodyUsesIsNotReadAgain(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o, tries := testOptions(clock), 0
	o.Derive = func(context.Context, Text) (Derived, error) {
		tries++
		return Derived{Partial: true}, nil
	}
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("two words"))
	clock.Pass(7 * time.Minute)
	wantText(t, s, alice, Ref{ID: c.ID}, "two words", page.Gone)
	s.Revise("r1") // drops what is held of it
	if s.Sweep(t.Context()); tries != 1 {
		t.Errorf("%d tries, want that of the creation", tries)
	}
}

func TestAPanicWhileATextIsReadAgainEndsNothing(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	o, tries, log := testOptions(clock), 0, new(testkit.Log)
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	o.Derive = func(context.Context, Text) (Derived, error) {
		if tries++; tries == 2 {
			panic("reader fault")
		}
		return Derived{Partial: true}, nil
	}
	s := newStore(t, o, nil)
	c := create(t, s, alice, draft("two words"))
	for range 2 {
		clock.Pass(7 * time.Minute)
		wantText(t, s, alice, Ref{ID: c.ID}, "two words", page.Gone)
		s.Sweep(t.Context())
	}
	wantText(t, s, alice, Ref{ID: c.ID}, "two words", page.Gone)
	if !strings.Contains(log.String(), "reader fault") || tries < 2 {
		t.Errorf("%d tries, log %s", tries, log.String())
	}
}
