package proxy

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/reasoning"
)

// bounded are two models whose answers cost $0.01 each, on a route that prefers big, which has a
// budget.
func bounded(t *testing.T, big, small *testkit.Upstream, usd float64, change ...func(*setup)) *bench {
	t.Helper()
	models := []backend.ModelOptions{
		modelOptions("big", "", reasoning.Options{}, big), modelOptions("small", "", reasoning.Options{}, small),
	}
	models[0].Price, models[0].Budget = choose.Price{Output: 1000}, budget.Options{USD: usd}
	models[1].Price = choose.Price{Output: 1}
	return start(t, models, append([]func(*setup){func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [big, small]}\n"
	}}, change...)...)
}

func TestAModelWhoseBudgetIsUsedUpIsNoCandidate(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := bounded(t, u, u, .025)
	now := time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC)
	b.proxy.spending = budget.New(nil, func() time.Time { return now })
	for i, want := range []string{"big", "big", "small", "small"} {
		got := b.chat(upTo(10))
		if got.status != 200 || got.header.Get("X-Signalbox-Model") != want {
			t.Errorf("request %d: %d from %q, want %s", i, got.status, got.header.Get("X-Signalbox-Model"), want)
		}
		if fell := got.header.Get("X-Signalbox-Degraded") == "fallback"; fell != (want == "small") {
			t.Errorf("request %d: degraded: %v", i, got.header)
		}
	}
	if got := b.chat(upTo(5)); got.header.Get("X-Signalbox-Model") != "big" {
		t.Errorf("a request that fits in what is left: %d %v", got.status, got.header)
	}
	n := len(u.Requests())
	got := b.chat(strings.Replace(upTo(10), `"auto"`, `"big"`, 1))
	if got.status != 429 || got.code(t) != "insufficient_quota" || got.header.Get("Retry-After") != "3600" ||
		!strings.Contains(got.error(t).Message, "model:big") {
		t.Errorf("no other model: %d %s %v", got.status, got.body, got.header)
	}
	if len(u.Requests()) != n {
		t.Error("what was refused reached the model")
	}
	now = now.Add(time.Hour)
	if got := b.chat(upTo(10)); got.header.Get("X-Signalbox-Model") != "big" {
		t.Errorf("in the next month: %d %v", got.status, got.header)
	}
}

// What fails costs the budget of its model nothing.
func TestAFailedAttemptGivesTheBudgetOfItsModelBack(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	broken := testkit.NewUpstream(t, testkit.JSON(http.StatusServiceUnavailable, `{"error":{"message":"no"}}`))
	b := bounded(t, broken, u, .015)
	for i := range 2 {
		if got := b.chat(upTo(10)); got.status != 200 || got.header.Get("X-Signalbox-Model") != "small" {
			t.Fatalf("request %d: %d %s", i, got.status, got.body)
		}
	}
	r, err := b.proxy.spending.Reserve(t.Context(), modelBudgets, []budget.Budget{b.state.ByName["big"].Budget}, .015)
	if err != nil {
		t.Error(err)
	}
	r.Settle(t.Context(), 0)
}

func TestTwoReplicasInARaceKeepTheBudgetOfAModel(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	server := testkit.NewRedis(t)
	var wg sync.WaitGroup
	var big, small atomic.Int64
	now := time.Now() // one month, also at its end
	for range 2 {
		store := patientRedis(t, server)
		b := bounded(t, u, u, .205)
		b.proxy.spending = budget.New(budgetsIn{store}, func() time.Time { return now })
		for range 6 {
			wg.Go(func() {
				for range 10 {
					switch got := b.chat(upTo(10)); got.header.Get("X-Signalbox-Model") {
					case "big":
						big.Add(1)
					case "small":
						small.Add(1)
					default:
						t.Errorf("%d %s", got.status, got.body)
					}
				}
			})
		}
	}
	wg.Wait()
	if big.Load() != 20 || small.Load() != 100 {
		t.Errorf("%d requests of $0.01 passed a budget of $0.205 and %d went on, want 20 and 100", big.Load(), small.Load())
	}
}

// Messages are bounded, reserved for and settled as chats are, and refused in their own shape.
func TestAMessageOverItsBudgetIsRefusedAsMessagesAre(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := priced(t, u, .025)
	send := func(n, more string) answered {
		body := strings.Replace(askMessage("hello", more), `"max_tokens":64`, `"max_tokens":`+n, 1)
		return b.message(body, "X-Api-Key", "team")
	}
	for i, want := range []int{200, 200, 429} { // each may cost $0.015 and costs $0.01
		got := send("15", "")
		if i == 2 {
			got = send("15", `,"stream":true`)
		}
		if got.status != want {
			t.Fatalf("message %d: %d %s", i, got.status, got.body)
		}
		if want != 429 {
			continue
		}
		if e := got.failure(t); !strings.HasPrefix(e, "rate_limit_error: Budget key:team exceeded") {
			t.Error(e)
		}
		if got.header.Get("Retry-After") == "" || got.header.Get("X-Should-Retry") != "false" {
			t.Error(got.header)
		}
	}
	if got := send("5", ""); got.status != 200 {
		t.Errorf("what is left is $0.005: %d %s", got.status, got.body)
	}
	if n := len(u.Requests()); n != 3 {
		t.Errorf("%d messages reached the model, want 3", n)
	}
}

func TestTheBudgetOfAModelNeedsAPrice(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	for _, tt := range []struct {
		budget budget.Options
		price  choose.Price
		want   string
	}{
		{budget.Options{USD: 1}, choose.Price{}, "budget.usd: "},
		{budget.Options{USD: -1}, choose.Price{Input: 1}, "budget.usd: "},
		{budget.Options{USD: 1, Period: "week"}, choose.Price{Input: 1}, "budget.period: "},
		{budget.Options{USD: 1, Period: "day"}, choose.Price{Input: 1}, ""},
	} {
		o := modelOptions("m", "", reasoning.Options{}, u)
		o.Budget, o.Price = tt.budget, tt.price
		if err := o.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.budget, err, tt.want)
		}
	}
}
