package proxy

import (
	"strings"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/proxy/downstream"
	"signalbox/proxy/upstream"
)

// A page from an API that responds in JSON comes from a proxy, a portal or a wrong address: it is a
// failure of the endpoint. Any other type may be a mistake of a server that answers correctly.
func TestAPageIsNoAnswerOfAnAPI(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Body(200, "text/html", "<p>sign in</p>"))
	b := start(t, oneModel(up))
	asked := map[string]string{
		chatPath:                strings.Replace(ask("hi"), "auto", "small", 1),
		"/v1/completions":       `{"model":"small","prompt":"hi"}`,
		"/v1/responses":         `{"model":"small","input":"hi"}`,
		downstream.MessagesPath: strings.Replace(askMessage("hi", ""), "auto", "small", 1),
		"/v1/embeddings":        `{"model":"small","input":"hi"}`,
	}
	for path, body := range asked {
		if got := b.post(path, body); got.status != 502 || strings.Contains(got.body, "sign in") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := stateOf(t, b, "small-a"); got != "suspect" {
		t.Errorf("the endpoint is %s", got)
	}
	speech := `{"model":"small","input":"hi","voice":"a"}`
	if got := b.post("/v1/audio/speech", speech); got.status != 200 || !strings.Contains(got.body, "sign in") {
		t.Errorf("of an API that is not known: %d %s", got.status, got.body)
	}
	for _, odd := range []string{"text/plain", "application/octet-stream", ""} {
		up.Next(testkit.Body(200, odd, testkit.Completion))
		if got := b.chat(ask("hi")); got.status != 200 || got.body != testkit.Completion {
			t.Errorf("of type %q: %d %s", odd, got.status, got.body)
		}
	}
}

// A server that quickly returns unusable responses would otherwise be the least busy one and get
// more requests than those that answer.
func TestAnAnswerOfNoUseCountsAgainstItsEndpoint(t *testing.T) {
	t.Parallel()
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n" +
		strings.Repeat(" ", 2*upstream.WindowSize)
	chat := strings.Replace(ask("hi"), "auto", "small", 1)
	message := strings.Replace(askMessage("hi", ""), "auto", "small", 1)
	stream := strings.Replace(askStream("hi"), "auto", "small", 1)
	const messages = downstream.MessagesPath
	const responses, response = "/v1/responses", `{"model":"small","input":"hi","stream":true}`
	streamed := strings.Replace(askMessage("hi", `,"stream":true`), "auto", "small", 1)
	told := func(e string) testkit.Answer {
		return testkit.Stream(testkit.Event("a"), "data: "+e+"\n\n", "data: [DONE]\n\n")
	}
	const (
		own    = `{"error":{"message":"CUDA","type":"InternalServerError","param":null,"code":500}}`
		theirs = `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`
		failed = `{"type":"response.failed","sequence_number":1,"response":{"id":"r","object":"response",` +
			`"status":"failed","error":{"code":"%s","message":"m"},"output":[]}}`
	)
	for name, tt := range map[string]struct {
		answer     testkit.Answer
		path, body string
		status     int
		state      string
	}{
		"a stream where none was asked for": {testkit.Stream(testkit.Event("a")), chatPath, chat, 502, "suspect"},
		"JSON where a stream was":           {testkit.JSON(200, testkit.Completion), chatPath, stream, 502, "suspect"},
		"a redirect":                        {testkit.JSON(307, "{}", "Location", "/v1"), chatPath, chat, 502, "suspect"},
		"half a message":                    {testkit.JSON(200, `{"id":`), messages, message, 502, "suspect"},
		"an empty message":                  {testkit.JSON(200, ""), messages, message, 502, "suspect"},
		"a message that breaks off":         {testkit.Raw(head, testkit.RST), messages, message, 502, "suspect"},
		"a message that stays away":         {testkit.Raw(head, testkit.WaitGone), messages, message, 504, "suspect"},
		"a refusal in no JSON":              {testkit.Body(400, "text/plain", "no"), messages, message, 400, "up"},
		"a stream that tells of an error":   {told(own), chatPath, stream, 200, "suspect"},
		"the same as a message":             {told(own), messages, streamed, 200, "suspect"},
		"a response that failed": {
			told(strings.Replace(failed, "%s", "server_error", 1)), responses, response, 200, "suspect",
		},
		"a stream that refuses the request": {told(theirs), chatPath, stream, 200, "up"},
		"a response that refuses the request": {
			told(strings.Replace(failed, "%s", "invalid_prompt", 1)), responses, response, 200, "up",
		},
		"a response that refuses the request and repeats it": {
			told(strings.Replace(strings.Replace(failed, "%s", "invalid_prompt", 1), `"output"`,
				`"metadata":{"status":"500"},"tools":[{"parameters":{"examples":[{"code":500}]}}],"output"`, 1)),
			responses, response, 200, "up",
		},
		"a stream whose text looks like errors": {
			testkit.Stream(testkit.Event(`{\"error\":{\"code\": 500}}`), "data: [DONE]\n\n"), chatPath, stream, 200, "up",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, tt.answer)
			b := start(t, oneModel(up), func(s *setup) {
				if tt.status == 504 {
					s.options.GapTimeout = option.Duration(200 * time.Millisecond)
				}
			})
			if got := b.post(tt.path, tt.body); got.status != tt.status {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if got := stateOf(t, b, "small-a"); got != tt.state {
				t.Errorf("the endpoint is %s", got)
			}
			if warned := strings.Contains(b.log.String(), `"level":"WARN","msg":"request"`); warned != (tt.state != "up") {
				t.Errorf("the log says %s", b.log)
			}
		})
	}
}

// The client determines the length of a response, and other clients must not lose an endpoint
// because of it.
func TestAnAnswerThatIsTooLongIsNoFailureOfItsEndpoint(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("All is well. ", upstream.MaxWhole/12)
	up := testkit.NewUpstream(t, testkit.JSON(200, strings.Replace(testkit.Completion, "hello", text, 1)))
	b := start(t, oneModel(up))
	got := b.post(downstream.MessagesPath, strings.Replace(askMessage("hi", ""), "auto", "small", 1))
	if got.status != 502 || !strings.Contains(b.log.String(), "too long") {
		t.Errorf("got %d %.200s, log %s", got.status, got.body, b.log)
	}
	if got := stateOf(t, b, "small-a"); got != "up" {
		t.Errorf("the endpoint is %s", got)
	}
}

// This may be how the server refuses the credentials, which are the client's.
func TestARedirectOfOneWhoKnowsClientsIsNoFailure(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(302, "{}", "Location", "/login"))
	b := start(t, oneModel(up), passesOn)
	if got := b.chat(strings.Replace(ask("hi"), "auto", "small", 1)); got.status != 502 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := stateOf(t, b, "small-a"); got != "up" {
		t.Errorf("the endpoint is %s", got)
	}
}

func TestAnErrorThatIsThrownAwayCountsAgainstItsEndpoint(t *testing.T) {
	t.Parallel()
	const own = `data: {"error":{"message":"CUDA","type":"InternalServerError","param":null,"code":500}}` + "\n\n"
	fails := testkit.Stream(testkit.Event("a"), own, testkit.Done)
	p := escalating(t, everySign, fails, testkit.Stream(testkit.Event("hello"), testkit.Finish, testkit.Done))
	p.chat(askStream("hi")).ends(t, "escalated failed small big", "hello")
	if got := stateOf(t, p.bench, "small-a"); got != "suspect" {
		t.Errorf("the endpoint is %s", got)
	}
}

func TestAnErrorThatIsThrownAwayAndGivenCountsOnce(t *testing.T) {
	t.Parallel()
	const own = `data: {"error":{"message":"CUDA","type":"InternalServerError","param":null,"code":500}}` + "\n\n"
	p := escalating(t, everySign, testkit.Stream(testkit.Event("hello"), own, testkit.Done), testkit.JSON(400, `{}`))
	if got := p.chat(askStream("hi")); became(got) != strings.Repeat("failed ", 2)+" small" ||
		!strings.Contains(got.body, "hello") {
		t.Errorf("%s: %s", became(got), got.body)
	}
	if n := p.state.Models[0].Endpoints[0].Failures(); n != 1 {
		t.Errorf("%d failures of one request", n)
	}
}
