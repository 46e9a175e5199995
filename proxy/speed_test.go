package proxy

import (
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

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

func expects(t *testing.T, s *speeds, model string, tokens, want float64) {
	t.Helper()
	if got, ok := s.expect(model, tokens); !ok || math.Abs(got-want) > 1e-6 {
		t.Errorf("%v tokens of %s are expected in %v s (%v), want %v s", tokens, model, got, ok, want)
	}
}

func TestAnswersTeachHowLongAnswersTake(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := newSpeeds()
	s.now = c.now
	if _, ok := s.expect("a", 100); ok {
		t.Error("a model that never answered has a latency")
	}
	s.observe("a", taken{first: time.Second, total: 3 * time.Second, tokens: 101})
	expects(t, s, "a", 100, 3)
	expects(t, s, "a", 200, 5)
	s.observe("a", taken{total: 5 * time.Second, tokens: 200}) // no stream: what is known of the first token is taken off
	expects(t, s, "a", 100, 3)
	c.pass(speedHalfLife)
	s.observe("a", taken{first: 4 * time.Second, total: 4 * time.Second, tokens: 1})
	expects(t, s, "a", 0, (0.5*1+1*4)/1.5)
	s.observe("b", taken{total: 10 * time.Second, tokens: 100})
	expects(t, s, "b", 50, 5)
	s.observe("c", taken{total: 4 * time.Second}) // without usage
	expects(t, s, "c", assumedCompletion, 4)
	s.observe("odd", taken{first: 2 * time.Second, total: time.Second, tokens: 1})
	expects(t, s, "odd", 100, 2)
}

func TestWaitingInVainCountsOnlyWhenItWasLongerThanExpected(t *testing.T) {
	t.Parallel()
	s := newSpeeds()
	s.now = newClock().now
	s.observe("a", taken{total: 10 * time.Second, tokens: assumedCompletion})
	s.inVain("a", 2*time.Second)
	expects(t, s, "a", assumedCompletion, 10)
	s.inVain("a", 30*time.Second)
	expects(t, s, "a", assumedCompletion, 20)
	s.inVain("new", time.Minute)
	expects(t, s, "new", assumedCompletion, 60)
}

func TestExploringIsRare(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := newSpeeds()
	s.now = c.now
	if !s.explore("a") || s.explore("a") {
		t.Error("of the first requests to a new model, one explores")
	}
	c.pass(exploreEvery)
	if !s.explore("a") {
		t.Error("a model that still has not answered gets another try")
	}
	s.observe("a", taken{total: time.Second, tokens: 10})
	c.pass(10 * exploreEvery)
	n := 0
	for range 10 * exploreShare {
		if s.explore("a") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("in one moment, %d of %d requests explore", n, 10*exploreShare)
	}
	n = 0
	for range 10 * exploreShare {
		c.pass(exploreEvery)
		if s.explore("a") {
			n++
		}
	}
	if n != 10 {
		t.Errorf("of %d slow requests %d explore", 10*exploreShare, n)
	}
}

func TestSpeedsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newSpeeds()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := string(rune('a' + i%5))
				s.observe(name, taken{first: time.Second, total: 2 * time.Second, tokens: 11})
				s.expect(name, 100)
				s.explore(name)
				s.inVain(name, time.Second)
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if got, ok := s.expect(name, 10); !ok || math.Abs(got-2) > 1e-6 {
			t.Errorf("%s: %v s, %v", name, got, ok)
		}
	}
}

func TestObservingAllocatesNothing(t *testing.T) {
	s := newSpeeds()
	s.observe("a", taken{total: time.Second, tokens: 10})
	if n := testing.AllocsPerRun(100, func() {
		s.observe("a", taken{first: time.Second, total: 2 * time.Second, tokens: 10})
		s.expect("a", 100)
		s.explore("a")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

const latencyRoutes = `
routes:
  - {name: fast, when: true, use: {models: [one, two, three], by: latency}}
default: {models: [one]}
`

// ticking answers as a server whose answer takes so long: it moves the clock before the head, and for
// a stream between its two halves.
func ticking(c *clock, first, rest time.Duration) testkit.Answer {
	return func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		c.pass(first)
		last := u.Requests()
		if !strings.Contains(string(last[len(last)-1].Body), `"stream":true`) {
			c.pass(rest)
			testkit.JSON(http.StatusOK, testkit.Completion)(u, w, r)
			return
		}
		testkit.Stream(testkit.Event("a")+testkit.Event("b"), testkit.Done)(u, w, r)
	}
}

func latencyBench(t *testing.T) (b *bench, c *clock, models []ModelOptions) {
	t.Helper()
	c = newClock()
	one := testkit.NewUpstream(t, ticking(c, 300*time.Millisecond, time.Second))
	two := testkit.NewUpstream(t, ticking(c, 200*time.Millisecond, 0))
	three := testkit.NewUpstream(t, ticking(c, 2*time.Second, 0))
	models = []ModelOptions{
		modelOptions("one", "", ReasoningOptions{}, one), modelOptions("two", "", ReasoningOptions{}, two), modelOptions("three", "", ReasoningOptions{}, three),
	}
	b = start(t, models, func(s *setup) { s.routes = latencyRoutes })
	b.state.speeds.now = c.now
	return b, c, models
}

func servedBy(t *testing.T, b *bench, body string) string {
	t.Helper()
	got := b.chat(body)
	if got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	return got.header.Get("X-Signalbox-Model")
}

func TestByLatencyEveryModelIsTriedOnceAndThenTheFastest(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"whole answers": ask("hi"), "streams": askStream("hi")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, c, models := latencyBench(t)
			var order []string
			for range 6 {
				order = append(order, servedBy(t, b, body))
				waitFor(t, "the observation", func() bool { _, ok := b.state.speeds.expect(order[len(order)-1], 1); return ok })
			}
			if diff := cmp.Diff([]string{"one", "two", "three", "two", "two", "two"}, order); diff != "" {
				t.Fatalf("served by (-want +got):\n%s", diff)
			}
			b.proxy.Swap(b.newState(setup{options: DefaultOptions(), auth: DefaultAuthOptions(), models: models, routes: latencyRoutes, classifier: b.classifier}, 2))
			if got := servedBy(t, b, body); got != "two" {
				t.Errorf("after a reload, served by %s", got)
			}
			c.pass(2 * exploreEvery)
			seen := map[string]int{}
			for range 2*exploreShare + 10 {
				seen[servedBy(t, b, body)]++
			}
			if seen["one"] != 1 || seen["three"] != 1 {
				t.Errorf("long after, served by %v", seen)
			}
		})
	}
}

func TestAModelThatAnswersTooLateIsSlow(t *testing.T) {
	t.Parallel()
	c := newClock()
	slow := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	quick := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	slow.Next(func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		c.pass(time.Minute)
		testkit.Silent()(u, w, r)
	})
	late := modelOptions("one", "", ReasoningOptions{}, slow)
	late.AnswerTimeout = Duration(50 * time.Millisecond)
	b := start(t, []ModelOptions{late, modelOptions("two", "", ReasoningOptions{}, quick)}, func(s *setup) {
		s.routes = "routes: [{name: fast, when: true, use: {models: [one, two], by: latency}}]\ndefault: {models: [one]}\n"
	})
	b.state.speeds.now = c.now
	if got := servedBy(t, b, ask("hi")); got != "two" {
		t.Fatalf("served by %s", got)
	}
	expects(t, b.state.speeds, "one", assumedCompletion, 60)
	if got := servedBy(t, b, ask("hi")); got != "two" {
		t.Errorf("then served by %s", got)
	}
}
