package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/lengths"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/settings"
	"signalbox/rules"
)

// reasoningModels returns one model per dialect, all served by one upstream.
func reasoningModels(up *testkit.Upstream) []backend.ModelOptions {
	custom := map[string]map[string]any{
		"none": {"thinking": map[string]any{"type": "disabled"}, "verbosity": "low"},
		"high": {"thinking": map[string]any{"type": "enabled"}, "budget": 4096},
	}
	native := map[string]map[string]any{
		"none": {"thinking": map[string]any{"type": "disabled"}},
		"high": {"thinking": map[string]any{"type": "enabled"}, "reasoning_effort": "high"},
	}
	apart := map[string]map[string]any{"none": {"think": false}, "high": {"reasoning_effort": "high"}}
	steps := map[string]any{"none": "off", "low": "low", "high": "xhigh"}
	return []backend.ModelOptions{
		modelOptions("plain", "", reasoning.Options{}, up),
		modelOptions("effort", "", reasoning.Options{Dialect: "reasoning_effort"}, up),
		modelOptions("openai", "", reasoning.Options{Dialect: "openai"}, up),
		modelOptions("o3", "", reasoning.Options{Dialect: "openai", Efforts: []string{"low", "medium", "high"}}, up),
		modelOptions("mini", "", reasoning.Options{Dialect: "openai", Efforts: []string{"minimal", "medium", "high"}}, up),
		modelOptions("gpt-oss", "", reasoning.Options{Dialect: "gpt_oss"}, up),
		modelOptions("qwen", "", reasoning.Options{Dialect: "qwen3"}, up),
		modelOptions("glm", "", reasoning.Options{Dialect: "chat_template_kwargs", Key: "enable_thinking"}, up),
		modelOptions("deepseek", "", reasoning.Options{Dialect: "deepseek"}, up),
		modelOptions("mistral", "", reasoning.Options{Dialect: "mistral"}, up),
		modelOptions("steps", "", reasoning.Options{Dialect: "chat_template_kwargs", Key: "effort", Values: steps}, up),
		modelOptions("custom", "", reasoning.Options{Dialect: "custom", Custom: custom}, up),
		modelOptions("native", "", reasoning.Options{Dialect: "custom", Custom: native}, up),
		modelOptions("apart", "", reasoning.Options{Dialect: "custom", Custom: apart}, up),
	}
}

// Each case gives a route's setting, the members of the client's body besides model and message,
// what the upstream receives for them, and what the header reports.
func TestReasoningReachesEveryModelInItsDialect(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	models := reasoningModels(up)
	var routes strings.Builder
	routes.WriteString("routes:\n")
	for _, m := range models {
		for _, effort := range []string{"", "none", "low", "medium", "high", "auto", "none!", "high!"} {
			use := "{models: [" + m.Name + "]"
			if effort != "" {
				use += ", reasoning: " + strings.TrimSuffix(effort, "!")
			}
			if strings.HasSuffix(effort, "!") {
				use += ", override: true"
			}
			routes.WriteString(`  - {name: "` + m.Name + "-" + strings.ReplaceAll(effort, "!", "_") + `", when: {header: {name: X-Route, equals: "` + m.Name + ":" + effort + `"}}, use: ` + use + "}}\n")
		}
	}
	routes.WriteString("default: {models: [plain]}\n")
	b := start(t, models, func(s *setup) { s.routes = routes.String() })
	tests := []struct{ model, route, client, want, header string }{
		{"plain", "", "", "", ""},
		{"plain", "high", "", "", ""},
		{"plain", "", `,"reasoning_effort":"none"`, `,"reasoning_effort":"none"`, "none"},
		{"plain", "high", `,"reasoning_effort":"low"`, `,"reasoning_effort":"low"`, "low"},
		{"plain", "", `,"reasoning_effort":"e\u00e9\n"`, `,"reasoning_effort":"e\u00e9\n"`, "e??"},
		{"plain", "high!", `,"reasoning_effort":"low"`, "", ""},

		{"effort", "none", "", `,"reasoning_effort":"none"`, "none"},
		{"effort", "medium", "", `,"reasoning_effort":"medium"`, "medium"},
		{"effort", "auto", "", `,"reasoning_effort":"high"`, "high"},
		{"effort", "", "", "", ""},
		{"effort", "high", `,"reasoning_effort":"minimal"`, `,"reasoning_effort":"minimal"`, "minimal"},
		{"effort", "low", `,"reasoning_effort":"xhigh"`, `,"reasoning_effort":"xhigh"`, "xhigh"},
		{"effort", "low", `,"reasoning_effort":null`, `,"reasoning_effort":"low"`, "low"},
		{"effort", "low", `,"reasoning_effort":"a new word"`, `,"reasoning_effort":"a new word"`, "a new word"},
		{"effort", "high", `,"chat_template_kwargs":{"enable_thinking":false}`, `,"chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"none"`, "none"},
		{"effort", "high!", `,"reasoning_effort":"low"`, `,"reasoning_effort":"high"`, "high"},
		{"effort", "none!", `,"chat_template_kwargs":{"thinking":true,"x":1}`, `,"chat_template_kwargs":{"x":1},"reasoning_effort":"none"`, "none"},

		{"openai", "none", "", `,"reasoning_effort":"none"`, "none"},
		{"o3", "none", "", `,"reasoning_effort":"low"`, "low"},
		{"o3", "high", `,"reasoning_effort":"none"`, `,"reasoning_effort":"low"`, "low"},
		{"mini", "low", "", `,"reasoning_effort":"minimal"`, "minimal"},
		{"mini", "none", "", `,"reasoning_effort":"minimal"`, "minimal"},

		{"gpt-oss", "none", "", `,"reasoning_effort":"low"`, "low"},
		{"gpt-oss", "high", "", `,"reasoning_effort":"high"`, "high"},
		{"gpt-oss", "high", `,"reasoning_effort":"none"`, `,"reasoning_effort":"low"`, "low"},
		{"gpt-oss", "low", `,"reasoning_effort":"medium"`, `,"reasoning_effort":"medium"`, "medium"},

		{"qwen", "none", "", `,"chat_template_kwargs":{"enable_thinking":false}`, "none"},
		{"qwen", "low", "", `,"chat_template_kwargs":{"enable_thinking":false}`, "none"},
		{"qwen", "medium", "", `,"chat_template_kwargs":{"enable_thinking":true}`, "medium"},
		{"qwen", "auto", "", `,"chat_template_kwargs":{"enable_thinking":true}`, "high"},
		{"qwen", "high", `,"chat_template_kwargs":{"enable_thinking":false}`, `,"chat_template_kwargs":{"enable_thinking":false}`, "none"},
		{"qwen", "none", `,"chat_template_kwargs":{"enable_thinking":true}`, `,"chat_template_kwargs":{"enable_thinking":true}`, "medium"},
		{"qwen", "none", `,"chat_template_kwargs":{"enable_thinking":"yes"}`, `,"chat_template_kwargs":{"enable_thinking":"yes"}`, "medium"},
		{"qwen", "high", `,"reasoning_effort":"none"`, `,"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":false}`, "none"},
		{"qwen", "none", `,"thinking":{"type":"enabled"}`, `,"thinking":{"type":"enabled"},"chat_template_kwargs":{"enable_thinking":true}`, "medium"},
		{"qwen", "none!", `,"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":true,"x":1}`, `,"chat_template_kwargs":{"enable_thinking":false,"x":1}`, "none"},
		{"glm", "high", "", `,"chat_template_kwargs":{"enable_thinking":true}`, "high"},

		{"deepseek", "none", "", `,"chat_template_kwargs":{"thinking":false}`, "none"},
		{"deepseek", "high", `,"chat_template_kwargs":{"x":1.0}`, `,"chat_template_kwargs":{"x":1.0,"thinking":true}`, "high"},
		{"deepseek", "high", `,"reasoning":{"effort":"none"}`, `,"reasoning":{"effort":"none"},"chat_template_kwargs":{"thinking":false}`, "none"},
		{"deepseek", "high", `,"reasoning":{"enabled":false}`, `,"reasoning":{"enabled":false},"chat_template_kwargs":{"thinking":false}`, "none"},
		{"deepseek", "high", `,"reasoning":{"exclude":true}`, `,"reasoning":{"exclude":true},"chat_template_kwargs":{"thinking":true}`, "high"},

		{"mistral", "none", "", `,"reasoning_effort":"none"`, "none"},
		{"mistral", "low", "", `,"reasoning_effort":"none"`, "none"},
		{"mistral", "medium", "", `,"reasoning_effort":"high"`, "high"},
		{"mistral", "none", `,"prompt_mode":"reasoning"`, `,"prompt_mode":"reasoning","reasoning_effort":"high"`, "high"},

		{"steps", "none", "", `,"chat_template_kwargs":{"effort":"off"}`, "none"},
		{"steps", "medium", "", `,"chat_template_kwargs":{"effort":"low"}`, "low"},
		{"steps", "high", "", `,"chat_template_kwargs":{"effort":"xhigh"}`, "high"},
		{"steps", "none", `,"chat_template_kwargs":{"effort":"xhigh"}`, `,"chat_template_kwargs":{"effort":"xhigh"}`, "high"},

		{"custom", "none", "", `,"thinking":{"type":"disabled"},"verbosity":"low"`, "none"},
		{"custom", "low", "", `,"thinking":{"type":"disabled"},"verbosity":"low"`, "none"},
		{"custom", "high", `,"thinking":{"keep":1}`, `,"thinking":{"keep":1,"type":"enabled"},"budget":4096`, "high"},
		{"custom", "none", `,"thinking":{"type":"enabled"},"budget":4096`, `,"thinking":{"type":"enabled"},"budget":4096`, "high"},
		{"custom", "none!", `,"thinking":{"type":"enabled"},"budget":9`, `,"thinking":{"type":"disabled"},"verbosity":"low"`, "none"},

		{"native", "high", `,"reasoning_effort":"none"`, `,"thinking":{"type":"disabled"}`, "none"},
		{"native", "high", `,"reasoning_effort":"low"`, `,"thinking":{"type":"disabled"}`, "none"},
		{
			"native", "none",
			`,"reasoning_effort":"medium"`, `,"reasoning_effort":"high","thinking":{"type":"enabled"}`, "high",
		},
		{"native", "none", `,"reasoning_effort":"high"`, `,"reasoning_effort":"high","thinking":{"type":"enabled"}`, "high"},
		{"native", "none", `,"reasoning_effort":"a word"`, `,"reasoning_effort":"a word"`, "a word"},
		{
			"native", "high",
			`,"reasoning_effort":"low","thinking":{"type":"disabled"}`,
			`,"reasoning_effort":"low","thinking":{"type":"disabled"}`, "none",
		},
		{
			"native", "none",
			`,"reasoning_effort":"low","thinking":{"type":"enabled"}`,
			`,"reasoning_effort":"low","thinking":{"type":"enabled"}`, "low",
		},
		{
			"native", "none",
			`,"reasoning":{"effort":"high"}`,
			`,"reasoning":{"effort":"high"},"reasoning_effort":"high","thinking":{"type":"enabled"}`, "high",
		},
		{"apart", "high", `,"reasoning_effort":"none"`, `,"think":false`, "none"},
		{"apart", "none", `,"reasoning_effort":"low"`, `,"reasoning_effort":"low"`, "low"},
	}
	for _, tt := range tests {
		t.Run(tt.model+" "+tt.route+" "+tt.client, func(t *testing.T) {
			const head = `{"model":"auto","messages":[{"role":"user","content":"hi"}]`
			got := b.chat(head+tt.client+"}", "X-Route", tt.model+":"+tt.route)
			if got.status != 200 {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			want := strings.Replace(head, "auto", tt.model, 1) + tt.want + "}"
			if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if h := got.header.Get("X-Signalbox-Reasoning"); h != tt.header {
				t.Errorf("header %q, want %q", h, tt.header)
			}
		})
	}
}

func TestAClientThatNamesItsModelKeepsItsOwnWords(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, reasoningModels(up), func(s *setup) { s.routes = "routes: []\ndefault: {models: [plain]}" })
	for model, tt := range map[string]struct{ body, header string }{
		"gpt-oss": {`"reasoning_effort":"none","max_tokens":5`, "none"},
		"qwen":    {`"reasoning_effort":"high"`, "high"},
		"native":  {`"reasoning_effort":"none"`, "none"},
		"openai":  {`"max_tokens":7`, ""},
	} {
		body := `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}],` + tt.body + `}`
		got := b.chat(body)
		if diff := cmp.Diff(body, string(up.Last(t).Body)); diff != "" {
			t.Errorf("%s: body (-want +got):\n%s", model, diff)
		}
		if h := got.header.Get("X-Signalbox-Reasoning"); h != tt.header {
			t.Errorf("%s: header %q, want %q", model, h, tt.header)
		}
	}
}

func TestAnUnknownComplexityLeavesTheClientsEffort(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, reasoningModels(up), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [effort], reasoning: auto, max_tokens: auto}"
		s.classifier.broken = signal.MaskOf(signal.Complexity)
	})
	const head = `{"model":"auto","messages":[{"role":"user","content":"hi"}]`
	for client, want := range map[string]string{
		"":                           `,"max_tokens":8186}`,
		`,"reasoning_effort":"high"`: `,"reasoning_effort":"high","max_tokens":8186}`,
		`,"reasoning_effort":"none"`: `,"reasoning_effort":"none","max_tokens":2048}`,
	} {
		got := b.chat(head + client + "}")
		if diff := cmp.Diff(strings.Replace(head, "auto", "effort", 1)+want, string(up.Last(t).Body)); diff != "" {
			t.Errorf("client %s: body (-want +got):\n%s", client, diff)
		}
		if lost := got.header.Get("X-Signalbox-Degraded"); lost != "complexity" {
			t.Errorf("client %s: degraded %q", client, lost)
		}
	}
}

// Whatever a client sends, a route that overrides it produces a valid body that contains its
// prompt.
func FuzzARewrittenBodyIsARequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x"}],"reasoning_effort":"low"}`,
		`{"model":"m","messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"thinking":true,"enable_thinking":null}}`,
		`{"model":"m","messages":[{"role":"user","content":"x"}],"thinking":{"type":"disabled"},"reasoning":{"effort":1},"prompt_mode":[]}`,
		`{"model":"m","messages":[{"role":"system","content":""},{"role":"developer","content":[]}],"reasoning":{"enabled":true},"n":2}`,
		`{"m\u006fdel":"m","messages":[{"role":"developer","content":null},{"role":"system","content":[{"type":"text","text":"be kind"}]}],"chat_template_kwargs":{}}`,
	} {
		f.Add(s)
	}
	o := rewrite.NewOptions([]settings.Prompt{{Name: "p", Text: "P"}}, []string{"You are an assistant"}, lengths.DefaultOptions())
	base := &decide.Base{Chooser: choose.Chooser{Lengths: lengths.New()}}
	var models []*backend.Model
	for _, o := range reasoningModels(testkit.NewUpstream(f, testkit.Silent())) {
		d, err := reasoning.New(&o.Reasoning)
		if err != nil {
			f.Fatal(err)
		}
		models = append(models, &backend.Model{Model: &choose.Model{Name: o.Name, Window: 8192}, ServedAs: o.Name, Dialect: d, TokenField: o.TokenField()})
	}
	f.Fuzz(func(t *testing.T, body string) {
		req, err := openai.ParseChat([]byte(body), openai.Limits{})
		if err != nil {
			return
		}
		action := rules.Action{Reasoning: "none", Override: true, MaxTokens: rules.MaxTokens{Auto: true}, Prompt: rules.Prompt{Name: "p", Mode: "prefix"}}
		d := &decision{Decision: rules.Decision{Action: &action}, Set: &signal.Set{}, Base: base}
		for _, m := range models {
			out, _ := rewrite.New(o, req, d).Body(m)
			again, err := openai.ParseChat(out, openai.Limits{})
			if err != nil {
				t.Fatalf("%s: body %s is refused: %v", m.Name, out, err)
			}
			if again.Messages[0].Role == "user" && req.SystemIndex < 0 {
				t.Errorf("%s: no prompt in %s", m.Name, out)
			}
		}
	})
}
