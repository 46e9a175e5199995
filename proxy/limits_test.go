package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/explain"
	"signalbox/proxy/reasoning"
)

func TestALongPromptDoesNotLiftTheCapOfARoute(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	narrow, full := modelOptions("narrow", "", reasoning.Options{}, up), modelOptions("full", "", reasoning.Options{}, up)
	narrow.ContextWindow, full.ContextWindow = 100, 5
	const routes = `
routes:
  - {name: narrow, when: {header: {name: X-Route, equals: narrow}}, use: {models: [narrow], max_tokens: 50}}
  - {name: tight, when: {header: {name: X-Route, equals: tight}}, use: {models: [narrow], max_tokens: 5000}}
  - {name: full, when: {header: {name: X-Route, equals: full}}, use: {models: [full], max_tokens: 50}}
  - {name: forced, when: {header: {name: X-Route, equals: forced}}, use: {models: [full], max_tokens: 50, override: true}}
default: {models: [narrow], max_tokens: auto}
`
	b := start(t, []backend.ModelOptions{narrow, full}, func(s *setup) { s.routes = routes })
	for _, tt := range []struct{ route, model, client, want string }{
		{"narrow", "narrow", "", `,"max_tokens":50`},
		{"tight", "narrow", "", `,"max_tokens":94`},
		{"full", "full", "", `,"max_tokens":50`},
		{"forced", "full", `,"max_tokens":9000`, `,"max_tokens":50`},
		{"", "narrow", "", ""},
	} {
		t.Run(tt.route, func(t *testing.T) {
			b.chat(`{"model":"auto","messages":[{"role":"user","content":"hi"}]`+tt.client+"}", "X-Route", tt.route)
			want := `{"model":"` + tt.model + `","messages":[{"role":"user","content":"hi"}]` + tt.want + "}"
			if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClientThatNamedAnotherModelDoesNotKnowTheOneThatAnswers(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	const routes = `
routes:
  - {name: forced, when: {header: {name: X-Route, equals: forced}}, use: {models: [gpt], max_tokens: 9, override: true}}
  - {name: plain, when: {header: {name: X-Route, equals: plain}}, use: {models: [gpt]}}
default: {models: [qwen]}
`
	models := []backend.ModelOptions{modelOptions("qwen", "", reasoning.Options{Dialect: "qwen3"}, up), modelOptions("gpt", "", reasoning.Options{Dialect: "openai"}, up)}
	b := start(t, models, func(s *setup) { s.routes, s.options.RouteNamedModels = routes, true })
	const off = `,"chat_template_kwargs":{"enable_thinking":false}`
	const both = `,"max_tokens":5,"max_completion_tokens":6`
	for _, tt := range []struct{ name, asked, route, client, want string }{
		{"effort of a client of another model", "qwen", "plain", off, off + `,"reasoning_effort":"none"`},
		{"effort of a client of this model", "gpt", "plain", off, off},
		{"limit of a client of another model", "qwen", "plain", `,"max_tokens":5`, `,"max_completion_tokens":5`},
		{"limit of a client of this model", "gpt", "plain", `,"max_tokens":5`, `,"max_tokens":5`},
		{"two limits of a client of this model", "gpt", "plain", both, both},
		{"limit of this model by its other name", "gpt:latest", "plain", `,"max_tokens":5`, `,"max_tokens":5`},
		{"the route's limit for a client of another model", "qwen", "forced", `,"max_tokens":5`, `,"max_completion_tokens":9`},
		{"the route's limit for a client of this model", "gpt", "forced", `,"max_tokens":5`, `,"max_tokens":9`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const messages = `","messages":[{"role":"user","content":"hi"}]`
			b.chat(`{"model":"`+tt.asked+messages+tt.client+"}", "X-Route", tt.route)
			if diff := cmp.Diff(`{"model":"gpt`+messages+tt.want+"}", string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALimitThatARouteSetsStandsAlone(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	var routes strings.Builder
	routes.WriteString("routes:\n")
	for name, body := range map[string]string{
		"new": "{max_completion_tokens: 7}", "old": "{max_tokens: 7}", "both": "{max_tokens: 7, max_completion_tokens: 8}", "null": "{max_tokens: null}",
	} {
		routes.WriteString(`  - {name: "` + name + `", when: {header: {name: X-Route, equals: "` + name + `"}}, use: {models: [small], max_tokens: auto, set: {body: ` + body + "}}}\n")
	}
	routes.WriteString("default: {models: [small]}\n")
	b := start(t, []backend.ModelOptions{modelOptions("small", "", reasoning.Options{}, up)}, func(s *setup) { s.routes = routes.String() })
	for _, tt := range []struct{ route, client, want string }{
		{"new", `,"max_tokens":900`, `,"max_completion_tokens":7`},
		{"new", "", `,"max_completion_tokens":7`},
		{"old", `,"max_completion_tokens":900`, `,"max_tokens":7`},
		{"both", `,"max_tokens":900`, `,"max_tokens":7,"max_completion_tokens":8`},
		{"null", `,"max_completion_tokens":900`, `,"max_completion_tokens":900,"max_tokens":null`},
	} {
		t.Run(tt.route+tt.client, func(t *testing.T) {
			b.chat(`{"model":"auto","messages":[{"role":"user","content":"hi"}]`+tt.client+"}", "X-Route", tt.route)
			want := `{"model":"small","messages":[{"role":"user","content":"hi"}]` + tt.want + "}"
			if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALimitOfOneTokenIsToldAsSuch(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	const routes = `
routes:
  - {name: one, when: {domain: math}, use: {models: [small], max_tokens: 1}}
  - {name: set, when: {domain: law}, use: {models: [small], set: {body: {max_tokens: 1}}}}
default: {models: [small], set: {body: {max_tokens: "7"}}}
`
	b := start(t, oneModel(up), func(s *setup) { s.routes = routes })
	for text, want := range map[string]int{"math": 1, "law": 1, "hi": 0} {
		logged := startLogged(t, routes)
		logged.chat(ask(text))
		if _, lines := logged.lines(t); len(lines) != 1 || lines[0].MaxTokens != want {
			t.Errorf("logged for %q: %+v, want the limit %d", text, lines, want)
		}
		sent := &explain.Sent{Model: "small", MaxTokens: want, Limit: "route"}
		if diff := cmp.Diff(sent, b.explained(t, ask(text)).Sent); diff != "" {
			t.Errorf("sent for %q (-want +got):\n%s", text, diff)
		}
	}
}

func TestALimitBelowOneIsNone(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	const routes = `
routes:
  - {name: seven, when: {header: {name: X-Route, equals: seven}}, use: {models: [small], max_tokens: 7}}
  - {name: new, when: {header: {name: X-Route, equals: new}}, use: {models: [gpt], max_tokens: 7}}
default: {models: [small]}
`
	models := []backend.ModelOptions{
		modelOptions("small", "", reasoning.Options{}, up), modelOptions("gpt", "", reasoning.Options{Dialect: "openai"}, up),
	}
	b := start(t, models, func(s *setup) { s.routes = routes })
	const chat, completion, response = `"messages":[{"role":"user","content":"hi"}]`, `"prompt":"hi"`, `"input":"hi"`
	for _, tt := range []struct{ path, route, prompt, client, want string }{
		{"/chat/completions", "seven", chat, `,"max_tokens":-1`, `,"max_tokens":7`},
		{"/chat/completions", "seven", chat, `,"max_tokens":0`, `,"max_tokens":7`},
		{"/chat/completions", "seven", chat, `,"max_completion_tokens":-1`, `,"max_tokens":7`},
		{"/chat/completions", "new", chat, `,"max_tokens":-1`, `,"max_completion_tokens":7`},
		{"/chat/completions", "seven", chat, `,"max_tokens":9`, `,"max_tokens":9`},
		{"/chat/completions", "", chat, `,"max_tokens":-1`, `,"max_tokens":-1`},
		{"/completions", "seven", completion, `,"max_tokens":-1`, `,"max_tokens":7`},
		{"/completions", "seven", completion, `,"echo":true,"max_tokens":0`, `,"echo":true,"max_tokens":0`},
		{"/completions", "", completion, `,"max_tokens":-1`, `,"max_tokens":-1`},
		{"/responses", "seven", response, `,"max_output_tokens":-1`, `,"max_output_tokens":7`},
		{"/responses", "", response, `,"max_output_tokens":0`, `,"max_output_tokens":0`},
	} {
		model := "small"
		if tt.route == "new" {
			model = "gpt"
		}
		b.post("/v1"+tt.path, `{"model":"auto",`+tt.prompt+tt.client+"}", "X-Route", tt.route)
		want := `{"model":"` + model + `",` + tt.prompt + tt.want + "}"
		if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
			t.Errorf("%s of %q with %s (-want +got):\n%s", tt.path, tt.route, tt.client, diff)
		}
	}
}
