package rate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// tower counts flights for several limiters, like Redis.
type tower struct {
	mu    sync.Mutex
	c     *clock
	until map[string]map[string]time.Time // by scope and id
	gone  bool
	calls int
}

func (w *tower) Charge(_ context.Context, _ string, charges []Charge) ([]float64, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.gone {
		return nil, false, errors.New("gone")
	}
	return make([]float64, len(charges)), true, nil
}

func (w *tower) Enter(_ context.Context, _ string, flights []Flight, ttl time.Duration, force bool) ([]int, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.gone {
		return nil, false, errors.New("gone")
	}
	used, fits := make([]int, len(flights)), true
	for i, f := range flights {
		for id, t := range w.until[f.Scope] {
			if !t.After(w.c.now()) {
				delete(w.until[f.Scope], id)
			}
		}
		used[i] = len(w.until[f.Scope])
		fits = fits && (force || used[i] < f.Room)
	}
	for i, f := range flights {
		if !fits {
			break
		}
		if w.until[f.Scope] == nil {
			w.until[f.Scope] = map[string]time.Time{}
		}
		w.until[f.Scope][f.ID] = w.c.now().Add(ttl)
		used[i] = len(w.until[f.Scope])
	}
	return used, fits, nil
}

func (w *tower) Leave(_ context.Context, _ string, flights []Flight) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.gone {
		return errors.New("gone")
	}
	for _, f := range flights {
		delete(w.until[f.Scope], f.ID)
	}
	return nil
}

func (w *tower) counted(scope string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.until[scope])
}

func (w *tower) vanish(gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = gone
}

func TestRequestsAtATimeAreCountedForAllReplicas(t *testing.T) {
	t.Parallel()
	c := startClock()
	w := &tower{c: c, until: map[string]map[string]time.Time{}}
	a, b := New(w, c.now), New(w, c.now)
	of := limits(Limit{Scope: "caller", Parallel: 2}, Limit{Scope: "tenant", Parallel: 3})
	admit := func(l *Limiter) *Lease {
		t.Helper()
		s, err := l.Admit(t.Context(), "acme", of)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := admit(a), admit(b)
	_, err := a.Admit(t.Context(), "acme", of)
	if e := refusal(t, err); e.Kind != Parallel || e.Limit != 2 || e.Used != 2 {
		t.Errorf("a third: %+v", e)
	}
	if w.counted("caller") != 2 || w.counted("tenant") != 2 {
		t.Errorf("what was refused is counted: %v", w.until)
	}
	second.Close()
	second.Close()
	third := admit(a)
	if w.counted("caller") != 2 {
		t.Errorf("%d are counted", w.counted("caller"))
	}

	// A long request is counted as long as its process renews it, and no longer once that died.
	for range 5 {
		c.pass(flightTTL / 3)
		a.renew(t.Context())
	}
	_, err = b.Admit(t.Context(), "acme", of)
	if e := refusal(t, err); e.Kind != Parallel {
		t.Errorf("requests that were renewed are forgotten: %+v", e)
	}
	c.pass(flightTTL)
	admit(b).Close()
	if w.counted("caller") != 0 {
		t.Errorf("%d requests of a process that died are counted", w.counted("caller"))
	}

	// The process was only slow, and counts them again.
	a.renew(t.Context())
	if w.counted("caller") != 2 {
		t.Errorf("%d are counted", w.counted("caller"))
	}
	first.Close()
	third.Close()
	if w.counted("caller")+w.counted("tenant") != 0 || len(a.remotes.held) != 0 {
		t.Errorf("requests that have ended are counted: %v", w.until)
	}
}

func TestTheCountOfTheProcessStandsInForTheRemote(t *testing.T) {
	t.Parallel()
	c := startClock()
	w := &tower{c: c, until: map[string]map[string]time.Time{}}
	l := New(w, c.now)
	of := limits(Limit{Scope: "a", Parallel: 1, Requests: 100, Tokens: 100_000})
	before, err := l.Admit(t.Context(), "acme", of)
	if err != nil {
		t.Fatal(err)
	}
	w.vanish(true)
	before.Close()
	calls := w.calls
	s, err := l.Admit(t.Context(), "acme", of)
	if err != nil {
		t.Fatalf("without the remote: %v", err)
	}
	if err := s.Tokens(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	s.Settle(t.Context(), 20)
	if n := w.calls - calls; n != 1 {
		t.Errorf("a remote that does not answer was asked %d times for one request", n)
	}
	_, err = l.Admit(t.Context(), "acme", of)
	if e := refusal(t, err); e.Kind != Parallel {
		t.Errorf("a second at a time: %+v", e)
	}
	s.Close()
	if w.counted("a") != 1 {
		t.Fatalf("%d are counted", w.counted("a"))
	}
	w.vanish(false)
	l.renew(t.Context()) // tells the remote what it has missed
	if w.counted("a") != 0 || len(l.remotes.left) != 0 {
		t.Errorf("%d are counted, %d are to be told", w.counted("a"), len(l.remotes.left))
	}
}

func TestWhatEndsWhileItIsCountedAgainIsNotCountedOn(t *testing.T) {
	t.Parallel()
	c := startClock()
	w := &tower{c: c, until: map[string]map[string]time.Time{}}
	l := New(w, c.now)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				l.renew(ctx)
			}
		})
		wg.Go(func() {
			for range 300 {
				s, err := l.Admit(t.Context(), "acme", limits(Limit{Scope: "a", Parallel: 4}))
				if err == nil {
					s.Close()
				}
			}
			stop()
		})
	}
	wg.Wait()
	l.renew(t.Context())
	if w.counted("a") != 0 || len(l.remotes.held)+len(l.flights) != 0 {
		t.Errorf("%d are counted, %d held", w.counted("a"), len(l.remotes.held))
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	New(nil, time.Now).Run(ctx)
}
