package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/contexts"
	"signalbox/proxy/engine"
	"signalbox/proxy/fault"
	"signalbox/proxy/kv"
)

// stored returns a bench with a store that contains a context of 16 KiB.
func stored(t *testing.T, b *bench) (memory.Owner, memory.Ref) {
	t.Helper()
	store, err := memory.New(memory.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.UseMemory(store)
	owner := memory.Owner{Tenant: "default"}
	c, err := store.Create(t.Context(), owner, memory.Draft{Content: memory.Content{Text: kib("the contract", 16)}})
	if err != nil {
		t.Fatal(err)
	}
	return owner, memory.Ref{ID: c.ID, Version: c.Version}
}

func TestAContextIsReadAheadOnce(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 3, nil)
	owner, ref := stored(t, b)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
				t.Errorf("warm: %v", err)
			}
		})
	}
	wg.Wait()
	if err := b.proxy.Warm(t.Context(), owner, ref, []string{"small"}, true); err != nil {
		t.Errorf("warm again: %v", err)
	}
	var all []map[string]json.RawMessage
	for _, s := range servers {
		all = append(all, s.requests()...)
	}
	if len(all) != 1 {
		t.Fatalf("%d requests for one context", len(all))
	}
	r := all[0]
	if string(r["max_tokens"]) != "1" || string(r["stream"]) != "false" || string(r["model"]) != `"Org/Small-7B"` || len(r[engine.FieldSalt]) != 45 ||
		!strings.HasPrefix(string(r["messages"]), `[{"role":"system","content":"the contract says word 0;`) {
		t.Errorf("the request is %.300s", r["messages"])
	}
	page := b.metrics()
	if read, there := sampleOf(page, `signalbox_warm_calls_total{model="small",result="read"}`), sampleOf(page, `signalbox_warm_calls_total{model="small",result="there"}`); read != 1 || there < 1 {
		t.Errorf("%v reads, %v were there", read, there)
	}
}

func TestAContextIsReadAheadInPassing(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 1, nil, func(s *setup) { s.health = true })
	owner, ref := stored(t, b)
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return servers[0].counters().PromptTokens > 4000 }, "the reading")
}

func TestNothingIsReadAheadOfPeopleWhoWait(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 1, func(o *backend.ModelOptions) { o.KV.Seats = 4 })
	owner, ref := stored(t, b)
	w := b.state.Models[0].Servers
	var under []affinity.Ticket
	for range 2 {
		under = append(under, w.Sent(time.Now(), &affinity.Request{Tokens: 10}, 0))
	}
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); !errors.Is(err, fault.ErrBusy) {
		t.Errorf("half of the seats are taken: %v", err)
	}
	for i := range under {
		under[i].End(time.Now(), affinity.Usage{Failed: true})
	}
	w.Report(time.Now(), 0, kv.Report{VLLM: true, Waiting: 1})
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); !errors.Is(err, fault.ErrBusy) {
		t.Errorf("somebody waits: %v", err)
	}
	w.Report(time.Now(), 0, kv.Report{VLLM: true})
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
		t.Errorf("nobody waits: %v", err)
	}
	if n := len(servers[0].requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// A request that waits for another one's reading is told when it fails, and continues if that
// request is cancelled.
func TestWhoWaitsForTheReadingOfAnotherIsToldHowItEnded(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"it is refused": false, "the other leaves": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, servers := placedBench(t, 1, nil)
			owner, ref := stored(t, b)
			servers[0].refuse("{}")
			arrived, gate := make(chan struct{}, 2), make(chan struct{})
			b.proxy.transport.Proxy = func(r *http.Request) (*url.URL, error) {
				arrived <- struct{}{}
				select {
				case <-gate:
				case <-r.Context().Done():
				}
				return nil, r.Context().Err()
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- b.proxy.Warm(ctx, owner, ref, nil, true) }()
			<-arrived
			go func() { second <- b.proxy.Warm(t.Context(), owner, ref, nil, true) }()
			time.Sleep(20 * time.Millisecond) // by then it almost always waits
			if leaves {
				leave()
				if err := <-first; err == nil {
					t.Error("the first is told that it was read")
				}
				<-arrived // the second tries itself
			}
			close(gate)
			if e := fault.Wire(<-second, ""); e.Code != "upstream_refused" {
				t.Errorf("the second is told %d %q: %s", e.Status, e.Code, e.Message)
			}
		})
	}
}

func TestAPanicWhileAContextIsReadAheadEndsInTheLog(t *testing.T) {
	t.Parallel()
	b, _ := placedBench(t, 1, nil)
	owner, ref := stored(t, b)
	b.proxy.transport.Proxy = func(*http.Request) (*url.URL, error) { panic("transport fault") }
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); !errors.Is(err, fault.ErrPanicked) {
		t.Errorf("warm: %v", err)
	}
	if n := b.state.Models[0].Endpoints[0].Inflight(); n != 0 || !strings.Contains(b.log.String(), "transport fault") {
		t.Errorf("%d requests are under way, log %s", n, b.log.String())
	}
	b.proxy.transport.Proxy = nil
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
		t.Errorf("warm again: %v", err)
	}
}

func TestWhatCannotBeReadAhead(t *testing.T) {
	t.Parallel()
	b, _ := placedBench(t, 1, func(o *backend.ModelOptions) { o.KV.Level = kv.LevelOpenAI })
	owner, ref := stored(t, b)
	var bad *openai.Error
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); !errors.As(err, &bad) || bad.Param != "models" {
		t.Errorf("no model shares prefixes: %v", err)
	}
	if err := b.proxy.Warm(t.Context(), owner, ref, []string{"small"}, true); err != nil {
		t.Errorf("a model that is named: %v", err)
	}
	if err := b.proxy.Warm(t.Context(), memory.Owner{Tenant: "other"}, ref, []string{"small"}, true); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if err := b.proxy.Warm(t.Context(), owner, ref, []string{"none"}, true); fault.Wire(err, "").Status != 404 {
		t.Errorf("a model that is not there: %v", err)
	}
}

func TestContextsLandAtHomeAndWhereTheyWereReadAhead(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 4, nil)
	owner, ref := stored(t, b)
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
		t.Fatal(err)
	}
	warm := ""
	for i, s := range servers {
		if len(s.requests()) > 0 {
			warm = string(rune('a' + i))
		}
	}
	ask := func(agent, system string) told {
		return b.told(`{"model":"auto","stream":true,"stream_options":{"include_usage":true},"signalbox":{"context":"` + ref.ID + `","session":"` + agent +
			`"},"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"what now"}]}`)
	}
	const block = 16 // tokens; the server counts whole ones, the prediction goes by bytes
	for i, system := range []string{"You are a lawyer.", "You are a poet.", "You count words.", "You are a lawyer."} {
		got := ask(strings.Repeat("x", i+1), system)
		if got.endpoint != warm || got.predicted < 3800 || got.cached+block < got.predicted {
			t.Errorf("agent %d: %+v; the context was read at %s", i, got, warm)
		}
	}
	if got := ask("y", kib("long orders", 8)); got.endpoint != warm || got.predicted > got.cached+block || got.predicted < 3000 {
		t.Errorf("an agent with long orders: %+v", got)
	}
	first := b.told(`{"model":"auto","signalbox":{"context":"` + ref.ID + `"},"messages":[{"role":"user","content":"again"}]}`)
	if first.endpoint != warm || first.cached < 3800 {
		t.Errorf("without a session: %+v", first)
	}
}

// S3: a reading for one tenant or model never stands for another: of two tenants with the same
// text, and two models served under the same name, each is read.
func TestS3NoReadingStandsForAnother(t *testing.T) {
	t.Parallel()
	slow := quick()
	slow.Overhead = 100 * time.Millisecond // so that both are in flight at the same time
	servers := []*kvServer{newKVServer(t, slow), newKVServer(t, slow)}
	b := start(t, append(kvModel(nil, servers[0]), kvModel(func(o *backend.ModelOptions) { o.Name = "twin" }, servers[1])...), func(s *setup) { s.routes = toSmall })
	store, err := memory.New(memory.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.UseMemory(store)
	var wg sync.WaitGroup
	for _, tenant := range []string{"red", "blue"} {
		owner := memory.Owner{Tenant: tenant}
		c, err := store.Create(t.Context(), owner, memory.Draft{Content: memory.Content{Text: kib("the contract", 16)}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			wg.Go(func() {
				if err := b.proxy.Warm(t.Context(), owner, memory.Ref{ID: c.ID}, []string{"small", "twin"}, true); err != nil {
					t.Errorf("warm: %v", err)
				}
			})
		}
	}
	wg.Wait()
	for i, s := range servers {
		salts := map[string]int{}
		for _, r := range s.requests() {
			salts[string(r[engine.FieldSalt])]++
		}
		if len(salts) != 2 || len(s.requests()) != 2 {
			t.Errorf("server %d has read for %v, want each of two tenants once", i, salts)
		}
	}
}

func TestReadingAheadTakesOneSlotAndGivesItBackOnce(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 1, func(o *backend.ModelOptions) { o.Endpoints[0].MaxInflight = 1 })
	owner, ref := stored(t, b)
	e := b.state.Models[0].Endpoints[0]
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
		t.Fatal(err)
	}
	if n := e.Inflight(); n != 0 {
		t.Errorf("%d requests are in flight behind the reading, want 0", n)
	}
	other, ok := e.Enter()
	if !ok {
		t.Fatal("the endpoint is full although nothing runs")
	}
	b.state.Models[0].Servers.Forget(0)
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); !errors.Is(err, fault.ErrBusy) {
		t.Errorf("with max_inflight requests under way: %v", err)
	}
	other.Close()
	if n := len(servers[0].requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if n := e.Inflight(); n != 0 {
		t.Errorf("%d requests are in flight at the end, want 0", n)
	}
}

// vLLM 0.32's response to a prompt that is too long.
const tooLongForVLLM = `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you ` +
	`requested 1 output tokens and your prompt contains at least 8192 input tokens, for a total of at least 8193 ` +
	`tokens. Please reduce the length of the input prompt or the number of requested output tokens.",` +
	`"type":"BadRequestError","param":"input_tokens","code":400}}`

func TestWhatAServerRefusesToReadAheadIsSaidAndNotBelieved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refusal string
		status  int
		code    string
		param   string
		says    string
	}{
		"with a reason": {
			`{"error":{"message":"unknown field cache_salt","type":"BadRequestError","param":null,"code":400}}`,
			502, "upstream_refused", "", `rejected the context with status 400: "unknown field cache_salt"`,
		},
		"without a reason": {`{}`, 502, "upstream_refused", "", "with status 400"},
		"as too long": {
			tooLongForVLLM, 400, "context_length_exceeded", "models",
			"maximum context length is 8192 tokens",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, servers := placedBench(t, 1, nil)
			owner, ref := stored(t, b)
			b.proxy.ServeContexts(contexts.New(b.proxy.resolver.Store, contexts.Options{Resident: b.proxy, Warmer: b.proxy}))
			servers[0].refuse(tt.refusal)
			err := b.proxy.Warm(t.Context(), owner, ref, nil, true)
			if e := fault.Wire(err, ""); e.Status != tt.status || e.Code != tt.code || e.Param != tt.param ||
				!strings.Contains(e.Message, tt.says) {
				t.Errorf("%d %q at %q: %s", e.Status, e.Code, e.Param, e.Message)
			}
			if got := b.residents(ref.ID); len(got) != 0 {
				t.Errorf("what was refused is said to be at %+v", got)
			}
			servers[0].refuse("")
			got := b.told(`{"model":"auto","signalbox":{"context":"` + ref.ID + `"},"messages":[` + hi + `]}`)
			if got.predicted != 0 || got.cached != 0 {
				t.Errorf("%d tokens are predicted of a prompt that was refused, %d were cached",
					got.predicted, got.cached)
			}
		})
	}
}
