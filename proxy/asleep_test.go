package proxy

import (
	"net/http"
	"strings"
	"testing"

	"signalbox/proxy/backend"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
)

// endpointState returns the state in /readyz of an endpoint of the first model.
func (b *bench) endpointState(i int) string {
	_, d := b.proxy.Ready()
	return d.Models[0].Endpoints[i].State
}

func running(s *setup) { s.health = true }

func TestAnEndpointThatSleepsGetsNoRequestsUntilItIsAwake(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 2, nil, running)
	servers[0].set(&servers[0].asleep, true)
	waitFor(t, "sleep", func() bool { return b.endpointState(0) == "asleep" })
	for range 8 {
		if got := b.told(ask("hello")); got.endpoint != "b" {
			t.Fatalf("a request went to %q", got.endpoint)
		}
		if got := b.told(turns(kib("an expert", 8), 1)); got.endpoint != "b" {
			t.Fatalf("a long request went to %q", got.endpoint)
		}
	}
	page := b.metrics()
	for sample, want := range map[string]float64{
		`signalbox_endpoint_asleep{endpoint="a",model="small"}`: 1,
		`signalbox_endpoint_asleep{endpoint="b",model="small"}`: 0,
		`signalbox_endpoint_up{endpoint="a",model="small"}`:     0,
		`signalbox_endpoint_up{endpoint="b",model="small"}`:     1,
	} {
		if got := sampleOf(page, sample); got != want {
			t.Errorf("%s is %v, want %v", sample, got, want)
		}
	}
	servers[0].set(&servers[0].asleep, false)
	waitFor(t, "awakening", func() bool { return b.endpointState(0) == "up" })
	waitFor(t, "a request to the endpoint that is awake again", func() bool {
		return b.told(ask("hello")).endpoint == "a"
	})
	for _, line := range []string{`"msg":"endpoint asleep"`, `"msg":"endpoint awake"`} {
		if n := strings.Count(b.log.String(), line); n != 1 {
			t.Errorf("%d lines with %s, want 1", n, line)
		}
	}
}

// With vLLM 0.32, the metrics of a paused server say that it is awake, but requests hang.
func TestAnEndpointThatIsPausedGetsNoRequests(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 2, nil, running)
	servers[0].set(&servers[0].paused, true)
	waitFor(t, "the pause", func() bool { return b.endpointState(0) == "asleep" })
	for range 8 {
		if got := b.told(ask("hello")); got.endpoint != "b" {
			t.Fatalf("a request went to %q", got.endpoint)
		}
	}
	servers[0].set(&servers[0].paused, false)
	waitFor(t, "its end", func() bool { return b.endpointState(0) == "up" })
}

func TestAModelThatSleepsIsNamedAsTheReason(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 1, nil, running)
	servers[0].set(&servers[0].asleep, true)
	waitFor(t, "sleep", func() bool { return b.endpointState(0) == "asleep" })
	got := b.chat(ask("hello"))
	if got.status != http.StatusServiceUnavailable || got.code(t) != "model_asleep" ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
	}
	ready, d := b.proxy.Ready()
	if !ready || !strings.Contains(strings.Join(d.Degraded, "\n"),
		`every endpoint of model "small" that is up is asleep: requests that no other model can serve`) {
		t.Errorf("ready %v, degraded %q", ready, d.Degraded)
	}
	if n := len(servers[0].requests()); n != 0 {
		t.Errorf("%d requests reached a server that sleeps", n)
	}
}

func TestARouteGoesOnToAModelThatIsAwake(t *testing.T) {
	t.Parallel()
	servers := []*kvServer{newKVServer(t, quick()), newKVServer(t, quick())}
	models := append(kvModel(nil, servers[0]), kvModel(func(o *backend.ModelOptions) { o.Name = "twin" }, servers[1])...)
	b := start(t, models, running, func(s *setup) { s.routes = "routes: []\ndefault: {models: [small, twin]}\n" })
	servers[0].set(&servers[0].asleep, true)
	waitFor(t, "sleep", func() bool { return b.endpointState(0) == "asleep" })
	if got := b.chat(ask("hello")); got.status != http.StatusOK || got.header.Get("X-Signalbox-Model") != "twin" {
		t.Errorf("%d from %q: %s", got.status, got.header.Get("X-Signalbox-Model"), got.body)
	}
}

// Without a kv section, a sleeping server is detected too, if its health is checked.
func TestSleepIsNoticedAtLevelOpenAI(t *testing.T) {
	t.Parallel()
	plain := func(o *backend.ModelOptions) { o.KV.Level, o.Health.Path = "", "/health" }
	b, servers := placedBench(t, 2, plain, running)
	servers[0].set(&servers[0].asleep, true)
	waitFor(t, "sleep", func() bool { return b.endpointState(0) == "asleep" })
	for range 8 {
		if got := b.told(ask("hello")); got.endpoint != "b" {
			t.Fatalf("a request went to %q", got.endpoint)
		}
	}
	servers[0].set(&servers[0].asleep, false)
	waitFor(t, "the end of the sleep", func() bool { return b.endpointState(0) == "up" })
	if b.state.Models[0].Servers.All[0].Salted.Load() {
		t.Error("at level openai the endpoint gets a cache_salt")
	}
}

// An endpoint without metrics is not considered asleep forever.
func TestAWordOfSleepLapses(t *testing.T) {
	t.Parallel()
	b, _ := placedBench(t, 1, nil)
	w, e := b.state.Models[0].Servers, b.state.Models[0].Endpoints[0]
	now := b.state.Chooser.Speeds.Now()
	w.Report(now, 0, kv.Report{VLLM: true, Asleep: true})
	if f := e.Fitness(now); f != pool.Asleep {
		t.Errorf("it says that it sleeps, and is %v", f)
	}
	if f := e.Fitness(now.Add(w.SleepMemory())); f != pool.Fit {
		t.Errorf("long after its last word it is %v", f)
	}
}
