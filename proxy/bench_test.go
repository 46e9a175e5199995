package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/framing"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/pool"
	"signalbox/proxy/recall"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// sink is a client that reads everything at once.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header            { return s.header }
func (*sink) Write(b []byte) (int, error)      { return len(b), nil }
func (*sink) WriteHeader(int)                  {}
func (*sink) Flush()                           {}
func (*sink) SetWriteDeadline(time.Time) error { return nil }

// endless gives the same event again and again, and the end when left is used up.
type endless struct {
	event []byte
	left  int
}

func (e *endless) Read(b []byte) (int, error) {
	e.left--
	switch {
	case e.left > 0:
		return copy(b, e.event), nil
	case e.left == 0:
		return copy(b, testkit.Done), nil
	}
	return 0, io.EOF
}

func (*endless) Close() error { return nil }

// filters are what stands between a stream and its client.
type filters struct {
	mode                  guard.Mode // of the guard; Off for none
	restored, saved, kept bool
}

// String names the filters, for benchmarks.
func (f filters) String() string {
	name := f.mode.String()
	for _, one := range []struct {
		on   bool
		name string
	}{{f.restored, "restored"}, {f.saved, "saved"}, {f.kept, "kept"}} {
		if one.on {
			name += "+" + one.name
		}
	}
	return name
}

// outcome prepares what the filters need of a request.
func (f filters) outcome(tb testing.TB, tel *telemetry.Telemetry) *exchange.Exchange {
	tb.Helper()
	o := &exchange.Exchange{Req: &openai.Request{}, Decision: &decision{}}
	if f.mode != guard.Off {
		o.Guarding = guardingFor(tb, tel.Metrics, f.mode)
	}
	if f.restored {
		req, err := openai.ParseChat([]byte(`{"model":"m","messages":[{"role":"user","content":"ann@example.com"}]}`), openai.Limits{})
		if err != nil {
			tb.Fatal(err)
		}
		if _, o.Vault, err = redact.Hide(tb.Context(), req, []signal.Span{{Type: "EMAIL_ADDRESS", End: len("ann@example.com"), Score: 1}}, nil); err != nil {
			tb.Fatal(err)
		}
	}
	if f.saved {
		o.Contexts, o.Req.Extras.SaveContext = &resolve.Contexts{}, &openai.SaveContext{}
	}
	return o
}

// copier prepares the copy loop for a stream of n events, through filters.
func copier(tb testing.TB, event string, f filters) (run func(n int)) {
	tb.Helper()
	tel := telemetry.Discard()
	m := &backend.Model{Model: &choose.Model{Name: "m"}, Group: &pool.Group{}, Gap: time.Minute}
	src := &endless{event: []byte(event)}
	w := downstream.New(&sink{http.Header{}}, &http.Request{Header: http.Header{}})
	w.Patience = 30 * time.Second
	t := &meter{metrics: tel.Metrics, model: "m"}
	o := f.outcome(tb, tel)
	return func(n int) {
		src.left = n
		u := upstream.Open(context.Background(), m, &pool.Endpoint{}, 0,
			func(context.Context) io.ReadCloser { return src }, &response.StreamOptions{})
		defer u.Close()
		u.Observe(t)
		if f.kept {
			u.Observe(&recall.Tape{Recorder: cache.NewRecorder(recall.LongestKept, time.Now, true)})
		}
		if err := copyStream(context.Background(), w, u, o, t); err != nil {
			tb.Fatal(err)
		}
	}
}

// guardingFor prepares the check of an answer against one fact.
func guardingFor(tb testing.TB, m *telemetry.Metrics, mode guard.Mode) *guardrail.Check {
	tb.Helper()
	w, err := guardrail.New(guardrail.DefaultOptions(), guardrail.Claims{}, m)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Close)
	e, err := evidence.New(tb.Context(), []evidence.Source{{Text: "The tower is 330 m high.", Fact: true}}, evidence.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	policy := w.Policy
	policy.Mode = mode
	return &guardrail.Check{Job: guard.Job{Evidence: e, Policy: policy, MayAnnotate: true}, Guard: w}
}

// An event that nobody has to change passes all filters without an allocation: a call of a tool,
// which the guard does not read, and without the guard a text. What is kept and saved grows, which
// now and then allocates.
func TestAChunkCostsNoAllocation(t *testing.T) {
	text, call := testkit.Event(" token"), callChunk(`{"tool_calls":[{"index":0,"function":{"arguments":" token"}}]}`)
	for _, tt := range []struct {
		event string
		f     filters
	}{
		{text, filters{}},
		{call, filters{}},
		{text, filters{restored: true, saved: true, kept: true}},
		{call, filters{restored: true, saved: true, kept: true}},
		{call, filters{mode: guard.Observe}},
		{call, filters{mode: guard.Annotate, restored: true, saved: true, kept: true}},
		{call, filters{mode: guard.Hold, restored: true, saved: true, kept: true}},
	} {
		run := copier(t, tt.event, tt.f)
		run(100) // metrics remember their labels
		// What is counted is the whole process: connections of other tests that are still closing
		// only add, so the least counts.
		least, limit := math.Inf(1), 16.0
		if tt.f.kept || tt.f.saved {
			limit = 64
		}
		for range 10 {
			short, long := testing.AllocsPerRun(5, func() { run(2) }), testing.AllocsPerRun(5, func() { run(1602) })
			if least = min(least, long-short); least <= limit {
				break
			}
		}
		if least > limit {
			t.Errorf("%v: 1,600 chunks cost %v allocations", tt.f, least)
		}
	}
}

// The ratio of the modes to off is what the guard adds to a chunk: it costs a goroutine that reads,
// and the reading of the text. The text never comes to an end, so a claim is closed by length every
// 32 chunks.
func BenchmarkStreamedChunk(b *testing.B) {
	list := []filters{{}, {restored: true}, {saved: true}, {kept: true}, {restored: true, saved: true}}
	for _, mode := range []guard.Mode{guard.Observe, guard.Annotate, guard.Terminate, guard.Hold} {
		list = append(list, filters{mode: mode}, filters{mode: mode, restored: true, saved: true})
	}
	list = append(list, filters{mode: guard.Annotate, restored: true, saved: true, kept: true})
	for _, f := range list {
		b.Run(f.String(), func(b *testing.B) {
			run := copier(b, testkit.Event(" token"), f)
			run(100)
			b.ReportAllocs()
			b.ResetTimer()
			run(b.N + 2)
		})
	}
}

// The two benchmarks below differ in what stands between the client and the same upstream; their
// ratio is what the proxy costs.
func BenchmarkRequestThroughProxy(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	p := start(b, oneModel(up))
	hammer(b, p.URL, ask("hello, how are you today"))
}

func BenchmarkRequestNamedThroughProxy(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	p := start(b, oneModel(up))
	hammer(b, p.URL, strings.Replace(ask("hello, how are you today"), "auto", "small", 1))
}

func BenchmarkRequestThroughReverseProxy(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	hammer(b, reverseProxy(b, up), ask("hello, how are you today"))
}

// One operation is a stream of 200 chunks, each written and flushed by itself.
func BenchmarkStreamThroughProxy(b *testing.B) {
	p := start(b, oneModel(testkit.NewUpstream(b, longStream())))
	hammer(b, p.URL, askStream("hello"))
}

func BenchmarkStreamThroughReverseProxy(b *testing.B) {
	hammer(b, reverseProxy(b, testkit.NewUpstream(b, longStream())), askStream("hello"))
}

func BenchmarkStreamDirect(b *testing.B) {
	hammer(b, strings.TrimSuffix(testkit.NewUpstream(b, longStream()).URL(), "/v1"), askStream("hello"))
}

func longStream() testkit.Answer {
	return testkit.Stream(append(slices.Repeat([]string{testkit.Event(" token")}, 199), testkit.Done)...)
}

// reverseProxy starts the standard library's reverse proxy, which is given the body whole, and
// returns its base URL.
func reverseProxy(b *testing.B, up *testkit.Upstream) string {
	b.Helper()
	target, err := url.Parse(strings.TrimSuffix(up.URL(), "/v1"))
	if err != nil {
		b.Fatal(err)
	}
	transport := framing.NewTransport(time.Second)
	b.Cleanup(transport.CloseIdleConnections)
	rp := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		rp.ServeHTTP(w, r)
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// BenchmarkRequestDirect is what client and upstream cost in the benchmarks above.
func BenchmarkRequestDirect(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	hammer(b, strings.TrimSuffix(up.URL(), "/v1"), ask("hello, how are you today"))
}

// processTime is the processor time of the whole process. On a machine that is shared it says more
// than the clock.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func hammer(b *testing.B, base, body string) {
	b.Helper()
	b.ReportAllocs()
	transport := framing.NewTransport(time.Second)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	before := processTime(b)
	defer func() { b.ReportMetric(float64(processTime(b)-before)/1000/float64(b.N), "cpu-us/op") }()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			b.Fatal(res.Status)
		}
	}
}

// A pointer to 600 KiB against the same text in the body: what the proxy does before anything is
// sent.
func BenchmarkContext(b *testing.B) {
	up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
	r := keeping(b, oneModel(up), nil)
	text := strings.Repeat("The lessee pays on the \"first\" of the month.\n", 600<<10/45)
	id := r.keep(text)
	one := func(body []byte) int64 {
		req, err := openai.ParseChat(body, openai.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		held, err := r.proxy.resolver.Resolve(b.Context(), Principal{Tenant: anyone().Tenant}, req, http.Header{})
		if err != nil {
			b.Fatal(err)
		}
		defer held.Release()
		d, err := r.state.Start(Principal{Tenant: anyone().Tenant}, req, http.Header{}, held)
		if err != nil {
			b.Fatal(err)
		}
		d.Action = &rules.Action{}
		out, _, err := rewrite.New(r.state.edits, req, d).Payload(b.Context(), r.state.ByName["small"])
		if err != nil {
			b.Fatal(err)
		}
		return out.Size()
	}
	quotedText, err := json.Marshal(text)
	if err != nil {
		b.Fatal(err)
	}
	for name, body := range map[string]string{
		"pointer": with(quoted(id), hi),
		"in full": `{"model":"small","messages":[{"role":"system","content":` + string(quotedText) + `},` + hi + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			begun := processTime(b)
			defer func() { b.ReportMetric(float64((processTime(b)-begun).Microseconds())/float64(b.N), "cpu-µs/op") }()
			for b.Loop() {
				if one([]byte(body)) < int64(len(text)) {
					b.Fatal("a body without the text")
				}
			}
		})
	}
}
