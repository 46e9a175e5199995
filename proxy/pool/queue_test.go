package pool

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/option"
)

// capped returns a group of one endpoint with room for n requests.
func capped(tb testing.TB, n int, line QueueOptions) (*Group, *Endpoint) {
	tb.Helper()
	g, err := New("m", []EndpointOptions{{Name: "a", URL: "http://a/v1", MaxInflight: n}}, HealthOptions{}, line, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return g, g.Endpoints[0]
}

// taking returns a function for Group.Wait that takes a slot at e and stores the lease in *into,
// unless into is nil.
func taking(e *Endpoint, into **Lease) func() bool {
	return func() bool {
		lease, ok := e.Enter()
		if ok && into != nil {
			*into = lease
		}
		return ok
	}
}

func TestASlotIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	_, e := capped(t, 2, QueueOptions{})
	one, _ := e.Enter()
	two, _ := e.Enter()
	var none *Lease
	none.Close()
	for range 3 {
		one.Close()
	}
	if e.Inflight() != 1 || e.Full() {
		t.Errorf("%d in flight behind one of two leases closed three times, want 1", e.Inflight())
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(two.Close)
	}
	wg.Wait()
	if e.Inflight() != 0 {
		t.Errorf("%d in flight at the end, want 0", e.Inflight())
	}
}

func TestWaitingIsInTurnAndBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, e := capped(t, 2, QueueOptions{Max: 3, Wait: option.Duration(10 * time.Second)})
		one, first := e.Enter()
		two, second := e.Enter()
		if none, third := e.Enter(); !first || !second || third || none != nil || !e.Full() {
			t.Fatal("the cap does not hold")
		}
		if got, full := g.Pick(nil, rand.IntN, time.Now()); got != nil || !full {
			t.Errorf("picked %v, full %v", got, full)
		}
		order := make(chan int, 3)
		wait := func(ctx context.Context, i int) error {
			err := g.Wait(ctx, nil, taking(e, nil))
			if err == nil {
				order <- i
			}
			return err
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- wait(ctx, 0) }()
		synctest.Wait()
		for i := 1; i <= 2; i++ {
			go func() { _ = wait(t.Context(), i) }()
			synctest.Wait()
		}
		if err := wait(t.Context(), 9); !errors.Is(err, ErrQueueFull) || g.Queued() != 3 {
			t.Errorf("a fourth got %v, %d wait", err, g.Queued())
		}
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("one that left got %v", err)
		}
		one.Close()
		one.Close()
		if got := <-order; got != 1 {
			t.Errorf("%d came first", got)
		}
		begun := time.Now()
		synctest.Wait()
		if e.Inflight() != 2 || g.Queued() != 1 {
			t.Errorf("%d in flight, %d wait", e.Inflight(), g.Queued())
		}
		if err := wait(t.Context(), 3); !errors.Is(err, ErrQueueLate) || time.Since(begun) != 10*time.Second {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		synctest.Wait()
		if g.Queued() != 0 { // the other one timed out as well
			t.Errorf("%d wait", g.Queued())
		}
		two.Close()
		if e.Inflight() != 1 {
			t.Errorf("%d in flight at the end", e.Inflight())
		}
	})
}

// Under contention the cap holds and no request is forgotten.
func TestTheCapHoldsUnderContention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, e := capped(t, 4, QueueOptions{Max: 1000, Wait: option.Duration(time.Hour)})
		var now, most, served atomic.Int64
		for i := range 400 {
			go func() {
				ctx := t.Context()
				if i%5 == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*time.Millisecond)
					defer cancel()
				}
				var lease *Lease
				if err := g.Wait(ctx, nil, taking(e, &lease)); err != nil {
					return
				}
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				now.Add(-1)
				served.Add(1)
				lease.Close()
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most.Load() > 4 || served.Load() < 320 || e.Inflight() != 0 || g.Queued() != 0 {
			t.Errorf("%d at once, %d served, %d in flight, %d wait", most.Load(), served.Load(), e.Inflight(), g.Queued())
		}
	})
}

// An endpoint that comes up, or that a reload adds, takes as many waiting requests as it has slots,
// not just one.
func TestNewPlacesGoToAllWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endpoints := []EndpointOptions{{Name: "a", URL: "http://a/v1", MaxInflight: 1}, {Name: "b", URL: "http://b/v1", MaxInflight: 3}}
		group := func(n int) *Group {
			g, err := New("m", endpoints[:n], HealthOptions{}, QueueOptions{Wait: option.Duration(time.Hour)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		enter := func(g *Group) func() bool {
			return func() bool {
				e, _ := g.Pick(nil, rand.IntN, time.Now())
				return e != nil && taking(e, nil)()
			}
		}
		g := group(2)
		a, b := g.Endpoints[0], g.Endpoints[1]
		b.checked(errors.New("down"))
		b.checked(errors.New("down"))
		_, _ = a.Enter()
		for range 5 {
			go func() { _ = g.Wait(t.Context(), nil, enter(g)) }()
		}
		synctest.Wait()
		if g.Queued() != 5 {
			t.Fatalf("%d wait", g.Queued())
		}
		b.checked(nil)
		synctest.Wait()
		if b.Inflight() != 3 || g.Queued() != 2 {
			t.Errorf("b came up: %d of its 3 places are taken, %d wait", b.Inflight(), g.Queued())
		}

		small := group(1)
		only, _ := small.Endpoints[0].Enter()
		go func() { _ = small.Wait(t.Context(), nil, enter(small)) }()
		synctest.Wait()
		large := group(2)
		large.Adopt(small)
		for range 3 {
			go func() { _ = large.Wait(t.Context(), nil, enter(large)) }()
		}
		synctest.Wait()
		only.Close() // the one that waited before gets it
		synctest.Wait()
		if n := large.Endpoints[1].Inflight(); n != 3 || large.Queued() != 0 {
			t.Errorf("a larger group: %d of 3 new places are taken, %d wait", n, large.Queued())
		}
	})
}

// A sleeping endpoint gets nothing while another one is awake, and takes waiting requests when it
// wakes up.
func TestSleepIsNoPlaceForRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endpoints := []EndpointOptions{{Name: "a", URL: "http://a/v1", MaxInflight: 1}, {Name: "b", URL: "http://b/v1"}}
		g, err := New("m", endpoints, HealthOptions{}, QueueOptions{Wait: option.Duration(time.Hour)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := g.Endpoints[0], g.Endpoints[1]
		pick := func() *Endpoint {
			e, _ := g.Pick(nil, rand.IntN, time.Now())
			return e
		}
		nap := func() bool { return b.Sleep(time.Now(), time.Now().Add(10*time.Second)) }
		if !nap() || nap() || b.State(time.Now()) != "asleep" || b.Up(time.Now()) || !g.Asleep(time.Now()) {
			t.Errorf("the endpoint that sleeps is %s", b.State(time.Now()))
		}
		_, _ = a.Enter()
		if e := pick(); e != nil {
			t.Errorf("beside a full endpoint %s was picked", e.Name)
		}
		got := make(chan error, 1)
		go func() {
			got <- g.Wait(t.Context(), nil, func() bool { e := pick(); return e == b && taking(e, nil)() })
		}()
		synctest.Wait()
		if !b.Wake(time.Now()) || b.Wake(time.Now()) {
			t.Error("waking up once is no change, or twice is one")
		}
		if err := <-got; err != nil || b.Inflight() != 1 {
			t.Errorf("who waited got %v, %d in flight", err, b.Inflight())
		}
		nap()
		time.Sleep(10 * time.Second)
		if pick() != b || g.Asleep(time.Now()) {
			t.Error("a word of sleep that was not repeated holds for ever")
		}
	})
}

// A request that waits for a full endpoint does not block requests for other endpoints.
func TestWhoWaitsForOneEndpointIsInNobodysWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := New("m", []EndpointOptions{
			{Name: "a", URL: "http://a/v1", MaxInflight: 1}, {Name: "b", URL: "http://b/v1", MaxInflight: 1},
		}, HealthOptions{}, QueueOptions{Max: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := g.Endpoints[0], g.Endpoints[1]
		first, _ := a.Enter()
		second, _ := b.Enter()
		own, other := make(chan error, 1), make(chan error, 1)
		go func() { own <- g.Wait(t.Context(), a, taking(a, nil)) }()
		synctest.Wait()
		go func() { other <- g.Wait(t.Context(), nil, func() bool { return taking(a, nil)() || taking(b, nil)() }) }()
		synctest.Wait()
		if g.Queued() != 2 || g.Ahead(nil) != 1 || g.Ahead(a) != 1 || g.Ahead(b) != 0 {
			t.Errorf("%d wait, %d for any, %d for a, %d for b", g.Queued(), g.Ahead(nil), g.Ahead(a), g.Ahead(b))
		}
		if err := g.Wait(t.Context(), b, taking(b, nil)); !errors.Is(err, ErrQueueFull) {
			t.Errorf("a third that waits got %v", err)
		}
		begun := time.Now()
		second.Close()
		if err := <-other; err != nil || time.Since(begun) > 0 {
			t.Errorf("who takes any got %v after %s, with a place at b", err, time.Since(begun))
		}
		first.Close()
		if err := <-own; err != nil {
			t.Errorf("who waits for a got %v", err)
		}
	})
}

func TestASuccessorSeesTheRequestsOfBoth(t *testing.T) {
	t.Parallel()
	old, e := capped(t, 1, QueueOptions{})
	first, _ := e.Enter()
	next, twin := capped(t, 1, QueueOptions{})
	next.Adopt(old)
	if taking(twin, nil)() || !twin.Full() || len(next.Left(old)) != 0 {
		t.Error("the request of the old group is not seen")
	}
	got := make(chan error, 1)
	go func() { got <- next.Wait(t.Context(), nil, taking(twin, nil)) }()
	for next.Queued() == 0 {
		time.Sleep(time.Millisecond)
	}
	first.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
	other, err := New("m", []EndpointOptions{{Name: "b", URL: "http://b/v1"}}, HealthOptions{}, QueueOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Adopt(next)
	if left := other.Left(next); len(left) != 1 || left[0].Name != "a" {
		t.Errorf("left are %v", left)
	}
}

// Requests that have waited since before a reload use the capacity that it adds, and do not block
// later requests from endpoints that only the new configuration has.
func TestAReloadServesThoseThatWait(t *testing.T) {
	t.Parallel()
	line := QueueOptions{Max: 9, Wait: option.Duration(30 * time.Second)}
	t.Run("a higher cap is for those that wait already", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			old, e := capped(t, 1, line)
			held, _ := e.Enter()
			got := make(chan error, 4)
			for range 3 {
				go func() { got <- old.Wait(t.Context(), nil, taking(e, nil)) }()
			}
			synctest.Wait()
			next, wide := capped(t, 3, line)
			next.Adopt(old)
			synctest.Wait()
			if wide.Inflight() != 3 || next.Queued() != 1 {
				t.Errorf("a cap of 3: %d in flight, %d wait", wide.Inflight(), next.Queued())
			}
			held.Close()
			synctest.Wait()
			if wide.Inflight() != 3 || next.Queued() != 0 {
				t.Errorf("behind one that ended: %d in flight, %d wait", wide.Inflight(), next.Queued())
			}
		})
	})
	t.Run("a lower cap holds for those that wait already", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			old, e := capped(t, 2, line)
			one, _ := e.Enter()
			two, _ := e.Enter()
			go func() { _ = old.Wait(t.Context(), nil, taking(e, nil)) }()
			synctest.Wait()
			next, narrow := capped(t, 1, line)
			next.Adopt(old)
			one.Close()
			synctest.Wait()
			if narrow.Inflight() != 1 || next.Queued() != 1 {
				t.Errorf("a cap of 1: %d in flight, %d wait", narrow.Inflight(), next.Queued())
			}
			two.Close()
			synctest.Wait()
			if narrow.Inflight() != 1 || next.Queued() != 0 {
				t.Errorf("behind both: %d in flight, %d wait", narrow.Inflight(), next.Queued())
			}
		})
	})
	t.Run("a new endpoint is for those that know it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			old, e := capped(t, 1, line)
			_, _ = e.Enter() // for longer than anybody waits
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() { gone <- old.Wait(ctx, nil, taking(e, nil)) }()
			synctest.Wait()
			next, err := New("m", []EndpointOptions{
				{Name: "a", URL: "http://a/v1", MaxInflight: 1}, {Name: "b", URL: "http://b/v1", MaxInflight: 1},
			}, HealthOptions{}, line, nil)
			if err != nil {
				t.Fatal(err)
			}
			next.Adopt(old)
			b := next.Endpoints[1]
			var lease *Lease
			begun := time.Now()
			if err := next.Wait(t.Context(), nil, taking(b, &lease)); err != nil || time.Since(begun) > 0 {
				t.Fatalf("beside a free endpoint got %v after %s", err, time.Since(begun))
			}
			got := make(chan error, 1)
			go func() { got <- next.Wait(t.Context(), nil, taking(b, nil)) }()
			synctest.Wait()
			time.Sleep(time.Second)
			lease.Close()
			if err := <-got; err != nil || time.Since(begun) != time.Second {
				t.Errorf("behind one that ended got %v after %s", err, time.Since(begun))
			}
			leave()
			if err := <-gone; !errors.Is(err, context.Canceled) || next.Queued() != 0 {
				t.Errorf("the oldest got %v, %d wait", err, next.Queued())
			}
		})
	})
	t.Run("a new endpoint is free while the line is full of those that do not know it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			short := QueueOptions{Max: 2, Wait: option.Duration(30 * time.Second)}
			old, e := capped(t, 1, short)
			_, _ = e.Enter() // for longer than anybody waits
			ctx, leave := context.WithCancel(t.Context())
			for range 2 {
				go func() { _ = old.Wait(ctx, nil, taking(e, nil)) }()
			}
			synctest.Wait()
			next, err := New("m", []EndpointOptions{
				{Name: "a", URL: "http://a/v1", MaxInflight: 1}, {Name: "b", URL: "http://b/v1", MaxInflight: 1},
			}, HealthOptions{}, short, nil)
			if err != nil {
				t.Fatal(err)
			}
			next.Adopt(old)
			if err := next.Wait(t.Context(), nil, taking(next.Endpoints[1], nil)); err != nil {
				t.Errorf("beside a free endpoint got %v", err)
			}
			if err := next.Wait(t.Context(), nil, taking(next.Endpoints[1], nil)); !errors.Is(err, ErrQueueFull) {
				t.Errorf("when that is full, too, got %v", err)
			}
			leave()
			synctest.Wait()
		})
	})
}

// A request that finds nothing free when it is called keeps its place.
func TestACallInVainCostsNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, e := capped(t, 1, QueueOptions{Max: 9, Wait: option.Duration(time.Hour)})
		held, _ := e.Enter()
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				var lease *Lease
				if g.Wait(t.Context(), nil, taking(e, &lease)) == nil {
					order <- i
					lease.Close()
				}
			}()
			synctest.Wait()
			g.queue.wake()
			synctest.Wait()
		}
		held.Close()
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("request %d came in place %d", got, want)
			}
		}
	})
}

func TestWeightsShareIdleAndBusyTime(t *testing.T) {
	t.Parallel()
	g, err := New("m", []EndpointOptions{{Name: "a", URL: "http://a/v1", Weight: 3}, {Name: "b", URL: "http://b/v1"}}, HealthOptions{}, QueueOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	intn := rand.New(rand.NewPCG(1, 2)).IntN
	share := func(keep bool) float64 {
		a := 0
		for range 1000 {
			e, _ := g.Pick(nil, intn, time.Now())
			if e.Name == "a" {
				a++
			}
			if keep {
				_, _ = e.Enter()
			}
		}
		return float64(a) / 1000
	}
	for _, busy := range []bool{false, true} {
		if got := share(busy); got < 0.70 || got > 0.80 {
			t.Errorf("busy %v: a got %v of the requests, its weight is three quarters", busy, got)
		}
	}
}

func TestAServerThatAsksForRestIsAskedLast(t *testing.T) {
	t.Parallel()
	g := group(t, "a", "b")
	now := time.Now()
	a, b := g.Endpoints[0], g.Endpoints[1]
	a.Rest(now.Add(10 * time.Second))
	for range 50 {
		if e, _ := g.Pick(nil, rand.IntN, now); e != b {
			t.Fatal("a was picked")
		}
	}
	if e, _ := g.Pick([]*Endpoint{b}, rand.IntN, now); e != a || a.State(now) != "resting" {
		t.Error("a server that rests is better than none")
	}
	if f := a.Fitness(now.Add(11 * time.Second)); f != Fit {
		t.Errorf("afterwards it is %s", f)
	}
	g.Failed(b, now)
	if b.State(now) != "suspect" || b.Fitness(now) != Fit {
		t.Errorf("after a failure b is %s", b.State(now))
	}
}

func TestAServerWithoutAHealthPathIsAskedForItsModels(t *testing.T) {
	t.Parallel()
	var health, models atomic.Int64
	health.Store(http.StatusNotFound)
	models.Store(http.StatusOK)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health":
			w.WriteHeader(int(health.Load()))
		case "/v1/models":
			w.WriteHeader(int(models.Load()))
		}
	}))
	defer s.Close()
	ask := func(path string) error {
		g, err := New("m", []EndpointOptions{{Name: "a", URL: s.URL + "/v1"}}, HealthOptions{Path: path}, QueueOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		return Watcher{Transport: transport, Log: slog.New(slog.DiscardHandler)}.ask(t.Context(), g.Endpoints[0], time.Second)
	}
	if err := ask(""); err != nil {
		t.Error(err)
	}
	models.Store(http.StatusServiceUnavailable)
	if err := ask(""); err == nil {
		t.Error("no fault was found")
	}
	if err := ask("/health"); err != nil { // said by the operator: 404 is an answer
		t.Error(err)
	}
	health.Store(http.StatusInternalServerError)
	models.Store(http.StatusOK)
	if err := ask(""); err == nil {
		t.Error("the models were asked although the health path is there")
	}
}
