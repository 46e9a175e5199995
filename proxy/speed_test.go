package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/settings"
)

const latencyRoutes = `
routes:
  - {name: fast, when: true, use: {models: [one, two, three], by: latency}}
default: {models: [one]}
`

// ticking responds like a server with the given times: it moves the clock before the head and, for
// a stream, between its two halves.
func ticking(c *testkit.Clock, first, rest time.Duration) testkit.Answer {
	return func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		c.Pass(first)
		last := u.Requests()
		if !strings.Contains(string(last[len(last)-1].Body), `"stream":true`) {
			c.Pass(rest)
			testkit.JSON(http.StatusOK, testkit.Completion)(u, w, r)
			return
		}
		testkit.Stream(testkit.Event("a")+testkit.Event("b"), testkit.Done)(u, w, r)
	}
}

func latencyBench(t *testing.T) (b *bench, c *testkit.Clock, models []backend.ModelOptions) {
	t.Helper()
	c = testkit.NewClock()
	one := testkit.NewUpstream(t, ticking(c, 300*time.Millisecond, time.Second))
	two := testkit.NewUpstream(t, ticking(c, 200*time.Millisecond, 0))
	three := testkit.NewUpstream(t, ticking(c, 2*time.Second, 0))
	models = []backend.ModelOptions{
		modelOptions("one", "", reasoning.Options{}, one), modelOptions("two", "", reasoning.Options{}, two), modelOptions("three", "", reasoning.Options{}, three),
	}
	b = start(t, models, func(s *setup) { s.routes = latencyRoutes })
	b.state.Chooser.Speeds = choose.NewSpeeds(c.Now)
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
				waitFor(t, "the observation", func() bool { _, ok := b.state.Chooser.Speeds.Expect(order[len(order)-1], 1); return ok })
			}
			if diff := cmp.Diff([]string{"one", "two", "three", "two", "two", "two"}, order); diff != "" {
				t.Fatalf("served by (-want +got):\n%s", diff)
			}
			b.proxy.Swap(b.newState(setup{options: settings.DefaultServer(), auth: auth.DefaultOptions(), models: models, routes: latencyRoutes, classifier: b.classifier}, 2))
			if got := servedBy(t, b, body); got != "two" {
				t.Errorf("after a reload, served by %s", got)
			}
			c.Pass(time.Minute)
			seen := map[string]int{}
			for range 110 {
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
	c := testkit.NewClock()
	slow := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	quick := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, testkit.Completion))
	slow.Next(func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		c.Pass(time.Minute)
		testkit.Silent()(u, w, r)
	})
	late := modelOptions("one", "", reasoning.Options{}, slow)
	late.AnswerTimeout = option.Duration(500 * time.Millisecond)
	b := start(t, []backend.ModelOptions{late, modelOptions("two", "", reasoning.Options{}, quick)}, func(s *setup) {
		s.routes = "routes: [{name: fast, when: true, use: {models: [one, two], by: latency}}]\ndefault: {models: [one]}\n"
	})
	b.state.Chooser.Speeds = choose.NewSpeeds(c.Now)
	if got := servedBy(t, b, ask("hi")); got != "two" {
		t.Fatalf("served by %s", got)
	}
	if s, ok := b.state.Chooser.Speeds.Expect("one", 256); ok {
		t.Errorf("without an answer it is expected to take %v s", s)
	}
	if got := servedBy(t, b, ask("hi")); got != "two" {
		t.Errorf("then served by %s", got)
	}
	b.state.Chooser.Speeds.Observe("one", choose.Taken{Total: time.Millisecond, Tokens: 256})
	if s, ok := b.state.Chooser.Speeds.Expect("one", 256); !ok || s < 30 {
		t.Errorf("after a quick answer it is expected to take %v s (%v)", s, ok)
	}
}

func TestTheClientsLimitBoundsTheAnswerThatModelsAreComparedBy(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{`"n":1`: "one", `"max_tokens":8`: "two", `"max_completion_tokens":8`: "two"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			answer := testkit.JSON(http.StatusOK, testkit.Completion)
			models := []backend.ModelOptions{
				modelOptions("one", "", reasoning.Options{}, testkit.NewUpstream(t, answer)),
				modelOptions("two", "", reasoning.Options{}, testkit.NewUpstream(t, answer)),
			}
			b := start(t, models, func(s *setup) {
				s.routes = "routes: [{name: fast, when: true, use: {models: [one, two], by: latency}}]\ndefault: {models: [one]}\n"
			})
			speeds := choose.NewSpeeds(testkit.NewClock().Now)
			b.state.Chooser.Speeds = speeds
			speeds.Observe("one", choose.Taken{First: 2 * time.Second, Total: 3 * time.Second, Tokens: 257}) // faster for a long answer
			speeds.Observe("two", choose.Taken{First: time.Second, Total: 9 * time.Second, Tokens: 257})     // faster for a short one
			if got := servedBy(t, b, strings.Replace(ask("hi"), "{", "{"+limit+",", 1)); got != want {
				t.Errorf("served by %s", got)
			}
		})
	}
}
