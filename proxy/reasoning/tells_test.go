package reasoning

import (
	"testing"

	"signalbox/internal/openai"
)

func TestARequestTellsNothingOfReasoningWhereNothingIsSent(t *testing.T) {
	t.Parallel()
	const chat = `{"model":"m","messages":[{"role":"user","content":"x"}]`
	const asks, completion = chat + `,"reasoning_effort":"none"}`, `{"model":"m","prompt":"x"}`
	silent := Want{Effort: High, Override: true}
	dialect := Options{Dialect: DialectOpenAI}
	for name, c := range map[string]struct {
		o    Options
		api  openai.API
		body string
		want Want
		says bool
	}{
		"no dialect, nobody asks":             {Options{}, openai.Chat, chat + `}`, Want{}, false},
		"no dialect, the route asks":          {Options{}, openai.Chat, chat + `}`, Want{Effort: High}, false},
		"no dialect, the client asks":         {Options{}, openai.Chat, asks, Want{}, true},
		"no dialect, the client is silenced":  {Options{}, openai.Chat, asks, silent, false},
		"no dialect, there is no other word":  {Options{}, openai.Chat, asks, Want{Override: true}, true},
		"a dialect":                           {dialect, openai.Chat, chat + `}`, Want{Effort: None}, true},
		"a completion, which has no template": {dialect, openai.Completion, completion, Want{Effort: High}, false},
	} {
		d, err := New(&c.o)
		if err != nil {
			t.Fatal(err)
		}
		req, err := openai.Parse(c.api, []byte(c.body), openai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Tells(req, c.want); got != c.says {
			t.Errorf("%s: %t, want %t", name, got, c.says)
		}
	}
}
