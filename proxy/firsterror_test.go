package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
	"signalbox/proxy/reasoning"
)

// The errors at the beginning of streams in these tests: vLLM's and LiteLLM's format for a server
// error and for a request error, and those of OpenAI and Anthropic.
const (
	faultOfVLLM    = `data: {"error":{"message":"CUDA","type":"InternalServerError","param":null,"code":500}}` + "\n\n"
	faultOfLiteLLM = `data: {"error": {"message": "busy", "type": "None", "param": "None", "code": "503"}}` + "\n\n"
	faultOfClient  = `data: {"error":{"message":"maximum context length is 10 tokens","type":"BadRequestError",` +
		`"param":null,"code":400}}` + "\n\n"
	faultOfOpenAI = "event: response.failed\n" + `data: {"type":"response.failed","sequence_number":0,"response":` +
		`{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"m"},"output":[]}}` + "\n\n"
	faultOfAnthropic = "event: error\n" +
		`data: {"type":"error","error":{"type":"api_error","message":"Internal server error"}}` + "\n\n"
	wholeResponse = "event: response.completed\n" + `data: {"type":"response.completed","sequence_number":1,"response":` +
		`{"id":"r","object":"response","status":"completed","error":null,"output":[{"type":"message","role":"assistant",` +
		`"content":[{"type":"output_text","text":"hello"}]}]}}` + "\n\n"
)

// firstOf responds once like first, whichever server is asked, and then like usual.
func firstOf(first, usual testkit.Answer) testkit.Answer {
	var once atomic.Bool
	return func(u *testkit.Upstream, w http.ResponseWriter, r *http.Request) {
		if once.CompareAndSwap(false, true) {
			first(u, w, r)
			return
		}
		usual(u, w, r)
	}
}

// A server that fails before it has sent any content may be replaced, however it reports the
// failure.
func TestAStreamThatBeginsWithTheServersErrorIsRepeatedElsewhere(t *testing.T) {
	t.Parallel()
	const responses, messages = "/v1/responses", downstream.MessagesPath
	message := askMessage("hi", `,"stream":true`)
	response := `{"model":"auto","input":"hi","stream":true}`
	for name, tt := range map[string]struct {
		path, body string
		first      []string
		again      bool
	}{
		"of vLLM":         {chatPath, askStream("hi"), []string{faultOfVLLM, testkit.Done}, true},
		"of LiteLLM":      {chatPath, askStream("hi"), []string{faultOfLiteLLM}, true},
		"behind comments": {chatPath, askStream("hi"), []string{": wait\n\n", faultOfVLLM, testkit.Done}, true},
		"in two pieces": {
			chatPath, askStream("hi"), []string{faultOfVLLM[:40], faultOfVLLM[40:], testkit.Done}, true,
		},
		"with a name":               {chatPath, askStream("hi"), []string{"event: error\n" + faultOfVLLM}, true},
		"as a message":              {messages, message, []string{faultOfVLLM, testkit.Done}, true},
		"of Anthropic as a message": {messages, message, []string{faultOfAnthropic}, true},
		"of a response":             {responses, response, []string{faultOfOpenAI}, true},
		"of a response, by vLLM":    {responses, response, []string{faultOfVLLM, testkit.Done}, true},
		"the request's":             {chatPath, askStream("hi"), []string{faultOfClient, testkit.Done}, false},
		"the request's, of a response": {
			responses, response, []string{strings.Replace(faultOfOpenAI, "server_error", "invalid_prompt", 1)}, false,
		},
		"behind the first text": {chatPath, askStream("hi"), []string{testkit.Event("a"), faultOfVLLM, testkit.Done}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usual := testkit.Stream(": fine\n\n", testkit.Event("hello"), testkit.Finish, testkit.Done)
			if tt.path == responses {
				usual = testkit.Stream(wholeResponse)
			}
			answer := firstOf(testkit.Stream(tt.first...), usual)
			a, c := testkit.NewUpstream(t, answer), testkit.NewUpstream(t, answer)
			b := start(t, oneModel(a, c))
			got := b.post(tt.path, tt.body)
			tries := len(a.Requests()) + len(c.Requests())
			if want := map[bool]int{true: 2, false: 1}[tt.again]; tries != want || got.status != 200 {
				t.Errorf("%d after %d tries, want %d: %s", got.status, tries, want, got.body)
			}
			if tt.again != (strings.Contains(got.body, "hello") && got.err == nil && !strings.Contains(got.body, "error\":{")) {
				t.Errorf("got %v, %s", got.err, got.body)
			}
			if tt.again && tt.path == chatPath && !strings.Contains(got.body, ": fine") {
				t.Errorf("the comment is gone: %s", got.body)
			}
			counted := strings.Contains(b.metrics(), `signalbox_retries_total{reason="status"} 1`)
			states := stateOf(t, b, "small-a") + stateOf(t, b, "small-b")
			if counted != tt.again || tt.again && !strings.Contains(states, "suspect") {
				t.Errorf("a retry is counted: %t; endpoints are %s", counted, states)
			}
		})
	}
}

func TestTheNextModelAnswersForAStreamThatBeginsWithAnError(t *testing.T) {
	t.Parallel()
	fails := testkit.NewUpstream(t, testkit.Stream(faultOfVLLM, testkit.Done))
	other := testkit.NewUpstream(t, testkit.Stream(testkit.Event("hello"), testkit.Done))
	b := start(t, []backend.ModelOptions{
		modelOptions("small", "", reasoning.Options{}, fails), modelOptions("big", "", reasoning.Options{}, other),
	}, func(s *setup) { s.routes = "routes: []\ndefault: {models: [small, big]}\n" })
	got := b.chat(askStream("hi"))
	if got.header.Get("X-Signalbox-Model") != "big" || got.header.Get("X-Signalbox-Degraded") != "fallback" ||
		got.body != testkit.Event("hello")+testkit.Done {
		t.Errorf("got %v %s", got.header, got.body)
	}
}

// When no server is left, the client gets the server's message. It is counted once, and the
// decision log contains it.
func TestAnErrorThatNobodyBettersIsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]string{
		"which ends":      {faultOfVLLM, testkit.Done},
		"which does not":  {faultOfVLLM},
		"behind the text": {testkit.Event("a"), faultOfVLLM, testkit.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := testkit.NewUpstream(t, testkit.Stream(events...))
			l := logDecisions(t, start(t, oneModel(a)))
			got := l.chat(askStream("hi"))
			if got.status != 200 || got.body != strings.Join(events, "") || len(a.Requests()) != 1 {
				t.Errorf("got %d %q after %d tries", got.status, got.body, len(a.Requests()))
			}
			if n := l.state.Models[1].Endpoints[0].Failures(); n != 1 {
				t.Errorf("it counts as %d failures", n)
			}
			if text, lines := l.lines(t); len(lines) != 1 || lines[0].Error != "upstream_error" {
				t.Errorf("the decision log has %s", text)
			}
		})
	}
}

// The refusal of one server and the broken stream of another: a status says more than an event.
func TestARefusalIsBetterThanAStreamThatBeginsWithAnError(t *testing.T) {
	t.Parallel()
	busy, fails := testkit.JSON(503, `{"error":"busy"}`), testkit.Stream(faultOfVLLM, testkit.Done)
	for i, answer := range []testkit.Answer{firstOf(busy, fails), firstOf(fails, busy)} {
		a, c := testkit.NewUpstream(t, answer), testkit.NewUpstream(t, answer)
		if got := start(t, oneModel(a, c)).chat(askStream("hi")); got.status != 503 || got.body != `{"error":"busy"}` {
			t.Errorf("order %d: got %d %s", i, got.status, got.body)
		}
	}
}

// Retries after such an error are subject to the retry budget, like those after refusals.
func TestStreamsThatBeginWithAnErrorKeepToTheBudgetOfRetries(t *testing.T) {
	t.Parallel()
	fails := testkit.Stream(faultOfVLLM, testkit.Done)
	a, c := testkit.NewUpstream(t, fails), testkit.NewUpstream(t, fails)
	b := start(t, oneModel(a, c), func(s *setup) { s.options.RetryBudget = 0 })
	const n = 3 * burst
	for range n {
		b.chat(askStream("hi"))
	}
	if tries := len(a.Requests()) + len(c.Requests()); tries != n+burst {
		t.Errorf("%d requests became %d", n, tries)
	}
}
