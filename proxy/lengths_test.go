package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/lengths"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/settings"
)

// near reports whether got is within a sketch's error, two percent, of want.
func near(got, want float64) bool { return got >= want*0.98-1 && got <= want*1.02+1 }

// answerOf returns a whole response of n tokens.
func answerOf(n int, finish string) testkit.Answer {
	return testkit.JSON(200, fmt.Sprintf(`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"say \"finish_reason\":\"length\""},"logprobs":null,"finish_reason":%q,"stop_reason":null}],"usage":{"prompt_tokens":9,"total_tokens":%d,"completion_tokens":%d}}`, finish, n+9, n))
}

// streamOf returns a stream of n one-word chunks that does not report usage.
func streamOf(n int, word, finish string) testkit.Answer {
	pieces := []string{testkit.Event("")}
	for range n {
		pieces = append(pieces, testkit.Event(word))
	}
	return testkit.Stream(append(pieces, strings.Replace(testkit.Finish, `"stop"`, `"`+finish+`"`, 1)+testkit.Done)...)
}

// Each case plays responses and gives the limit that the upstream receives with the next request.
func TestTheUpstreamReceivesALimitThatLearned(t *testing.T) {
	t.Parallel()
	const routes = `
routes:
  - {name: fixed, when: {header: {name: X-Route, equals: fixed}}, use: {models: [small], max_tokens: 50}}
  - {name: set, when: {header: {name: X-Route, equals: set}}, use: {models: [small], max_tokens: auto, set: {body: {max_tokens: 50}}}}
default: {models: [small], max_tokens: auto}
`
	plain, streamed := ask("hi"), askStream("hi")
	with := func(field string) string { return strings.Replace(plain, "{", "{"+field+",", 1) }
	tests := []struct {
		name, body, route string
		answer            testkit.Answer
		times             int
		want              float64 // 0: no limit
	}{
		{"nothing seen", plain, "", nil, 0, 2048},
		{"too few", plain, "", answerOf(800, "stop"), 9, 2048},
		{"enough", plain, "", answerOf(800, "stop"), 10, 1200},
		{"answers that call tools", plain, "", answerOf(800, "tool_calls"), 10, 1200},
		{"answers that a filter ended", plain, "", answerOf(800, "content_filter"), 10, 2048},
		{"one cut short by the automatic limit", plain, "", answerOf(2048, "length"), 1, 4096},
		{"one cut short by the client's own", with(`"max_tokens":800`), "", answerOf(800, "length"), 10, 2048},
		{"answers within the client's own", with(`"max_completion_tokens":800`), "", answerOf(300, "stop"), 10, 2048},
		{"one cut short by the route's", plain, "fixed", answerOf(50, "length"), 10, 2048},
		{"one cut short by what the route sets", plain, "set", answerOf(50, "length"), 10, 2048},
		{"several answers in one", with(`"n":2`), "", answerOf(800, "stop"), 10, 2048},
		{"one answer, said so", with(`"n":1`), "", answerOf(800, "stop"), 10, 1200},
		{"errors", plain, "", testkit.JSON(400, `{"error":{"message":"m","type":"t","param":null,"code":null},"usage":{"completion_tokens":800}}`), 10, 2048},
		{"streams without usage: their chunks", streamed, "", streamOf(800, "word", "stop"), 10, 1200},
		{"streams without usage and several tokens a chunk: their text", streamed, "", streamOf(100, strings.Repeat("four", 8), "stop"), 10, 1200},
		{"a stream cut short", streamed, "", streamOf(8, "word", "length"), 1, 4096},
		{"streams that were broken off", streamed, "", testkit.Stream(testkit.Event("a")), 10, 2048},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, answerOf(1, "stop"))
			b := start(t, oneModel(up), func(s *setup) {
				s.routes = routes
				s.options.AutoMaxTokens.MinAnswers = 10
			})
			for i := range tt.times {
				up.Next(tt.answer)
				b.chat(tt.body, "X-Route", tt.route)
				b.recorded(i + 1)
			}
			want := b.state.Chooser.Lengths.Limit(lengths.Kind{Model: "small", Effort: "none"}, &b.state.opts.AutoMaxTokens)
			b.chat(plain)
			if !near(float64(want), tt.want) {
				t.Errorf("limit %d, want about %v", want, tt.want)
			}
			body := strings.Replace(plain, "auto", "Org/Small-7B", 1)
			body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"max_tokens":%d}`, limitSent(t, up))
			if diff := cmp.Diff(body, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if sent := limitSent(t, up); !near(float64(sent), tt.want) {
				t.Errorf("the upstream received %d, want about %v", sent, tt.want)
			}
		})
	}
}

// recorded waits until n requests were recorded, which happens after their responses have reached
// the client.
func (b *bench) recorded(n int) {
	b.tb.Helper()
	waitFor(b.tb, "the record", func() bool { return strings.Count(b.log.String(), `"msg":"request"`) >= n })
}

// limitSent returns the last limit that an upstream received; 0 if there was none.
func limitSent(tb testing.TB, up *testkit.Upstream) int {
	tb.Helper()
	var body struct {
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.Unmarshal(up.Last(tb).Body, &body); err != nil {
		tb.Fatal(err)
	}
	return body.MaxTokens
}

func TestWhatWasLearnedSurvivesAReload(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, answerOf(2048, "length"))
	routes := func(s *setup) { s.routes = "routes: []\ndefault: {models: [small], max_tokens: auto}" }
	b := start(t, oneModel(up), routes)
	b.chat(ask("hi"))
	b.recorded(1)
	s := setup{options: settings.DefaultServer(), auth: auth.DefaultOptions(), models: oneModel(up), classifier: b.classifier}
	routes(&s)
	b.proxy.Swap(b.newState(s, 2))
	b.chat(ask("hi"))
	if got := limitSent(t, up); got != 4096 {
		t.Errorf("after the reload the limit is %d, want 4096", got)
	}
	if page := b.metrics(); !strings.Contains(page, `signalbox_auto_limit_widened_total{model="small"`) {
		t.Errorf("the widened limit is not counted:\n%s", page)
	}
}

func TestTheFieldOfALimitIsTheOneThatTheModelTakes(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	old, wide := modelOptions("old", "", reasoning.Options{}, up), modelOptions("wide", "", reasoning.Options{}, up)
	old.MaxTokensField, wide.ContextWindow = "max_completion_tokens", 0
	only := modelOptions("only", "", reasoning.Options{Dialect: "openai"}, up)
	only.MaxTokensField = "max_tokens"
	models := []backend.ModelOptions{
		modelOptions("vllm", "", reasoning.Options{}, up), modelOptions("gpt", "", reasoning.Options{Dialect: "openai"}, up),
		old, wide, only,
	}
	var routes strings.Builder
	routes.WriteString("routes:\n")
	for _, m := range models {
		for name, use := range map[string]string{"auto": "max_tokens: auto", "fixed": "max_tokens: 9", "force": "max_tokens: 9, override: true", "none": "override: true"} {
			fmt.Fprintf(&routes, "  - {name: %s-%s, when: {header: {name: X-Route, equals: %s %s}}, use: {models: [%s], %s}}\n", m.Name, name, m.Name, name, m.Name, use)
		}
	}
	routes.WriteString("default: {models: [vllm]}\n")
	b := start(t, models, func(s *setup) { s.routes = routes.String() })
	for _, tt := range []struct{ route, client, want string }{
		{"vllm auto", "", `,"max_tokens":2048`},
		{"wide auto", "", `,"max_tokens":2048`},
		{"gpt auto", "", `,"max_completion_tokens":8186`},
		{"old fixed", "", `,"max_completion_tokens":9`},
		{"gpt auto", `,"max_tokens":5`, `,"max_completion_tokens":5`},
		{"gpt none", `,"max_tokens":5`, `,"max_completion_tokens":5`},
		{"gpt force", `,"max_tokens":5`, `,"max_completion_tokens":9`},
		{"gpt auto", `,"max_tokens":5,"max_completion_tokens":6`, `,"max_completion_tokens":6`},
		{"gpt none", `,"max_tokens":5,"max_completion_tokens":null`, `,"max_completion_tokens":5`},
		{"old none", `,"max_completion_tokens":0,"max_tokens":5`, `,"max_completion_tokens":5`},
		{"old none", `,"max_completion_tokens":6`, `,"max_completion_tokens":6`},
		{"only none", `,"max_completion_tokens":5`, `,"max_tokens":5`},
		{"only auto", `,"max_completion_tokens":5`, `,"max_tokens":5`},
		{"only fixed", `,"max_completion_tokens":5`, `,"max_tokens":5`},
		{"only force", `,"max_completion_tokens":5`, `,"max_tokens":9`},
		{"only none", `,"max_tokens":5,"max_completion_tokens":6`, `,"max_tokens":5`},
		{"only none", `,"max_tokens":-1,"max_completion_tokens":6`, `,"max_tokens":6`},
		{"only none", `,"max_tokens":-1,"max_completion_tokens":0`, `,"max_tokens":-1`},
		{"vllm none", `,"max_tokens":5,"max_completion_tokens":6`, `,"max_tokens":5,"max_completion_tokens":6`},
		{"vllm auto", `,"max_completion_tokens":5`, `,"max_completion_tokens":5`},
		{"vllm fixed", `,"max_completion_tokens":5`, `,"max_completion_tokens":5`},
		{"vllm force", `,"max_completion_tokens":5`, `,"max_completion_tokens":9`},
		{"vllm force", `,"max_tokens":5`, `,"max_tokens":9`},
		{"vllm auto", `,"max_tokens":null`, `,"max_tokens":2048`},
		{"vllm auto", `,"tools":[{"type":"function","function":{"name":"` + strings.Repeat("f", 22000) + `"}}]`, `,"tools":[{"type":"function","function":{"name":"` + strings.Repeat("f", 22000) + `"}}],"max_tokens":1022`},
	} {
		t.Run(tt.route+" "+tt.client[:min(len(tt.client), 40)], func(t *testing.T) {
			b.chat(`{"model":"auto","messages":[{"role":"user","content":"hi"}]`+tt.client+"}", "X-Route", tt.route)
			model, _, _ := strings.Cut(tt.route, " ")
			want := `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]` + tt.want + "}"
			if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}
