package reasoning

import (
	"testing"

	"signalbox/internal/openai"
)

func TestEachAPIIsToldInItsOwnFields(t *testing.T) {
	t.Parallel()
	custom := Options{Dialect: DialectCustom, Custom: map[string]map[string]any{"none": {"thinking": false}, "high": {"reasoning_effort": "high", "thinking": true}}}
	tests := []struct {
		name       string
		o          Options
		api        openai.API
		body       string
		want       Want
		sent, says string
	}{
		{"effort in a response", Options{Dialect: DialectOpenAI}, openai.Response, `{"model":"m","input":"x"}`, Want{Effort: High}, `{"model":"m","input":"x","reasoning":{"effort":"high"}}`, High},
		{
			"the client's effort stands",
			Options{Dialect: DialectOpenAI},
			openai.Response,
			`{"model":"m","input":"x","reasoning":{"effort":"low","summary":"auto"}}`,
			Want{Effort: High},
			`{"model":"m","input":"x","reasoning":{"effort":"low","summary":"auto"}}`, Low,
		},
		{
			"it is translated to what the model has",
			Options{Dialect: DialectMistral},
			openai.Response,
			`{"model":"m","input":"x","reasoning":{"effort":"medium"}}`,
			Want{},
			`{"model":"m","input":"x","reasoning":{"effort":"high"}}`, High,
		},
		{
			"and overridden beside its summary",
			Options{Dialect: DialectOpenAI},
			openai.Response,
			`{"model":"m","input":"x","reasoning":{"effort":"low","summary":"auto"}}`,
			Want{Effort: None, Override: true},
			`{"model":"m","input":"x","reasoning":{"effort":"none","summary":"auto"}}`, None,
		},
		{
			"a template's switch in a response",
			Options{Dialect: DialectQwen3},
			openai.Response, `{"model":"m","input":"x"}`,
			Want{Effort: None},
			`{"model":"m","input":"x","chat_template_kwargs":{"enable_thinking":false}}`, None,
		},
		{
			"effort for a template's switch",
			Options{Dialect: DialectQwen3},
			openai.Response, `{"model":"m","input":"x","reasoning":{"effort":"high"}}`,
			Want{},
			`{"model":"m","input":"x","reasoning":{"effort":"high"},"chat_template_kwargs":{"enable_thinking":true}}`, High,
		},
		{
			"custom fields in a response", custom, openai.Response, `{"model":"m","input":"x"}`,
			Want{Effort: High},
			`{"model":"m","input":"x","reasoning":{"effort":"high"},"thinking":true}`, High,
		},
		{"nothing in a completion", Options{Dialect: DialectOpenAI}, openai.Completion, `{"model":"m","prompt":"x"}`, Want{Effort: High, Override: true}, `{"model":"m","prompt":"x"}`, None},
		{"nothing in embeddings", Options{Dialect: DialectQwen3}, openai.Other, `{"model":"m","input":"x"}`, Want{Effort: High}, `{"model":"m","input":"x"}`, None},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, err := New(&tt.o)
			if err != nil {
				t.Fatal(err)
			}
			req, err := openai.Parse(tt.api, []byte(tt.body), openai.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			p := openai.NewPatch(req)
			if says, _ := d.Apply(p, req, tt.want); says != tt.says || string(p.Bytes()) != tt.sent {
				t.Errorf("says %q and sends %s, want %q and %s", says, p.Bytes(), tt.says, tt.sent)
			}
		})
	}
}
