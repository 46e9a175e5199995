package proxy

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/settings"
	"signalbox/proxy/upstream"
)

func TestStreamsAreByteIdentical(t *testing.T) {
	up := testkit.NewUpstream(t, nil)
	b := start(t, oneModel(up))
	crlf := strings.ReplaceAll(testkit.Event("a")+testkit.Finish+testkit.Done, "\n", "\r\n")
	tests := []struct {
		name   string
		pieces []string
	}{
		{"an event a piece", []string{testkit.Event("a"), testkit.Event("b"), testkit.Finish, testkit.Done}},
		{"everything at once", []string{testkit.Event("a") + testkit.Event("b") + testkit.Finish + testkit.Done}},
		{"every byte by itself", strings.Split(testkit.Event("h\u00e9\U0001f642")+testkit.Done, "")},
		{"line ends of CRLF", []string{crlf}},
		{"line ends of CRLF, split between the two", strings.SplitAfter(crlf, "\r")},
		{"comments and empty lines", []string{": ping\n\n", ":\n\n\n", testkit.Event("a"), testkit.Done}},
		{"an event larger than the window", []string{testkit.Event(strings.Repeat("x", 100_000)), testkit.Finish, testkit.Done}},
		{"no space after the colon", []string{testkit.Event("a"), "data:[DONE]\n\n"}},
		{"a text that speaks of the end", []string{testkit.Event("data: [DONE]"), testkit.Event("\\n\\ndata: [DONE]\\n\\n"), testkit.Done}},
		{"an error event of the upstream's own", []string{testkit.Event("a"), "data: {\"error\":{\"message\":\"x\"}}\n\n", testkit.Done}},
		{"bytes that are no UTF-8", []string{"data: {\"x\":\"\xff\xfe\"}\n\n", testkit.Done}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up.Next(testkit.Stream(tt.pieces...))
			got := b.chat(askStream("hi"))
			if got.err != nil || got.status != 200 {
				t.Fatalf("got %d, %v", got.status, got.err)
			}
			if diff := cmp.Diff(strings.Join(tt.pieces, ""), got.body); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
			if got.header.Get("X-Accel-Buffering") != "no" || got.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
				t.Errorf("head is %v", got.header)
			}
		})
	}
}

// A failed stream never looks complete: whole events, then an error event, then a broken
// connection.
func TestABrokenStreamEndsInAnError(t *testing.T) {
	up := testkit.NewUpstream(t, nil)
	b := start(t, oneModel(up), func(s *setup) { s.options.GapTimeout = option.Duration(300 * time.Millisecond) })
	whole := testkit.Event("a") + testkit.Event("b")
	head := testkit.StreamHead
	const broken, late = `"code":"upstream_error"}}`, `"code":"upstream_timeout"}}`
	tests := []struct {
		name   string
		answer testkit.Answer
		events string
		code   string
	}{
		{"reset", testkit.Raw(head+testkit.Chunk(whole), testkit.RST), whole, broken},
		{"closed", testkit.Raw(head+testkit.Chunk(whole), testkit.FIN), whole, broken},
		{"closed within an event", testkit.Raw(head+testkit.Chunk(whole+`data: {"half`), testkit.FIN), whole, broken},
		{"ended in order without its last event", testkit.Stream(whole), whole, broken},
		{"silent for too long", testkit.Stall(whole), whole, late},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up.Next(tt.answer)
			before := len(up.Requests())
			got := b.chat(askStream("hi"))
			if got.status != 200 || got.err == nil {
				t.Errorf("status %d, body ended with %v, want an unexpected end", got.status, got.err)
			}
			rest, ok := strings.CutPrefix(got.body, tt.events)
			if !ok || !strings.HasPrefix(rest, `data: {"error":{"message":`) || !strings.HasSuffix(rest, tt.code+"\n\n") {
				t.Errorf("stream is %q", got.body)
			}
			if n := len(up.Requests()) - before; n != 1 {
				t.Errorf("the request was sent %d times", n)
			}
		})
	}
	t.Run("within an event larger than the window, of which nothing was passed on", func(t *testing.T) {
		up.Next(testkit.Raw(head+testkit.Chunk("data: "+strings.Repeat("x", 3*upstream.WindowSize)), testkit.FIN))
		if got := b.chat(askStream("hi")); got.status != 502 || got.code(t) != "upstream_error" {
			t.Errorf("status %d, body %s", got.status, got.body)
		}
	})
}

func TestAStreamEndsWithDone(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, nil)
	b := start(t, oneModel(up))
	want := testkit.Event("a") + testkit.Done
	up.Next(testkit.Raw(testkit.StreamHead+testkit.Chunk(want), testkit.WaitGone))
	if got := b.chat(askStream("hi")); got.err != nil || got.body != want {
		t.Errorf("an upstream that does not end: %q, %v", got.body, got.err)
	}
	within(t, up.Gone, "closing the endless connection")
	up.Next(testkit.Stream(want + testkit.Event("late")))
	if got := b.chat(askStream("hi")); got.err != nil || got.body != want {
		t.Errorf("events behind the end: %q, %v", got.body, got.err)
	}
	up.Next(testkit.Stream(testkit.Event("a"), "data: [DONE]\n"))
	if got := b.chat(askStream("hi")); got.err != nil || got.body != want {
		t.Errorf("a last event without its blank line: %q, %v", got.body, got.err)
	}
	up.Next(testkit.Stream(testkit.Event("a"), testkit.Finish))
	if got := b.chat(askStream("hi")); got.err != nil || got.body != testkit.Event("a")+testkit.Finish+testkit.Done {
		t.Errorf("a stream with a finish_reason and no end mark: %q, %v", got.body, got.err)
	}
}

func TestABrokenBodyIsNeverAWholeOne(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, nil)
	b := start(t, oneModel(up), func(s *setup) { s.options.MaxAttempts = 1 })
	up.Next(testkit.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"a\":", testkit.FIN))
	if got := b.chat(ask("hi")); got.status != 502 || got.code(t) != "upstream_error" || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("a short body that is cut: %d %s", got.status, got.body)
	}
	long := strings.Repeat("x", 4*upstream.WindowSize)
	up.Next(testkit.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999\r\n\r\n"+long, testkit.FIN))
	if got := b.chat(ask("hi")); got.status != 200 || got.err == nil {
		t.Errorf("a long body that is cut: %d, %v", got.status, got.err)
	}
}

func TestAnswersPassAsTheyAre(t *testing.T) {
	up := testkit.NewUpstream(t, nil)
	b := start(t, oneModel(up), func(s *setup) { s.options.MaxAttempts = 1 })
	big := `{"x":"` + strings.Repeat("é", 100_000) + `"}`
	tests := []struct {
		name   string
		answer testkit.Answer
		status int
		body   string
	}{
		{"a completion", testkit.JSON(200, testkit.Completion), 200, testkit.Completion},
		{"a long one", testkit.JSON(200, big), 200, big},
		{"odd spacing and numbers", testkit.JSON(200, " {\"a\" : 1e400,\"a\":1.0}\n"), 200, " {\"a\" : 1e400,\"a\":1.0}\n"},
		{"an error of the client's", testkit.JSON(422, `{"object":"error"}`), 422, `{"object":"error"}`},
		{"an error page of the client's", testkit.Body(404, "text/html", "<p>"), 404, "<p>"},
		{"a fault with a JSON body", testkit.JSON(500, `{"error":"x"}`), 500, `{"error":"x"}`},
		{"too busy, nowhere else to go", testkit.JSON(429, `{"error":"slow"}`, "Retry-After", "3"), 429, `{"error":"slow"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up.Next(tt.answer)
			if got := b.chat(ask("hi")); got.status != tt.status || got.body != tt.body || got.err != nil {
				t.Errorf("got %d %.80q, %v", got.status, got.body, got.err)
			}
		})
	}
	misfits := []struct {
		name   string
		answer testkit.Answer
		body   string
	}{
		{"an error page", testkit.Body(502, "text/html", "<p>10.0.0.7</p>"), ask("hi")},
		{"a page", testkit.Body(200, "text/html", "<p>10.0.0.7</p>"), ask("hi")},
		{"a page in place of a stream", testkit.Body(201, "text/html", "<p>10.0.0.7</p>"), askStream("hi")},
		{"a redirect", testkit.Body(307, "text/html", "", "Location", "http://169.254.169.254/"), ask("hi")},
		{"a switch of protocols", testkit.Raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", testkit.FIN), ask("hi")},
		{"JSON where a stream was asked for", testkit.JSON(200, testkit.Completion), askStream("hi")},
		{"a stream where JSON was asked for", testkit.Stream(testkit.Done), ask("hi")},
		{"half a head", testkit.Raw("HTTP/1.1 200 OK\r\nContent-Ty", testkit.FIN), ask("hi")},
		{"an empty stream", testkit.Stream(), askStream("hi")},
		{"a stream that breaks with its first bytes", testkit.Raw(testkit.StreamHead+testkit.Chunk(testkit.Event("a"))+"zz\r\n", testkit.FIN), askStream("hi")},
	}
	for _, tt := range misfits {
		t.Run(tt.name, func(t *testing.T) {
			up.Next(tt.answer)
			if got := b.chat(tt.body); got.status != 502 || got.code(t) != "upstream_error" || strings.Contains(got.body, "10.0.0") || got.header.Get("Location") != "" {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
}

// fastStreams is the number of streams in TestFastStreamsAreAllWhole. The full number must not lose
// any either: go test -run FastStreams ./proxy -streams 100000.
var fastStreams = flag.Int("streams", 2000, "fast streams to read")

// TestFastStreamsAreAllWhole guards against a defect of a stock reverse proxy, which broke 39 of
// 2,000.
func TestFastStreamsAreAllWhole(t *testing.T) {
	t.Parallel()
	want := testkit.Event("a") + testkit.Event("b") + testkit.Finish + testkit.Done
	up := testkit.NewUpstream(t, testkit.Stream(want))
	b := start(t, oneModel(up))
	n := *fastStreams
	if testing.Short() {
		n = 200
	}
	var cut atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range n / 8 {
				if got := b.chat(askStream("hi")); got.err != nil || got.body != want {
					cut.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if cut.Load() != 0 {
		t.Errorf("%d of %d streams were not whole", cut.Load(), n)
	}
}

func TestAFailedAttemptIsRepeatedElsewhere(t *testing.T) {
	tests := []struct {
		name   string
		first  testkit.Answer
		body   string
		status int
		tries  int
		reason string
	}{
		{"busy", testkit.JSON(429, `{}`), ask("hi"), 200, 2, "status"},
		{"unavailable", testkit.JSON(503, `{}`), ask("hi"), 200, 2, "status"},
		{"credentials that are not taken", testkit.JSON(401, `{}`), ask("hi"), 200, 2, "status"},
		{"not permitted, which passes", testkit.JSON(403, `{}`), askStream("hi"), 403, 1, ""},
		{"a page", testkit.Body(200, "Text/HTML; charset=utf-8", "<p>"), ask("hi"), 200, 2, "broken"},
		{"a page in place of a stream", testkit.Body(200, "text/html", "<p>"), askStream("hi"), 200, 2, "broken"},
		{"a gateway's page", testkit.Body(502, "text/html", "<p>"), ask("hi"), 200, 2, "status"},
		{"reset before the head", testkit.Raw("", testkit.RST), ask("hi"), 200, 2, "broken"},
		{"closed within the head", testkit.Raw("HTTP/1.1 2", testkit.FIN), ask("hi"), 200, 2, "broken"},
		{"a body that is cut early", testkit.Raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", testkit.FIN), ask("hi"), 200, 2, "broken"},
		{"a stream that is cut before its first event", testkit.Raw(testkit.StreamHead, testkit.RST), askStream("hi"), 200, 2, "broken"},
		{"too slow to begin", testkit.Silent(), askStream("hi"), 200, 2, "timeout"},
		{"a bad request is final", testkit.JSON(400, `{}`), ask("hi"), 400, 1, ""},
		{"a fault of the model is final", testkit.JSON(500, `{}`), ask("hi"), 500, 1, ""},
		{"a stream that has begun is final", testkit.Raw(testkit.StreamHead+testkit.Chunk(testkit.Event("a")), testkit.RST), askStream("hi"), 200, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			usual := testkit.JSON(200, testkit.Completion)
			if tt.body == askStream("hi") {
				usual = testkit.Stream(testkit.Event("a"), testkit.Done)
			}
			// Whichever endpoint is drawn first, it gives the scripted answer.
			var once atomic.Bool
			answer := func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
				if once.CompareAndSwap(false, true) {
					tt.first(u, w, r)
					return
				}
				usual(u, w, r)
			}
			a, c := testkit.NewUpstream(t, answer), testkit.NewUpstream(t, answer)
			b := start(t, oneModel(a, c), func(s *setup) { s.options.FirstByteTimeout = option.Duration(2 * time.Second) })
			got := b.chat(tt.body)
			if tries := len(a.Requests()) + len(c.Requests()); got.status != tt.status || tries != tt.tries {
				t.Errorf("status %d after %d tries, want %d after %d: %s", got.status, tries, tt.status, tt.tries, got.body)
			}
			if len(a.Requests()) > 1 || len(c.Requests()) > 1 {
				t.Error("an endpoint was asked twice")
			}
			if tt.reason != "" && !strings.Contains(b.metrics(), `signalbox_retries_total{reason="`+tt.reason+`"} 1`) {
				t.Errorf("no retry with reason %s in the metrics", tt.reason)
			}
		})
	}
}

func (b *bench) metrics() string {
	var out strings.Builder
	w := &page{Builder: &out, header: http.Header{}}
	b.tel.Handler().ServeHTTP(w, &http.Request{Method: http.MethodGet, Header: http.Header{}})
	return out.String()
}

type page struct {
	*strings.Builder
	header http.Header
}

func (p *page) Header() http.Header { return p.header }
func (*page) WriteHeader(int)       {}

func TestTheNextModelTakesOverAndItsBodyIsItsOwn(t *testing.T) {
	t.Parallel()
	dead, alive := testkit.NewUpstream(t, nil), testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	dead.Close()
	models := oneModel(alive)
	models[0] = modelOptions("big", "Org/Big-70B", reasoning.Options{Dialect: reasoning.DialectKwargs, Key: "enable_thinking"}, dead)
	b := start(t, models)
	got := b.chat(`{"model":"auto","messages":[{"role":"user","content":"math"}]}`)
	if got.status != 200 || got.header.Get("X-Signalbox-Model") != "small" ||
		got.header.Get("X-Signalbox-Degraded") != "fallback" || got.header.Get("X-Signalbox-Reasoning") != "" {
		t.Errorf("got %d %v", got.status, got.header)
	}
	want := `{"model":"Org/Small-7B","messages":[{"role":"system","content":"You are a careful \"mathematician\"."},{"role":"user","content":"math"}],"max_tokens":2048}`
	if diff := cmp.Diff(want, string(alive.Last(t).Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if got := b.chat(strings.Replace(ask("math"), "auto", "big", 1)); got.status != 502 || got.code(t) != "upstream_error" {
		t.Errorf("a named model does not fall back: %d %s", got.status, got.body)
	}
}

func TestOfTwoRefusalsTheShorterWaitIsPassedOn(t *testing.T) {
	t.Parallel()
	a := testkit.NewUpstream(t, testkit.JSON(429, `{"from":"a"}`, "Retry-After", "9"))
	c := testkit.NewUpstream(t, testkit.JSON(429, `{"from":"c"}`, "Retry-After", "2"))
	b := start(t, oneModel(a, c))
	for range 4 {
		got := b.chat(ask("hi"))
		if got.status != 429 || got.header.Get("Retry-After") != "2" || got.body != `{"from":"c"}` || got.header.Get("X-Signalbox-Endpoint") != "small-b" {
			t.Errorf("got %d %v %s", got.status, got.header, got.body)
		}
	}
}

// burst is the number of retries available without requests before them.
const burst = 10

// left spends the rest of a budget and returns the number of retries.
func left(b *pool.Budget) (n int) {
	for b.Spend() {
		n++
	}
	return n
}

func TestWithNowhereElseToGoNothingIsRetried(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(429, `{}`, "Retry-After", "1"))
	b := start(t, oneModel(up))
	if got := b.chat(ask("hi")); got.status != 429 || got.header.Get("Retry-After") != "1" || len(up.Requests()) != 1 {
		t.Errorf("got %d after %d tries", got.status, len(up.Requests()))
	}
	if counted(b.metrics(), "signalbox_retries_total") || left(b.proxy.retries) != burst {
		t.Error("a retry was counted")
	}
}

func TestARefusalOfTheFirstChoiceIsNoFallback(t *testing.T) {
	t.Parallel()
	first, second := testkit.NewUpstream(t, testkit.JSON(503, `{"from":"big"}`)), testkit.NewUpstream(t, nil)
	second.Close()
	models := oneModel(second)
	models[0] = modelOptions("big", "", reasoning.Options{Dialect: reasoning.DialectEffort}, first)
	b := start(t, models)
	got := b.chat(ask("math"))
	if got.status != 503 || got.body != `{"from":"big"}` || got.header.Get("X-Signalbox-Model") != "big" || got.header.Get("X-Signalbox-Degraded") != "" || got.header.Get("X-Signalbox-Reasoning") != "high" {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
}

// When everything fails, retries add no more load than their budget.
func TestRetriesKeepToTheirBudget(t *testing.T) {
	t.Parallel()
	a, c := testkit.NewUpstream(t, testkit.JSON(503, `{}`)), testkit.NewUpstream(t, testkit.JSON(503, `{}`))
	b := start(t, oneModel(a, c))
	const n = 400
	for range n {
		if got := b.chat(ask("hi")); got.status != 503 {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if sent, most := len(a.Requests())+len(c.Requests()), n+n/5+burst; sent > most || sent < n+n/10 {
		t.Errorf("%d requests became %d, want at most %d", n, sent, most)
	}
}

func TestAConnectionThatDiesWhenReusedIsNoError(t *testing.T) {
	t.Parallel()
	body := testkit.Completion
	wire := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	up := testkit.NewUpstream(t, testkit.Raw(wire, testkit.OneByte))
	b := start(t, oneModel(up), func(s *setup) { s.options.MaxAttempts = 1 })
	for i := range 50 {
		if got := b.chat(ask("hi")); got.status != 200 || got.body != body {
			t.Fatalf("request %d: %d %s", i, got.status, got.body)
		}
	}
}

// A 429 is not a failure that ejects an endpoint, so a busy server that gives no Retry-After would
// keep refusing requests while another one has room.
func TestABusyEndpointRests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status       int
		after, state string
	}{
		{429, "30", "resting"},
		{429, "", "resting"},
		{429, "soon", "resting"},
		{429, "0.5", "resting"},
		{429, "0", "up"}, // as its Retry-After says
		{503, "30", "resting"},
		{503, "", "suspect"},
	} {
		up := testkit.NewUpstream(t, testkit.JSON(tt.status, `{}`, "Retry-After", tt.after))
		b := start(t, oneModel(up))
		if got := b.chat(ask("hi")); got.status != tt.status {
			t.Errorf("%+v: %d %s", tt, got.status, got.body)
		}
		if got := stateOf(t, b, "small-a"); got != tt.state {
			t.Errorf("%+v: the endpoint is %s", tt, got)
		}
		if got := b.chat(ask("hi")); got.status != tt.status { // nobody else is there
			t.Errorf("%+v, again: %d %s", tt, got.status, got.body)
		}
	}
}

func TestNoHealthyEndpoint(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	models := oneModel(up)
	for i := range models {
		models[i].Health.Interval = option.Duration(10 * time.Millisecond)
	}
	up.SetSick(true)
	b := start(t, models, func(s *setup) { s.health = true })
	waitFor(t, "the endpoints to be down", func() bool { ok, _ := b.proxy.Ready(); return !ok })
	isDown := func(s string) bool {
		return strings.Contains(s, `every endpoint of model "small" is down: requests that no other model can serve`)
	}
	if _, d := b.proxy.Ready(); !slices.ContainsFunc(d.Degraded, isDown) {
		t.Errorf("/readyz lists %q", d.Degraded)
	}
	got := b.chat(ask("hi"))
	if got.status != 503 || got.code(t) != "no_endpoint" || got.header.Get("Retry-After") == "" || len(up.Requests()) != 0 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	up.SetSick(false)
	waitFor(t, "the endpoints to be up", func() bool { ok, _ := b.proxy.Ready(); return ok })
	waitFor(t, "an answer", func() bool { return b.chat(ask("hi")).status == 200 })
	if log := b.log.String(); !strings.Contains(log, "endpoint down") || !strings.Contains(log, "endpoint up") {
		t.Errorf("the log does not tell: %s", log)
	}
}

// waitFor polls for the result of another goroutine; the condition itself synchronises.
func waitFor(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// In every phase, everything that works for a client notices when it leaves.
func TestAClientThatLeavesCancelsWhatRunsForIt(t *testing.T) {
	const limit = 100 * time.Millisecond
	phases := []struct {
		name   string
		answer testkit.Answer
		body   string
		first  string // what the client reads before it leaves
	}{
		{"mid-stream", testkit.Stall(testkit.Event("a")), askStream("hi"), testkit.Event("a")},
		{"before the head of a stream", testkit.Silent(), askStream("hi"), ""},
		{"before the head of an answer", testkit.Silent(), ask("hi"), ""},
	}
	for _, tt := range phases {
		t.Run(tt.name, func(t *testing.T) {
			up := testkit.NewUpstream(t, tt.answer)
			b := start(t, oneModel(up))
			leave := b.leaveable(tt.body, tt.first)
			within(t, up.Arrived, "the upstream request")
			left := leave()
			took := within(t, up.Gone, "the upstream's cancellation").Sub(left)
			t.Logf("cancelled after %s", took)
			if testkit.Timed() && took > limit {
				t.Errorf("the upstream ran on for %s", took)
			}
			waitFor(t, "the record", func() bool { return strings.Contains(b.metrics(), `status="499"} 1`) })
			if e := b.state.Models[1].Endpoints[0]; e.Failures() != 0 {
				t.Error("the endpoint was blamed")
			}
		})
	}
	t.Run("while its text is classified", func(t *testing.T) {
		up := testkit.NewUpstream(t, testkit.Silent())
		running, ended := make(chan struct{}, 1), make(chan time.Time, 1)
		b := start(t, oneModel(up), func(s *setup) { s.classifier.blocking, s.classifier.left = running, ended })
		leave := b.leaveable(ask("hi"), "")
		within(t, running, "the classification")
		left := leave()
		if took := within(t, ended, "the end of the classification").Sub(left); testkit.Timed() && took > limit {
			t.Errorf("the classification ran on for %s", took)
		}
		waitFor(t, "the record", func() bool { return strings.Contains(b.metrics(), `status="499"} 1`) })
		if n := len(up.Requests()); n != 0 {
			t.Errorf("%d requests reached the upstream", n)
		}
	})
	t.Run("while it does not read", func(t *testing.T) {
		flood := func(u *testkit.Upstream, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for event := testkit.Event(strings.Repeat("x", 10_000)); ; {
				if _, err := io.WriteString(w, event); err != nil {
					break
				}
			}
			u.Gone <- time.Now()
		}
		up := testkit.NewUpstream(t, flood)
		b := start(t, oneModel(up), func(s *setup) { s.options.WriteTimeout = option.Duration(200 * time.Millisecond) })
		leave := b.leaveable(askStream("hi"), "data: ")
		within(t, up.Gone, "giving up on the client")
		leave()
	})
}

// leaveable sends a request on a connection of its own, reads until it has seen first, and returns
// the function that closes the connection.
func (b *bench) leaveable(body, first string) (leave func() time.Time) {
	b.tb.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", b.Listener.Addr().String())
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if first != "" {
		r := bufio.NewReader(conn)
		var got strings.Builder
		for !strings.Contains(got.String(), first) {
			c, err := r.ReadByte()
			if err != nil {
				b.tb.Fatalf("the client read %q, then %v", got.String(), err)
			}
			got.WriteByte(c)
		}
	}
	return func() time.Time {
		now := time.Now()
		_ = conn.Close()
		return now
	}
}

func TestASlowBodyIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up), func(s *setup) { s.options.BodyTimeout = option.Duration(50 * time.Millisecond) })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestASwapServesOldAndNewRequests(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := testkit.NewUpstream(t, testkit.After(gate, testkit.JSON(200, `{"from":"a"}`)))
	c := testkit.NewUpstream(t, testkit.JSON(200, `{"from":"c"}`))
	b := start(t, oneModel(a), func(s *setup) { s.health = true })
	first := make(chan answered, 1)
	go func() { first <- b.chat(ask("hi")) }()
	within(t, a.Arrived, "the first request")
	old := b.proxy.state.Load()
	b.proxy.Swap(b.newState(setup{options: settings.DefaultServer(), auth: auth.DefaultOptions(), models: oneModel(c), routes: testRoutes, classifier: b.classifier}, 2))
	if got := b.chat(ask("hi")); got.body != `{"from":"c"}` {
		t.Errorf("the new state answers %s", got.body)
	}
	select {
	case <-old.idle:
		t.Error("the old state is idle although a request uses it")
	default:
	}
	close(gate)
	if got := within(t, first, "the first answer"); got.body != `{"from":"a"}` {
		t.Errorf("the old state answers %s", got.body)
	}
	within(t, old.idle, "the old state's end")
}

func TestTheLogTellsWhatHappenedAndNotWhatWasSaid(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	b.chat(ask("math secret-word"), "X-Request-Id", "id-1", "Authorization", "Bearer client-secret")
	waitFor(t, "the log line", func() bool { return strings.Contains(b.log.String(), `"msg":"request"`) })
	log := b.log.String()
	for _, want := range []string{`"id":"id-1"`, `"route":"math"`, `"model":"big"`, `"endpoint":"big-a"`, `"status":200`, `"prompt_tokens":9`, `"completion_tokens":12`} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is missing in %s", want, log)
		}
	}
	for _, secret := range []string{"secret-word", "client-secret", "backend-secret"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	metrics := b.metrics()
	for _, want := range []string{
		`signalbox_requests_total{model="big",route="math",status="200"} 1`, `signalbox_tokens_total{kind="prompt"} 9`, `signalbox_tokens_total{kind="cached"} 4`,
		`signalbox_cost_usd_total{model="big"} 3.3e-05`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is missing in the metrics", want)
		}
	}
}

func TestUsageThatAStreamTellsIsCountedAskedForOrNot(t *testing.T) {
	t.Parallel()
	usage := `data: {"choices":[],"usage":{"prompt_tokens":7, "completion_tokens" : 5}}` + "\n\n"
	up := testkit.NewUpstream(t, testkit.Stream(testkit.Event("a"), testkit.Finish, usage, testkit.Done))
	b := start(t, oneModel(up))
	b.chat(askStream("hi"))
	b.chat(strings.Replace(askStream("hi"), "{", `{"stream_options":{"include_usage":true},`, 1))
	waitFor(t, "both records", func() bool { return strings.Contains(b.metrics(), `status="200"} 2`) })
	if !strings.Contains(b.metrics(), `signalbox_tokens_total{kind="completion"} 10`) {
		t.Errorf("metrics: %s", b.metrics())
	}
}
