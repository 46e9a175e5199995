package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/proxy/affinity"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/contexts"
	"signalbox/proxy/engine"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/settings"
)

// kvModel returns a model served by servers with caches, each an endpoint named a, b, ...
func kvModel(change func(*backend.ModelOptions), servers ...*kvServer) []backend.ModelOptions {
	o := backend.ModelOptions{Name: "small", ServedAs: "Org/Small-7B", ContextWindow: 1 << 20, Health: pool.HealthOptions{Path: "off"}}
	o.KV.PrefillUsPerToken, o.KV.Level = 60, kv.LevelAPC
	o.KV.Scrape.Interval = option.Duration(100 * time.Millisecond)
	for i, s := range servers {
		o.Endpoints = append(o.Endpoints, pool.EndpointOptions{Name: string(rune('a' + i)), URL: s.URL + "/v1"})
	}
	if change != nil {
		change(&o)
	}
	return []backend.ModelOptions{o}
}

const toSmall = "routes: []\ndefault: {models: [small]}\n"

// placedBench returns a proxy in front of n servers with caches.
func placedBench(t *testing.T, n int, change func(*backend.ModelOptions), more ...func(*setup)) (*bench, []*kvServer) {
	t.Helper()
	var servers []*kvServer
	for range n {
		servers = append(servers, newKVServer(t, quick()))
	}
	return placedOn(t, servers, change, more...), servers
}

// placedOn is placedBench with existing servers.
func placedOn(t *testing.T, servers []*kvServer, change func(*backend.ModelOptions), more ...func(*setup)) *bench {
	t.Helper()
	plain := func(s *setup) { s.routes = toSmall }
	b := start(t, kvModel(change, servers...), append([]func(*setup){plain}, more...)...)
	b.state.places.Salts, b.state.salted = engine.NewSalts([]byte("a secret")), true // a random one would give other homes each time
	return b
}

// kib returns n KiB of text that begins with a word of its own.
func kib(seed string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n<<10; i++ {
		fmt.Fprintf(&b, "%s says word %d; ", seed, i)
	}
	return b.String()
}

// told is what a response reported: its cached tokens, its endpoint and the prediction.
type told struct {
	prompt, cached, predicted int
	endpoint, header          string
}

func (b *bench) told(body string, header ...string) told {
	b.tb.Helper()
	got := b.chat(body, header...)
	if got.status != http.StatusOK {
		b.tb.Fatalf("status %d: %s", got.status, got.body)
	}
	out := told{endpoint: got.header.Get("X-Signalbox-Endpoint"), header: got.header.Get("X-Signalbox-Context-Predicted-Tokens")}
	out.predicted, _ = strconv.Atoi(out.header)
	out.prompt, out.cached = numberIn(got.body, `"prompt_tokens":`), numberIn(got.body, `"cached_tokens":`)
	return out
}

func numberIn(body, name string) int {
	_, rest, ok := strings.Cut(body, name)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(rest[:strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })])
	return n
}

// turns returns a conversation with a system text and n questions with their answers.
func turns(system string, n int) string {
	b := `{"model":"auto","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"` + system + `"}`
	for i := range n {
		b += fmt.Sprintf(`,{"role":"user","content":"question %d"}`, i)
		if i < n-1 {
			b += `,{"role":"assistant","content":"a short answer."}`
		}
	}
	return b + "]}"
}

func TestConversationsReturnToTheirPrompt(t *testing.T) {
	t.Parallel()
	// They compute as slowly as the proxy expects. The proxy learns how fast each one is; if
	// computing took no time, a pause of the machine would make one endpoint appear hundreds of
	// times slower.
	o := quick()
	o.Prefill = 60 * time.Microsecond
	servers := []*kvServer{newKVServer(t, o), newKVServer(t, o), newKVServer(t, o)}
	b := placedOn(t, servers, nil)
	used := map[string]bool{}
	for c := range 6 {
		system := kib(fmt.Sprintf("expert %d", c), 16)
		first := b.told(turns(system, 1))
		used[first.endpoint] = true
		if first.header != "0" || first.cached != 0 {
			t.Errorf("first request of conversation %d: %+v", c, first)
		}
		for n := 2; n <= 4; n++ {
			got := b.told(turns(system, n))
			if got.endpoint != first.endpoint {
				t.Errorf("turn %d of conversation %d goes to %s, not %s", n, c, got.endpoint, first.endpoint)
			}
			if got.predicted < got.prompt*8/10 || got.cached < got.predicted*9/10 {
				t.Errorf("turn %d of conversation %d: %+v", n, c, got)
			}
		}
	}
	if len(used) < 2 {
		t.Errorf("6 conversations all went to %v", used)
	}
	placed := func(where string) float64 {
		return max(sampleOf(b.metrics(), `signalbox_placements_total{model="small",where="`+where+`"}`), 0)
	}
	// A request is counted when its response has ended, which the client may know first.
	for end := time.Now().Add(patience); placed("home")+placed("away") < 24 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	page := b.metrics()
	if predicted, confirmed := sampleOf(page, `signalbox_prefix_tokens_total{kind="predicted",model="small"}`), sampleOf(page, `signalbox_prefix_tokens_total{kind="confirmed",model="small"}`); predicted < 50_000 || confirmed < predicted*0.9 || confirmed > predicted*1.1 {
		t.Errorf("%v tokens predicted, %v confirmed", predicted, confirmed)
	}
	home, away := placed("home"), placed("away")
	if home+away != 24 || home < 12 {
		t.Errorf("of 24 requests %v were placed at home, %v away", home, away)
	}
	_ = servers
}

func sampleOf(page, name string) float64 {
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			return v
		}
	}
	return -1
}

func TestWhatARequestBelongsTo(t *testing.T) {
	t.Parallel()
	b, _ := placedBench(t, 4, nil)
	short := `{"model":"auto",%s"messages":[{"role":"user","content":"%s"}]}`
	for _, c := range []struct {
		name  string
		field string // with ID in place of the name
		head  string
	}{
		{"session of the body", `"signalbox":{"session":"ID"},`, ""},
		{"session of the header", "", "X-Signalbox-Session"},
		{"prompt_cache_key", `"prompt_cache_key":"ID",`, ""},
		{"previous_response_id", `"previous_response_id":"ID",`, ""},
		{"X-Session-Id", "", affinity.SessionHeader},
		{"X-Claude-Code-Session-Id", "", affinity.ClaudeSessionHeader},
	} {
		ends := map[string]bool{}
		for id := range 12 {
			name := fmt.Sprintf("s-%d", id)
			ask := func(text string) told {
				body := fmt.Sprintf(short, strings.ReplaceAll(c.field, "ID", name), text)
				if c.head != "" {
					return b.told(body, c.head, name)
				}
				return b.told(body)
			}
			first, second := ask("hello"), ask("and now something else")
			if first.endpoint != second.endpoint || first.header == "" {
				t.Errorf("%s: %+v, then %+v", c.name, first, second)
			}
			ends[first.endpoint] = true
		}
		if len(ends) < 3 {
			t.Errorf("%s: 12 names went to %v", c.name, ends)
		}
	}
	for _, plain := range []string{
		fmt.Sprintf(short, "", "hello"), fmt.Sprintf(short, `"prompt_cache_key":null,`, "hello"), fmt.Sprintf(short, `"previous_response_id":"",`, "hello"),
	} {
		if got := b.told(plain); got.header != "" {
			t.Errorf("a prediction for %s: %+v", plain, got)
		}
	}
}

func TestPlacementCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 2, nil, func(s *setup) { s.options.Placement = settings.PlacementOff })
	system := kib("expert", 8)
	ends := map[string]int{}
	for range 40 {
		got := b.told(turns(system, 1), "X-Session-Id", "one")
		if got.header != "" {
			t.Fatalf("a prediction: %+v", got)
		}
		ends[got.endpoint]++
	}
	if len(ends) != 2 {
		t.Errorf("all went to %v", ends)
	}
	if salt := servers[0].requests()[0][engine.FieldSalt]; len(salt) < 40 {
		t.Errorf("without placement the salt is %s", salt)
	}
}

func TestTenantsShareNothing(t *testing.T) {
	t.Parallel()
	keys := auth.Options{Mode: auth.ModeKeys, Keys: []auth.KeyOptions{
		{Name: "k1", SHA256: hashOf("one"), Tenant: "t1"}, {Name: "k2", SHA256: hashOf("two"), Tenant: "t2"}, {Name: "k3", SHA256: hashOf("three"), Tenant: "t1"},
	}}
	b, servers := placedBench(t, 1, nil, func(s *setup) { s.auth = keys })
	system := kib("expert", 16)
	ask := func(key, field string) told {
		body := strings.Replace(turns(system, 1), `"stream"`, field+`"stream"`, 1)
		return b.told(body, "Authorization", "Bearer "+key)
	}
	if first := ask("one", ""); first.cached != 0 || first.predicted != 0 {
		t.Fatalf("first: %+v", first)
	}
	if colleague := ask("three", ""); colleague.cached < 3000 || colleague.predicted < 3000 {
		t.Errorf("a key of the same tenant: %+v", colleague)
	}
	if other := ask("two", ""); other.cached != 0 || other.predicted != 0 {
		t.Errorf("another tenant finds %+v", other)
	}
	var salt1 string
	for i, body := range servers[0].requests() {
		if s := string(body[engine.FieldSalt]); i == 0 {
			salt1 = s
		} else if same := s == salt1; same != (i == 1) || len(s) != 45 {
			t.Errorf("request %d has the salt %s, the first one had %s", i, s, salt1)
		}
	}
	// A salt set by the client never reaches the server, even if it is the other tenant's.
	if thief := ask("two", `"cache_salt":`+salt1+","); thief.cached < 3000 {
		t.Errorf("the tenant does not even find its own: %+v", thief)
	}
	for _, model := range []string{"auto", "small"} {
		body := strings.Replace(turns(kib("heist", 16), 1), `"auto"`, `"`+model+`","cache_salt":`+salt1, 1)
		b.told(body, "Authorization", "Bearer two")
		all := servers[0].requests()
		if s := string(all[len(all)-1][engine.FieldSalt]); s == salt1 || len(s) != 45 {
			t.Errorf("model %s: the server got the salt %s", model, s)
		}
	}
	// Nor does the prediction reveal what others have sent.
	if other := ask("one", ""); other.predicted < 3000 {
		t.Errorf("own prompt: %+v", other)
	}
}

func TestAPlainEndpointGetsNoSalt(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	models := oneModel(up)
	b := start(t, models)
	for _, model := range []string{"auto", "small"} {
		b.chat(`{"model":"` + model +
			`","cache_salt":"mine","x":1,"messages":[{"role":"user","content":"hello"}]}`)
		if got := string(up.Last(t).Body); strings.Contains(got, "salt") || !strings.Contains(got,
			`"x":1`) {
			t.Errorf("model %s: %s", model, got)
		}
	}
}

func TestALevelIsFoundOut(t *testing.T) {
	t.Parallel()
	auto := func(o *backend.ModelOptions) { o.KV.Level = kv.LevelAuto }
	servers := []*kvServer{newKVServer(t, quick()), newKVServer(t, quick())}
	servers[1].set(&servers[1].silent, true) // before anybody has looked at its metrics
	b := placedOn(t, servers, auto, func(s *setup) { s.health = true })
	w := b.state.Models[0].Servers
	eventually(t, func() bool { return w.All[0].Salted.Load() }, "the level of a vLLM")
	for i := range 12 {
		b.told(turns("short", 1), "X-Session-Id", strconv.Itoa(i))
	}
	for i, want := range []bool{true, false} {
		all := servers[i].requests()
		if len(all) == 0 {
			t.Fatalf("server %d got nothing", i)
		}
		last := all[len(all)-1]
		if _, salted := last[engine.FieldSalt]; salted != want {
			t.Errorf("server %d: salted %v, want %v", i, salted, want)
		}
	}
	if got := w.Stats(0); got.Blocks > 3000*16/256 {
		t.Errorf("its size is not known: %+v", got)
	}
}

// eventually waits for other goroutines.
func eventually(t *testing.T, done func() bool, what string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("%s did not happen within %s", what, patience)
		case <-tick.C:
		}
	}
}

func TestARestartIsNoticed(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 2, nil, func(s *setup) { s.health = true })
	w := b.state.Models[0].Servers
	system := kib("expert", 16)
	first := b.told(turns(system, 1))
	i := int(first.endpoint[0] - 'a')
	if got := b.told(turns(system, 2)); got.predicted < 3000 {
		t.Fatalf("before the restart: %+v", got)
	}
	seen := servers[i].pages()
	eventually(t, func() bool { return servers[i].pages() >= seen+2 }, "a look at its metrics") // of two, the first was taken in
	servers[i].restart()
	// Before it is noticed, one prediction may be wrong; responses are not affected.
	wrong := 0
	for n := 3; n < 6; n++ {
		if got := b.told(turns(system, n)); got.predicted > 2*max(got.cached, 1) {
			wrong++
		}
	}
	if wrong > 1 {
		t.Errorf("%d wrong predictions after a restart", wrong)
	}
	eventually(t, func() bool { return w.Stats(i).Restarts == 1 }, "the restart")
	if got := b.told(turns(kib("another", 16), 1)); got.predicted != 0 {
		t.Errorf("after the restart: %+v", got)
	}
	if n := sampleOf(b.metrics(), `signalbox_endpoint_restarts_total{endpoint="`+first.endpoint+`",model="small"}`); n != 1 {
		t.Errorf("%v restarts are counted", n)
	}
}

func TestKeysOfADeadEndpointGoToTheirSecondHome(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 3, nil)
	where := func() map[string]string {
		out := map[string]string{}
		for i := range 24 {
			id := strconv.Itoa(i)
			out[id] = b.told(turns("short", 1), "X-Session-Id", id).endpoint
		}
		return out
	}
	before := where()
	servers[0].Close()
	after, again := where(), where()
	moved := map[string]bool{}
	for id, end := range before {
		switch {
		case end != "a" && after[id] != end:
			t.Errorf("session %s left %s, which is well, for %s", id, end, after[id])
		case end == "a" && (after[id] == "a" || again[id] != after[id]):
			t.Errorf("session %s of the dead endpoint went to %s, then %s", id, after[id], again[id])
		case end == "a":
			moved[after[id]] = true
		}
	}
	if len(moved) != 2 {
		t.Errorf("all keys of the dead endpoint went to %v", moved)
	}
}

func TestHotSpotsSpillAndComeBack(t *testing.T) {
	t.Parallel()
	slow := quick()
	slow.Seats, slow.Prefill, slow.Decode = 2, 20*time.Microsecond, 10*time.Millisecond
	servers := []*kvServer{newKVServer(t, slow), newKVServer(t, slow), newKVServer(t, slow)}
	b := start(t, kvModel(func(o *backend.ModelOptions) { o.KV.Seats, o.KV.PrefillUsPerToken = 2, 20 }, servers...), func(s *setup) { s.routes = toSmall })
	system := kib("expert", 16)
	home := b.told(turns(system, 1), "X-Session-Id", "hot").endpoint
	ends := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			got := b.told(turns(system, 2), "X-Session-Id", "hot")
			mu.Lock()
			ends[got.endpoint]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(ends) < 2 {
		t.Errorf("24 requests at once all went home: %v", ends)
	}
	if ends[home] == 0 {
		t.Errorf("home %s got %d of 24: %v", home, ends[home], ends)
	}
	for range 3 {
		if got := b.told(turns(system, 3), "X-Session-Id", "hot"); got.predicted < 3000 {
			t.Errorf("after the rush: %+v", got)
		}
	}
}

func TestWhatWasLearntSurvivesAReload(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 2, nil)
	system := kib("expert", 16)
	first := b.told(turns(system, 1))
	more := kvModel(nil, append(servers, newKVServer(t, quick()))...)
	next := b.newState(setup{options: settings.DefaultServer(), auth: auth.DefaultOptions(), models: more, routes: toSmall, classifier: b.classifier}, 2)
	old := b.state
	b.proxy.Swap(next)
	t.Cleanup(old.Close)
	b.state = next
	if got := b.told(turns(system, 2)); got.endpoint != first.endpoint || got.predicted < 3000 || got.cached < 3000 {
		t.Errorf("after the reload: %+v, before %+v", got, first)
	}
}

func TestAnEndpointTakesBlocksFromAnother(t *testing.T) {
	t.Parallel()
	peers := func(o *backend.ModelOptions) {
		for i := range o.Endpoints {
			o.Endpoints[i].KV.P2P = kv.Peer{Host: "10.0.0." + strconv.Itoa(i+1), Port: 5710}
		}
	}
	b, servers := placedBench(t, 2, peers, allows(engine.Param{Name: rewrite.FieldTransfer}))
	w := b.state.Models[0].Servers
	system := kib("expert", 16)
	first := b.told(turns(system, 1), "X-Session-Id", "x")
	home := int(first.endpoint[0] - 'a')
	var tickets []affinity.Ticket
	for range 400 { // the home is busy
		tickets = append(tickets, w.Sent(time.Now(), &affinity.Request{Tokens: 100_000}, home))
	}
	got := b.told(turns(system, 2), "X-Session-Id", "x")
	if got.endpoint == first.endpoint {
		t.Fatalf("a request went to a busy home: %+v", got)
	}
	params := string(lastOf(servers[1-home])[rewrite.FieldTransfer])
	if want := fmt.Sprintf(`"remote_host":"10.0.0.%d","remote_port":5710}}`, home+1); !strings.HasPrefix(params, `{"remote_kv_source":{"kv_request_id":"kv_`) || !strings.HasSuffix(params, want) {
		t.Errorf("kv_transfer_params %s", params)
	}
	// A caller with this permission sets all of it: nothing is added to its own source or prompt.
	const own = `{"remote_prefiller":{"h":1},"remote_kv_source":{"remote_host":"own"}}`
	b.told(strings.Replace(turns(system, 2), `"stream"`, `"kv_transfer_params":`+own+`,"stream"`,
		1), "X-Session-Id", "x")
	if got := string(lastOf(servers[1-home])[rewrite.FieldTransfer]); got != own {
		t.Errorf("kv_transfer_params %s, want %s", got, own)
	}
	for i := range tickets {
		tickets[i].End(time.Now(), affinity.Usage{Failed: true})
	}
}

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func lastOf(s *kvServer) map[string]json.RawMessage {
	all := s.requests()
	return all[len(all)-1]
}

func TestARefusedPromptIsNotPredicted(t *testing.T) {
	t.Parallel()
	b, servers := placedBench(t, 2, nil)
	long := turns(kib("an expert", 16), 1)
	for n, body := range []string{long, strings.Replace(long,
		`"stream":true,"stream_options":{"include_usage":true},`, "", 1)} {
		for _, s := range servers {
			s.refuse(`{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`)
		}
		if got := b.chat(body); got.status != http.StatusBadRequest {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		b.recorded(n + 1)
		for _, s := range servers {
			s.refuse("")
		}
		for i := range servers {
			if n := b.state.Models[0].Servers.Stats(i).Blocks; n != 0 {
				t.Errorf("endpoint %d is said to have %d blocks of a prompt that it refused", i, n)
			}
		}
	}
	if got := b.told(long); got.predicted != 0 {
		t.Errorf("%+v", got)
	}
}

// A server reuses whole blocks from its cache, and never the end of a prompt that it adds itself.
func TestPredictionsAreWholeBlocksOfTheServer(t *testing.T) {
	t.Parallel()
	o := quick()
	o.BlockTokens = 128
	servers := []*kvServer{newKVServer(t, o)}
	b := placedOn(t, servers, nil, func(s *setup) { s.health = true })
	owner, ref := stored(t, b)
	b.proxy.ServeContexts(contexts.New(b.proxy.resolver.Store, contexts.Options{Resident: b.proxy, Warmer: b.proxy}))
	waitFor(t, "the first report", func() bool { return servers[0].pages() > 1 }) // the first one was taken in
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
		t.Fatal(err)
	}
	about := `{"model":"auto","stream":true,"stream_options":{"include_usage":true},"signalbox":{"context":"` + ref.ID +
		`"},"messages":[` + hi + `]}`
	for n := range 3 {
		got := b.told(about)
		if got.predicted%128 != 0 || got.predicted == 0 || got.predicted > got.cached ||
			got.predicted < got.cached-128 {
			t.Errorf("request %d: %d tokens predicted, %d cached of %d", n, got.predicted, got.cached, got.prompt)
		}
	}
	if at := b.residents(ref.ID); len(at) != 1 || at[0].Tokens%128 != 0 {
		t.Errorf("the context is at %+v", at)
	}
	if err := b.proxy.Warm(t.Context(), owner, ref, nil, true); err != nil {
		t.Fatal(err)
	}
	if n := sampleOf(b.metrics(), `signalbox_warm_calls_total{model="small",result="there"}`); n != 1 {
		t.Errorf("%v contexts were there, want 1", n)
	}
}
