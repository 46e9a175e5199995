package relay

import (
	"context"
	"io"
	"math"
	"net/http"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/pool"
	"signalbox/proxy/recall"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/upstream"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// sink is a client that reads everything immediately.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header            { return s.header }
func (*sink) Write(b []byte) (int, error)      { return len(b), nil }
func (*sink) WriteHeader(int)                  {}
func (*sink) Flush()                           {}
func (*sink) SetWriteDeadline(time.Time) error { return nil }

// endless returns the same event again and again, and the end when left is used up.
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

// filters are the filters between a stream and its client.
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
	o := &exchange.Exchange{Req: &openai.Request{}, Decision: &decide.Decision{}}
	if f.mode != guard.Off {
		o.Guarding = guardingFor(tb, tel.Metrics, f.mode)
	}
	if f.restored {
		body := `{"model":"m","messages":[{"role":"user","content":"ann@example.com"}]}`
		req, err := openai.ParseChat([]byte(body), openai.Limits{})
		if err != nil {
			tb.Fatal(err)
		}
		address := []signal.Span{{Type: "EMAIL_ADDRESS", End: len("ann@example.com"), Score: 1}}
		if _, o.Vault, err = redact.Hide(tb.Context(), req, address, nil, nil); err != nil {
			tb.Fatal(err)
		}
	}
	if f.saved {
		o.Contexts, o.Req.Extras.SaveContext = &resolve.Contexts{}, &openai.SaveContext{}
	}
	return o
}

// copier prepares the copy loop for a stream of n events through filters.
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
		if err := new(Stage).copyStream(context.Background(), w, u, o, t); err != nil {
			tb.Fatal(err)
		}
	}
}

// guardingFor prepares the check of a response against one fact.
func guardingFor(tb testing.TB, m *telemetry.Metrics, mode guard.Mode) *guardrail.Check {
	tb.Helper()
	w, err := guardrail.New(guardrail.DefaultOptions(), guardrail.Claims{}, m)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Close)
	fact := []evidence.Source{{Text: "The tower is 330 m high.", Fact: true}}
	e, err := evidence.New(tb.Context(), fact, evidence.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	policy := w.Policy
	policy.Mode = mode
	return &guardrail.Check{Job: guard.Job{Evidence: e, Policy: policy, MayAnnotate: true}, Guard: w}
}

// An event that needs no change passes all filters without an allocation: a tool call, which the
// guard does not read, and without the guard a text. Recordings grow, which occasionally allocates.
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
		// The whole process is measured: connections of other tests that are still closing can only
		// add, so the minimum counts.
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

// The ratio of each mode to off is the guard's cost per chunk: a reading goroutine, and reading the
// text. The text never ends, so a claim is closed because of its length every 32 chunks.
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

// callChunk returns an event with the given delta.
func callChunk(delta string) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta +
		`,"finish_reason":null}]}` + "\n\n"
}
