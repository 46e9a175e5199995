package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/memory/conversation"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
)

// stateful is a Responses API server: only it has its responses, for the key that requested them.
func stateful(tb testing.TB, name string) *testkit.Upstream {
	tb.Helper()
	kept := map[string]string{}
	return testkit.NewUpstream(tb, func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		var req struct {
			Previous     string `json:"previous_response_id"`
			Conversation string `json:"conversation"`
		}
		_ = json.Unmarshal(lastBody(u), &req)
		w.Header().Set("Content-Type", "application/json")
		if key := r.Header.Get("Authorization"); req.Previous != "" && kept[req.Previous] != key {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"no %s at %s"}}`, req.Previous, name)
			return
		}
		id := fmt.Sprintf("resp_%s_%d", name, len(kept))
		kept[id] = r.Header.Get("Authorization")
		_, _ = fmt.Fprintf(w, `{"id":%q,"object":"response","status":"completed","model":"m","output":[]}`, id)
	})
}

// responseOf returns the id of a response.
func responseOf(tb testing.TB, a answered) string {
	tb.Helper()
	var r struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || r.ID == "" {
		tb.Fatalf("status %d: %s (%v)", a.status, a.body, err)
	}
	return r.ID
}

// ownServers gives each model its own servers, by name.
func ownServers(tb testing.TB, models []backend.ModelOptions, names ...string) {
	tb.Helper()
	for i := range models {
		models[i].Endpoints = nil
		for _, name := range names {
			up := stateful(tb, models[i].Name+name)
			models[i].Endpoints = append(models[i].Endpoints, pool.EndpointOptions{Name: name, URL: up.URL(), APIKey: "k"})
		}
	}
}

// goOn sends some turns after the first, each of which must be answered where that was. between may
// change the id that the next turn continues.
func (b *bench) goOn(model, first, input string, turns int, between func(id string) string) {
	b.tb.Helper()
	begun := b.post("/v1/responses", `{"model":"`+model+`","input":"`+first+`"}`)
	at, id := begun.header.Get("X-Signalbox-Endpoint"), responseOf(b.tb, begun)
	for turn := range turns {
		if between != nil {
			id = between(id)
		}
		next := b.post("/v1/responses", `{"model":"`+model+`","input":"`+input+`","previous_response_id":"`+id+`"}`)
		if got := next.header.Get("X-Signalbox-Endpoint"); next.status != http.StatusOK || got != at {
			b.tb.Fatalf("%s, turn %d: status %d at %s, begun at %s: %s", model, turn, next.status, got, at, next.body)
		}
		id = responseOf(b.tb, next)
	}
}

func TestAResponseIsGoneOnWithAtTheServerThatHasIt(t *testing.T) {
	t.Parallel()
	servers := []*testkit.Upstream{stateful(t, "a"), stateful(t, "b"), stateful(t, "c"), stateful(t, "d")}
	b := start(t, oneModel(servers...), sticks)
	for _, model := range []string{"auto", "small"} {
		b.goOn(model, "hello", "go on", 12, nil)
	}
}

func TestAResponseIsGoneOnWithByItsModelWhateverTheSubject(t *testing.T) {
	t.Parallel()
	models := oneModel()
	ownServers(t, models, "e")
	b := unsure(t, models)
	first := b.post("/v1/responses", `{"model":"auto","input":"math: integrate x"}`).
		goes(t, "the first turn", "new  big high")
	b.post("/v1/responses", `{"model":"auto","input":"law","previous_response_id":"`+responseOf(t, first)+`"}`).
		goes(t, "another subject", "kept server_state big high")
}

// A model that the client named may be one that no route leads to. A routed request that continues
// its response goes to it, unless the request contains what another route is for.
func TestWhatANamedModelAnsweredIsGoneOnWithByRouting(t *testing.T) {
	t.Parallel()
	models := append(oneModel(), modelOptions("aside", "", reasoning.Options{}))
	ownServers(t, models, "e")
	b := unsure(t, models, func(s *setup) {
		s.routes = `
routes:
  - {name: private, when: {keyword: titan}, use: {models: [effort]}}
  - {name: math, when: {domain: math}, use: {models: [big, small]}}
default: {models: [small]}
`
	})
	first := responseOf(t, b.post("/v1/responses", `{"model":"aside","input":"hello"}`))
	goOn := func(input string) answered {
		return b.post("/v1/responses", `{"model":"auto","input":"`+input+`","previous_response_id":"`+first+`"}`)
	}
	next := goOn(`math: integrate x`).goes(t, "by routing", "kept server_state aside")
	first = strings.Replace(first, "_", `\u005f`, 1)
	goOn("law").goes(t, "spelled in another way", "kept server_state aside")
	first = responseOf(t, next)
	goOn("law").goes(t, "once more", "kept server_state aside")
	delete(b.state.ByName, "aside")
	if got := goOn("law"); got.status == http.StatusNotFound && got.header.Get("X-Signalbox-Model") == "" {
		t.Errorf("a model that is gone is told: %s", got.body)
	}
	if got := goOn("titan"); got.header.Get("X-Signalbox-Model") != "effort" {
		t.Errorf("the route that reads what the request holds: status %d, %s", got.status, talked(got))
	}
}

// The place of a response is remembered for longer than a conversation, and without stickiness.
func TestAResponseIsGoneOnWithWhereNothingSticks(t *testing.T) {
	t.Parallel()
	models := oneModel()
	ownServers(t, models, "e", "f")
	b := start(t, models, func(s *setup) { s.talks = conversation.New(nil, "") })
	for _, model := range []string{"auto", "small"} {
		b.goOn(model, "math: integrate x", "law", 8, nil)
	}
}

// No server knows a rule's answer: the turn after it continues what came before it.
func TestAnAnswerOfARuleIsGoneOnWith(t *testing.T) {
	t.Parallel()
	models := oneModel()
	ownServers(t, models, "e", "f")
	b := start(t, models, sticks)
	ruled := func(previous string) string {
		body := `{"model":"auto","input":"hi","previous_response_id":` + previous + `}`
		return responseOf(t, b.post("/v1/responses", body, "X-Greet", "yes"))
	}
	for _, model := range []string{"auto", "small"} {
		b.goOn(model, "math: integrate x", "go on", 4, func(id string) string {
			return ruled(strconv.Quote(ruled(strconv.Quote(id)))) // twice
		})
		next := b.post("/v1/responses", `{"model":"`+model+`","input":"hello","previous_response_id":"`+ruled("null")+`"}`)
		if next.status != http.StatusOK {
			t.Errorf("%s, behind a first turn that a rule answered: status %d: %s", model, next.status, next.body)
		}
	}
}

// A rule's answer within a conversation stored by the server does not affect later turns.
func TestAnAnswerOfARuleLeavesAConversationAsItIs(t *testing.T) {
	t.Parallel()
	up := stateful(t, "a")
	b := start(t, oneModel(up), func(s *setup) { s.talks = conversation.New(nil, "") })
	const turn = `{"model":"auto","input":"hello","conversation":"c"}`
	b.post("/v1/responses", turn)
	if got := b.post("/v1/responses", turn, "X-Greet", "yes"); !strings.Contains(got.body, "Hello there.") {
		t.Fatalf("no rule answered: %d %s", got.status, got.body)
	}
	b.post("/v1/responses", turn)
	if got := string(lastBody(up)); !strings.Contains(got, `"conversation":"c"`) || strings.Contains(got, "previous_response_id") {
		t.Errorf("sent was %s", got)
	}
	previous := responseOf(t, b.post("/v1/responses", `{"model":"auto","input":"hello"}`))
	b.post("/v1/responses", strings.Replace(turn, `{`, `{"previous_response_id":"`+previous+`",`, 1), "X-Greet", "yes")
	b.post("/v1/responses", turn)
	if got := string(lastBody(up)); strings.Contains(got, "previous_response_id") {
		t.Errorf("sent was %s", got)
	}
}

// Servers see one account: only the proxy knows that a response belongs to another tenant.
func TestAResponseOfAnotherTenantIsNotFound(t *testing.T) {
	t.Parallel()
	up := stateful(t, "a")
	b := start(t, oneModel(up), sticks, func(s *setup) {
		s.auth = auth.Options{Mode: auth.ModeKeys, Keys: []auth.KeyOptions{
			{Name: "a", SHA256: hashOf("a"), Tenant: "one"},
			{Name: "b", SHA256: hashOf("b"), Tenant: "two"},
			{Name: "c", SHA256: hashOf("c"), Tenant: "one", Role: "other"},
		}}
	})
	const asks = "Authorization"
	for _, model := range []string{"auto", "small"} {
		id := responseOf(t, b.post("/v1/responses", `{"model":"`+model+`","input":"my secret is 42"}`, asks, "Bearer a"))
		goOn := `{"model":"` + model + `","input":"what is it?","previous_response_id":"` + id + `"}`
		before := len(up.Requests())
		b.post("/v1/responses", `{"model":"`+model+`","input":"x","conversation":"mine"}`, asks, "Bearer b")
		before++
		for _, spelled := range []string{
			strings.ReplaceAll(goOn, "resp_", `resp\u005f`),
			strings.Replace(goOn, `{`, `{"conversation":"mine",`, 1),
		} {
			if got := b.post("/v1/responses", spelled, asks, "Bearer b"); got.status != http.StatusBadRequest {
				t.Errorf("%s: %s: status %d: %s", model, spelled, got.status, got.body)
			}
		}
		got := b.post("/v1/responses", goOn, asks, "Bearer b")
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"code":"previous_response_not_found"`) ||
			!strings.Contains(got.body, `"param":"previous_response_id"`) {
			t.Errorf("%s: another tenant: status %d: %s", model, got.status, got.body)
		}
		if n := len(up.Requests()); n != before {
			t.Errorf("%s: %d requests reached the server", model, n-before)
		}
		for _, key := range []string{"a", "c"} {
			if got := b.post("/v1/responses", goOn, asks, "Bearer "+key); got.status != http.StatusOK {
				t.Errorf("%s: key %s of the tenant: status %d: %s", model, key, got.status, got.body)
			}
		}
	}
	// The server decides about an id that nobody got here.
	const unknown = `{"model":"small","input":"x","previous_response_id":"resp_elsewhere"}`
	got := b.post("/v1/responses", unknown, asks, "Bearer b")
	if got.status != http.StatusNotFound {
		t.Errorf("a response that nobody here knows: status %d: %s", got.status, got.body)
	}
}

func TestAResponseIsGoneOnWithByTheAccountThatHasIt(t *testing.T) {
	t.Parallel()
	models, up := oneModel(), stateful(t, "a")
	for i := range models {
		models[i].Endpoints = []pool.EndpointOptions{
			{Name: "mine", URL: up.URL(), APIKey: "mine"}, {Name: "yours", URL: up.URL(), APIKey: "yours"},
		}
	}
	b := start(t, models, sticks)
	for range 12 {
		first := b.post("/v1/responses", `{"model":"small","input":"hello"}`)
		at, id := first.header.Get("X-Signalbox-Endpoint"), responseOf(t, first)
		next := b.post("/v1/responses", `{"model":"small","input":"go on","previous_response_id":"`+id+`"}`)
		if got := next.header.Get("X-Signalbox-Endpoint"); next.status != http.StatusOK || got != at {
			t.Fatalf("status %d at %s, begun at %s: %s", next.status, got, at, next.body)
		}
	}
}

// A busy server makes only those requests wait that continue a response that it has.
func TestWhoWaitsForAResponseIsInNobodysWay(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	servers := make([]*testkit.Upstream, 2)
	for i := range servers {
		servers[i] = testkit.NewUpstream(t, func(u *testkit.Upstream, w http.ResponseWriter, _ *http.Request) {
			if bytes.Contains(lastBody(u), []byte("slow")) {
				<-free
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"id":"resp_%d","object":"response","status":"completed","model":"m","output":[]}`, i)
		})
	}
	t.Cleanup(release)
	models := oneModel(servers...)
	models[1].Queue.Wait = option.Duration(2 * time.Second)
	for i := range models[1].Endpoints {
		models[1].Endpoints[i].MaxInflight = 1
	}
	b := start(t, models, sticks)
	first := b.post("/v1/responses", `{"model":"small","input":"hello"}`)
	at, id := first.header.Get("X-Signalbox-Endpoint"), responseOf(t, first)
	var all sync.WaitGroup
	goOn := func(input string) {
		all.Go(func() {
			got := b.post("/v1/responses", `{"model":"small","input":"`+input+`","previous_response_id":"`+id+`"}`)
			if now := got.header.Get("X-Signalbox-Endpoint"); got.status != http.StatusOK || now != at {
				t.Errorf("%s: status %d at %s, begun at %s", input, got.status, now, at)
			}
		})
	}
	small := b.state.Models[1]
	goOn("slow")
	waitFor(t, "the first to be there", func() bool {
		return small.Endpoints[0].Inflight()+small.Endpoints[1].Inflight() == 1
	})
	goOn("next")
	waitFor(t, "the second to wait", func() bool { return small.Queued() == 1 })
	for range 2 {
		got := b.post("/v1/responses", `{"model":"small","input":"hello"}`)
		if now := got.header.Get("X-Signalbox-Endpoint"); got.status != http.StatusOK || now == at {
			t.Errorf("another request: status %d at %s, where %s is full: %s", got.status, now, at, got.body)
		}
	}
	release()
	all.Wait()
}

// A request for a named model in between keeps what is known about the subject.
func TestAModelThatIsNamedInBetweenForgetsNoSubject(t *testing.T) {
	t.Parallel()
	b := unsure(t, oneModel(stateful(t, "a")))
	say := func(model, input string) answered {
		return b.post("/v1/responses", `{"model":"`+model+`","conversation":"conv_1","input":"`+input+`"}`)
	}
	_, first, _ := strings.Cut(long("math: integrate x"), " ")
	say("auto", first).goes(t, "the first turn", "new  big high")
	if got := say("small", "go on"); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	say("auto", "perhaps explain it").goes(t, "a doubtful turn", "kept prefill small")
}

// If the server with the response is busy, no other server reports that there is none.
func TestABusyServerIsNotAResponseThatIsGone(t *testing.T) {
	t.Parallel()
	servers := make([]*testkit.Upstream, 2)
	for i := range servers {
		servers[i] = testkit.NewUpstream(t, func(u *testkit.Upstream, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch mine := fmt.Sprintf("resp_%d", i); {
			case !bytes.Contains(lastBody(u), []byte("previous_response_id")):
				_, _ = fmt.Fprintf(w, `{"id":%q,"object":"response","status":"completed","output":[]}`, mine)
			case bytes.Contains(lastBody(u), []byte(mine)):
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"error":{"message":"busy"}}`)
			default:
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"error":{"message":"no such response"}}`)
			}
		})
	}
	b := start(t, oneModel(servers...), sticks)
	id := responseOf(t, b.post("/v1/responses", `{"model":"small","input":"hello"}`))
	got := b.post("/v1/responses", `{"model":"small","input":"go on","previous_response_id":"`+id+`"}`)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "2" {
		t.Errorf("status %d %v: %s", got.status, got.header, got.body)
	}
}

// If that server stays full, no other model, which would not know the response, is asked.
func TestAFullServerIsNotAResponseThatIsGone(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	own := testkit.NewUpstream(t, func(u *testkit.Upstream, w http.ResponseWriter, _ *http.Request) {
		if bytes.Contains(lastBody(u), []byte("slow")) {
			<-free
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"resp_own","object":"response","status":"completed","model":"m","output":[]}`)
	})
	t.Cleanup(release)
	models := oneModel(stateful(t, "other"))
	models[0].Endpoints = []pool.EndpointOptions{{Name: "own", URL: own.URL(), MaxInflight: 1}}
	models[0].Queue.Wait = option.Duration(10 * time.Millisecond)
	b := start(t, models, sticks)
	id := responseOf(t, b.post("/v1/responses", `{"model":"auto","input":"math: integrate x"}`))
	var all sync.WaitGroup
	all.Go(func() { b.post("/v1/responses", `{"model":"big","input":"slow"}`) })
	waitFor(t, "the slow one to be there", func() bool { return b.state.Models[0].Endpoints[0].Inflight() == 1 })
	got := b.post("/v1/responses", `{"model":"auto","input":"math","previous_response_id":"`+id+`"}`)
	if got.status != http.StatusServiceUnavailable || got.code(t) != "overloaded" {
		t.Errorf("status %d from %s: %s", got.status, got.header.Get("X-Signalbox-Model"), got.body)
	}
	release()
	all.Wait()
}
