package proxy

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/rules"
)

// reasoningModels are one model for each dialect, all served by one upstream.
func reasoningModels(up *testkit.Upstream) []ModelOptions {
	custom := map[string]map[string]any{
		"none": {"thinking": map[string]any{"type": "disabled"}, "verbosity": "low"},
		"high": {"thinking": map[string]any{"type": "enabled"}, "budget": 4096},
	}
	steps := map[string]any{"none": "off", "low": "low", "high": "xhigh"}
	return []ModelOptions{
		modelOptions("plain", "", ReasoningOptions{}, up),
		modelOptions("effort", "", ReasoningOptions{Dialect: "reasoning_effort"}, up),
		modelOptions("openai", "", ReasoningOptions{Dialect: "openai"}, up),
		modelOptions("o3", "", ReasoningOptions{Dialect: "openai", Efforts: []string{"low", "medium", "high"}}, up),
		modelOptions("mini", "", ReasoningOptions{Dialect: "openai", Efforts: []string{"minimal", "medium", "high"}}, up),
		modelOptions("gpt-oss", "", ReasoningOptions{Dialect: "gpt_oss"}, up),
		modelOptions("qwen", "", ReasoningOptions{Dialect: "qwen3"}, up),
		modelOptions("glm", "", ReasoningOptions{Dialect: "chat_template_kwargs", Key: "enable_thinking"}, up),
		modelOptions("deepseek", "", ReasoningOptions{Dialect: "deepseek"}, up),
		modelOptions("mistral", "", ReasoningOptions{Dialect: "mistral"}, up),
		modelOptions("steps", "", ReasoningOptions{Dialect: "chat_template_kwargs", Key: "effort", Values: steps}, up),
		modelOptions("custom", "", ReasoningOptions{Dialect: "custom", Custom: custom}, up),
	}
}

// Each case gives what a route asks for, what the client's body says beside its model and message,
// what the upstream receives there, and what the header reports.
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
		{"plain", "high", "", "", "none"},
		{"plain", "high", `,"reasoning_effort":"low"`, `,"reasoning_effort":"low"`, "low"},
		{"plain", "high!", `,"reasoning_effort":"low"`, "", "none"},

		{"effort", "none", "", `,"reasoning_effort":"none"`, "none"},
		{"effort", "medium", "", `,"reasoning_effort":"medium"`, "medium"},
		{"effort", "auto", "", `,"reasoning_effort":"high"`, "high"},
		{"effort", "", "", "", "none"},
		{"effort", "high", `,"reasoning_effort":"minimal"`, `,"reasoning_effort":"minimal"`, "low"},
		{"effort", "low", `,"reasoning_effort":"xhigh"`, `,"reasoning_effort":"xhigh"`, "high"},
		{"effort", "low", `,"reasoning_effort":null`, `,"reasoning_effort":"low"`, "low"},
		{"effort", "low", `,"reasoning_effort":"a new word"`, `,"reasoning_effort":"a new word"`, "medium"},
		{"effort", "high", `,"chat_template_kwargs":{"enable_thinking":false}`, `,"chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"none"`, "none"},
		{"effort", "high!", `,"reasoning_effort":"low"`, `,"reasoning_effort":"high"`, "high"},
		{"effort", "none!", `,"chat_template_kwargs":{"thinking":true,"x":1}`, `,"chat_template_kwargs":{"x":1},"reasoning_effort":"none"`, "none"},

		{"openai", "none", "", `,"reasoning_effort":"none"`, "none"},
		{"o3", "none", "", `,"reasoning_effort":"low"`, "low"},
		{"o3", "high", `,"reasoning_effort":"none"`, `,"reasoning_effort":"low"`, "low"},
		{"mini", "low", "", `,"reasoning_effort":"minimal"`, "low"},
		{"mini", "none", "", `,"reasoning_effort":"minimal"`, "low"},

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
		"openai":  {`"max_tokens":7`, "none"},
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

func TestTheNearestEffortIsTheLowerOfTwo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		has  []string
		want map[string]string
	}{
		{[]string{"none", "high"}, map[string]string{"none": "none", "low": "none", "medium": "high", "high": "high"}},
		{[]string{"low", "medium", "high"}, map[string]string{"none": "low", "max": "high"}},
		{[]string{"high"}, map[string]string{"none": "high"}},
		{[]string{"none", "minimal", "max"}, map[string]string{"low": "minimal", "medium": "minimal", "high": "max"}},
		{[]string{"max", "none", "low"}, map[string]string{"medium": "low", "high": "low", "xhigh": "max"}},
	}
	for _, tt := range tests {
		d, err := newDialect(&ReasoningOptions{Dialect: DialectEffort, Efforts: tt.has})
		if err != nil {
			t.Fatal(err)
		}
		for asked, want := range tt.want {
			if got := effortWords[d.nearest(rankOf(asked))]; got != want {
				t.Errorf("of %v, %s is nearest to %s, want %s", tt.has, got, asked, want)
			}
		}
	}
}

func TestBadReasoningOptionsAreReported(t *testing.T) {
	high := map[string]any{"high": true}
	tests := map[string]struct {
		o    ReasoningOptions
		want []string
	}{
		"a name that is none":                   {ReasoningOptions{Dialect: "reasoning_efort"}, []string{"dialect"}},
		"a template without a key":              {ReasoningOptions{Dialect: "chat_template_kwargs"}, []string{"key"}},
		"another key for a preset":              {ReasoningOptions{Dialect: "qwen3", Key: "thinking"}, []string{"key"}},
		"a key for a field":                     {ReasoningOptions{Dialect: "openai", Key: "x"}, []string{"key"}},
		"efforts for a template":                {ReasoningOptions{Dialect: "qwen3", Efforts: []string{"low"}}, []string{"efforts"}},
		"no efforts at all":                     {ReasoningOptions{Dialect: "openai", Efforts: []string{}}, []string{"efforts"}},
		"efforts unknown and twice":             {ReasoningOptions{Dialect: "openai", Efforts: []string{"low", "hihg", "low"}}, []string{"efforts[1]", "efforts[2]"}},
		"values for a field":                    {ReasoningOptions{Dialect: "mistral", Values: high}, []string{"values"}},
		"no values at all":                      {ReasoningOptions{Dialect: "deepseek", Values: map[string]any{}}, []string{"values"}},
		"a value for no effort":                 {ReasoningOptions{Dialect: "deepseek", Values: map[string]any{"on": true}}, []string{"values.on"}},
		"values that JSON lacks":                {ReasoningOptions{Dialect: "deepseek", Values: map[string]any{"low": math.Inf(1), "high": []any{time.Time{}}}}, []string{"values.high", "values.low"}},
		"custom without fields":                 {ReasoningOptions{Dialect: "custom"}, []string{"custom"}},
		"fields without custom":                 {ReasoningOptions{Dialect: "openai", Custom: map[string]map[string]any{"low": {"x": 1}}}, []string{"custom"}},
		"fields that others decide, of nothing": {ReasoningOptions{Dialect: "custom", Custom: map[string]map[string]any{"off": {"model": 1}, "high": {"x": map[any]any{1: 2}}}}, []string{"custom.high.x", "custom.off", "custom.off.model"}},
		"nothing":                               {ReasoningOptions{}, nil},
		"a preset with its own key":             {ReasoningOptions{Dialect: "qwen3", Key: "enable_thinking", Values: high}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p problems
			tt.o.validate(&p)
			var got []string
			for _, err := range p.list {
				at, _, _ := strings.Cut(err.Error(), ": ")
				got = append(got, strings.TrimPrefix(at, "reasoning."))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems at (-want +got):\n%s\n%v", diff, p.err())
			}
		})
	}
}

// Whatever a client sends, a route that overrides it produces a valid body whose own parameters are
// the ones that the header reports.
func FuzzWhatClientsSayAboutReasoning(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x"}],"reasoning_effort":"low"}`,
		`{"model":"m","messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"thinking":true,"enable_thinking":null}}`,
		`{"model":"m","messages":[{"role":"user","content":"x"}],"thinking":{"type":"disabled"},"reasoning":{"effort":1},"prompt_mode":[]}`,
		`{"model":"m","messages":[{"role":"system","content":""},{"role":"developer","content":[]}],"reasoning":{"enabled":true},"n":2}`,
		`{"m\u006fdel":"m","messages":[{"role":"developer","content":null},{"role":"system","content":[{"type":"text","text":"be kind"}]}],"chat_template_kwargs":{}}`,
	} {
		f.Add(s)
	}
	st := &State{lengths: newLengths(), opts: DefaultOptions(), prompts: map[string]string{"p": "P"}, vague: []string{"you are an assistant"}}
	var models []*model
	for _, o := range reasoningModels(testkit.NewUpstream(f, testkit.Silent())) {
		d, err := newDialect(&o.Reasoning)
		if err != nil {
			f.Fatal(err)
		}
		models = append(models, &model{name: o.Name, servedAs: o.Name, window: 8192, dialect: d, tokenField: o.tokenField()})
	}
	f.Fuzz(func(t *testing.T, body string) {
		req, err := openai.ParseChat([]byte(body), openai.Limits{})
		if err != nil {
			return
		}
		action := rules.Action{Reasoning: "none", Override: true, MaxTokens: rules.MaxTokens{Auto: true}, Prompt: rules.Prompt{Name: "p", Mode: "prefix"}}
		d := &decision{Decision: rules.Decision{Action: &action}, set: &signal.Set{}}
		for _, m := range models {
			out, did := st.rewrite(req, d).body(m)
			again, err := openai.ParseChat(out, openai.Limits{})
			if err != nil {
				t.Fatalf("%s: body %s is refused: %v", m.name, out, err)
			}
			if said := (rewriter{st, again, d}).clientEffort(m.dialect); fold(or(said.effort, "none")) != did.effort {
				t.Errorf("%s: the header reports %s, the body says %+v: %s", m.name, did.effort, said, out)
			}
			if again.Messages[0].Role == "user" && req.SystemIndex < 0 {
				t.Errorf("%s: no prompt in %s", m.name, out)
			}
		}
	})
}
