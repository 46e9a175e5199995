package cache_test

import (
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/memory/cache"
)

func TestWhatMayBeKept(t *testing.T) {
	t.Parallel()
	with := func(member string) string { return strings.Replace(plain, `{"model"`, `{`+member+`,"model"`, 1) }
	last := func(message string) string {
		return `{"model":"m","messages":[{"role":"user","content":"Hi"},` + message + `]}`
	}
	tests := []struct {
		name           string
		api            openai.API
		body           string
		exact, similar cache.Reason
	}{
		{"a question", openai.Chat, plain, cache.Eligible, cache.Eligible},
		{"temperature 0", openai.Chat, with(`"temperature":0`), cache.Eligible, cache.Eligible},
		{"temperature 0.3", openai.Chat, with(`"temperature":0.3`), cache.Eligible, cache.Eligible},
		{"temperature 0.31", openai.Chat, with(`"temperature":0.31`), cache.Temperature, cache.Temperature},
		{"temperature null", openai.Chat, with(`"temperature":null`), cache.Eligible, cache.Eligible},
		{"temperature in words", openai.Chat, with(`"temperature":"low"`), cache.Temperature, cache.Temperature},
		{"n 1", openai.Chat, with(`"n":1`), cache.Eligible, cache.Eligible},
		{"n 2", openai.Chat, with(`"n":2`), cache.Choices, cache.Choices},
		{"logprobs", openai.Chat, with(`"logprobs":true`), cache.Logprobs, cache.Logprobs},
		{"no logprobs", openai.Chat, with(`"logprobs":false`), cache.Eligible, cache.Eligible},
		{"seed", openai.Chat, with(`"seed":7`), cache.Eligible, cache.Seed},
		{"search", openai.Chat, with(`"web_search_options":{"a":1}`), cache.ServerTool, cache.ServerTool},
		{"explain", openai.Chat, with(`"signalbox":{"explain":true}`), cache.Explain, cache.Explain},
		{"save_context", openai.Chat, with(`"signalbox":{"save_context":{"name":"x"}}`), cache.State, cache.State},
		{"definitions of tools", openai.Chat, with(`"tools":[{"type":"function","function":{"name":"f"}}]`), cache.Eligible, cache.Eligible},
		{"a tool's result", openai.Chat, last(`{"role":"tool","tool_call_id":"c","content":"4"}`), cache.ToolResult, cache.ToolResult},
		{"a picture", openai.Chat, last(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`), cache.Media, cache.Media},
		{"a text in parts", openai.Chat, last(`{"role":"user","content":[{"type":"text","text":"Hi"},{"text":"you","type":"text","cache_control":{"type":"ephemeral"}}]}`), cache.Eligible, cache.Eligible},
		{"a document beside a text", openai.Chat, last(`{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"document_url","document_url":"https://x/y.pdf"}]}`), cache.Eligible, cache.NoQuestion},
		{"what is in a container", openai.Chat, last(`{"role":"user","content":[{"type":"container_upload","id":"f"},{"type":"text","text":"Hi"}]}`), cache.Eligible, cache.NoQuestion},
		{"a text with more to it", openai.Chat, last(`{"role":"user","content":[{"type":"text","text":"Hi","language":"de"}]}`), cache.Eligible, cache.NoQuestion},
		{"a turn of the assistant", openai.Chat, last(`{"role":"assistant","content":"Well,"}`), cache.Eligible, cache.NoQuestion},
		{"a long text", openai.Chat, last(`{"role":"user","content":"` + strings.Repeat("word ", 300) + `"}`), cache.Eligible, cache.NoQuestion},
		{"a completion", openai.Completion, `{"model":"m","prompt":"Once"}`, cache.Eligible, cache.NoQuestion},
		{"token ids", openai.Completion, `{"model":"m","prompt":[1,2]}`, cache.Opaque, cache.Opaque},
		{"best_of", openai.Completion, `{"model":"m","prompt":"Once","best_of":3}`, cache.Choices, cache.Choices},
		{"a response", openai.Response, `{"model":"m","input":"What is Go?"}`, cache.Eligible, cache.Eligible},
		{"a response to parts", openai.Response, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]}]}`, cache.Eligible, cache.Eligible},
		{"a response to another", openai.Response, `{"model":"m","input":"What is Go?","previous_response_id":"r"}`, cache.State, cache.State},
		{
			"an item that the server keeps", openai.Response,
			`{"model":"m","input":[{"type":"item_reference",` +
				`"id":"i"},{"role":"user","content":"Hi"}]}`, cache.State, cache.State,
		},
		{"a stored prompt", openai.Response, `{"model":"m","prompt":{"id":"p"}}`, cache.State, cache.State},
		{"a search of a response", openai.Response, `{"model":"m","input":"Hi","tools":[{"type":"web_search"}]}`, cache.ServerTool, cache.ServerTool},
		{"a function of a response", openai.Response, `{"model":"m","input":"Hi","tools":[{"type":"function","name":"f"}]}`, cache.Eligible, cache.Eligible},
		{"what a call gave", openai.Response, `{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"4"}]}`, cache.ToolResult, cache.ToolResult},
		{"embeddings", openai.Other, `{"model":"m","input":"x"}`, cache.Unknown, cache.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req, err := openai.Parse(tt.api, []byte(tt.body), openai.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			id := cache.DefaultIdentifier().Identify(req, &cache.Scope{})
			if id.Exact != tt.exact || id.Similar != tt.similar {
				t.Errorf("exact %v, similar %v; want %v, %v", id.Exact, id.Similar, tt.exact, tt.similar)
			}
		})
	}
}

func TestTheHighestTemperatureIsChosen(t *testing.T) {
	t.Parallel()
	req := parse(t, strings.Replace(plain, `{"model"`, `{"temperature":1.5,"model"`, 1))
	if id := (cache.Identifier{MaxTemperature: 2}).Identify(req, &cache.Scope{}); id.Exact != cache.Eligible {
		t.Errorf("%v, want eligible", id.Exact)
	}
}
