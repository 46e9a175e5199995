package proxy

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/settings"
)

// cappedModels returns models whose endpoints take n requests at a time.
func cappedModels(n int, line pool.QueueOptions, servers ...*hostile.Server) []backend.ModelOptions {
	models := hostileModels(servers...)
	for i := range models {
		models[i].Queue = line
		for j := range models[i].Endpoints {
			models[i].Endpoints[j].MaxInflight = n
		}
	}
	return models
}

func TestAnEndpointNeverHasMoreThanItsCap(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Mode: "concurrency-cap?n=4&d=5ms"})
	b := start(t, cappedModels(4, pool.QueueOptions{}, s))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				if got := b.chat(ask("hi")); got.status != 200 {
					t.Errorf("got %d %s", got.status, got.body)
				}
			}
		})
	}
	wg.Wait()
	if n := s.MaxConcurrent(); n > 4 {
		t.Errorf("%d requests at once", n)
	}
}

func TestAFullQueueIsAnErrorThatSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Mode: "watch-ttft"})
	b := start(t, cappedModels(1, pool.QueueOptions{Max: 1, Wait: option.Duration(3 * time.Second)}, s))
	first := b.leaveable(ask("hi"), "")
	waitFor(t, "the first request", func() bool { return s.Requests() == 1 })
	second := b.leaveable(ask("hi"), "")
	small := b.state.Models[1]
	waitFor(t, "the second in the queue", func() bool { return small.Queued() == 1 })
	got := b.chat(ask("hi"))
	if got.status != 503 || got.code(t) != "overloaded" || got.header.Get("Retry-After") == "" {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
	waitFor(t, "the second to be late", func() bool {
		return strings.Contains(b.metrics(), `signalbox_shed_total{model="small",reason="late"} 1`)
	})
	if m := b.metrics(); !strings.Contains(m, `signalbox_shed_total{model="small",reason="full"} 1`) || !strings.Contains(m, `signalbox_queued_requests{model="small"} 0`) {
		t.Errorf("metrics are %s", m)
	}
	second()
	first()
}

func TestAFullModelLeavesItsRequestsToTheNext(t *testing.T) {
	t.Parallel()
	busy, free := hostile.Start(t, hostile.Options{Mode: "watch-ttft"}), hostile.Start(t, hostile.Options{})
	models := hostileModels(free)
	models[0] = cappedModels(1, pool.QueueOptions{Max: 1, Wait: option.Duration(10 * time.Millisecond)}, busy)[0]
	b := start(t, models)
	leave := b.leaveable(ask("math"), "")
	waitFor(t, "the first request", func() bool { return busy.Requests() == 1 })
	if got := b.chat(ask("math")); got.status != 200 || got.header.Get("X-Signalbox-Model") != "small" || got.header.Get("X-Signalbox-Degraded") != "fallback" {
		t.Errorf("got %d %v", got.status, got.header)
	}
	leave()
}

// Metrics and /readyz show the current endpoints, and others only while requests to them are in
// flight.
func TestAReloadForgetsEndpointsThatAreGone(t *testing.T) {
	t.Parallel()
	old, other := hostile.Start(t, hostile.Options{Mode: "stall"}), hostile.Start(t, hostile.Options{})
	b := start(t, hostileModels(old))
	b.state.Models[1].Endpoints[0].Rest(time.Now().Add(time.Hour))
	leave := b.leaveable(askStream("hi"), "data: ")
	next := hostileModels(other)
	for i := range next {
		next[i].Endpoints[0].Name = "node-z"
	}
	b.proxy.Swap(b.newState(setup{options: settings.DefaultServer(), auth: auth.DefaultOptions(), models: next, routes: testRoutes, classifier: b.classifier}, 2))
	m := b.metrics()
	if !strings.Contains(m, `signalbox_endpoint_up{endpoint="node-z",model="small"} 1`) || !strings.Contains(m, `signalbox_endpoint_inflight{endpoint="node-a",model="small"} 1`) ||
		!strings.Contains(m, `signalbox_endpoint_up{endpoint="node-a",model="small"} 0`) || strings.Contains(m, `{endpoint="node-a",model="big"}`) {
		t.Errorf("metrics while a request is under way: %s", m)
	}
	if got := b.do("GET", "/readyz", ""); !strings.Contains(got.body, `{"name":"node-a","state":"draining","inflight":1}`) {
		t.Errorf("readyz: %s", got.body)
	}
	leave()
	waitFor(t, "the request to end", func() bool { return !strings.Contains(b.metrics(), "node-a") })
	if got := b.do("GET", "/readyz", ""); strings.Contains(got.body, "node-a") {
		t.Errorf("readyz: %s", got.body)
	}
}

// An endpoint that is removed and comes back, such as a Pod that was not ready for a moment, still
// has its requests in flight.
func TestAnEndpointThatComesBackStillHasItsRequests(t *testing.T) {
	t.Parallel()
	slow, other := hostile.Start(t, hostile.Options{Mode: "stall"}), hostile.Start(t, hostile.Options{})
	capped := func(up *hostile.Server, name string) []backend.ModelOptions {
		models := hostileModels(up)
		for i := range models {
			models[i].Endpoints[0].Name, models[i].Endpoints[0].MaxInflight = name, 1
			models[i].Queue = pool.QueueOptions{Wait: option.Duration(time.Millisecond)}
		}
		return models
	}
	b := start(t, capped(slow, "node-a"))
	leave := b.leaveable(askStream("hi"), "data: ")
	for i, models := range [][]backend.ModelOptions{
		capped(other, "node-z"), capped(other, "node-z"), capped(slow, "node-a"),
	} {
		b.proxy.Swap(b.newState(setup{
			options: settings.DefaultServer(), auth: auth.DefaultOptions(), models: models, routes: testRoutes,
			classifier: b.classifier,
		}, uint64(i)+2))
	}
	if got := b.chat(ask("hi")); got.code(t) != "overloaded" {
		t.Errorf("beside a request to an endpoint with room for one: %d %s", got.status, got.body)
	}
	if m := b.metrics(); !strings.Contains(m, `signalbox_endpoint_inflight{endpoint="node-a",model="small"} 1`) {
		t.Errorf("metrics are %s", m)
	}
	if got := b.do("GET", "/readyz", ""); strings.Contains(got.body, `"state":"draining"`) ||
		!strings.Contains(got.body, `{"name":"node-a","state":"up","inflight":1}`) {
		t.Errorf("readyz: %s", got.body)
	}
	leave()
	small := b.proxy.state.Load().Models[1].Endpoints[0]
	waitFor(t, "the request to end", func() bool { return small.Inflight() == 0 })
}

// An ejected endpoint returns when a request to it succeeds.
func TestAnEndpointThatFailsIsLeftAndComesBack(t *testing.T) {
	t.Parallel()
	sick, fine := testkit.NewUpstream(t, testkit.JSON(500, `{}`)), testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(sick, fine))
	for range 100 {
		b.chat(ask("hi"))
	}
	if n := len(sick.Requests()); n != 5 {
		t.Errorf("the sick endpoint got %d requests, five fail in a row before it is left", n)
	}
	e := b.state.Models[1].Endpoints[0]
	if e.State(time.Now()) != "ejected" || !strings.Contains(b.metrics(), `signalbox_endpoint_up{endpoint="small-a",model="small"} 0`) {
		t.Errorf("it is %s", e.State(time.Now()))
	}
	if f := e.Fitness(time.Now().Add(31 * time.Second)); f != pool.Fit {
		t.Errorf("after its time out it is %s", f)
	}
	e.Succeeded()
	if !strings.Contains(b.metrics(), `signalbox_endpoint_up{endpoint="small-a",model="small"} 1`) {
		t.Error("after a success it is not up")
	}
}

// An endpoint that refused a request must not keep a slot while another one serves it.
func TestARefusalHoldsNoSlotWhileAnotherEndpointIsAsked(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]testkit.Answer{
		"JSON": testkit.JSON(http.StatusServiceUnavailable, `{"error":{"message":"no"}}`),
		"page": testkit.Body(http.StatusBadGateway, "text/html", "<html>"),
	} {
		gate := make(chan struct{})
		busy := testkit.NewUpstream(t, refusal)
		slow := testkit.NewUpstream(t, testkit.After(gate, testkit.JSON(http.StatusOK, tenTokens)))
		models := []backend.ModelOptions{
			modelOptions("big", "", reasoning.Options{}, busy), modelOptions("small", "", reasoning.Options{}, slow),
		}
		models[0].Endpoints[0].MaxInflight = 1
		models[0].Queue = pool.QueueOptions{}
		b := start(t, models, func(s *setup) { s.routes = "routes: []\ndefault: {models: [big, small]}\n" })
		done := make(chan answered, 1)
		go func() { done <- b.chat(ask("hi")) }()
		waitFor(t, "the second attempt", func() bool { return len(slow.Requests()) == 1 })
		if n := b.state.ByName["big"].Endpoints[0].Inflight(); n != 0 {
			t.Errorf("%s: the endpoint that refused has %d requests in flight", name, n)
		}
		close(gate)
		if got := within(t, done, "the answer"); got.status != 200 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// Gateways in front of model servers refuse with a page or a line of text.
func TestARefusalThatIsNoJSONSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"text/plain", "text/html"} {
		for written, want := range map[string]string{"7": "7", "9999": "60", "": ""} {
			header := []string{"Retry-After", written}
			if written == "" {
				header = nil
			}
			u := testkit.NewUpstream(t, testkit.Body(http.StatusServiceUnavailable, kind, "no healthy upstream", header...))
			b := start(t, oneModel(u))
			for _, body := range []string{ask("hi"), askStream("hi")} {
				got := b.chat(body)
				if got.status != http.StatusServiceUnavailable || got.code(t) != "overloaded" ||
					got.header.Get("Retry-After") != want || got.header.Get("X-Should-Retry") != "" {
					t.Errorf("%s, %q: %d %s %v", kind, written, got.status, got.body, got.header)
				}
			}
		}
	}
}
