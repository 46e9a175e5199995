package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/contexts"
)

// residents returns where a context is cached, according to the API.
func (b *bench) residents(id string) []contexts.Residence {
	b.tb.Helper()
	var out struct{ Residency []contexts.Residence }
	got := b.do(http.MethodGet, all+"/"+id, "")
	if got.status != http.StatusOK || !strings.Contains(got.body, `"residency":[`) || json.Unmarshal([]byte(got.body), &out) != nil {
		b.tb.Fatalf("%d %s", got.status, got.body)
	}
	return out.Residency
}

func TestTheAPITellsWhichServersShouldHaveAContext(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 3, nil)
	owner, ref := stored(t, b)
	b.proxy.ServeContexts(contexts.New(b.proxy.resolver.Store, contexts.Options{Resident: b.proxy, Warmer: b.proxy}))
	if got := b.residents(ref.ID); len(got) != 0 {
		t.Errorf("a context that nobody has read is at %+v", got)
	}
	first := b.told(`{"model":"auto","signalbox":{"context":"` + ref.ID + `"},"messages":[` + hi + `]}`)
	got := b.residents(ref.ID)
	if len(got) != 1 || got[0].Endpoint != first.endpoint || got[0].Model != "small" || got[0].Tokens < 3000 || got[0].Tokens > first.prompt || got[0].Age > 5 {
		t.Fatalf("after a request to %s: %+v", first.endpoint, got)
	}
	second := b.told(`{"model":"auto","signalbox":{"context":"` + ref.ID + `"},"messages":[` + hi + `]}`)
	if got := b.residents(ref.ID); second.cached < 3000 || len(got) != 1 || got[0].Basis != contexts.BasisUsage {
		t.Errorf("after an answer that told of %d cached tokens: %+v", second.cached, got)
	}
	if other := b.proxy.Residency(memory.Owner{Tenant: "other"}, mustGet(t, b, owner, ref)); len(other) != 0 {
		t.Errorf("another tenant, whose salt differs, is told of %+v", other)
	}
	i := int(first.endpoint[0] - 'a')
	servers[i].restart()
	b.state.Models[0].Servers.Forget(i)
	if got := b.residents(ref.ID); len(got) != 0 {
		t.Errorf("after a restart: %+v", got)
	}
}

func mustGet(t *testing.T, b *bench, owner memory.Owner, ref memory.Ref) *memory.Context {
	t.Helper()
	c, err := b.proxy.resolver.Store.Get(t.Context(), owner, ref)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// Parameters that a template places before the messages separate prompts with the same beginning;
// the metric counts how often.
func TestEffortInFrontOfThePromptIsCountedAsASplit(t *testing.T) {
	t.Parallel()
	ask := func(b *bench, effort string) {
		b.tb.Helper()
		body := `{"model":"small","signalbox":{"session":"s1"},"reasoning_effort":"` + effort + `","messages":[` + hi + `]}`
		if got := b.chat(body); got.status != http.StatusOK {
			b.tb.Fatalf("%d %s", got.status, got.body)
		}
	}
	for leads, want := range map[bool]float64{true: 2, false: 0} {
		b, _ := placedBench(t, 2, func(o *backend.ModelOptions) { o.KV.EffortLeadsPrompt = leads })
		for _, effort := range []string{"low", "low", "high", "high", "low"} {
			ask(b, effort)
		}
		waitFor(t, "five placements", func() bool {
			return sampleOf(b.metrics(), `signalbox_placements_total{model="small",where="home"}`) == 5
		})
		if got := max(sampleOf(b.metrics(), `signalbox_prefix_class_splits_total{model="small"}`), 0); got != want {
			t.Errorf("leading %v: %v splits, want %v", leads, got, want)
		}
	}
}

// Residency and warming are requested without a decided request.
func TestEffortInFrontOfThePromptNeedsNoDecision(t *testing.T) {
	t.Parallel()
	b, _ := placedBench(t, 2, func(o *backend.ModelOptions) { o.KV.EffortLeadsPrompt = true })
	owner, ref := stored(t, b)
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
		t.Fatal(err)
	}
	if got := b.proxy.Residency(owner, mustGet(t, b, owner, ref)); len(got) != 1 {
		t.Errorf("after it was read ahead it is at %+v", got)
	}
}

// claims is a board on which a name can be taken once.
type claims struct {
	mu    sync.Mutex // guards taken
	taken map[string]time.Duration
}

func (*claims) Publish(string, affinity.Residence) {}

func (c *claims) Claim(_ context.Context, name string, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.taken[name]; ok {
		return false
	}
	c.taken[name] = d
	return true
}

func TestOfSeveralReplicasOneReadsAhead(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 1, nil)
	board := &claims{taken: map[string]time.Duration{}}
	b.proxy.UseBoard(board)
	owner, ref := stored(t, b)
	for range 2 {
		if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
			t.Fatal(err)
		}
		// from here on it knows no more than another replica, and claims remain
		b.state.Models[0].Servers.Forget(0)
	}
	page := b.metrics()
	if read, there := sampleOf(page, `signalbox_warm_calls_total{model="small",result="read"}`), sampleOf(page, `signalbox_warm_calls_total{model="small",result="there"}`); read != 1 || there != 1 {
		t.Errorf("%v reads, %v left to the one that has claimed it", read, there)
	}
	if n := len(servers[0].requests()); n != 1 || len(board.taken) != 1 {
		t.Errorf("%d requests for one context, claims %v", n, board.taken)
	}
	for name, d := range board.taken {
		if !strings.HasPrefix(name, "small:") || !strings.HasSuffix(name, ":a") || d < time.Second {
			t.Errorf("claimed %q for %s", name, d)
		}
	}
}

func TestReadingAheadKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := backend.NewWarmLimit(), time.Now()
		for range 4 { // the first one waits for nobody
			if err := l.Wait(t.Context(), 10_000, 5_000); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took != 6*time.Second {
			t.Errorf("four contexts of 10,000 tokens at 5,000 a second were begun within %s, want 6s", took)
		}
		if err := l.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Enter(ctx); err == nil {
			t.Error("an endpoint reads two contexts at a time")
		}
		l.Leave()
	})
}

// One request may name contexts of both kinds, by id, by version, and by an object.
func TestReferencesOfAllKindsGoTogether(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	r := keeping(t, oneModel(up), nil)
	talk := r.create(anyone(), memory.Draft{Content: memory.Content{Messages: []byte(`[{"role":"user","content":"before"}]`)}})
	one, two := r.keep("First."), r.keep("Second.")
	if _, err := r.store.Append(t.Context(), anyone(), memory.Ref{ID: two}, memory.Content{Text: " And more."}); err != nil {
		t.Fatal(err)
	}
	lease, err := r.store.Lease(t.Context(), anyone(), memory.Ref{ID: one}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.Delete(t.Context(), anyone(), memory.Ref{ID: one}); err != nil {
		t.Fatal(err)
	}
	got := r.chat(with(`[{"id":"`+one+`","lease":"`+lease.ID+`"},"`+talk+`","`+two+`@1",{"id":"`+two+`","version":2}]`, hi))
	want := `{"model":"Org/Small-7B","messages":[{"role":"system","content":"First."},{"content":"before","role":"user"},{"role":"system","content":"Second.\n\nSecond. And more."},` + hi + `]}`
	if sent := string(up.Last(t).Body); got.status != 200 || sent != want {
		t.Errorf("%d %s, sent\n%s, want\n%s", got.status, got.body, sent, want)
	}
	if v := got.header.Get("X-Signalbox-Context-Version"); v != one+"@1,"+talk+"@1,"+two+"@1,"+two+"@2" {
		t.Errorf("versions %s", v)
	}
}

// A request that names an expired context gets a specific error, too.
func TestARequestThatNamesAnExpiredContextIsTold(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	store, err := memory.New(memory.Options{Now: clock.Now}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))))
	b.proxy.UseMemory(store)
	c, err := store.Create(t.Context(), anyone(), memory.Draft{Content: memory.Content{Text: "old"}, TTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	clock.Pass(11 * time.Second)
	for name, got := range map[string]answered{
		"in the body":   b.chat(with(quoted(c.ID), hi)),
		"in the header": b.chat(ask("hi"), "X-Signalbox-Context", c.ID),
	} {
		if e := got.error(t); got.status != http.StatusGone || got.code(t) != "context_expired" || e.Param == nil || *e.Param != "signalbox.context" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := b.chat(with(`{"id":"`+c.ID+`","required":false}`, hi)); got.status != http.StatusOK || got.header.Get("X-Signalbox-Degraded") != "context" {
		t.Errorf("one that is not required: %d %v", got.status, got.header)
	}
}
