package proxy

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/upstream"
)

const (
	halfOfCompletion = `{"id":"c-1","object":"chat.completion","choices":[{"index":0,"message":{"content":"hel"}`
	ownError         = `{"error":{"message":"CUDA","type":"InternalServerError","param":null,"code":500}}`
	theirError       = `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`
	htmlAsJSON       = "<!doctype html><title>Bad gateway</title>"
)

// An unusable body that was read completely before the first byte was sent does not count as a
// response, just like a page: another server may give one. If none does, it is passed on.
func TestABodyThatNoClientCanUseIsReplaced(t *testing.T) {
	t.Parallel()
	const responses, embeddings = "/v1/responses", "/v1/embeddings"
	for path, api := range map[string]struct{ body, usual string }{
		chatPath:  {ask("hi"), testkit.Completion},
		responses: {`{"model":"auto","input":"hi"}`, responseAnswer},
		embeddings: {`{"model":"small","input":"hi"}`, `{"object":"list","data":[{"embedding":[1]}],` +
			`"usage":{"prompt_tokens":1}}`},
	} {
		for name, tt := range map[string]struct {
			first testkit.Answer
			body  string
			again bool
		}{
			"nothing":            {testkit.JSON(200, ""), "", true},
			"nothing of no type": {testkit.Raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", testkit.FIN), "", true},
			"a half":             {testkit.JSON(200, halfOfCompletion), halfOfCompletion, true},
			"a page":             {testkit.JSON(200, htmlAsJSON), htmlAsJSON, true},
			"an error":           {testkit.JSON(200, ownError), ownError, true},
			"the request's":      {testkit.JSON(200, theirError), theirError, false},
			"no member known":    {testkit.JSON(200, `{"x":NaN}`), `{"x":NaN}`, false},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel()
				answer := firstOf(tt.first, testkit.JSON(200, api.usual))
				a, c := testkit.NewUpstream(t, answer), testkit.NewUpstream(t, answer)
				b := start(t, oneModel(a, c))
				want, tries := tt.body, 1
				if tt.again {
					want, tries = api.usual, 2
				}
				if got := b.post(path, api.body); got.status != 200 || got.body != want ||
					len(a.Requests())+len(c.Requests()) != tries {
					t.Errorf("got %d %s", got.status, got.body)
				}
				alone := testkit.NewUpstream(t, tt.first)
				l := logDecisions(t, start(t, oneModel(alone)))
				if got := l.post(path, api.body); got.status != 200 || got.body != tt.body || got.err != nil {
					t.Errorf("of one server got %d %s, %v", got.status, got.body, got.err)
				}
				if n := l.state.Models[1].Endpoints[0].Failures(); n != map[bool]int{true: 1}[tt.again] {
					t.Errorf("it counts as %d failures", n)
				}
				text, lines := l.lines(t)
				if len(lines) != 1 || (lines[0].Error == fault.CodeUpstream) != tt.again {
					t.Errorf("the decision log has %s", text)
				}
			})
		}
	}
}

// A body that is streamed is counted when it is found to be unusable: at its beginning, before
// anything was sent, or at its end.
func TestALongBodyThatNoClientCanUseCounts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*upstream.WindowSize)
	whole := `{"x":"` + long + `"}`
	for name, tt := range map[string]struct {
		body  string
		again bool
		fails int
	}{
		"a half": {whole[:len(whole)-2], false, 1},
		"a page": {"<html>" + long, true, 1},
		"whole":  {whole, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := testkit.JSON(200, tt.body)
			alone := testkit.NewUpstream(t, answer)
			b := start(t, oneModel(alone))
			if got := b.chat(ask("hi")); got.status != 200 || got.body != tt.body {
				t.Errorf("got %d %.100s", got.status, got.body)
			}
			if n := b.state.Models[1].Endpoints[0].Failures(); n != tt.fails {
				t.Errorf("it counts as %d failures", n)
			}
			if warned := strings.Contains(b.log.String(), `"level":"WARN","msg":"request"`); warned != (tt.fails > 0) {
				t.Errorf("the log says %s", b.log)
			}
			answer = firstOf(answer, testkit.JSON(200, testkit.Completion))
			b = start(t, oneModel(testkit.NewUpstream(t, answer), testkit.NewUpstream(t, answer)))
			if got := b.chat(ask("hi")); (got.body == testkit.Completion) != tt.again {
				t.Errorf("got %d %.100s", got.status, got.body)
			}
		})
	}
}

func TestAMessageIsReplacedWhereItsBodyIsOfNoUse(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", halfOfCompletion, htmlAsJSON, ownError} {
		answer := firstOf(testkit.JSON(200, body), testkit.JSON(200, testkit.Completion))
		b := start(t, oneModel(testkit.NewUpstream(t, answer), testkit.NewUpstream(t, answer)))
		if got := b.post(downstream.MessagesPath, askMessage("hi", "")); got.status != 200 ||
			!strings.Contains(got.body, "hello") {
			t.Errorf("%q: got %d %s", body, got.status, got.body)
		}
		b = start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, body))))
		if got := b.post(downstream.MessagesPath, askMessage("hi", "")); got.status != 502 {
			t.Errorf("%q alone: got %d %s", body, got.status, got.body)
		}
		if n := b.state.Models[1].Endpoints[0].Failures(); n != 1 {
			t.Errorf("%q counts as %d failures", body, n)
		}
	}
}

// An empty or incomplete response is no better than none, whatever signs a route looks for.
func TestABodyOfNoUseIsThrownAway(t *testing.T) {
	t.Parallel()
	long := `{"choices":[{"index":0,"message":{"content":"` + strings.Repeat("x", 2*upstream.WindowSize)
	for name, body := range map[string]string{
		"empty": "", "half": halfOfCompletion, "a long half": long, "a page": htmlAsJSON, "an error": ownError,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := escalating(t, "{when: [empty, json]}", testkit.JSON(200, body), testkit.JSON(200, testkit.Completion))
			p.chat(ask("hi")).ends(t, "escalated failed small big", "hello")
			if n := p.state.Models[0].Endpoints[0].Failures(); n != 1 {
				t.Errorf("it counts as %d failures", n)
			}
			if len(p.small.Requests()) != 1 || len(p.big.Requests()) != 1 {
				t.Error("a model was asked twice")
			}
		})
	}
}
