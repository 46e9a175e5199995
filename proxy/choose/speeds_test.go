package choose

import (
	"math"
	"sync"
	"testing"
	"time"
)

// clock is a time that stands still until a test moves it. It is safe for concurrent use.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func expects(t *testing.T, s *Speeds, model string, tokens, want float64) {
	t.Helper()
	if got, ok := s.Expect(model, tokens); !ok || math.Abs(got-want) > 1e-6 {
		t.Errorf("%v tokens of %s are expected in %v s (%v), want %v s", tokens, model, got, ok, want)
	}
}

func TestAnswersTeachHowLongAnswersTake(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := NewSpeeds(c.now)
	if _, ok := s.Expect("a", 100); ok {
		t.Error("a model that never answered has a latency")
	}
	s.Observe("a", Taken{First: time.Second, Total: 3 * time.Second, Tokens: 101})
	expects(t, s, "a", 100, 3)
	expects(t, s, "a", 200, 5)
	s.Observe("a", Taken{Total: 5 * time.Second, Tokens: 200}) // no stream: what is known of the first token is taken off
	expects(t, s, "a", 100, 3)
	c.pass(speedHalfLife)
	s.Observe("a", Taken{First: 4 * time.Second, Total: 4 * time.Second, Tokens: 1})
	expects(t, s, "a", 0, (0.5*1+1*4)/1.5)
	s.Observe("b", Taken{Total: 10 * time.Second, Tokens: 100})
	expects(t, s, "b", 50, 5)
	s.Observe("c", Taken{Total: 4 * time.Second}) // without usage
	expects(t, s, "c", assumedCompletion, 4)
	s.Observe("odd", Taken{First: 2 * time.Second, Total: time.Second, Tokens: 1})
	expects(t, s, "odd", 100, 2)
}

func TestWaitingInVainCountsOnlyWhenItWasLongerThanExpected(t *testing.T) {
	t.Parallel()
	s := NewSpeeds(newClock().now)
	s.Observe("a", Taken{Total: 10 * time.Second, Tokens: assumedCompletion})
	s.InVain("a", 2*time.Second)
	expects(t, s, "a", assumedCompletion, 10)
	s.InVain("a", 30*time.Second)
	expects(t, s, "a", assumedCompletion, 20)
	s.InVain("new", time.Minute)
	expects(t, s, "new", assumedCompletion, 60)
}

func TestExploringIsRare(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := NewSpeeds(c.now)
	if !s.Explore("a") || s.Explore("a") {
		t.Error("of the first requests to a new model, one explores")
	}
	c.pass(exploreEvery)
	if !s.Explore("a") {
		t.Error("a model that still has not answered gets another try")
	}
	s.Observe("a", Taken{Total: time.Second, Tokens: 10})
	c.pass(10 * exploreEvery)
	n := 0
	for range 10 * exploreShare {
		if s.Explore("a") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("in one moment, %d of %d requests explore", n, 10*exploreShare)
	}
	n = 0
	for range 10 * exploreShare {
		c.pass(exploreEvery)
		if s.Explore("a") {
			n++
		}
	}
	if n != 10 {
		t.Errorf("of %d slow requests %d explore", 10*exploreShare, n)
	}
}

func TestSpeedsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := NewSpeeds(time.Now)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := string(rune('a' + i%5))
				s.Observe(name, Taken{First: time.Second, Total: 2 * time.Second, Tokens: 11})
				s.Expect(name, 100)
				s.Explore(name)
				s.InVain(name, time.Second)
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if got, ok := s.Expect(name, 10); !ok || math.Abs(got-2) > 1e-6 {
			t.Errorf("%s: %v s, %v", name, got, ok)
		}
	}
}

func TestObservingAllocatesNothing(t *testing.T) {
	s := NewSpeeds(time.Now)
	s.Observe("a", Taken{Total: time.Second, Tokens: 10})
	if n := testing.AllocsPerRun(100, func() {
		s.Observe("a", Taken{First: time.Second, Total: 2 * time.Second, Tokens: 10})
		s.Expect("a", 100)
		s.Explore("a")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
