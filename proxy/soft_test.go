package proxy

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/budget"
	"signalbox/proxy/recall"
)

// soft returns a caller with a budget whose soft limit two responses of the dear model reach.
func soft(then string) func(*setup) {
	return withKeys(auth.KeyOptions{Name: "team", Budget: auth.BudgetOptions{
		USD: .05, Soft: budget.SoftOptions{At: .4, Then: then},
	}}, auth.KeyOptions{Name: "free"})
}

func TestFromItsSoftBoundABudgetSendsRequestsToTheCheapestModel(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := bounded(t, u, u, 0, soft(""))
	send := func(key string, n int) answered {
		return b.chat(upTo(n), "Authorization", "Bearer "+key)
	}
	for i, want := range []string{"big ", "big ", "small cheaper", "small cheaper"} {
		got := send("team", 10)
		if s := got.header.Get("X-Signalbox-Model") + " " + got.header.Get("X-Signalbox-Budget"); s != want || got.status != 200 {
			t.Errorf("request %d: %d %q, want %q", i, got.status, s, want)
		}
	}
	if got := send("free", 10); got.header.Get("X-Signalbox-Model") != "big" || got.header.Get("X-Signalbox-Budget") != "" {
		t.Errorf("another caller: %v", got.header)
	}
	if got := send("team", 100); got.status != 429 || got.code(t) != "insufficient_quota" {
		t.Errorf("beyond the hard bound: %d %s", got.status, got.body)
	}
	who := b.state.auth
	p, err := who.Identify(t.Context(), http.Header{"Authorization": {"Bearer team"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.proxy.Explain(t.Context(), []byte(ask("hello")), p, nil)
	if err != nil || e.Budget != "cheaper" || e.Model != "small" || strings.Join(e.Models, " ") != "small big" {
		t.Errorf("explained as %+v (%v)", e, err)
	}
}

// Of concurrent requests to two replicas, only one goes to the dear model beyond the soft limit:
// the one that crosses it. Each costs $0.01 there.
func TestTwoReplicasInARaceKeepASoftBound(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	server := testkit.NewRedis(t)
	var wg sync.WaitGroup
	var dear atomic.Int64
	now := time.Now() // one month, also at its end
	for range 2 {
		store := patientRedis(t, server)
		b := bounded(t, u, u, 0, withKeys(auth.KeyOptions{Name: "team", Budget: auth.BudgetOptions{
			USD: 1, Soft: budget.SoftOptions{At: .205},
		}}))
		b.proxy.spending = budget.New(budgetsIn{store}, func() time.Time { return now })
		for range 6 {
			wg.Go(func() {
				for range 10 {
					got := b.chat(upTo(10), "Authorization", "Bearer team")
					where, saves := got.header.Get("X-Signalbox-Model"), got.header.Get("X-Signalbox-Budget")
					if where == "big" {
						dear.Add(1)
					}
					if (where == "small") != (saves == "cheaper") {
						t.Errorf("%d from %q, which saves %q", got.status, where, saves)
					}
				}
			})
		}
	}
	wg.Wait()
	if dear.Load() != 21 {
		t.Errorf("%d requests of $0.01 were dear with a soft bound of $0.205, want 21", dear.Load())
	}
}

// The response of a cheaper model is not cached for callers who would have asked the dear one.
func TestAnAnswerOfADowngradeIsNotKept(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := bounded(t, u, u, 0, soft(""), caches(recall.ModeExact))
	send := func(key, text, want string) {
		t.Helper()
		h := b.chat(strings.Replace(upTo(10), "hello", text, 1), "Authorization", "Bearer "+key).header
		if got := h.Get("X-Signalbox-Model") + " " + h.Get("X-Signalbox-Cache"); got != want {
			t.Errorf("%s of %s: %q, want %q", text, key, got, want)
		}
	}
	send("team", "one", "big miss")
	b.kept(1)
	send("free", "one", "big exact")
	send("team", "two", "big miss")
	send("team", "three", "small miss")
	b.kept(2)
	send("free", "three", "big miss")
}

// A conversation gives up its model for a downgrade, except for a tool result.
func TestASoftBudgetMovesConversationsButNotBetweenCallAndResult(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := bounded(t, u, u, 0, soft(""), sticks)
	send := func(turns ...string) string {
		body := strings.Replace(chatOf("", turns...), `{"model"`, `{"max_tokens":10,"model"`, 1)
		h := b.chat(body, "Authorization", "Bearer team").header
		return strings.Join([]string{h.Get("X-Signalbox-Model"), h.Get("X-Signalbox-Conversation"), h.Get("X-Signalbox-Conversation-Reason")}, " ")
	}
	for _, tt := range []struct {
		turns []string
		want  string
	}{
		{[]string{"user one?"}, "big new "},
		{[]string{"user one?", "assistant ok", "user two?"}, "big kept same"},
		{[]string{"user one?", "assistant ok", "user two?", "assistant calls", "tool four"}, "big kept tool_result"},
		{[]string{"user one?", "assistant ok", "user three?"}, "small moved budget"},
		{[]string{"user one?", "assistant ok", "user three?", "assistant ok", "user four?"}, "small kept prefill"},
	} {
		if got := send(tt.turns...); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.turns, got, tt.want)
		}
	}
}

func TestFromItsSoftBoundABudgetAsksForLessEffort(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := start(t, oneModel(u), soft("less_effort"), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [effort, small], reasoning: high}\n"
		for i := range s.models {
			s.models[i].Price.Output = 1000
		}
	})
	for i, want := range []string{"high  effort", "high  effort", "medium less_effort effort"} {
		h := b.chat(upTo(10), "Authorization", "Bearer team").header
		got := strings.Join([]string{h.Get("X-Signalbox-Reasoning"), h.Get("X-Signalbox-Budget"), h.Get("X-Signalbox-Model")}, " ")
		if got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
	if sent := string(u.Last(t).Body); !strings.Contains(sent, `"reasoning_effort":"medium"`) {
		t.Errorf("sent %s", sent)
	}
}

// A request that goes to the cheapest model is in no arm, and its explanation agrees.
func TestADowngradeIsInNoArm(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := bounded(t, u, u, 0, soft(""), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small], canary: {model: big, share: 1}}\n"
	})
	p, err := b.state.auth.Identify(t.Context(), http.Header{"Authorization": {"Bearer team"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"big canary", "big canary", "small ", "small "} {
		e, err := b.proxy.Explain(t.Context(), []byte(upTo(10)), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Model + " " + e.Canary.Arm; got != want {
			t.Errorf("request %d is explained as %q, want %q", i, got, want)
		}
		h := b.chat(upTo(10), "Authorization", "Bearer team").header
		if got := h.Get("X-Signalbox-Model") + " " + h.Get("X-Signalbox-Arm"); got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
}
