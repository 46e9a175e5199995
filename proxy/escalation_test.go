package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/recent"
)

const (
	tooShort = `{"id":"c-1","object":"chat.completion","created":1,"model":"m",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"hel"},` +
		`"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":3,` +
		`"total_tokens":8}}`
	cutShort = `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m",` +
		`"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	usageOf8 = `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m",` +
		`"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}` + "\n\n"

	everySign = "{when: [length, empty, refusal, tool_call, json]}"
)

// pair is a small and a large model with a server each.
type pair struct {
	*bench
	small, big *testkit.Upstream
}

// escalating starts a proxy whose only route escalates as configured.
func escalating(tb testing.TB, how string, small, big testkit.Answer, change ...func(*setup)) *pair {
	tb.Helper()
	p := &pair{small: testkit.NewUpstream(tb, small), big: testkit.NewUpstream(tb, big)}
	models := []backend.ModelOptions{
		modelOptions("small", "", reasoning.Options{}, p.small), modelOptions("big", "", reasoning.Options{}, p.big),
	}
	p.bench = start(tb, models, append([]func(*setup){func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small, big], escalate: " + how + "}\n"
	}}, change...)...)
	return p
}

// became returns what the headers say about an escalation: result, reason, from, model.
func became(a answered) string {
	h := a.header
	const name = "X-Signalbox-Escalation"
	return strings.Join(
		[]string{h.Get(name), h.Get(name + "-Reason"), h.Get(name + "-From"), h.Get("X-Signalbox-Model")},
		" ",
	)
}

func (a answered) ends(tb testing.TB, want, text string) answered {
	tb.Helper()
	if got := became(a); a.status != http.StatusOK || a.err != nil || got != want || !strings.Contains(a.body, text) {
		tb.Errorf("status %d, %q, want %q with %q: %.400s (%v)", a.status, got, want, text, a.body, a.err)
	}
	return a
}

func TestAnAnswerThatShowsASignIsThrownAway(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion))
	got := p.chat(ask("hi")).ends(t, "escalated length small big", `"hello"`)
	if used := got.header.Get("X-Signalbox-Escalation-Tokens"); used != "prompt=5, completion=3" {
		t.Errorf("tokens %q", used)
	}
	if got.header.Get("X-Signalbox-Degraded") != "" {
		t.Errorf("degraded: %q", got.header.Get("X-Signalbox-Degraded"))
	}
	if got.body != testkit.Completion {
		t.Errorf("the answer was changed: %s", got.body)
	}
	page := p.metrics()
	for _, line := range []string{
		`signalbox_escalations_total{model="small",reason="length",route="default"} 1`,
		`signalbox_tokens_total{kind="prompt"} 14`, `signalbox_tokens_total{kind="completion"} 15`,
		`signalbox_cost_usd_total{model="small"} 1.1e-05`, `signalbox_cost_usd_total{model="big"} 3.3e-05`,
		`signalbox_cost_baseline_usd_total 3.3e-05`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no %q", line)
		}
	}
	for _, word := range []string{`"escalation":"escalated"`, `"escalated_for":"length"`, `"escalated_from":"small"`, `"model":"big"`} {
		if !strings.Contains(p.log.String(), word) {
			t.Errorf("the log line lacks %s: %s", word, p.log)
		}
	}
	p.small.Next(testkit.JSON(200, testkit.Completion))
	p.chat(ask("hi")).ends(t, "kept   small", `"hello"`)
	if n := len(p.big.Requests()); n != 1 {
		t.Errorf("the large model was asked %d times", n)
	}
}

// The client's own limit would cut the other model's response as well. A limit of the route is the
// operator's.
func TestAnAnswerThatIsCutWhereTheClientAskedForItStands(t *testing.T) {
	t.Parallel()
	const thrown, stands = "escalated length small big", "kept   small"
	call := strings.Replace(
		tooShort, `"content":"hel"`, `"content":null,"tool_calls":[{"id":"1","type":"function","function":`+
			`{"name":"f","arguments":"{\"hel"}}]`, 1,
	)
	cutResponse := strings.NewReplacer(
		`"incomplete_details":null`, `"incomplete_details":{"reason":"max_output_tokens"}`,
		`"status":"completed","usage"`, `"status":"incomplete","usage"`, `"text":"hello"`, `"text":"hel"`,
	).Replace(responseAnswer)
	respond := func(more string) string { return routed()[1].ask("hi", more) }
	for name, c := range map[string]struct {
		path, ask, answer, route, want string
	}{
		"no limit":           {"/v1/chat/completions", ask("hi"), tooShort, "", thrown},
		"null":               {"/v1/chat/completions", askWith(`"max_tokens":null`), tooShort, "", thrown},
		"max_tokens":         {"/v1/chat/completions", askWith(`"max_tokens":3`), tooShort, "", stands},
		"the newer name":     {"/v1/chat/completions", askWith(`"max_completion_tokens":3`), tooShort, "", stands},
		"a call that is cut": {"/v1/chat/completions", askWith(`"max_tokens":3`), call, "", stands},
		"of the route":       {"/v1/chat/completions", ask("hi"), tooShort, ", max_tokens: 3", thrown},
		"of both":            {"/v1/chat/completions", askWith(`"max_tokens":3`), tooShort, ", max_tokens: 3", stands},
		"the route's instead": {
			"/v1/chat/completions", askWith(`"max_tokens":9`), tooShort, ", max_tokens: 3, override: true", thrown,
		},
		"a response":          {"/v1/responses", respond(""), cutResponse, "", thrown},
		"a response, bounded": {"/v1/responses", respond(`,"max_output_tokens":3`), cutResponse, "", stands},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := testkit.Completion
			if c.path == "/v1/responses" {
				whole = responseAnswer
			}
			p := escalating(t, everySign, testkit.JSON(200, c.answer), testkit.JSON(200, whole), func(s *setup) {
				s.routes = strings.Replace(s.routes, "escalate: "+everySign, "escalate: "+everySign+c.route, 1)
			})
			p.post(c.path, c.ask).ends(t, c.want, "hel")
		})
	}
}

// askWith returns a chat request with another member.
func askWith(member string) string { return strings.Replace(ask("hi"), "{", "{"+member+",", 1) }

func TestAStreamIsHeldUntilItIsJudged(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.Stream(testkit.Event("wrong"), cutShort, usageOf8, testkit.Done),
		testkit.Stream(testkit.Event("right"), testkit.Finish, usageOf8, testkit.Done))
	got := p.chat(askStream("hi")).ends(t, "escalated length small big", "right")
	if strings.Contains(got.body, "wrong") || strings.Contains(got.body, "usage") ||
		strings.Count(got.body, "[DONE]") != 1 {
		t.Errorf("got %s", got.body)
	}
	if used := got.header.Get("X-Signalbox-Escalation-Tokens"); used != "prompt=5, completion=3" {
		t.Errorf("tokens %q", used)
	}
	want := testkit.Event("fine") + testkit.Finish + testkit.Done
	p.small.Next(testkit.Stream(testkit.Event("fine"), testkit.Finish, testkit.Done))
	if got := p.chat(askStream("hi")).ends(t, "kept   small", "fine"); got.body != want {
		t.Errorf("the stream was changed: %q", got.body)
	}
}

func TestAStreamGoesOutWhenItWasHeldLongEnough(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	slow := func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		testkit.Stream(testkit.Event("one "))(u, w, r)
		<-gate
		testkit.Stream(testkit.Event("two"), cutShort, testkit.Done)(u, w, r)
	}
	p := escalating(t, "{when: length, hold: 20ms}", slow, testkit.JSON(500, `{}`))
	req, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		p.URL+"/v1/chat/completions",
		strings.NewReader(askStream("hi")),
	)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if got := res.Header.Get("X-Signalbox-Escalation"); got != "late" {
		t.Errorf("result %q", got)
	}
	all := ""
	for b := make([]byte, 4096); !strings.Contains(all, "one "); { // it is here although the stream has not ended
		n, err := res.Body.Read(b)
		if all += string(b[:n]); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	for b := make([]byte, 4096); ; {
		n, err := res.Body.Read(b)
		all += string(b[:n])
		if err != nil {
			break
		}
	}
	if want := testkit.Event("one ") + testkit.Event("two") + cutShort + testkit.Done; all != want {
		t.Errorf("got %q, want %q", all, want)
	}
	if n := len(p.big.Requests()); n != 0 {
		t.Errorf("the large model was asked %d times", n)
	}
}

func TestServersThatDieInEachPhase(t *testing.T) {
	t.Parallel()
	died := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + testkit.Event("wrong")
	right := testkit.Stream(testkit.Event("right"), testkit.Finish, testkit.Done)
	wrong := testkit.Stream(testkit.Event("wrong"), cutShort, usageOf8, testkit.Done)
	for name, c := range map[string]struct {
		small, big testkit.Answer
		want, text string
	}{
		"the small one before its answer": {testkit.Raw("", testkit.RST), right, "   big", "right"},
		"the small one while held":        {testkit.Raw(died, testkit.RST), right, "   big", "right"},
		"the small one without an end":    {testkit.Raw(died, testkit.FIN), right, "   big", "right"},
		"the large one before its answer": {wrong, testkit.Raw("", testkit.RST), "failed length  small", "wrong"},
		"the large one is busy":           {wrong, testkit.JSON(429, `{"error":{"message":"busy"}}`), "failed length  small", "wrong"},
		"the large one refuses":           {wrong, testkit.JSON(400, `{"error":{"message":"no"}}`), "failed length  small", "wrong"},
		"the large one fails":             {wrong, testkit.JSON(500, `{"error":{"message":"no"}}`), "failed length  small", "wrong"},
		"the large one begins to fail": {
			wrong, testkit.Stream(faultOfVLLM, testkit.Done), "failed length  small", "wrong",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := escalating(t, everySign, c.small, c.big)
			got := p.chat(askStream("hi")).ends(t, c.want, c.text)
			if strings.Count(got.body, "[DONE]") != 1 || strings.Contains(got.body, "usage") {
				t.Errorf("got %q", got.body)
			}
			if strings.HasPrefix(c.want, "failed") &&
				!strings.Contains(p.metrics(), `signalbox_tokens_total{kind="prompt"} 5`) {
				t.Error("the tokens of the answer that was given after all are not counted once")
			}
		})
	}
	t.Run("the large one in the middle", func(t *testing.T) {
		t.Parallel()
		p := escalating(t, everySign, wrong, testkit.Raw(died, testkit.RST))
		got := p.chat(askStream("hi"))
		if !strings.Contains(got.body, `"upstream_error"`) || strings.Contains(got.body, "[DONE]") || got.err == nil {
			t.Errorf("got %q, %v", got.body, got.err)
		}
	})
	t.Run("both", func(t *testing.T) {
		t.Parallel()
		p := escalating(t, everySign, testkit.Raw(died, testkit.RST), testkit.Raw("", testkit.RST))
		if got := p.chat(askStream("hi")); got.status != http.StatusBadGateway {
			t.Errorf("got %d %q", got.status, got.body)
		}
	})
}

func TestAClientThatLeavesEndsWhatRuns(t *testing.T) {
	t.Parallel()
	wrong := testkit.Stream(testkit.Event("wrong"), cutShort, testkit.Done)
	for name, c := range map[string]struct {
		small, big testkit.Answer
		runs       func(p *pair) *testkit.Upstream
	}{
		"while the small one thinks":          {testkit.Silent(), wrong, func(p *pair) *testkit.Upstream { return p.small }},
		"while the small one is held":         {testkit.Stall(testkit.Event("wrong")), wrong, func(p *pair) *testkit.Upstream { return p.small }},
		"while the large one thinks":          {wrong, testkit.Silent(), func(p *pair) *testkit.Upstream { return p.big }},
		"while the answer of the large comes": {wrong, testkit.Stall(testkit.Event("right")), func(p *pair) *testkit.Upstream { return p.big }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := escalating(t, everySign, c.small, c.big)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req, err := http.NewRequestWithContext(
				ctx,
				http.MethodPost,
				p.URL+"/v1/chat/completions",
				strings.NewReader(askStream("hi")),
			)
			if err != nil {
				t.Fatal(err)
			}
			up := c.runs(p)
			go func() {
				<-up.Arrived
				leave()
			}()
			if res, err := p.Client().Do(req); err == nil {
				_ = res.Body.Close()
			}
			within(t, up.Gone, "the end of the request to the server")
			waitFor(t, "a log line", func() bool { return strings.Contains(p.log.String(), `"status":499`) })
		})
	}
}

func TestToolCallsAndTheirResults(t *testing.T) {
	t.Parallel()
	const tools = `,"tools":[{"type":"function","function":{"name":"f",` +
		`"parameters":{"type":"object","required":["a"]}}}]`
	call := func(arguments string) string {
		return strings.Replace(
			testkit.Completion,
			`"content":"hello"`,
			`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":`+fmt.Sprintf(
				"%q",
				arguments,
			)+`}}]`,
			1,
		)
	}
	p := escalating(t, everySign, testkit.JSON(200, call(`{}`)), testkit.JSON(200, call(`{"a":1}`)), sticks)
	p.chat(chatOf(tools, "user go")).ends(t, "escalated tool_call small big", `{\"a\":1}`)
	p.big.Next(testkit.JSON(200, tooShort))
	got := p.chat(chatOf(tools, "user go", "assistant calls", "tool 42")).ends(t, "   big", "hel")
	if got.header.Get("X-Signalbox-Conversation-Reason") != "tool_result" {
		t.Errorf("%s", talked(got))
	}
	// a valid call by the small model: its result stays there, whatever the response
	p.small.Next(testkit.JSON(200, call(`{"a":2}`)), testkit.JSON(200, tooShort))
	p.chat(chatOf(tools, "user other")).ends(t, "kept   small", `{\"a\":2}`)
	p.chat(chatOf(tools, "user other", "assistant calls", "tool 42")).ends(t, "   small", "hel")
}

func TestAConversationStaysWithTheModelThatHasAnswered(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion), sticks)
	p.chat(chatOf("", "user one")).ends(t, "escalated length small big", "hello")
	got := p.chat(chatOf("", "user one", "assistant hello", "user two")).ends(t, "   big", "hello")
	if talked(got) != "kept prefill big" {
		t.Errorf("%s", talked(got))
	}
	p.small.Next(testkit.JSON(200, testkit.Completion))
	p.chat(chatOf("", "user three")).ends(t, "kept   small", "hello")
	got = p.chat(chatOf("", "user three", "assistant hello", "user four")).
		ends(t, "escalated length small big", "hello")
	if talked(got) != "moved escalated big" {
		t.Errorf("%s", talked(got))
	}
}

func TestTheJudgedAwayAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion), caches("exact"))
	p.chat(ask("hi")).ends(t, "escalated length small big", "hello")
	p.kept(1)
	got := p.chat(ask("hi")).says(t, "the same again", "exact")
	if !strings.Contains(got.body, "hello") || got.header.Get("X-Signalbox-Model") != "big" {
		t.Errorf("%v %s", got.header, got.body)
	}
	p.big.Next(testkit.JSON(500, `{}`))
	p.chat(ask("another")).ends(t, "failed length  small", "hel")
	p.chat(ask("another")).says(t, "what was given after all", "miss")
}

func TestLogProbabilitiesAreAskedForAndTakenOut(t *testing.T) {
	t.Parallel()
	const probs = `,"logprobs":{"content":[{"token":"x","logprob":-%s,"bytes":null,"top_logprobs":[]}]}`
	body := func(p string) string {
		return strings.Replace(testkit.Completion, `,"finish_reason"`, fmt.Sprintf(probs, p)+`,"finish_reason"`, 1)
	}
	event := func(p string) string {
		return strings.Replace(testkit.Event("x"), `"delta"`, fmt.Sprintf(probs, p)[1:]+`,"delta"`, 1)
	}
	p := escalating(t, "{min_logprob: -1}", testkit.JSON(200, body("0.5")), testkit.JSON(200, testkit.Completion))
	got := p.chat(ask("hi")).ends(t, "kept   small", `"logprobs":null`)
	if strings.Contains(got.body, "token\":\"x") || !strings.Contains(string(p.small.Last(t).Body), `"logprobs":true`) {
		t.Errorf("got %s for %s", got.body, p.small.Last(t).Body)
	}
	if got.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
		t.Errorf("length %s of %d", got.header.Get("Content-Length"), len(got.body))
	}
	p.small.Next(testkit.JSON(200, body("1.5")))
	p.chat(ask("hi")).ends(t, "escalated logprob small big", `"hello"`)
	if strings.Contains(string(p.big.Last(t).Body), "logprobs") {
		t.Errorf("the last model is asked for what nobody judges: %s", p.big.Last(t).Body)
	}
	p.small.Next(testkit.Stream(event("0.5"), testkit.Finish, testkit.Done))
	got = p.chat(askStream("hi")).ends(t, "kept   small", `"logprobs":null`)
	if strings.Contains(got.body, "top_logprobs") {
		t.Errorf("got %s", got.body)
	}
	p.small.Next(testkit.JSON(200, body("0.5")))
	own := strings.Replace(ask("hi"), `{`, `{"logprobs":true,`, 1)
	p.chat(own).ends(t, "kept   small", `"top_logprobs"`)
}

func TestBothAttemptsCountToTheLimitsOfTheCaller(t *testing.T) {
	t.Parallel()
	p := escalating(
		t,
		everySign,
		testkit.JSON(200, tooShort),
		testkit.JSON(200, testkit.Completion),
		limited(auth.RateOptions{TPM: 1000}),
	)
	key, begun := []string{"Authorization", "Bearer limited"}, time.Now()
	p.chat(ask("hi"), key...).ends(t, "escalated length small big", "hello")
	p.small.Next(testkit.JSON(200, testkit.Completion))
	got := p.chat(strings.Replace(ask("hi"), `{`, `{"max_tokens":1,`, 1), key...)
	var left int
	_, _ = fmt.Sscan(got.header.Get("X-Ratelimit-Remaining-Tokens"), &left)
	// 5+3 of the discarded response, 9+12 of the other one, then what the second may use; some
	// drain meanwhile
	back := int(time.Since(begun).Seconds()*1000/60) + 1
	if used := 1000 - left; used < 29-back || used > 29+10 {
		t.Errorf("%d tokens are used, %d may have come back", used, back)
	}
}

func TestTheMessagesAPIAndCommentsWhileHeld(t *testing.T) {
	t.Parallel()
	const wrong = "I'm sorry, but I can't help with that wrong thing."
	p := escalating(t, everySign, testkit.Stream(testkit.Event(wrong), testkit.Finish, testkit.Done),
		testkit.Stream(testkit.Event("right"), testkit.Finish, testkit.Done))
	got := p.post(
		"/v1/messages",
		`{"model":"auto","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}`,
	)
	if got.status != 200 || !strings.Contains(got.body, "right") || strings.Contains(got.body, "wrong") ||
		!strings.Contains(got.body, "message_stop") {
		t.Errorf("%d %s", got.status, got.body)
	}
	gate := make(chan struct{})
	p = escalating(
		t,
		everySign,
		testkit.After(gate, testkit.Stream(testkit.Event(wrong), testkit.Finish, testkit.Done)),
		testkit.Stream(
			testkit.Event("right"),
			testkit.Finish,
			testkit.Done,
		),
		func(s *setup) { s.options.KeepaliveAfter = option.Duration(10 * time.Millisecond) },
	)
	got = p.raw(askStream("hi"), func() { close(gate) }) // the first comment brings the head
	if got.err != nil || !strings.HasPrefix(got.body, downstream.KeepAlive) || !strings.Contains(got.body, "right") ||
		strings.Contains(got.body, "wrong") {
		t.Errorf("%v %q", got.err, got.body)
	}
}

func TestTheDecisionLogAndExplainTellOfAnEscalation(t *testing.T) {
	t.Parallel()
	l := startLogged(t, "routes: []\ndefault: {models: [small, big], escalate: {when: [length], min_logprob: -2}}\n")
	l.up.Next(testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion))
	got := l.chat(strings.Replace(ask("hi"), `{`, `{"signalbox":{"explain":true},`, 1)).
		ends(t, "escalated length small big", "hello")
	if !strings.Contains(
		got.body,
		`"escalation":{"when":["length"],"min_logprob":-2,"hold":"10s","result":"escalated",`+
			`"reason":"length","from":"small"}`,
	) {
		t.Errorf("explained as %s", got.body)
	}
	if got := l.post(
		"/signalbox/v1/explain",
		ask("hi"),
	); !strings.Contains(
		got.body,
		`"escalation":{"when":["length"],"min_logprob":-2,"hold":"10s"}`,
	) {
		t.Errorf("explained as %s", got.body)
	}
	text, lines := l.lines(t)
	e := lines[0].Escalation
	if e == nil || e.Result != "escalated" || len(e.From) != 1 || e.From[0].Model != "small" ||
		e.From[0].Tokens.Completion != 3 || e.From[0].Cost != float64(e.From[0].Tokens.Prompt+2*3)/1e6 ||
		lines[0].Chosen != "small" ||
		lines[0].Model != "big" {
		t.Errorf("logged as %s", text)
	}
}

// The console, the metrics and the report agree: discarded responses are paid, by their own model.
func TestAnswersThatWereThrownAwayAreInTheSumsOfTheConsole(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion))
	p.chat(ask("hi")).ends(t, "escalated length small big", `"hello"`)
	p.until(0, 1)
	want := []recent.Spent{
		{Model: "big", Requests: 1, Prompt: 9, Cached: 4, Completion: 12, Cost: 33e-6, Baseline: 33e-6},
		{Model: "small", Prompt: 5, Completion: 3, Cost: 11e-6},
	}
	if diff := cmp.Diff(want, p.proxy.Recent().Tally().Spent); diff != "" {
		t.Errorf("sums (-want +got):\n%s", diff)
	}
}

func TestThreeModelsAreAskedInTheirOrder(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small, effort, big], escalate: {when: [length, empty]}}\n"
	})
	up.Next(testkit.JSON(200, tooShort), testkit.JSON(200, strings.Replace(testkit.Completion, `"hello"`, `""`, 1)))
	got := b.chat(ask("hi")).ends(t, "escalated empty effort big", "hello")
	if used := got.header.Get("X-Signalbox-Escalation-Tokens"); used != "prompt=14, completion=15" {
		t.Errorf("tokens %q", used)
	}
	up.Next(testkit.JSON(200, tooShort))
	b.chat(ask("hi")).ends(t, "escalated length small effort", "hello") // the second is good enough
}

func TestARouteWithoutTheKeyIsNotJudged(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, tooShort))
	b := start(t, oneModel(up), func(s *setup) { s.routes = "routes: []\ndefault: {models: [small, big]}\n" })
	b.chat(ask("hi")).ends(t, "   small", "hel")
	if strings.Contains(string(up.Last(t).Body), "logprobs") {
		t.Errorf("asked for %s", up.Last(t).Body)
	}
}

func TestHiddenValuesAreHiddenFromBothModels(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(
		t,
		testkit.JSON(200, strings.Replace(testkit.Completion, `"hello"`, `"Dear [EMAIL_1]"`, 1)),
	)
	c := &piiClassifier{}
	c.signals = signal.MaskOf(signal.PII)
	b := start(t, oneModel(up), func(s *setup) {
		s.classifier = &c.fakeClassifier
		s.routes = "routes: []\ndefault: {models: [small, big], redact: true, escalate: {when: length}}\n"
	})
	b.state.Signals.Classifier = c
	up.Next(testkit.JSON(200, tooShort))
	b.chat(ask("I am ann@example.com")).ends(t, "escalated length small big", "Dear ann@example.com")
	for _, r := range up.Requests() {
		if strings.Contains(string(r.Body), "ann@") || !strings.Contains(string(r.Body), "[EMAIL_1]") {
			t.Errorf("a model received %s", r.Body)
		}
	}
}

// The cost of judging a request compared with a route that does not judge; use the ratio within one
// run.
func BenchmarkRequestJudged(b *testing.B) {
	for name, key := range map[string]string{"without": "", "judged": ", escalate: " + everySign} {
		b.Run(name, func(b *testing.B) {
			up := testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))
			p := start(
				b,
				oneModel(up),
				func(s *setup) { s.routes = "routes: []\ndefault: {models: [small, big]" + key + "}\n" },
			)
			hammer(b, p.URL, ask("hello, how are you today"))
		})
	}
}
