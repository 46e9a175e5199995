package proxy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
)

// budgetsIn stores budgets in a Redis, as in the application.
type budgetsIn struct{ *redis.Store }

func (budgetsIn) spends(in []budget.Spend) (out []redis.Spend) {
	for _, s := range in {
		out = append(out, redis.Spend(s))
	}
	return out
}

func (b budgetsIn) Reserve(
	ctx context.Context,
	group, id string,
	s []budget.Spend,
	ttl time.Duration,
) (out []budget.Taken, fits bool, err error) {
	taken, fits, err := b.Store.Reserve(ctx, ledger.TenantOf(group), id, b.spends(s), ttl)
	for _, x := range taken {
		out = append(out, budget.Taken(x))
	}
	return out, fits, err
}

func (b budgetsIn) Settle(ctx context.Context, group, id string, s []budget.Spend, owed bool) error {
	return b.Store.Settle(ctx, ledger.TenantOf(group), id, b.spends(s), owed)
}

// priced returns one model whose responses cost $0.01 each, by response tokens only, and a caller
// with a budget.
func priced(t *testing.T, u *testkit.Upstream, usd float64, change ...func(*setup)) *bench {
	t.Helper()
	keys := withKeys(auth.KeyOptions{Name: "team", Budget: auth.BudgetOptions{USD: usd}}, auth.KeyOptions{Name: "free"})
	return start(t, oneModel(u), append([]func(*setup){keys, func(s *setup) {
		for i := range s.models {
			s.models[i].Price = choose.Price{Output: 1000}
		}
	}}, change...)...)
}

const tenTokens = `{"id":"x","object":"chat.completion","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":5,"completion_tokens":10,"total_tokens":15}}`

// upTo requests a response of at most n tokens.
func upTo(n int) string {
	return strings.Replace(ask("hello"), `{"model"`, `{"max_tokens":`+strconv.Itoa(n)+`,"model"`, 1)
}

func TestACallerOverItsBudgetIsToldWhenItResets(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := priced(t, u, 0.035)
	now := time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC)
	b.proxy.spending = budget.New(nil, func() time.Time { return now })
	send := func(n int) answered { return b.chat(upTo(n), "Authorization", "Bearer team") }
	for i := range 3 { // each may cost $0.015 and costs $0.01; the rest is returned
		if got := send(15); got.status != 200 {
			t.Fatalf("request %d: %d %s", i, got.status, got.body)
		}
	}
	got := send(15)
	if got.status != 429 || got.code(t) != "insufficient_quota" || got.header.Get("Retry-After") != "3600" ||
		got.header.Get("X-Should-Retry") != "false" {
		t.Fatalf("over the budget: %d %s %v", got.status, got.body, got.header)
	}
	if m := got.error(t).Message; !strings.Contains(m, "key:team") || !strings.Contains(m, "2026-04-01T00:00:00Z") {
		t.Errorf("the message does not name the budget and its reset: %s", m)
	}
	if got := send(100); got.status != 429 || got.header.Get("Retry-After") != "" {
		t.Errorf("more than the budget: %d %s %v", got.status, got.body, got.header)
	}
	if got := b.chat(upTo(15), "Authorization", "Bearer free"); got.status != 200 {
		t.Errorf("another caller: %d %s", got.status, got.body)
	}
	if n := len(u.Requests()); n != 4 {
		t.Errorf("%d requests reached the model, want 4", n)
	}
}

func TestEmbeddingsAreReservedFor(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, `{"object":"list","data":[],"usage":{"prompt_tokens":10}}`))
	b := start(t, oneModel(u), withKeys(auth.KeyOptions{Name: "team", Budget: auth.BudgetOptions{USD: .01}}))
	for _, x := range []struct{ words, want int }{{10, 200}, {10_000, 429}} { // at $1 a million tokens
		body := `{"model":"small","input":"` + strings.Repeat("word ", x.words) + `"}`
		if got := b.post("/v1/embeddings", body, "Authorization", "Bearer team"); got.status != x.want {
			t.Errorf("%d words: %d %s", x.words, got.status, got.body)
		}
	}
}

// A discarded response is charged to the budget, and reserved for.
func TestAThrownAnswerIsPaid(t *testing.T) {
	t.Parallel()
	refused := strings.NewReplacer("hel", "I'm sorry, but I can't help with that.", `"length"`, `"stop"`).Replace(tooShort)
	p := escalating(t, everySign, testkit.JSON(200, refused), testkit.JSON(200, testkit.Completion),
		withKeys(auth.KeyOptions{Name: "team", Budget: auth.BudgetOptions{USD: .05}}), func(s *setup) {
			for i := range s.models {
				s.models[i].Price = choose.Price{Output: 1000}
			}
		})
	// Each may cost 2 x $0.012 and costs $0.003 and $0.012.
	for i, want := range []int{200, 200, 429} {
		if got := p.chat(upTo(12), "Authorization", "Bearer team"); got.status != want {
			t.Errorf("request %d: %d %s", i, got.status, got.body)
		}
	}
}

func TestTwoReplicasInARaceKeepOneBudget(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	server := testkit.NewRedis(t)
	var wg sync.WaitGroup
	var passed, refused atomic.Int64
	now := time.Now() // one month, also at its end
	for range 2 {
		store := patientRedis(t, server)
		b := priced(t, u, 0.205)
		b.proxy.spending = budget.New(budgetsIn{store}, func() time.Time { return now })
		for range 6 {
			wg.Go(func() {
				for range 10 {
					switch got := b.chat(upTo(10), "Authorization", "Bearer team"); got.status {
					case 200:
						passed.Add(1)
					case 429:
						refused.Add(1)
					default:
						t.Errorf("%d %s", got.status, got.body)
					}
				}
			})
		}
	}
	wg.Wait()
	if passed.Load() != 20 || refused.Load() != 100 {
		t.Errorf(
			"%d requests of $0.01 passed a budget of $0.205 and %d did not, want 20 and 100",
			passed.Load(),
			refused.Load(),
		)
	}
}

// The cost of a stream is what its server reports. The proxy requests the usage, and the client
// sees nothing of it.
func TestStreamsThatABudgetPaysAreAskedForTheirUsage(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.Stream(testkit.Event("four"), testkit.Finish, testkit.Done))
	b := priced(t, u, 1)
	asked := func() bool { return strings.Contains(string(lastBody(u)), `"include_usage":true`) }
	if b.chat(askStream("hi"), "Authorization", "Bearer team"); !asked() {
		t.Error("the stream of a key with a budget is not asked for its usage")
	}
	if b.chat(askStream("hi"), "Authorization", "Bearer free"); asked() {
		t.Error("the stream of a key without a budget is asked for its usage")
	}
	big := bounded(t, u, u, 1)
	if big.chat(askStream("hi")); !asked() {
		t.Error("the stream of a model with a budget is not asked for its usage")
	}
}

// Some servers report usage in the event that ends the choice. A response has 10 tokens, $0.01.
func TestUsageBesideTheEndOfAChoiceIsPaid(t *testing.T) {
	t.Parallel()
	end := strings.Replace(testkit.Finish, `"choices"`, `"usage":{"prompt_tokens":5,"completion_tokens":10},"choices"`, 1)
	for _, setting := range []string{"", backend.UsageNever} {
		u := testkit.NewUpstream(t, testkit.Stream(testkit.Event("ok"), end, testkit.Done))
		b := priced(t, u, 0.035, func(s *setup) {
			for i := range s.models {
				s.models[i].StreamUsage = setting
			}
		})
		for i, want := range []int{200, 200, 200, 429} {
			body := strings.Replace(askStream("hi"), `{`, `{"max_tokens":10,`, 1)
			if got := b.chat(body, "Authorization", "Bearer team"); got.status != want {
				t.Errorf("%q, request %d: %d %s", setting, i, got.status, got.body)
			}
		}
	}
}

// A response that is not a stream is charged by its reported usage, wherever that is; by its text
// if it reports none; and by its limit if it is too long to be held. A token costs $0.001.
func TestWhatABodyTookIsPaidWhereverItTellsIt(t *testing.T) {
	t.Parallel()
	const text = `{"object":"chat.completion","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"%"},"finish_reason":"stop"}]}`
	of := func(n int) string { return strings.Replace(text, "%", strings.Repeat("word", n), 1) }
	told := strings.TrimSuffix(tenTokens, "}")
	for name, tt := range map[string]struct {
		body string
		pass int
	}{
		"told":                         {tenTokens, 3},
		"in front of a client's usage": {told + `,"metadata":{"usage":"x"}}`, 3},
		"of a client's own":            {told + `,"metadata":{"usage":{"prompt_tokens":1,"completion_tokens":1}}}`, 3},
		"untold":                       {of(5), 6},
		"untold and long":              {of(20_000), 2},
	} {
		b := priced(t, testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tt.body)), 0.045)
		passed := 0
		for range 7 {
			if b.chat(upTo(20), "Authorization", "Bearer team").status == http.StatusOK {
				passed++
			}
		}
		if passed != tt.pass {
			t.Errorf("%s: %d passed, want %d", name, passed, tt.pass)
		}
	}
}

// A reservation that exceeds the budget is reported. Each token costs $0.001.
func TestTheLimitThatIsInForceIsReserved(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	for _, tt := range []struct{ name, use, client, want string }{
		{"none", "", "", "$0.256"},
		{"the client's", "", `"max_tokens":100,"n":2,`, "$0.2"},
		{"the route's", ", max_tokens: 5000", "", "$5"},
		{"the route's, below what is assumed", ", max_tokens: 100", "", "$0.1"},
		{"the client's over the route's", ", max_tokens: 5000", `"max_tokens":100,`, "$0.1"},
		{"the route's over the client's", ", max_tokens: 5000, override: true", `"max_tokens":100,`, "$5"},
		{"an automatic one", ", max_tokens: auto", "", "$0.256"},
		{"choices of the route", ", max_tokens: 5000, set: {body: {n: 4}}", `"n":2,`, "$20"},
		{
			"a field of the route", ", max_tokens: 5000, set: {body: {max_completion_tokens: 7}}",
			`"max_tokens":100,`, "$0.007",
		},
		{"two fields of the route", ", set: {body: {max_completion_tokens: 7, max_tokens: 9}}", "", "$0.009"},
		{"no limit by the route", ", set: {body: {max_tokens: null}}", `"max_tokens":100,`, "$0.256"},
		{"the window", ", max_tokens: 100000", "", "$8.192"},
	} {
		b := priced(t, u, 0.001, func(s *setup) { s.routes = "routes: []\ndefault: {models: [small]" + tt.use + "}\n" })
		got := b.chat(strings.Replace(ask("hello"), `{`, `{`+tt.client, 1), "Authorization", "Bearer team")
		if got.status != 429 || !strings.Contains(got.body, "it may cost "+tt.want+",") {
			t.Errorf("%s: %d %s, want %s", tt.name, got.status, got.body, tt.want)
		}
	}
}

// An exhausted budget limits only what costs money.
func TestAModelWithoutAPriceStaysUsableOverTheBudget(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := priced(t, u, 0.005, func(s *setup) { s.models[0].Price = choose.Price{} })
	for i, tt := range []struct {
		model string
		want  int
	}{{"small", 200}, {"small", 429}, {"big", 200}} {
		got := b.chat(strings.Replace(upTo(5), `"auto"`, `"`+tt.model+`"`, 1), "Authorization", "Bearer team")
		if got.status != tt.want {
			t.Errorf("request %d, to %s: %d %s", i, tt.model, got.status, got.body)
		}
	}
}
