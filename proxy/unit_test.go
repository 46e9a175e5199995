package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/telemetry"
	"signalbox/internal/testkit"
	"signalbox/rules"
)

func TestDurationsCarryAUnit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{"5s": 5 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "300ms": 300 * time.Millisecond} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err != nil || time.Duration(d) != want {
			t.Errorf("%q is %v, %v", in, d, err)
		}
	}
	for _, in := range []string{"5", "1.5", "", "five", "5 s", ".nan"} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken for %v", in, d)
		}
	}
}

func TestSizesMayCarryAUnit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Bytes{"65536": 65536, "64MiB": 64 << 20, "1 KiB": 1 << 10, "2GB": 2e9, "7B": 7, "0": 0} {
		var n Bytes
		if err := n.UnmarshalText([]byte(in)); err != nil || n != want {
			t.Errorf("%q is %d, %v", in, n, err)
		}
		b, err := want.MarshalText()
		if err != nil || n.UnmarshalText(b) != nil || n != want {
			t.Errorf("%d became %s and then %d", want, b, n)
		}
	}
	for _, in := range []string{"", "64M", "-1", "1.5MiB", "9999999999GiB", "MiB", "5 5MiB"} {
		var n Bytes
		if err := n.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken for %d", in, n)
		}
	}
}

func TestEveryBadOptionIsReported(t *testing.T) {
	t.Parallel()
	if err := errors.Join(DefaultOptions().Validate(), DefaultAuthOptions().Validate()); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	bad := []struct {
		err    error
		fields []string
	}{
		{Options{Listen: "x", AdminListen: "h:99999", MaxBodyBytes: 1, GapTimeout: -1, RetryBudget: math.NaN(), AutoMaxTokens: defaultAutoMaxTokens()}.Validate(), []string{
			"listen: ", "admin_listen: ", "max_body_bytes: ", "read_header_timeout: ", "connect_timeout: ", "gap_timeout: ", "max_attempts: ", "retry_budget: ", "auto_models: ",
		}},
		{AuthOptions{Mode: "open", Keys: []KeyOptions{{Name: "a", SHA256: "12"}, {Name: "a"}}}.Validate(), []string{"mode: ", "keys[0].sha256: ", `keys[1].name: "a" is used twice`, "keys[1].sha256: "}},
		{ModelOptions{
			ContextWindow: -1, Price: PriceOptions{Input: -1}, Reasoning: ReasoningOptions{Dialect: "x"}, Health: HealthOptions{Path: "x", Interval: 1}, AnswerTimeout: -1,
			Endpoints: []EndpointOptions{{Name: "a b", URL: "ftp://x", Weight: -1, APIKey: "a\nb"}, {Name: "c", URL: "http://u:p@h/v1"}, {Name: "c", URL: "http://h?q"}},
		}.Validate(), []string{
			"name: ", "endpoints[0].name: ", "endpoints[0].url: ", "endpoints[0].weight: ", "endpoints[0].api_key: ", "endpoints[1].url: ", "endpoints[2].name: ", "endpoints[2].url: ",
			"context_window: ", "price: ", "reasoning.dialect: ", "health.path: ", "health.interval: ", "answer_timeout: ",
		}},
		{ModelOptions{Name: "a", Reasoning: ReasoningOptions{Dialect: DialectKwargs}}.Validate(), []string{"endpoints: ", "reasoning.key: "}},
		{validateAll(nil, []PromptOptions{{Name: "p"}}, AuthOptions{}, DefaultOptions()), []string{"auth: mode: ", "models: ", "prompts[0].text: "}},
	}
	for i, tt := range bad {
		if tt.err == nil {
			t.Errorf("case %d: no problem found", i)
			continue
		}
		lines := strings.Split(tt.err.Error(), "\n")
		if len(lines) != len(tt.fields) {
			t.Errorf("case %d: %d problems, want %d:\n%v", i, len(lines), len(tt.fields), tt.err)
		}
		for _, f := range tt.fields {
			if !strings.Contains("\n"+tt.err.Error(), "\n"+f) {
				t.Errorf("case %d: %q is missing in\n%v", i, f, tt.err)
			}
		}
	}
	if err := (ModelOptions{Name: "a", Endpoints: []EndpointOptions{{Name: "e", URL: "http://h", APIKey: "top secret"}}}).Validate(); err == nil || strings.Contains(err.Error(), "top secret") {
		t.Errorf("a bad key gives %v", err)
	}
}

func pool(tb testing.TB, names ...string) *model {
	tb.Helper()
	o := ModelOptions{Name: "m"}
	for _, n := range names {
		o.Endpoints = append(o.Endpoints, EndpointOptions{Name: n, URL: "http://" + n + "/v1"})
	}
	m, err := newModel(o, DefaultOptions(), telemetry.Discard().Metrics)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestEndpointsThatKeepFailingAreEjectedForAWhile(t *testing.T) {
	t.Parallel()
	m := pool(t, "a", "b")
	a, b := m.endpoints[0], m.endpoints[1]
	now := time.Unix(1000, 0)
	fail := func(e *endpoint, n int) {
		for range n {
			m.failed(e, now)
		}
	}
	expect := func(step string, wantA, wantB fitness) {
		t.Helper()
		if fa, fb := a.fitness(now), b.fitness(now); fa != wantA || fb != wantB {
			t.Errorf("%s: a is %s, b is %s", step, fa, fb)
		}
	}
	fail(a, failuresToEject-1)
	expect("a few failures", fit, fit)
	a.succeeded()
	fail(a, failuresToEject-1)
	expect("a success between", fit, fit)
	fail(a, 1)
	expect("enough in a row", ejected, fit)
	_ = a.checked(nil)
	expect("a good health check does not outweigh failed requests", ejected, fit)
	fail(b, 2*failuresToEject)
	expect("the last one is never ejected", ejected, fit)
	now = now.Add(ejectionBase)
	expect("the time out is over", fit, fit)
	a.enter()
	expect("one request tries it", ejected, fit)
	a.leave()
	b.succeeded()
	fail(a, 1)
	now = now.Add(ejectionBase)
	expect("it failed again: twice the time", ejected, fit)
	now = now.Add(ejectionBase)
	expect("over again", fit, fit)
	a.succeeded()
	fail(a, 1)
	expect("a success forgets", fit, fit)
	_, _ = b.checked(io.EOF), b.checked(io.EOF)
	expect("down by health checks", fit, down)
	fail(a, 2*failuresToEject)
	expect("the last one that is up is not ejected", fit, down)
	_ = b.checked(nil)
	expect("up again", fit, fit)
}

func TestPlacementPrefersTheLessLoaded(t *testing.T) {
	t.Parallel()
	m := pool(t, "a", "b", "c")
	now := time.Unix(1000, 0)
	m.endpoints[0].enter()
	m.endpoints[1].enter()
	seen := map[string]int{}
	intn := rand.New(rand.NewPCG(1, 2)).IntN
	for range 300 {
		seen[m.pick(nil, intn, now).name]++
	}
	// c wins every draw that it is part of: two of three.
	if seen["c"] < 170 || seen["c"] > 230 || seen["a"] < 30 || seen["b"] < 30 {
		t.Errorf("picked %v", seen)
	}
	m.endpoints[0].weight = 4
	if e := m.pick([]*endpoint{m.endpoints[2]}, intn, now); e.name != "a" {
		t.Errorf("with weight 4 and one request in flight, %s was preferred to a", e.name)
	}
	if e := m.pick(m.endpoints, intn, now); e != nil {
		t.Errorf("picked %s although all were tried", e.name)
	}
	for _, e := range m.endpoints[:2] {
		_, _ = e.checked(io.EOF), e.checked(io.EOF)
	}
	if e := m.pick(nil, intn, now); e.name != "c" {
		t.Errorf("picked %s, which is down", e.name)
	}
	m.endpoints[2].ejections, m.endpoints[2].until = 1, now.Add(time.Second)
	if e := m.pick(nil, intn, now); e == nil || e.name != "c" {
		t.Error("an ejected endpoint is better than none")
	}
}

func TestWeightsDecideWhichModelComesFirst(t *testing.T) {
	t.Parallel()
	choices := []rules.Choice{{Name: "a", Weight: 1}, {Name: "b", Weight: 3}}
	first := map[string]int{}
	st := &State{intn: rand.New(rand.NewPCG(1, 2)).IntN}
	d := &decision{Decision: rules.Decision{Action: &rules.Action{Models: choices, By: "weight"}}}
	for range 400 {
		cs := st.choose(d)
		first[cs[0].Name]++
		if len(cs) != 2 || cs[0].Name == cs[1].Name {
			t.Fatalf("candidates are %v", cs)
		}
	}
	if first["b"] < 270 || first["b"] > 330 || first["a"]+first["b"] != 400 {
		t.Errorf("first were %v", first)
	}
	if diff := cmp.Diff([]rules.Choice{{Name: "a", Weight: 1}, {Name: "b", Weight: 3}}, choices); diff != "" {
		t.Errorf("the route's own list was changed:\n%s", diff)
	}
}

func TestTheBudgetGivesItsBurstAndItsShare(t *testing.T) {
	t.Parallel()
	b := newBudget()
	count := func() (n int) {
		for b.spend() {
			n++
		}
		return n
	}
	if n := count(); n != 10 {
		t.Errorf("the burst is %d retries", n)
	}
	for range 25 {
		b.earn(0.2)
	}
	if n := count(); n != 5 {
		t.Errorf("25 requests earned %d retries", n)
	}
	for range 1000 {
		b.earn(1)
	}
	if n := count(); n != 10 {
		t.Errorf("%d retries were saved up", n)
	}
}

func TestEventsEndWhereTheirBlankLineEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int
	}{
		{"", 0},
		{"data: x\n", 0},
		{"data: x\n\n", 9},
		{"data: x\n\ndata: y", 9},
		{"data: x\r\n\r\nrest", 11},
		{"data: x\r\n\r", 0},
		{"data: x\r\rrest", 9},
		{"data: x\n\r\n", 10},
		{"\n\n", 2},
		{"a\n\nb\n\nc\n", 6},
	}
	for _, tt := range tests {
		if got := eventsEnd([]byte(tt.in), 0); got != tt.want {
			t.Errorf("%q ends at %d, want %d", tt.in, got, tt.want)
		}
	}
}

// The fast search must agree with a plain one, whatever the text and wherever it starts.
func FuzzEventsEnd(f *testing.F) {
	for _, s := range []string{"data: x\n\ndata: y\n\n", "a\r\n\r\nb", "\r\r\n\n", "x\n\r\n\r", "\n\n\n", "\r\n\r\r\n"} {
		f.Add([]byte(s), 0)
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, s []byte, from int) {
		if from < 0 || from > len(s) {
			return
		}
		want := 0
		for i := from + 1; i < len(s); i++ {
			if s[i] == '\n' && (s[i-1] == '\n' || i > 1 && s[i-1] == '\r' && s[i-2] == '\n') || s[i] == '\r' && s[i-1] == '\r' {
				want = i + 1
			}
		}
		if got := eventsEnd(s, from); got != want {
			t.Errorf("%q from %d: %d, want %d", s, from, got, want)
		}
	})
}

// Cutting a stream anywhere must not change what passes.
func FuzzStreamSurvivesAnyCut(f *testing.F) {
	whole := testkit.Event("a") + ": ping\n\n" + testkit.Finish + testkit.Done
	f.Add([]byte(whole), uint16(3))
	f.Add([]byte(strings.ReplaceAll(whole, "\n", "\r\n")), uint16(1))
	f.Add([]byte("data: x\n\ndata: [DONE]"), uint16(7))
	f.Add([]byte("data: [DONE]\n\nlate"), uint16(2))
	f.Fuzz(func(t *testing.T, s []byte, step uint16) {
		got, err := pass(s, int(step)%512+1)
		at := doneEnd(s, true)
		switch {
		case at < 0 && err == nil:
			t.Errorf("%q passed as whole", s)
		case at >= 0 && err == nil && !bytes.HasPrefix(s[:at], got):
			t.Errorf("%q became %q", s, got)
		case !bytes.HasPrefix(s, got):
			t.Errorf("%q became %q", s, got)
		}
	})
}

type pieces struct {
	s    []byte
	step int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.s) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.s[:min(p.step, len(p.s))])
	p.s = p.s[n:]
	return n, nil
}

func (*pieces) Close() error { return nil }

// pass sends a stream through the copy loop.
func pass(s []byte, step int) ([]byte, error) {
	m := &model{name: "m", gap: time.Minute}
	_, watch := newWatchdog(context.Background(), 0)
	defer watch.stop()
	u := &upstream{model: m, endpoint: &endpoint{}, body: &pieces{s, step}, buf: takeWindow(), watch: watch, events: true, header: http.Header{}}
	rec := httptest.NewRecorder()
	w := newReply(rec, &http.Request{Header: http.Header{}})
	tel := telemetry.Discard()
	err := u.copyEvents(w, &tally{metrics: tel.Metrics, model: "m"}, nil)
	return rec.Body.Bytes(), err
}

func TestUsageIsFoundWhereverItStands(t *testing.T) {
	t.Parallel()
	want := tokens{prompt: 9, cached: 4, completion: 12}
	for name, body := range map[string]string{
		"compact":           testkit.Completion,
		"spaced":            `{ "usage" : { "prompt_tokens" : 9, "completion_tokens" : 12, "prompt_tokens_details" : {"cached_tokens": 4} } }`,
		"quoted in a text":  `{"choices":[{"text":"\"usage\":{\"prompt_tokens\":1}"}],"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12}}`,
		"null, then filled": `{"usage":null}{"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12}}`,
	} {
		var c tally
		c.body(nil, []byte(body))
		if c.tokens != want {
			t.Errorf("%s: %+v", name, c.tokens)
		}
		var split tally
		at := strings.LastIndex(body, "usage") + 2
		split.body([]byte(body[:at]), []byte(body[at:]))
		if split.tokens != want {
			t.Errorf("%s, split: %+v", name, split.tokens)
		}
	}
	for _, body := range []string{"", `{"usage":null}`, `{"usage"`, `{"usage":{"prompt_tokens":"9"}}`} {
		var c tally
		c.body(nil, []byte(body))
		if c.tokens != (tokens{}) {
			t.Errorf("%q: %+v", body, c.tokens)
		}
	}
}

func TestEndpointURLs(t *testing.T) {
	t.Parallel()
	m, err := newModel(ModelOptions{Name: "m", Health: HealthOptions{Path: "/status"}, Endpoints: []EndpointOptions{{Name: "a", URL: "https://h:1/base/v1/"}}}, DefaultOptions(), telemetry.Discard().Metrics)
	if err != nil {
		t.Fatal(err)
	}
	e := m.endpoints[0]
	for want, got := range map[string]*url.URL{"https://h:1/base/v1/chat/completions": e.chat, "https://h:1/status": e.probe} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
