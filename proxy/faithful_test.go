package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
	"signalbox/proxy/backend"
	"signalbox/proxy/engine"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/recall"
)

// More cases that users of other proxies have reported, each under the name of the symptom; see
// cases_test.go.

// A8: a cached response to a streaming request is a stream as a server sends it; in the Responses
// API it contains no chat events.
func TestA8StoredAnswersAreStreamsAsServersSendThem(t *testing.T) {
	up := testkit.NewUpstream(t, numbered())
	b := start(t, oneModel(up), caches(recall.ModeExact))
	b.chat(ask("one")).says(t, "whole", "miss")
	b.kept(1)
	got := b.chat(askStream("one")).says(t, "streamed", "exact")
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") || got.header.Get("Content-Length") != "" {
		t.Errorf("head %v", got.header)
	}
	events := strings.SplitAfter(got.body, "\n\n")
	if len(events) < 3 || events[len(events)-1] != "" || events[len(events)-2] != testkit.Done {
		t.Fatalf("stream %q", got.body)
	}
	finished := 0
	for i, e := range events[:len(events)-2] {
		var chunk struct {
			ID, Object, Model string
			Choices           []struct {
				Index  *int
				Delta  map[string]any
				Finish *string `json:"finish_reason"`
			}
		}
		data, ok := strings.CutPrefix(strings.TrimSuffix(e, "\n\n"), "data: ")
		if err := json.Unmarshal([]byte(data), &chunk); !ok || err != nil || chunk.Object != "chat.completion.chunk" || chunk.ID == "" || len(chunk.Choices) != 1 || chunk.Choices[0].Delta == nil {
			t.Errorf("event %d is %q: %v", i, e, err)
			continue
		}
		if f := chunk.Choices[0].Finish; f != nil {
			finished++
		}
		if i == 0 && chunk.Choices[0].Delta["role"] != "assistant" {
			t.Errorf("the first event has no role: %q", e)
		}
	}
	if finished != 1 {
		t.Errorf("finish_reason came %d times in %q", finished, got.body)
	}

	const item = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}`
	const head = `{"id":"r","object":"response","created_at":1,"model":"m","output":[` + item + `],"status":`
	up = testkit.NewUpstream(t, testkit.Stream("event: response.created\ndata: {\"type\":\"response.created\",\"response\":"+head+`"in_progress"}}`+"\n\n",
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n",
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":"+head+`"completed"}}`+"\n\n"))
	b = start(t, oneModel(up), caches(recall.ModeExact))
	body := `{"model":"auto","input":"hello","stream":true}`
	first := b.post("/v1/responses", body).says(t, "response", "miss")
	b.kept(1)
	second := b.post("/v1/responses", body).says(t, "response again", "exact")
	for name, s := range map[string]string{"passed on": first.body, "stored": second.body} {
		if strings.Contains(s, "chat.completion") || strings.Contains(s, `"choices"`) {
			t.Errorf("%s: chat chunks in %q", name, s)
		}
		for e := range strings.SplitSeq(strings.TrimSuffix(s, "\n\n"), "\n\n") {
			kind, data, ok := strings.Cut(strings.TrimPrefix(e, "event: "), "\ndata: ")
			if !ok || !strings.HasPrefix(data, `{"type":"`+kind+`"`) {
				t.Errorf("%s: event %q", name, e)
			}
		}
	}
}

// B3: a route's reasoning setting reaches the model under any name that it is served as, including
// an explicit false for models that reason by default, and nothing about templates reaches a server
// without them.
func TestB3ReasoningSurvivesTheNamesOfModels(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	models := []backend.ModelOptions{
		modelOptions("thinker", "Qwen/Qwen3-32B", reasoning.Options{Dialect: "qwen3"}, up),
		modelOptions("deep", "deepseek-ai/DeepSeek-V3.1", reasoning.Options{Dialect: "deepseek"}, up),
		modelOptions("cloud", "gpt-5.1", reasoning.Options{Dialect: "openai"}, up),
	}
	const routes = `
routes:
  - {name: on, when: {header: {name: X-Route, equals: on}}, use: {models: [thinker], reasoning: high}}
  - {name: off, when: {header: {name: X-Route, equals: off}}, use: {models: [thinker], reasoning: none}}
  - {name: deep, when: {header: {name: X-Route, equals: deep}}, use: {models: [deep], reasoning: none}}
  - {name: cloud, when: {header: {name: X-Route, equals: cloud}}, use: {models: [cloud], reasoning: high}}
default: {models: [thinker]}
`
	b := start(t, models, func(s *setup) { s.routes, s.options.AutoModels = routes, []string{"auto", "MoM"} })
	for _, asked := range []string{"auto", "MoM"} {
		for route, want := range map[string]string{
			"on":    `"model":"Qwen/Qwen3-32B","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"enable_thinking":true}}`,
			"off":   `"model":"Qwen/Qwen3-32B","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"enable_thinking":false}}`,
			"deep":  `"model":"deepseek-ai/DeepSeek-V3.1","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"thinking":false}}`,
			"cloud": `"model":"gpt-5.1","messages":[{"role":"user","content":"hi"}],"reasoning_effort":"high"}`,
		} {
			got := b.chat(strings.Replace(ask("hi"), "auto", asked, 1), "X-Route", route)
			if diff := cmp.Diff("{"+want, string(up.Last(t).Body)); diff != "" || got.status != 200 {
				t.Errorf("%s, %s: status %d, body (-want +got):\n%s", asked, route, got.status, diff)
			}
		}
	}
}

// Browsers are not clients: a preflight is refused, and no response allows access from another
// site.
func TestNoOtherSiteIsAllowedAnything(t *testing.T) {
	t.Parallel()
	b, u := target(t)
	got := b.do(http.MethodOptions, chatPath, "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
	if got.status != http.StatusMethodNotAllowed || got.error(t).Type == "" || len(u.Requests()) != 0 {
		t.Errorf("status %d with %s", got.status, got.body)
	}
	u.Next(testkit.JSON(200, okAnswer))
	post := b.chat(ask("hello"), "Authorization", "Bearer guest", "Origin", "https://app.example")
	for _, h := range []http.Header{got.header, post.header} {
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("an answer has %s", name)
			}
		}
	}
}

// S35: a connection whose server has sent more than its response is not reused, since the rest
// would become the beginning of the next one.
func TestLeftOverBytesOfAnAnswerEndItsConnection(t *testing.T) {
	t.Parallel()
	s := hostile.Start(t, hostile.Options{Still: true})
	b := start(t, hostileModels(s))
	for i := range 20 {
		s.Next("cl-too-short")
		b.chat(ask("hi"))
		before := s.Accepts()
		if got := b.chat(ask("hi")); got.status != 200 || got.body != hostile.Completion {
			t.Fatalf("round %d: status %d with %q, %v", i, got.status, got.body, got.err)
		}
		if s.Accepts() == before {
			t.Errorf("round %d: the connection was used again", i)
		}
	}
}

// S7: the proxy opens no address in a request, in message parts or in fields that other proxies act
// on, and the model server gets them unchanged.
func TestAddressesInRequestsAreText(t *testing.T) {
	t.Parallel()
	b, u := target(t)
	for _, address := range []string{
		"http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://2852039166/", "http://0xa9fea9fe/", "http://0251.0376.0251.0376/",
		"http://169.254.43518/", "http://169.254.169.254.nip.io/", "http://[fe80::1%25eth0]/", "http://0.0.0.0:9090/-/reload", "http://127.1/", "http://localhost.:9090/",
		"http://a@169.254.169.254/", "http://good.example\\\\@evil.example/", "http://good.example#@evil.example/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_FLUSHALL",
		"dict://127.0.0.1:11211/", "jar:http://a!/b", "unix:/var/run/docker.sock", "//127.0.0.1/", "http://xn--a.example/", "http://①②⑦.⓪.⓪.①/", "data:image/png;base64,AA==", "ftp://a/",
	} {
		for _, body := range []string{
			`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"` + address + `"}}]}]}`,
			`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"video_url","video_url":{"url":"` + address + `"}},{"type":"audio_url","audio_url":{"url":"` + address + `"}}]}]}`,
			`{"model":"auto","api_base":"` + address + `","base_url":"` + address + `","proxy":"` + address + `","callback":"` + address + `","messages":[{"role":"user","content":"hello"}]}`,
		} {
			got := b.chat(body, "Authorization", "Bearer guest")
			if want := strings.Replace(body, `"auto"`, `"Org/Small-7B"`, 1); got.status != 200 || string(u.Last(t).Body) != want {
				t.Errorf("%s: status %d with %s, the model got %s", address, got.status, got.body, u.Last(t).Body)
			}
		}
	}
}

// S20: fields with which a caller could use more of a server than intended are set by the operator:
// a route's value replaces the client's, and the field occurs once.
func TestS20RoutesSetTheFieldsThatCostMuch(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	const routes = `
routes: []
default: {models: [small], max_tokens: 100, override: true, set: {body: {n: 1, best_of: 1, prompt_logprobs: null, logit_bias: {}, chat_template: null, priority: 0}}}
`
	b := start(t, oneModel(up), func(s *setup) { s.routes = routes },
		allows(engine.Param{Name: "priority"}))
	b.chat(`{"n":1000000,"model":"auto","max_tokens":1000000000,"best_of":99,"prompt_logprobs":1000,"logit_bias":{"1":100},"chat_template":"{{x}}","priority":-9,"messages":[{"role":"user","content":"hi"}]}`)
	want := `{"n":1,"model":"Org/Small-7B","max_tokens":100,"best_of":1,"prompt_logprobs":null,"logit_bias":{},"chat_template":null,"priority":0,"messages":[{"role":"user","content":"hi"}]}`
	if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}
