package openai

import (
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		api       API
		body      string
		choices   int
		output    int
		stateless bool
		continues bool
	}{
		{"a chat without limits", Chat, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 1, AssumedOutputTokens, true, false},
		{"several choices share no limit", Chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"n":2,"max_tokens":10}`, 2, 20, true, false},
		{"a number as lenient servers read it", Chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"n":3e0,"max_tokens":1}`, 3, 3, true, false},
		{"best_of counts", Completion, `{"model":"m","prompt":["a","b"],"best_of":3,"max_tokens":5}`, 1, 30, true, false},
		{"no limit by -1", Chat, `{"model":"m","messages":[{"role":"user",` +
			`"content":"x"}],"max_tokens":-1,"n":2}`, 2, 2 * AssumedOutputTokens, true, false},
		{"no limit by 0", Chat, `{"model":"m","messages":[{"role":"user",` +
			`"content":"x"}],"max_completion_tokens":0}`, 1, AssumedOutputTokens, true, false},
		{"a completion without a limit", Completion, `{"model":"m","prompt":"a","max_tokens":-1}`, 1, AssumedOutputTokens, true, false},
		{"a completion that repeats its prompt alone", Completion, `{"model":"m","prompt":"a",` +
			`"max_tokens":0,"echo":true}`, 1, 1, true, false},
		{"a response without a limit", Response, `{"model":"m","input":"x",` +
			`"max_output_tokens":-1,"store":false}`, 1, AssumedOutputTokens, true, false},
		{"a least length", Chat, `{"model":"m","messages":[{"role":"user",` +
			`"content":"x"}],"min_tokens":900}`, 1, 900, true, false},
		{"a chat that is stored", Chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"store":true}`, 1, AssumedOutputTokens, false, false},
		{"a response is stored unless it says otherwise", Response, `{"model":"m","input":"x"}`, 1, AssumedOutputTokens, false, false},
		{"a response that is not stored", Response, `{"model":"m","input":"x","store":false}`, 1, AssumedOutputTokens, true, false},
		{
			"a response that goes on", Response, `{"model":"m","input":"x","store":false,"previous_response_id":"r"}`,
			1, AssumedOutputTokens, false, true,
		},
		{
			"an item that the server keeps", Response,
			`{"model":"m","input":[{"type":"item_reference","id":"i"},{"role":"user","content":"x"}],"store":false}`,
			1, AssumedOutputTokens, false, true,
		},
		{
			"one without its type", Response, `{"model":"m","input":[{"id":"i","type":null},{"id":"i"}],"store":false}`,
			1, AssumedOutputTokens, false, true,
		},
		{
			"one with more beside its id", Response, `{"model":"m","input":[{"id":"i","status":"completed"}],"store":false}`,
			1, AssumedOutputTokens, false, true,
		},
		{
			"items that the client has sent along", Response,
			`{"model":"m","input":[{"type":"reasoning","id":"i","summary":[]},` +
				`{"id":"i","role":"user","content":"x"}],"store":false}`,
			1, AssumedOutputTokens, true, false,
		},
		{
			"a conversation by its id", Response, `{"model":"m","input":"x","store":false,"conversation":{"id":"c"}}`,
			1, AssumedOutputTokens, false, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := Parse(tt.api, []byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Choices(); got != tt.choices {
				t.Errorf("Choices: got %d, want %d", got, tt.choices)
			}
			if got := r.MaxOutputTokens(); got != tt.output {
				t.Errorf("MaxOutputTokens: got %d, want %d", got, tt.output)
			}
			if got := r.Stateless(); got != tt.stateless {
				t.Errorf("Stateless: got %t, want %t", got, tt.stateless)
			}
			if got := r.Continues(); got != tt.continues {
				t.Errorf("Continues: got %t, want %t", got, tt.continues)
			}
		})
	}
}

func TestBringsToolResult(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"model":"m","messages":[{"role":"user","content":"x"}]}`:                              false,
		`{"model":"m","messages":[{"role":"tool","tool_call_id":"a","content":"x"}]}`:           true,
		`{"model":"m","messages":[{"role":"function","name":"f","content":"x"}]}`:               true,
		`{"model":"m","messages":[{"role":"tool","content":"x"},{"role":"user","content":""}]}`: true,
		`{"model":"m","messages":[{"role":"assistant"},{"role":"tool","content":"x"},{"role":"system","content":"y"},` +
			`{"role":"user","content":"z"}]}`: true,
		`{"model":"m","messages":[{"role":"tool","content":"x"},{"role":"assistant",` +
			`"content":"y"}]}`: false,
		`{"model":"m","messages":[{"role":"tool","content":"x"},{"role":"assistant","content":"y"},{"role":"user",` +
			`"content":"z"}]}`: false,
	} {
		r, err := ParseChat([]byte(body), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.BringsToolResult(); got != want {
			t.Errorf("%s: got %t, want %t", body, got, want)
		}
	}
}

// Each text of 400 bytes is 100 tokens wherever it stands, and counts once.
func TestAPromptIsAllThatAModelReads(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word ", 80)
	const hi = `{"model":"m","messages":[{"role":"user","content":"hi"}`
	tool := `{"type":"function","function":{"name":"f","description":"` + text + `","parameters":{"type":"object"}}}`
	for name, tt := range map[string]struct {
		api                API
		body               string
		conversation, more int // tokens; more may be some too few
	}{
		"a message": {Chat, hi + `,{"role":"user","content":"` + text + `"}]}`, 108, 0},
		"parts":     {Chat, hi + `,{"role":"user","content":[{"type":"text","text":"` + text + `"}]}]}`, 108, 0},
		"reasoning": {Chat, hi + `,{"role":"assistant","content":"","reasoning_content":"` + text + `"}]}`, 8, 100},
		"arguments": {Chat, hi + `,{"role":"assistant","tool_calls":[{"id":"call_1","type":"function",` +
			`"function":{"name":"f","arguments":"` + text + `"}}]}]}`, 8, 100},
		"tools":     {Chat, hi + `],"tools":[` + tool + `,` + tool + `]}`, 4, 2 * len(tool) / 4},
		"functions": {Chat, hi + `],"functions":[{"name":"f","description":"` + text + `"}]}`, 4, 107},
		"documents": {Chat, hi + `],"documents":["` + text + `"]}`, 4, 100},
		"an answer": {Response, `{"model":"m","instructions":"` + text + `","input":"` + text + `"}`, 208, 0},
		"a prompt":  {Completion, `{"model":"m","prompt":["` + text + `",` + `"` + text + `"]}`, 208, 0},
		"ids":       {Completion, `{"model":"m","prompt":[1,2,3]}`, 3, 0},
		"texts":     {Other, `{"model":"m","input":["` + text + `","` + text + `"]}`, 0, 200},
		"lists":     {Other, `{"model":"m","input":[[1,2,3],[4,5]]}`, 0, 5},
		"a ranking": {Other, `{"model":"m","query":"` + text + `","documents":["` + text +
			`",{"text":"` + text + `"}]}`, 0, 300},
		"own fields": {Chat, hi + `],"signalbox":{"facts":["` + text + `"]},"user":"` + text + `"}`, 4, 0},
	} {
		r, err := Parse(tt.api, []byte(tt.body), Limits{})
		if err != nil {
			t.Fatal(name, err)
		}
		want := tt.conversation + tt.more
		if n := r.PromptTokens(); r.EstimateTokens() != tt.conversation || n < want || n > want+4 {
			t.Errorf("%s: %d tokens, of them %d of the conversation; want %d and %d",
				name, n, r.EstimateTokens(), want, tt.conversation)
		}
	}
}
