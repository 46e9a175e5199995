package proxy

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/reasoning"
)

// bounded returns two models whose responses cost $0.01 each, on a route that prefers big, which
// has a budget.
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

// A server that is down is back within minutes, whereas a client that is told about the budget
// would retry the next day.
func TestAModelThatIsDownIsTheAnswerBesideOneWhoseBudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"[big, small]", "[small, big]"} {
		u, sick := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens)), testkit.NewUpstream(t, nil)
		sick.SetSick(true)
		b := bounded(t, u, sick, .005, func(s *setup) {
			s.health, s.models[1].Health.Interval = true, option.Duration(10*time.Millisecond)
			s.routes = "routes: []\ndefault: {models: " + order + "}\n"
		})
		waitFor(t, "the server to be down", func() bool { return stateOf(t, b, "small-a") == "down" })
		got := b.chat(upTo(10))
		if got.status != http.StatusServiceUnavailable || got.code(t) != "no_endpoint" ||
			got.header.Get("X-Should-Retry") == "false" {
			t.Errorf("%s: %d %s %v", order, got.status, got.body, got.header)
		}
		if n := len(u.Requests()); n != 0 {
			t.Errorf("%s: the model over its budget got %d requests", order, n)
		}
	}
}

// A failed attempt costs its model's budget nothing.
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

// Messages are limited, reserved for and settled like chats, and refused in their own form.
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

// usageTold returns a response with usage, as a body or as a stream.
func usageTold(stream bool, prompt, completion string) testkit.Answer { //nolint:revive // of a table
	usage := `"usage":{"prompt_tokens":` + prompt + `,"completion_tokens":` + completion + `}`
	if stream {
		return testkit.Stream(testkit.Event("four"), testkit.Finish, `data: {"choices":[],`+usage+"}\n\n", testkit.Done)
	}
	return testkit.JSON(200, `{"choices":[{"index":0,"message":{"role":"assistant",`+
		`"content":"ok"},"finish_reason":"stop"}],`+usage+`}`)
}

// A token costs $0.001, and the budget is $20.
func TestUsageThatCannotBeLocksNobodyOut(t *testing.T) {
	t.Parallel()
	const image = `{"model":"auto","max_tokens":10,"messages":[{"role":"user","content":[` +
		`{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}]}`
	for _, tt := range []struct {
		name   string
		body   string
		answer testkit.Answer
		next   int // status of the next request
	}{
		{"a prompt", upTo(10), usageTold(false, "1000000000000000", "5"), 200},
		{"an answer", upTo(10), usageTold(false, "5", "1000000000000000"), 200},
		{"an answer that overflows", upTo(10), usageTold(false, "5", "9223372036854775807"), 200},
		{
			"a stream", strings.Replace(upTo(10), `{`, `{"stream":true,`, 1),
			usageTold(true, "1000000000000000", "2000000000000"), 200,
		},
		{"more than the bytes and a template", upTo(10), usageTold(false, "70000", "5"), 200},
		{"a long template", upTo(10), usageTold(false, "60000", "5"), 429},
		{"a picture", image, usageTold(false, "70000", "5"), 429},
		{"a picture that cannot be", image, usageTold(false, "2000000", "5"), 200},
		{"a long answer", upTo(10), usageTold(false, "5", "1000000"), 429},
	} {
		u := testkit.NewUpstream(t, tt.answer)
		b := start(t, oneModel(u), withKeys(auth.KeyOptions{
			Name: "team", Budget: auth.BudgetOptions{USD: 20}, Rate: auth.RateOptions{TPM: 50_000},
		}), func(s *setup) {
			for i := range s.models {
				s.models[i].Price = choose.Price{Input: 1000, Output: 1000}
			}
		})
		send := func(body string) answered { return b.chat(body, "Authorization", "Bearer team") }
		for i := range 2 {
			got := send(tt.body)
			if got.status != 200 && (i == 0 || tt.next == 200) {
				t.Errorf("%s, request %d: %d %s", tt.name, i, got.status, got.body)
			}
			waitFor(t, "the record", func() bool { return strings.Count(b.log.String(), `"msg":"request"`) > i })
		}
		if got := send(tt.body); got.status != tt.next {
			t.Errorf("%s: the next request gets %d %s", tt.name, got.status, got.body)
		}
		warned := strings.Count(b.log.String(), "server reported implausible usage")
		if warned != 1 && tt.next == 200 || warned != 0 && tt.next != 200 {
			t.Errorf("%s: %d warnings", tt.name, warned)
		}
	}
}

// The same holds for a discarded response.
func TestUsageThatCannotBeOfAThrownAnswerLocksNobodyOut(t *testing.T) {
	t.Parallel()
	mad := strings.Replace(tooShort, `"prompt_tokens":5`, `"prompt_tokens":1000000000000000`, 1)
	p := escalating(t, everySign, testkit.JSON(200, mad), testkit.JSON(200, testkit.Completion),
		withKeys(auth.KeyOptions{Name: "team", Budget: auth.BudgetOptions{USD: 1}}))
	for i := range 2 {
		if got := p.chat(upTo(12), "Authorization", "Bearer team"); got.status != 200 {
			t.Errorf("request %d: %d %s", i, got.status, got.body)
		}
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
