package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"
	stdlog "log" //nolint:depguard // where net/http writes what it has no other place for
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/internal/testkit"
	"signalbox/memory/conversation"
	"signalbox/memory/outcomes"
	"signalbox/memory/redis"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/exchange"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/recall"
	"signalbox/proxy/settings"
	"signalbox/rules"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) {
	// net/http's client reports there that hostile servers have sent more than their responses
	stdlog.SetOutput(io.Discard)
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue { // most tests wait for most of their time
		_ = f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
	testkit.VerifyNoLeaks(m)
}

// patience is how long a test waits before it fails.
const patience = testkit.Patience

// fakeClassifier recognises the domain of a text by its first word and a jailbreak by its name.
type fakeClassifier struct {
	signals  signal.Mask
	broken   signal.Mask    // kinds that cannot be extracted
	why      signal.Reason  // the reason of broken kinds; none stands for no_model
	lazy     bool           // leaves kinds alone
	blocking chan struct{}  // when not nil, extraction announces itself and waits for its context
	left     chan time.Time // when that context ended
	panics   bool

	mu   sync.Mutex
	runs []signal.Mask
}

func (c *fakeClassifier) Signals() signal.Mask { return c.signals }
func (*fakeClassifier) Degraded() []string     { return nil }

func (c *fakeClassifier) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	c.mu.Lock()
	c.runs = append(c.runs, need)
	c.mu.Unlock()
	switch {
	case c.panics:
		panic("classifier fault")
	case c.lazy:
		return
	case c.blocking != nil:
		c.blocking <- struct{}{}
		<-ctx.Done()
		c.left <- time.Now()
		set.Fail(need, signal.ReasonCanceled)
		return
	}
	set.Fail(need&c.broken, cmp.Or(c.why, signal.ReasonNoModel))
	for _, k := range (need &^ c.broken).Kinds() {
		set.Put(k, fakeValue(k, text.LastUser))
	}
}

func fakeValue(k signal.Kind, text string) signal.Value {
	labels := []string{"math", "law", "other"}
	v := signal.Value{State: signal.Known, Source: "fake", Provider: "cpu"}
	has := func(word string) bool { return bytes.Contains([]byte(text), []byte(word)) }
	if k == signal.Domain {
		v.Labels, v.Probs, v.Label = labels, []float32{0.05, 0.05, 0.9}, "other"
		for i, l := range labels[:2] {
			if has(l) {
				v.Probs = []float32{0.05, 0.05, 0.05}
				v.Label, v.Probs[i] = l, 0.9
			}
		}
		v.Score = 0.9
	}
	if l, ok := strings.CutPrefix(text, "labelled "); ok && k == signal.Domain {
		v.Label = l
	}
	if k == signal.Jailbreak {
		v.Labels, v.Probs, v.Label, v.Score = []string{"benign", "jailbreak"}, []float32{0.99, 0.01}, "benign", 0.01
		if has("ignore all instructions") {
			v.Probs, v.Label, v.Score = []float32{0.02, 0.98}, "jailbreak", 0.98
		}
	}
	if k == signal.Injection {
		v.Labels, v.Probs, v.Label, v.Score = []string{"benign", "injection"},
			[]float32{0.99, 0.01}, "benign", 0.01
	}
	if k == signal.Complexity {
		v.Labels, v.Probs, v.Label, v.Score = []string{"low", "medium", "high"}, []float32{0.1, 0.2, 0.7}, "high", 0.7
	}
	if k == signal.Embedding {
		v.Vector = bag(text)
	}
	if k == signal.Keyword && has("titan") {
		v.Labels = []string{"titan"}
	}
	return v
}

func (c *fakeClassifier) asked() []signal.Mask {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]signal.Mask(nil), c.runs...)
}

const testRoutes = `
routes:
  - {name: titan, when: {keyword: titan}, block: {message: "Not in writing."}}
  - {name: block-jailbreak, when: {jailbreak: true}, on_unknown: match, block: {message: "Declined by policy."}}
  - {name: greet, when: {header: {name: X-Greet, equals: "yes"}}, answer: {text: "Hello there."}}
  - {name: math, when: {domain: {in: [math], min_score: 0.5}}, use: {models: [big, small], reasoning: high, prompt: mathematician, max_tokens: auto}}
  - {name: law, when: {domain: law}, on_unknown: error, use: {models: [effort], reasoning: auto, max_tokens: 700}}
default: {models: [small]}
`

// decision is where a request goes and what that was based on.
type decision = decide.Decision

// chatPath is the path of most requests.
const chatPath = exchange.ChatPath

// bench is a proxy in front of scripted upstreams.
type bench struct {
	*httptest.Server
	tb         testing.TB
	proxy      *Proxy
	state      *State
	classifier *fakeClassifier
	log        *testkit.Log
	tel        *telemetry.Telemetry
}

// setup is what a test changes about the default bench.
type setup struct {
	options    settings.Server
	auth       auth.Options
	models     []backend.ModelOptions
	routes     string
	classifier *fakeClassifier
	health     bool // run the health checks
	guard      guardrail.Options
	claims     guardrail.Claims
	cache      recall.Options      // no mode: the cache is never set up
	answers    *recall.Answers     // nil: of the test's own
	config     string              // fingerprint
	stick      decide.StickOptions // no age: nothing sticks
	talks      *conversation.Store
	outcomes   *outcomes.Store // nil: nothing is learnt
	explore    decide.ExploreOptions
	signs      *decide.SignOptions // nil: feedback alone
}

// oneModel returns every model of testRoutes, served by the given upstreams.
func oneModel(ups ...*testkit.Upstream) []backend.ModelOptions {
	kwargs := reasoning.Options{Dialect: reasoning.DialectKwargs, Key: "enable_thinking"}
	return []backend.ModelOptions{
		modelOptions("big", "Org/Big-70B", kwargs, ups...),
		modelOptions("small", "Org/Small-7B", reasoning.Options{}, ups...),
		modelOptions("effort", "", reasoning.Options{Dialect: reasoning.DialectEffort}, ups...),
	}
}

func modelOptions(name, served string, r reasoning.Options, ups ...*testkit.Upstream) backend.ModelOptions {
	o := backend.ModelOptions{Name: name, ServedAs: served, Reasoning: r, ContextWindow: 8192, Price: choose.Price{Input: 1, Output: 2}}
	for i, u := range ups {
		o.Endpoints = append(o.Endpoints, pool.EndpointOptions{Name: name + "-" + string(rune('a'+i)), URL: u.URL(), APIKey: "backend-secret"})
	}
	return o
}

// patientRedis connects to a server with timeouts suitable for a busy machine.
func patientRedis(tb testing.TB, server *testkit.Redis) *redis.Store {
	tb.Helper()
	s, err := redis.Open(tb.Context(), redis.Options{
		URL: server.URL(), RateBudget: patience, MetaBudget: patience, BlobBudget: patience, WriteBudget: patience,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func start(tb testing.TB, models []backend.ModelOptions, change ...func(*setup)) *bench {
	tb.Helper()
	s := setup{
		options: settings.DefaultServer(), auth: auth.DefaultOptions(), models: models, routes: testRoutes,
		classifier: &fakeClassifier{signals: signal.MaskOf(signal.Keyword, signal.Domain, signal.Jailbreak, signal.Complexity)},
		guard:      guardrail.DefaultOptions(),
	}
	s.options.ConnectTimeout = option.Duration(patience) // a busy machine takes longer than its default
	for _, f := range change {
		f(&s)
	}
	log := &testkit.Log{}
	tel, err := telemetry.New(tb.Context(), telemetry.Options{Log: "info", LogFormat: "json", Prometheus: true}, "test", log)
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{tb: tb, classifier: s.classifier, log: log, tel: tel}
	b.state = b.newState(s, 1)
	b.proxy = New(s.options, b.state, tel)
	b.Server = httptest.NewUnstartedServer(b.proxy.Handler())
	b.Config.ReadHeaderTimeout = time.Duration(s.options.ReadHeaderTimeout)
	b.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	b.Start()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	if s.health {
		go func() { done <- b.proxy.Run(ctx) }()
	} else {
		done <- nil
	}
	tb.Cleanup(func() {
		b.Close()
		stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		b.proxy.transport.CloseIdleConnections()
		b.state.Close()
	})
	return b
}

func (b *bench) newState(s setup, generation uint64) *State {
	b.tb.Helper()
	o := &StateOptions{
		Models: s.models, Auth: s.auth, Server: s.options, Program: compile(b.tb, s),
		Prompts:    []settings.Prompt{{Name: "mathematician", Text: "You are a careful \"mathematician\"."}},
		Classifier: s.classifier, Generation: generation, Claims: s.claims,
		Stick: s.stick, Talks: s.talks, Outcomes: decide.DefaultOutcomeOptions(), Learnt: s.outcomes,
		Cache: s.cache, Answers: s.answers, Fingerprint: s.config,
	}
	if s.guard.Marker != "" { // otherwise a setup of its own says nothing about the guard
		o.Guard = &s.guard
	}
	var err error
	if s.stick.MaxAge > 0 && s.talks == nil {
		o.Talks = conversation.New(nil, "")
	}
	if s.outcomes != nil {
		o.Outcomes.Learn, o.Outcomes.Explore = "feedback", s.explore
		if s.signs != nil {
			o.Outcomes.Learn, o.Outcomes.Signs = "all", *s.signs
		}
	}
	if s.cache.Mode != "" && s.answers == nil {
		if o.Answers, err = recall.NewAnswers(s.cache, nil, nil); err != nil {
			b.tb.Fatal(err)
		}
	}
	st, err := NewState(o, b.tel)
	if err != nil {
		b.tb.Fatal(err)
	}
	return st
}

func compile(tb testing.TB, s setup) *rules.Program {
	tb.Helper()
	var doc struct {
		Routes, Default, Conditions yaml.Node
	}
	if err := yaml.Unmarshal([]byte(s.routes), &doc); err != nil {
		tb.Fatal(err)
	}
	env := rules.Env{
		AutoModels: s.options.AutoModels, Prompts: []string{"mathematician"}, Signals: s.classifier.signals,
		Labels: make(map[signal.Kind][]string), Thresholds: make(map[signal.Kind]float64),
	}
	env.Labels[signal.Keyword], env.Labels[signal.Domain] = []string{"titan"}, []string{"math", "law", "other"}
	env.Thresholds[signal.Jailbreak] = 0.5
	for _, m := range s.models {
		env.Models = append(env.Models, m.Name)
	}
	program, problems := rules.Compile(rules.Source{Routes: &doc.Routes, Default: &doc.Default}, env)
	for _, p := range problems {
		if !p.Warning {
			tb.Fatalf("rules: %+v", p)
		}
	}
	return program
}

// answered is a response that a client received.
type answered struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (b *bench) post(path, body string, header ...string) answered {
	b.tb.Helper()
	return b.do(http.MethodPost, path, body, header...)
}

func (b *bench) chat(body string, header ...string) answered {
	b.tb.Helper()
	return b.post("/v1/chat/completions", body, header...)
}

func (b *bench) do(method, path, body string, header ...string) answered {
	b.tb.Helper()
	req, err := http.NewRequestWithContext(b.tb.Context(), method, b.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		b.tb.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header[header[i]] = append(req.Header[header[i]], header[i+1])
	}
	res, err := b.Client().Do(req)
	if err != nil {
		return answered{err: err}
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header, string(got), err}
}

// envelope is the error of a response.
type envelope struct {
	Message, Type string
	Param, Code   *string
}

func (a answered) error(tb testing.TB) envelope {
	tb.Helper()
	var body struct{ Error map[string]any }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || len(body.Error) != 4 {
		tb.Fatalf("status %d with a body that is no error of the API: %q (%v)", a.status, a.body, err)
	}
	var e struct{ Error envelope }
	_ = json.Unmarshal([]byte(a.body), &e)
	return e.Error
}

func (a answered) code(tb testing.TB) string {
	tb.Helper()
	if e := a.error(tb); e.Code != nil {
		return *e.Code
	}
	return ""
}

func ask(text string) string {
	b, _ := json.Marshal(text)
	return `{"model":"auto","messages":[{"role":"user","content":` + string(b) + `}]}`
}

func askStream(text string) string {
	b, _ := json.Marshal(text)
	return `{"model":"auto","stream":true,"messages":[{"role":"user","content":` + string(b) + `}]}`
}

// within fails the test if nothing arrives in time.
func within[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		tb.Fatalf("%s did not happen within %s", what, patience)
		panic("unreachable")
	}
}

// counted reports whether a page has a counter above 0, with any labels.
func counted(page, name string) bool {
	return regexp.MustCompile(`(?m)^` + name + `(\{[^}]*\})? [0-9.e+]*[1-9]`).MatchString(page)
}
