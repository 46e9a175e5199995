package answer

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"signalbox/internal/openai"
)

func TestTheLastEventOfAResponseIsFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, data string
		last       bool
	}{
		{"the type behind", `{"response":{"id":"r","output":[{"type":"message"}]},"sequence_number":3,"type":"response.completed"}`, true},
		{"incomplete", `{"type":"response.incomplete"}`, true},
		{"failed, with blanks", ` { "a" : [1,2] , "type" : "response.failed" }`, true},
		{"with a line break", "{\"type\":\n\"response.completed\"}", true},
		{"under way", `{"type":"response.in_progress"}`, false},
		{"in a text", `{"delta":"\"type\":\"response.completed\"","type":"response.output_text.delta"}`, false},
		{"in an object inside", `{"type":"response.created","response":{"metadata":{"type":"response.completed"}}}`, false},
		{"as the name of a member", `{"response.completed":"type"}`, false},
		{"as another member's value", `{"kind":"response.completed"}`, false},
		{"in a list", `["type","response.completed"]`, false},
		{"a longer word", `{"type":"response.incomplete.not"}`, false},
		{"nothing", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := IsLast([]byte(tt.data)); got != tt.last {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestChoicesThatEndAreCounted(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]int{
		"": 0, `{"choices":[{"finish_reason":null}]}`: 0, `{"choices":[{"finish_reason" : "stop"}]}`: 1,
		`{"choices":[{"finish_reason":"stop"},{"finish_reason":"length"}]}`: 2, `{"delta":{"content":"\"finish_reason\":\"stop\""}}`: 0,
	} {
		if got := Finishes([]byte(data)); got != want {
			t.Errorf("%s: %d, want %d", data, got, want)
		}
	}
}

// FuzzLastEvent compares with a plain reading of every event that a JSON decoder accepts.
func FuzzLastEvent(f *testing.F) {
	for _, s := range []string{`{"type":"response.completed"}`, `{"a":{"type":"response.failed"},"type":"x"}`, `{"type":["response.failed"]}`, `{"x":"\\","type":"response.incomplete"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var plain struct {
			Type any `json:"type"`
		}
		if bytes.ContainsAny(data, "\\") || json.Unmarshal(data, &plain) != nil {
			return
		}
		word, _ := plain.Type.(string)
		if got, want := IsLast(data), isLast([]byte(word)); got != want {
			t.Errorf("%q is the last: %t, want %t", data, got, want)
		}
	})
}

func TestTheTallyReadsEachAPI(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		api    openai.API
		events []string
		want   Tally
	}{
		{
			"a completion", openai.Completion,
			[]string{`{"choices":[{"index":0,"text":"ab","finish_reason":null}]}`, `{"choices":[{"index":0,"text":" \"c","finish_reason":"length"}]}`, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}`},
			Tally{API: openai.Completion, Usage: Usage{Prompt: 5, Completion: 2}, Finish: FinishLength, chunks: 2, text: 6},
		},
		{
			"a response", openai.Response,
			[]string{
				`{"type":"response.created","response":{"usage":null}}`, `{"type":"response.output_text.delta","delta":"abcd","logprobs":[],"item_id":"msg_1"}`,
				`{"response":{"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":7}},"type":"response.completed"}`,
			},
			Tally{API: openai.Response, Usage: Usage{Prompt: 5, Cached: 4, Completion: 2}, Finish: FinishStop, chunks: 1, text: 4},
		},
		{
			"one at its limit", openai.Response,
			[]string{`{"type":"response.incomplete","response":{"max_output_tokens":1,"incomplete_details":{"reason":"max_output_tokens"}}}`},
			Tally{API: openai.Response, Finish: FinishLength},
		},
		{
			"one that a filter ended", openai.Response,
			[]string{`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`},
			Tally{API: openai.Response, Finish: FinishOther},
		},
		{
			"one at its limit, in vLLM's words", openai.Response,
			[]string{`{"response":{"incomplete_details":{"reason":"max_output_tokens"}},"type":"response.completed"}`},
			Tally{API: openai.Response, Finish: FinishLength},
		},
		{"one that failed", openai.Response, []string{`{"type":"response.failed","response":{}}`}, Tally{API: openai.Response, Finish: FinishOther}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Tally{API: tt.api}
			for _, e := range tt.events {
				b := []byte("data: " + e + "\n\n")
				got.Ends(b)
				got.Counts(b)
				got.FindUsage(b)
			}
			got.front, got.apart = 0, 0
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	body := Tally{API: openai.Response}
	body.Body(nil, []byte(`{"incomplete_details":{"reason":"max_output_tokens"},"status":"incomplete","output":[{"status":"completed"}],"usage":{"input_tokens":1,"output_tokens":9}}`))
	if body.Finish != FinishLength || body.Usage.Completion != 9 {
		t.Errorf("of a body: %+v", body)
	}
}

// BenchmarkLastEvent is the cost of knowing that an event of usual size is not the last, and of reading one that might be.
func BenchmarkLastEvent(b *testing.B) {
	const event = `{"content_index":0,"delta":" words","item_id":"msg_0123456789abcdef0123456789abcdef","logprobs":[],"output_index":0,"sequence_number":17,"type":"response.output_text.delta"}`
	for name, data := range map[string][]byte{"usual": []byte(event), "read": []byte(strings.Replace(event, "words", "response.completed", 1))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				IsLast(data)
			}
		})
	}
}
