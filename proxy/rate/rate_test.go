package rate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that a test sets.
type clock struct{ t time.Time }

func (c *clock) now() time.Time         { return c.t }
func (c *clock) pass(d time.Duration)   { c.t = c.t.Add(d) }
func startClock() *clock                { return &clock{time.Unix(1_000_000, 0)} }
func limits(l ...Limit) []Limit         { return l }
func admitted(_ *Lease, err error) bool { return err == nil }
func refusal(t *testing.T, err error) *ExceededError {
	t.Helper()
	var e *ExceededError
	if !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	return e
}

func TestRequestsAMinute(t *testing.T) {
	t.Parallel()
	c := startClock()
	l := New(nil, c.now)
	of := limits(Limit{Scope: "a", Requests: 6})
	for i := range 6 {
		s, err := l.Admit(t.Context(), "", of)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if got, want := s.Left(Requests), (Room{Limit: 6, Left: 5 - i, Reset: time.Duration(i+1) * 10 * time.Second}); got != want {
			t.Errorf("request %d: %+v, want %+v", i, got, want)
		}
		s.Close()
	}
	e := refusal(t, second(l.Admit(t.Context(), "", of)))
	if e.Kind != Requests || e.Limit != 6 || e.Used != 6 || e.Wait != 10*time.Second || e.Reset != time.Minute {
		t.Errorf("refused with %+v", e)
	}
	if !admitted(l.Admit(t.Context(), "", limits(Limit{Scope: "b", Requests: 6}))) {
		t.Error("another scope is refused")
	}
	c.pass(9 * time.Second)
	if e := refusal(t, second(l.Admit(t.Context(), "", of))); e.Wait != time.Second {
		t.Errorf("after 9s: %+v", e)
	}
	c.pass(time.Second)
	if !admitted(l.Admit(t.Context(), "", of)) {
		t.Error("refused when the time was over")
	}
	c.pass(-time.Hour)
	if admitted(l.Admit(t.Context(), "", of)) {
		t.Error("a clock that went back gave an allowance")
	}
	c.pass(2 * time.Hour)
	if s, err := l.Admit(t.Context(), "", of); err != nil || s.Left(Requests).Left != 5 {
		t.Errorf("after a long time: %+v, %v", s, err)
	}
}

func second(_ *Lease, err error) error { return err }

// A limit on a minute lets somebody wait for a minute, also behind one that was changed.
func TestAChangedLimitCountsTheShareThatWasUsed(t *testing.T) {
	t.Parallel()
	c := startClock()
	l := New(nil, c.now)
	of := func(n int) []Limit { return limits(Limit{Scope: "a", Requests: n}) }
	for range 500 {
		if !admitted(l.Admit(t.Context(), "", of(1000))) {
			t.Fatal("refused")
		}
	}
	for i := range 5 {
		if s, err := l.Admit(t.Context(), "", of(10)); err != nil || s.Left(Requests).Left != 4-i {
			t.Fatalf("request %d of the second half of a smaller minute: %+v, %v", i, s, err)
		}
	}
	e := refusal(t, second(l.Admit(t.Context(), "", of(10))))
	if e.Used != 10 || e.Wait != 6*time.Second || e.Reset != time.Minute {
		t.Errorf("refused with %+v", e)
	}
	c.pass(3 * time.Second)
	if s, err := l.Admit(t.Context(), "", of(100)); err != nil || s.Left(Requests).Left != 4 {
		t.Errorf("of a larger minute: %+v, %v", s, err)
	}
}

func TestTokensAreEstimatedAndSettled(t *testing.T) {
	t.Parallel()
	c := startClock()
	l := New(nil, c.now)
	of := limits(Limit{Scope: "a", Tokens: 1000})
	spend := func(estimate, used int) error {
		s, err := l.Admit(t.Context(), "", of)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Tokens(t.Context(), estimate); err != nil {
			return err
		}
		s.Settle(t.Context(), used)
		return nil
	}
	if err := spend(600, 100); err != nil {
		t.Fatal(err)
	}
	if err := spend(900, 900); err != nil {
		t.Errorf("what was not used is not given back: %v", err)
	}
	if e := refusal(t, spend(1, 1)); e.Kind != Tokens || e.Used != 1000 || e.Wait != 60*time.Millisecond {
		t.Errorf("refused with %+v", e)
	}
	c.pass(time.Minute)
	if err := spend(10, 5000); err != nil {
		t.Fatal(err)
	}
	if e := refusal(t, spend(0+1, 1)); e.Used != 5000 || e.Wait < 4*time.Minute {
		t.Errorf("more was used than estimated, and it does not count: %+v", e)
	}
	if e := refusal(t, spend(1001, 0)); e.Wait != 0 || e.Asked != 1001 {
		t.Errorf("a request that never fits: %+v", e)
	}
	c.pass(5 * time.Minute)
	if err := spend(1000, -5); err != nil {
		t.Fatal(err)
	}
	if err := spend(1000, 1000); err != nil {
		t.Errorf("all was given back: %v", err)
	}
}

func TestRequestsAtATime(t *testing.T) {
	t.Parallel()
	l := New(nil, startClock().now)
	of := limits(Limit{Scope: "caller", Parallel: 2}, Limit{Scope: "tenant", Parallel: 3})
	other := limits(Limit{Scope: "other", Parallel: 2}, Limit{Scope: "tenant", Parallel: 3})
	a, _ := l.Admit(t.Context(), "", of)
	b, _ := l.Admit(t.Context(), "", of)
	if e := refusal(t, second(l.Admit(t.Context(), "", of))); e.Kind != Parallel || e.Limit != 2 {
		t.Errorf("refused with %+v", e)
	}
	d, err := l.Admit(t.Context(), "", other)
	if err != nil {
		t.Fatal(err)
	}
	if e := refusal(t, second(l.Admit(t.Context(), "", other))); e.Limit != 3 {
		t.Errorf("the tenant's bound: %+v", e)
	}
	a.Close()
	a.Close()
	if !admitted(l.Admit(t.Context(), "", of)) {
		t.Error("a place that was given back is not free")
	}
	if admitted(l.Admit(t.Context(), "", other)) {
		t.Error("closing twice gave two places back")
	}
	b.Close()
	d.Close()
}

// A request refused by one limit is not charged to the others.
func TestLimitsHoldTogether(t *testing.T) {
	t.Parallel()
	l := New(nil, startClock().now)
	tight, wide := Limit{Scope: "tight", Requests: 1, Parallel: 5}, Limit{Scope: "wide", Requests: 3, Parallel: 5}
	for range 5 {
		s, _ := l.Admit(t.Context(), "", limits(wide, tight))
		s.Close()
	}
	s, err := l.Admit(t.Context(), "", limits(wide))
	if err != nil || s.Left(Requests).Left != 1 {
		t.Errorf("left %+v, %v", s.Left(Requests), err)
	}
	if n := l.flights["wide"]; n != 1 {
		t.Errorf("%d requests under way", n)
	}
	s.Close()
}

// S29: over any period t at most the allowance for t plus that of one minute is admitted, in any
// order of requests.
func TestNeverMoreThanTheAllowance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := startClock()
		l := New(nil, c.now)
		room := rapid.IntRange(1, 1000).Draw(t, "room")
		of := limits(Limit{Scope: "a", Tokens: room})
		begun, let := c.t, 0
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			c.pass(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "pause")) * time.Millisecond)
			n := rapid.IntRange(0, room).Draw(t, "tokens")
			s, err := l.Admit(context.Background(), "", of)
			if err != nil {
				t.Fatal(err)
			}
			if s.Tokens(context.Background(), n) == nil {
				let += n
			}
			s.Close()
			if most := float64(room) * (1 + c.t.Sub(begun).Minutes()); float64(let) > most+1e-6 {
				t.Fatalf("%d let in, at most %.1f are allowed", let, most)
			}
		}
	})
}

func TestManyAtOnceGetNoMoreThanOne(t *testing.T) {
	t.Parallel()
	l := New(nil, startClock().now)
	var in atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			s, err := l.Admit(t.Context(), "", limits(Limit{Scope: "a", Requests: 50, Parallel: 200}))
			if err == nil {
				in.Add(1)
				s.Close()
			}
		})
	}
	wg.Wait()
	if in.Load() != 50 || len(l.flights) != 0 {
		t.Errorf("%d let in, %v under way", in.Load(), l.flights)
	}
}

func TestCallersThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	c := startClock()
	l := New(nil, c.now)
	for i := range 1000 {
		s, _ := l.Admit(t.Context(), "", limits(Limit{Scope: string(rune('a' + i)), Requests: 10}))
		s.Close()
	}
	c.pass(2 * time.Minute)
	s, _ := l.Admit(t.Context(), "", limits(Limit{Scope: "a", Requests: 10}))
	s.Close()
	if len(l.buckets) > 1 {
		t.Errorf("%d buckets are kept", len(l.buckets))
	}
}

type brokenRemote struct{ calls int }

func (r *brokenRemote) Charge(context.Context, string, []Charge) ([]float64, bool, error) {
	r.calls++
	return nil, false, errors.New("gone")
}

func (r *brokenRemote) Enter(context.Context, string, []Flight, time.Duration, bool) ([]int, bool, error) {
	r.calls++
	return nil, false, errors.New("gone")
}

func (r *brokenRemote) Leave(context.Context, string, []Flight) error {
	r.calls++
	return errors.New("gone")
}

func TestBucketsOfTheProcessStandIn(t *testing.T) {
	t.Parallel()
	r := &brokenRemote{}
	l := New(r, startClock().now)
	of := limits(Limit{Scope: "a", Requests: 2})
	for range 2 {
		if !admitted(l.Admit(t.Context(), "", of)) {
			t.Fatal("refused")
		}
	}
	if admitted(l.Admit(t.Context(), "", of)) || r.calls != 3 {
		t.Errorf("a third request was let in after %d calls", r.calls)
	}
}

func TestALookCountsNothing(t *testing.T) {
	t.Parallel()
	c := startClock()
	l, bounds := New(nil, c.now), limits(Limit{Scope: "a", Requests: 4})
	s, err := l.Admit(t.Context(), "acme", bounds)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 5 {
		left, shared := l.Look(t.Context(), "acme", bounds, Requests)
		if left != (Room{Limit: 4, Left: 3, Reset: 15 * time.Second}) || shared {
			t.Errorf("%+v, shared %v", left, shared)
		}
	}
	if left, _ := l.Look(t.Context(), "acme", bounds, Tokens); left.Limit != 0 {
		t.Errorf("of a kind without a limit: %+v", left)
	}
}

// rounding refuses one more token for a bucket with a level of 99.0000004 of 100, as reported by
// Redis.
type rounding struct{ brokenRemote }

func (*rounding) Charge(context.Context, string, []Charge) ([]float64, bool, error) {
	return []float64{99}, false, nil
}

func TestWhatARemoteRefusesByARoundingIsRefused(t *testing.T) {
	t.Parallel()
	s, err := New(&rounding{}, startClock().now).Admit(t.Context(), "", limits(Limit{Scope: "a", Tokens: 100}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if e := refusal(t, s.Tokens(t.Context(), 1)); e.Kind != Tokens || e.Wait != time.Millisecond {
		t.Errorf("refused with %+v", e)
	}
}
