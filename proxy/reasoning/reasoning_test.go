package reasoning

import (
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/option"
)

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
		d, err := New(&Options{Dialect: DialectEffort, Efforts: tt.has})
		if err != nil {
			t.Fatal(err)
		}
		for asked, want := range tt.want {
			if got := effortWords[d.chat.nearest(rankOf(asked))]; got != want {
				t.Errorf("of %v, %s is nearest to %s, want %s", tt.has, got, asked, want)
			}
		}
	}
}

func TestBadOptionsAreReported(t *testing.T) {
	high := map[string]any{"high": true}
	tests := map[string]struct {
		o    Options
		want []string
	}{
		"a name that is none":                   {Options{Dialect: "reasoning_efort"}, []string{"dialect"}},
		"a template without a key":              {Options{Dialect: "chat_template_kwargs"}, []string{"key"}},
		"another key for a preset":              {Options{Dialect: "qwen3", Key: "thinking"}, []string{"key"}},
		"a key for a field":                     {Options{Dialect: "openai", Key: "x"}, []string{"key"}},
		"efforts for a template":                {Options{Dialect: "qwen3", Efforts: []string{"low"}}, []string{"efforts"}},
		"no efforts at all":                     {Options{Dialect: "openai", Efforts: []string{}}, []string{"efforts"}},
		"efforts unknown and twice":             {Options{Dialect: "openai", Efforts: []string{"low", "hihg", "low"}}, []string{"efforts[1]", "efforts[2]"}},
		"values for a field":                    {Options{Dialect: "mistral", Values: high}, []string{"values"}},
		"no values at all":                      {Options{Dialect: "deepseek", Values: map[string]any{}}, []string{"values"}},
		"a value for no effort":                 {Options{Dialect: "deepseek", Values: map[string]any{"on": true}}, []string{"values.on"}},
		"values that JSON lacks":                {Options{Dialect: "deepseek", Values: map[string]any{"low": math.Inf(1), "high": []any{time.Time{}}}}, []string{"values.high", "values.low"}},
		"custom without fields":                 {Options{Dialect: "custom"}, []string{"custom"}},
		"fields without custom":                 {Options{Dialect: "openai", Custom: map[string]map[string]any{"low": {"x": 1}}}, []string{"custom"}},
		"fields that others decide, of nothing": {Options{Dialect: "custom", Custom: map[string]map[string]any{"off": {"model": 1}, "high": {"x": map[any]any{1: 2}}}}, []string{"custom.high.x", "custom.off", "custom.off.model"}},
		"a budget in a field of others":         {Options{Budget: "max_tokens"}, []string{"budget"}},
		"a budget":                              {Options{Dialect: "qwen3", Budget: "thinking_token_budget"}, nil},
		"nothing":                               {Options{}, nil},
		"a preset with its own key":             {Options{Dialect: "qwen3", Key: "enable_thinking", Values: high}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p option.Problems
			tt.o.Check(&p, "reasoning")
			var got []string
			if err := p.Err(); err != nil {
				for line := range strings.SplitSeq(err.Error(), "\n") {
					at, _, _ := strings.Cut(line, ": ")
					got = append(got, strings.TrimPrefix(at, "reasoning."))
				}
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems at (-want +got):\n%s\n%v", diff, p.Err())
			}
		})
	}
}

// Whatever a client sends, a route that overrides it produces a valid body with the parameters that
// the header reports.
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
	custom := map[string]map[string]any{
		"none": {"thinking": map[string]any{"type": "disabled"}, "verbosity": "low"},
		"high": {"thinking": map[string]any{"type": "enabled"}, "budget": 4096},
	}
	var dialects []*Dialect
	for _, o := range []Options{
		{},
		{Dialect: DialectEffort},
		{Dialect: DialectOpenAI},
		{Dialect: DialectOpenAI, Efforts: []string{"minimal", "medium", "high"}},
		{Dialect: DialectGPTOSS},
		{Dialect: DialectQwen3},
		{Dialect: DialectKwargs, Key: "enable_thinking"},
		{Dialect: DialectDeepSeek},
		{Dialect: DialectMistral},
		{Dialect: DialectKwargs, Key: "effort", Values: map[string]any{"none": "off", "low": "low", "high": "xhigh"}},
		{Dialect: DialectCustom, Custom: custom},
	} {
		d, err := New(&o)
		if err != nil {
			f.Fatal(err)
		}
		dialects = append(dialects, d)
	}
	f.Fuzz(func(t *testing.T, body string) {
		req, err := openai.ParseChat([]byte(body), openai.Limits{})
		if err != nil {
			return
		}
		for i, d := range dialects {
			p := openai.NewPatch(req)
			effort, _ := d.Apply(p, req, Want{Effort: None, Override: true})
			again, err := openai.ParseChat(p.Bytes(), openai.Limits{})
			if err != nil {
				t.Fatalf("dialect %d: body %s is refused: %v", i, p.Bytes(), err)
			}
			if said := d.chat.said(again); fold(cmp.Or(said.effort, None)) != effort {
				t.Errorf("dialect %d: the header reports %s, the body says %+v: %s", i, effort, said, p.Bytes())
			}
		}
	})
}

func TestLessIsTheNextLowerEffortThatTheModelHas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o          Options
		body, want string // what the client says, and what the model is told
		want0      Want
	}{
		{Options{Dialect: DialectEffort}, ``, `"reasoning_effort":"medium"`, Want{Effort: High}},
		{Options{Dialect: DialectEffort}, ``, `"reasoning_effort":"low"`, Want{}},
		{Options{Dialect: DialectEffort}, `"reasoning_effort":"high",`, `"reasoning_effort":"medium"`, Want{Effort: Low}},
		{Options{Dialect: DialectEffort}, `"reasoning_effort":"high",`, `"reasoning_effort":"medium"`, Want{Named: true}},
		{Options{Dialect: DialectEffort, Efforts: []string{"low", "high"}}, ``, `"reasoning_effort":"low"`, Want{Effort: High}},
		{Options{Dialect: DialectEffort, Efforts: []string{"low", "high"}}, ``, `"reasoning_effort":"low"`, Want{Effort: Low}},
		{Options{Dialect: DialectKwargs, Key: "enable_thinking"}, ``, `"enable_thinking":false`, Want{Effort: High}},
	} {
		d, err := New(&tt.o)
		if err != nil {
			t.Fatal(err)
		}
		req, err := openai.ParseChat([]byte(`{`+tt.body+`"model":"m","messages":[{"role":"user","content":"x"}]}`), openai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p := openai.NewPatch(req)
		tt.want0.Less = true
		d.Apply(p, req, tt.want0)
		if got := string(p.Bytes()); !strings.Contains(got, tt.want) {
			t.Errorf("%+v, %s, %+v: sent %s, want %s", tt.o, tt.body, tt.want0, got, tt.want)
		}
	}
}

func TestEffortsThatTellTheModelTheSameAreOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o       Options
		efforts string
		of      map[string]string
	}{
		"nothing can be told": {Options{}, "", map[string]string{High: High}},
		"words": {
			Options{Dialect: DialectOpenAI}, "none low medium high", map[string]string{Low: Low, High: High},
		},
		"no off": {Options{Dialect: DialectGPTOSS}, "low medium high", map[string]string{None: Low, High: High}},
		"a switch": {
			Options{Dialect: DialectQwen3}, "none medium", map[string]string{Low: None, High: Medium, Medium: Medium},
		},
		"two words that are reported alike": {
			Options{Dialect: DialectEffort, Efforts: []string{"minimal", "low", "xhigh"}},
			"low high",
			map[string]string{None: Low, Medium: Low, High: High},
		},
	} {
		d, err := New(&c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.Efforts(), " "); got != c.efforts {
			t.Errorf("%s: %q, want %q", name, got, c.efforts)
		}
		for effort, want := range c.of {
			if got := d.Standing(effort); got != want {
				t.Errorf("%s: %s stands for %s, want %s", name, got, effort, want)
			}
		}
	}
}
