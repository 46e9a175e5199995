package response

import (
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
)

// tallied sums up a stream of events.
func tallied(t *Tally, events ...string) {
	var r Reader
	for _, data := range events {
		e := r.Read([]byte(data))
		t.Note(e)
		if e.HasUsage {
			t.Usage = e.Usage
		}
	}
}

func TestWhatAnAnswerTellsOfItsEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		events []string
		finish string
		tokens int64
	}{
		{"nothing", nil, "", 0},
		{"null all the way", []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`}, "", 1},
		{"spaces", []string{`{"choices":[{"delta":{}, "finish_reason" : "tool_calls"}]}`}, "tool_calls", 0},
		{"a word of its own", []string{`{"choices":[{"delta":{},"finish_reason":"eos"}]}`}, "other", 0},
		{"a call in the older form", []string{`{"choices":[{"delta":{},"finish_reason":"function_call"}]}`}, "function_call", 0},
		{
			"several events",
			append(repeated(5, `{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`), `{"choices":[{"delta":{},"finish_reason":"length"}]}`, "[DONE]"),
			"length", 2,
		},
		{"as many events as bytes", repeated(40, `{"choices":[{"delta":{"content":"a"}}]}`), "", 10},
		{"several tokens in an event", repeated(7, `{"choices":[{"delta":{"content":" some words more"}}]}`), "", 28},
		{"a text that looks like it", []string{`{"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""},"finish_reason":null}]}`}, "", 7},
		{
			"text in several places",
			[]string{`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"0123456789\"\\",` +
				`"tool_calls":[{"function":{"arguments":"{\"a\": \"bc\"}"}}]},` +
				`"logprobs":{"content":[{"token":"a long one that is no text"}]},"finish_reason":null}]}`},
			"", (14 + 15 + 3) / 4,
		},
		{"text that does not end", []string{`{"delta":{"content":"0123456789`, `{"delta":{"content":"01234567\`}, "", 0},
		{"cut in the name", []string{`{"finish_rea`, `son":"stop"}`}, "", 0},
		{"cut in the value", []string{`{"finish_reason":`}, "", 0},
		{
			"deltas wherever they stand", []string{
				`{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
				`{"id":"c","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}]}`,
				`{"choices":[{"finish_reason":null,"delta":{"content":"\"delta\": no"},"index":0}],"id":"c"}`,
				`{"id":"c","choices":[],"usage":{"completion_tokens":3}}`,
			}, "", (4 + 13 + 3) / 4,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var m Tally
			tallied(&m, tt.events...)
			if m.Finish != tt.finish || m.Length() != tt.tokens {
				t.Errorf("finish %q after %d tokens, want %q after %d", m.Finish, m.Length(), tt.finish, tt.tokens)
			}
		})
	}
}

func repeated(n int, s string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
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
			Tally{API: openai.Completion, Usage: Usage{Input: 5, Output: 2}, Finish: FinishLength, begun: true, text: 6},
		},
		{
			"a response", openai.Response,
			[]string{
				`{"type":"response.created","response":{"usage":null}}`, `{"type":"response.output_text.delta","delta":"abcd","logprobs":[],"item_id":"msg_1"}`,
				`{"response":{"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":7}},"type":"response.completed"}`,
			},
			Tally{API: openai.Response, Usage: Usage{Input: 5, Cached: 4, Output: 2, Reasoning: 1, Total: 7}, Finish: FinishStop, begun: true, text: 4},
		},
		{"one that has only begun", openai.Response, []string{`{"type":"response.created","response":{"usage":null}}`}, Tally{API: openai.Response}},
		{
			"one at its limit", openai.Response,
			[]string{`{"type":"response.incomplete","response":{"max_output_tokens":1,"incomplete_details":{"reason":"max_output_tokens"}}}`},
			Tally{API: openai.Response, Finish: FinishLength},
		},
		{
			"one that a filter ended", openai.Response,
			[]string{`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`},
			Tally{API: openai.Response, Finish: FinishFilter},
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
			if tallied(&got, tt.events...); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	for body, want := range map[string]Tally{
		`{"incomplete_details":{"reason":"max_output_tokens"},"status":"incomplete","output":[{"status":"completed"}],"usage":{"input_tokens":1,"output_tokens":9}}`: {API: openai.Response, Finish: FinishLength, Usage: Usage{Input: 1, Output: 9}},
		`{"incomplete_details":{"reason":"content_filter"},"status":"incomplete","output":[]}`:                                                                       {API: openai.Response, Finish: FinishFilter},
		`{"incomplete_details":null,"status":"completed","output":[]}`:                                                                                               {API: openai.Response, Finish: FinishStop},
		`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"abcd"}]}]}`:                                                      {API: openai.Response, Finish: FinishStop, text: 4},
		`"the end of a text"`: {API: openai.Response, unread: true},
		`{"choices":[{"message":{"content":"ab","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"length"}]}`: {Finish: FinishLength, text: 5},
	} {
		got := Tally{API: want.API}
		if got.Body(nil, []byte(body)); got != want {
			t.Errorf("of the body %s: %+v, want %+v", body, got, want)
		}
	}
}

func BenchmarkMeasureChunk(b *testing.B) {
	chunk := []byte(strings.TrimSpace(strings.TrimPrefix(testkit.Event(" token"), "data: ")))
	var m Tally
	var r Reader
	b.ReportAllocs()
	for range b.N {
		m.Note(r.Read(chunk))
	}
}

func TestUsageIsFoundWhereverItStands(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"compact":                          testkit.Completion,
		"spaced":                           `{ "usage" : { "prompt_tokens" : 9, "completion_tokens" : 12, "prompt_tokens_details" : {"cached_tokens": 4} } }`,
		"quoted in a text":                 `{"choices":[{"text":"\"usage\":{\"prompt_tokens\":1}"}],"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12}}`,
		"what a client calls so behind it": `{"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12},"metadata":{"a":"}","usage":"x"}}`,
		"an object of a client behind it":  `{"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12},"metadata":{"usage":{"prompt_tokens":1}},"x":[{}]}`,
		"in an object, and no other":       `{"meta":{"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12}},"usage":"low"}`,
		"null, then filled":                `{"usage":null}{"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12}}`,
	} {
		var c Tally
		c.Body(nil, []byte(body))
		if u := c.Usage; u.Input != 9 || u.Cached != 4 || u.Output != 12 || u.Uncached {
			t.Errorf("%s: %+v", name, c.Usage)
		}
		var split Tally
		at := strings.LastIndex(body, "usage") + 2
		split.Body([]byte(body[:at]), []byte(body[at:]))
		if split.Usage != c.Usage {
			t.Errorf("%s, split: %+v", name, split.Usage)
		}
	}
	for _, body := range []string{"", `{"usage":null}`, `{"usage"`, `{"usage":{"prompt_tokens":"9"}}`} {
		var c Tally
		c.Body(nil, []byte(body))
		if c.Usage != (Usage{}) {
			t.Errorf("%q: %+v", body, c.Usage)
		}
	}
	var none Tally
	if none.Body(nil, []byte(`{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":0}}}`)); !none.Usage.Uncached {
		t.Errorf("none of the prompt was cached: %+v", none.Usage)
	}
}

// TestUsageAheadOfALongBodyCounts checks usage before the data of embeddings, as llama.cpp sends
// it.
func TestUsageAheadOfALongBodyCounts(t *testing.T) {
	t.Parallel()
	const told = `"usage":{"prompt_tokens":9,"total_tokens":9}`
	rows := strings.Repeat("0.01,", TailSize)
	for _, tt := range []struct {
		name, first, last string
		input             int
	}{
		{"ahead", `{"model":"m",` + told + `,"data":[` + rows, rows + "1]}", 9},
		{"at the end too", `{` + told + `,"data":[` + rows, rows + `1],"usage":{"prompt_tokens":7}}`, 7},
		{"of something else", `{"data":[{` + told + `,"embedding":[` + rows, rows + "1]}]}", 0},
		{"nowhere", `{"data":[` + rows, rows + "1]}", 0},
	} {
		m := Tally{API: openai.Other}
		m.Begin([]byte(tt.first))
		m.Body([]byte(tt.first[len(tt.first)-TailSize:]), []byte(tt.last))
		if m.Usage.Input != tt.input || m.Unread() {
			t.Errorf("%s: %+v, want %d", tt.name, m, tt.input)
		}
	}
}

func TestAMessageThatIsNoStreamTellsItsEnd(t *testing.T) {
	t.Parallel()
	const input = `"content":[{"type":"tool_use","input":{"usage":{"input_tokens":1},"stop_reason":"x"}}]`
	for body, want := range map[string]Tally{
		`{` + input + `,"stop_reason":"max_tokens","usage":{"input_tokens":100,"cache_creation_input_tokens":400,"cache_read_input_tokens":9500,"output_tokens":5}}`: {
			Finish: FinishLength, Usage: Usage{Input: 10_000, Cached: 9500, Output: 5},
		},
		`{"usage":{"input_tokens":100,"output_tokens":5},"stop_reason":"tool_use","content":[]}`: {
			Finish: FinishTools, Usage: Usage{Input: 100, Output: 5},
		},
		`{` + `"content":[],"stop_reason":null}`: {unread: true},
	} {
		got := Tally{Messages: true}
		want.Messages = true
		if got.Body(nil, []byte(body)); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

func TestABodyWithoutUsageIsCountedByItsText(t *testing.T) {
	t.Parallel()
	whole := `{"choices":[{"message":{"content":"` + strings.Repeat("word", 10) + `"},"finish_reason":"stop"}]}`
	var m, long Tally
	m.Body(nil, []byte(whole))
	if u := m.Taken(7); u != (Usage{Input: 7, Output: 10}) || m.Unread() {
		t.Errorf("of a whole body: %+v, %+v", u, m)
	}
	if long.Body([]byte(whole[:20]), []byte(whole[20:])); !long.Unread() {
		t.Errorf("what came before is not here: %+v", long)
	}
	long.Body(nil, []byte(testkit.Completion))
	if long.Unread() {
		t.Errorf("it tells its usage: %+v", long)
	}
}
