package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/auth"
	"signalbox/proxy/downstream"
)

func commenting(s *setup) { s.options.KeepaliveAfter = option.Duration(20 * time.Millisecond) }

// A2: load balancers close silent connections.
func TestCommentsKeepASilentStreamAlive(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"ttft?d=500ms", "head-ttft?d=500ms", "rst-mid?k=3&d=500ms"} {
		s := hostile.Start(t, hostile.Options{Mode: mode, Still: true})
		b := start(t, hostileModels(s), commenting)
		got := b.raw(askStream("hi"))
		if n := strings.Count(got.body, downstream.KeepAlive); got.status != 200 || n < 2 || n > 200 || got.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
			t.Errorf("%s: %d comments, %d %v", mode, n, got.status, got.header)
		}
		events := strings.ReplaceAll(got.body, downstream.KeepAlive, "")
		if mode == "rst-mid?k=3&d=500ms" {
			if got.err == nil || len(heardEvents(events)) != 4 || !strings.HasSuffix(events, `"code":"upstream_error"}}`+"\n\n") {
				t.Errorf("%s: %v %q", mode, got.err, got.body)
			}
			continue
		}
		if want := direct(t, "ok-stream", askStream("hi"), 0).body; got.err != nil || events != want {
			t.Errorf("%s: %v %q", mode, got.err, got.body)
		}
	}
}

func TestCommentsKeepAStreamThatWaitsForASlotAlive(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	u := testkit.NewUpstream(t, testkit.After(gate, testkit.Stream(testkit.Event("one"), testkit.Finish, testkit.Done)))
	narrow := func(wait time.Duration) func(s *setup) {
		return func(s *setup) {
			for i := range s.models {
				s.models[i].Queue.Wait = option.Duration(wait)
				s.models[i].Endpoints[0].MaxInflight = 1
			}
		}
	}
	b := start(t, oneModel(u), commenting, narrow(time.Minute))
	first := make(chan answered, 1)
	go func() { first <- b.raw(askStream("hi")) }()
	waitFor(t, "the first request", func() bool { return len(u.Requests()) == 1 })
	second := b.raw(askStream("hi"), func() { close(gate) }) // the head came with a comment
	for name, got := range map[string]answered{"in flight": <-first, "in the queue": second} {
		if got.status != 200 || got.err != nil || !strings.HasPrefix(got.body, downstream.KeepAlive) || !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
			t.Errorf("%s: %d %v %q", name, got.status, got.err, got.body)
		}
	}

	stuck := hostile.Start(t, hostile.Options{Mode: "watch-ttft"})
	b = start(t, hostileModels(stuck), commenting, narrow(200*time.Millisecond))
	leave := b.leaveable(ask("hi"), "")
	defer leave()
	waitFor(t, "the request that holds the slot", func() bool { return stuck.Requests() == 1 })
	got := b.raw(askStream("hi"))
	if got.status != 200 || !strings.HasPrefix(got.body, downstream.KeepAlive) || !strings.HasSuffix(got.body, `"code":"overloaded"}}`+"\n\n") {
		t.Errorf("too long in the queue: %d %v %q", got.status, got.err, got.body)
	}
}

func TestWhatGoesWrongBehindACommentIsToldInTheStream(t *testing.T) {
	t.Parallel()
	slow := hostile.Start(t, hostile.Options{Mode: "watch-ttft"})
	b := start(t, hostileModels(slow, hostile.Start(t, hostile.Options{Mode: "watch-ttft"})), commenting, func(s *setup) { shortPatience(&s.options) })
	got := b.raw(askStream("hi"))
	if got.status != 200 || got.err == nil || !strings.HasPrefix(got.body, downstream.KeepAlive) || strings.Count(got.body, "data: ") != 1 || !strings.HasSuffix(got.body, `"code":"upstream_timeout"}}`+"\n\n") {
		t.Errorf("got %d, %v, %q", got.status, got.err, got.body)
	}
	gate := make(chan struct{})
	refusing := testkit.NewUpstream(t, testkit.After(gate, testkit.JSON(400, `{"error":{"message":"no"}}`)))
	b = start(t, oneModel(refusing), commenting)
	if got := b.raw(askStream("hi"), func() { close(gate) }); got.err == nil || !strings.HasPrefix(got.body, downstream.KeepAlive) || !strings.HasSuffix(got.body, `"code":"upstream_error"}}`+"\n\n") {
		t.Errorf("got %d, %v, %q", got.status, got.err, got.body)
	}
	fine := hostile.Start(t, hostile.Options{Mode: "ttft?d=100ms", Still: true})
	b = start(t, hostileModels(fine), commenting)
	if got := b.raw(ask("hi")); got.body != hostile.Completion { // only streams have comments
		t.Errorf("got %q", got.body)
	}
	b = start(t, hostileModels(fine))
	if got := b.raw(askStream("hi")); strings.Contains(got.body, downstream.KeepAlive) {
		t.Errorf("comments that nobody asked for: %q", got.body)
	}
}

// lateWriter counts writes after the handler has returned, when the server may have reused the
// buffers for another connection.
type lateWriter struct {
	*httptest.ResponseRecorder

	over atomic.Bool
	late atomic.Int64
}

func (w *lateWriter) Write(b []byte) (int, error) {
	if w.over.Load() {
		w.late.Add(1)
		return len(b), nil
	}
	return w.ResponseRecorder.Write(b)
}

func TestNoCommentIsSentWhenTheRequestHasEndedInAPanic(t *testing.T) {
	t.Parallel()
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.Stream())), commenting)
	b.proxy.transport.Proxy = func(*http.Request) (*url.URL, error) { panic("transport fault") }
	w := &lateWriter{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, chatPath, strings.NewReader(askStream("hi")))
	b.proxy.Handler().ServeHTTP(w, r)
	w.over.Store(true)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "internal_error") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	// silence can only be observed by waiting
	time.Sleep(5 * time.Duration(b.state.opts.KeepaliveAfter))
	if n := w.late.Load(); n > 0 {
		t.Errorf("%d comments behind the end of the request", n)
	}
}

// A comment has sent the head with status 200 although no model has answered.
func TestWhatNoModelAnswersBehindACommentCostsNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]testkit.Answer{
		"a refusal":            testkit.JSON(http.StatusTooManyRequests, `{"error":{"message":"busy"}}`),
		"a broken connection":  testkit.Raw("", testkit.FIN),
		"a refusal for length": testkit.JSON(http.StatusBadRequest, `{"error":{"message":"no"}}`),
	} {
		gate := make(chan struct{})
		u := testkit.NewUpstream(t, testkit.After(gate, answer))
		keys := withKeys(auth.KeyOptions{Name: "team", Budget: auth.BudgetOptions{USD: 1}})
		b := start(t, oneModel(u), keys, commenting)
		time.AfterFunc(150*time.Millisecond, func() { close(gate) })
		got := b.chat(askStream("hi"), "Authorization", "Bearer team")
		if got.status != 200 || !strings.HasPrefix(got.body, downstream.KeepAlive) || got.err == nil {
			t.Fatalf("%s: %d %v %q", name, got.status, got.err, got.body)
		}
		who, err := b.state.auth.Identify(t.Context(), http.Header{"Authorization": {"Bearer team"}})
		if err != nil {
			t.Fatal(err)
		}
		if usd, _ := b.proxy.spending.Look(t.Context(), who.Tenant, who.Budgets); usd[0] != 0 {
			t.Errorf("%s: $%g is spent", name, usd[0])
		}
	}
}
