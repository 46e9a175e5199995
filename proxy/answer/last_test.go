package answer

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"signalbox/internal/openai"
)

const (
	created   = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"metadata\":{\"type\":\"response.completed\"}}}\n\n"
	delta     = "event: response.output_text.delta\ndata: {\"delta\":\"\\\"type\\\":\\\"response.completed\\\"\",\"type\":\"response.output_text.delta\"}\n\n"
	completed = "event: response.completed\ndata: {\"response\":{\"id\":\"r\",\"output\":[{\"type\":\"message\"}]},\"sequence_number\":3,\"type\":\"response.completed\"}\n\n"
)

func TestTheLastEventOfAResponseIsFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		end      int // -1: the stream has no end
	}{
		{"with names and the type behind", created + delta + completed, len(created + delta + completed)},
		{"what follows it", completed + "data: [DONE]\n\n", len(completed)},
		{"without names", "data: {\"type\":\"response.incomplete\"}\n\n", 38},
		{"failed, with blanks", "data:  { \"a\" : [1,2] , \"type\" : \"response.failed\" }\r\n\r\n", 55},
		{"bare CR", "data: {\"type\":\"response.failed\"}\r\r", 34},
		{"data on two lines", "data: {\"type\":\ndata: \"response.completed\"}\n\n", 44},
		{"a name alone", "event: response.completed\ndata: {\"type\":\"response.in_progress\"}\n\n", -1},
		{"no blank line", strings.TrimSuffix(completed, "\n"), -1},
		{"in a text", delta, -1},
		{"in an object inside", created, -1},
		{"as the name of a member", "data: {\"response.completed\":\"type\"}\n\n", -1},
		{"as another member's value", "data: {\"kind\":\"response.completed\"}\n\n", -1},
		{"in a list", "data: [\"type\",\"response.completed\"]\n\n", -1},
		{"a longer word", "data: {\"type\":\"response.incomplete.not\"}\n\n", -1},
		{"a comment", ": data: {\"type\":\"response.completed\"}\n\n", -1},
		{"another field", "xdata: {\"type\":\"response.completed\"}\n\n", -1},
		{"nothing", "", -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sizes := []int{len(tt.in) + 1}
			if !strings.Contains(tt.in, "\r\n") { // which no window cuts
				sizes = append(sizes, 1, 2, 3, 7)
			}
			for _, size := range sizes {
				if got := endIn(tt.in, size); got != tt.end {
					t.Errorf("in pieces of %d: ends at %d, want %d", size, got, tt.end)
				}
			}
		})
	}
}

func endIn(s string, size int) int {
	var l last
	for from := 0; from < len(s); from += size {
		if at := l.end([]byte(s[from:min(from+size, len(s))])); at >= 0 {
			return from + at
		}
	}
	return -1
}

// FuzzLastEvent compares with a plain reading of every event that a JSON decoder accepts.
func FuzzLastEvent(f *testing.F) {
	for _, s := range []string{`{"type":"response.completed"}`, `{"a":{"type":"response.failed"},"type":"x"}`, `{"type":["response.failed"]}`, `{"x":"\\","type":"response.incomplete"}`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		var plain struct {
			Type any `json:"type"`
		}
		if size < 1 || bytes.ContainsAny(data, "\r\n\\") || json.Unmarshal(data, &plain) != nil {
			return
		}
		word, _ := plain.Type.(string)
		in := "data: " + string(data) + "\n\n"
		if got, want := endIn(in, size) >= 0, isLast([]byte(word)); got != want {
			t.Errorf("%q is the last: %t, want %t", data, got, want)
		}
	})
}

func TestALastEventLargerThanTheWindowEndsTheStream(t *testing.T) {
	t.Parallel()
	in := delta + strings.Replace(completed, `"id":"r"`, `"id":"`+strings.Repeat("x", 3*WindowSize)+`"`, 1)
	src := strings.NewReader(in + "data: [DONE]\n\n")
	w := Take()
	defer w.Release()
	w.Ends(LastEvent)
	passed := 0
	for {
		err := w.Read(src)
		end, done := w.Events(err != nil)
		passed += end
		w.Drop(end)
		if done {
			break
		}
		if err != nil {
			t.Fatal("the end was not seen")
		}
	}
	if passed != len(in) || w.Open() {
		t.Errorf("%d bytes passed, want %d", passed, len(in))
	}
	for w.Read(src) == nil {
		continue
	}
	if got := string(w.Trailer()); got != "data: [DONE]\n\n" {
		t.Errorf("behind it stands %q", got)
	}
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
				got.Chunk(b)
				got.FindUsage(b)
			}
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

// BenchmarkLastEvent is the cost of knowing the end of a response, for a chunk of usual size; beside it
// that of looking for [DONE]; "read" is what the event that ends the stream costs.
func BenchmarkLastEvent(b *testing.B) {
	event := []byte("event: response.output_text.delta\ndata: {\"content_index\":0,\"delta\":\" words\",\"item_id\":\"msg_0123456789abcdef0123456789abcdef\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":17,\"type\":\"response.output_text.delta\"}\n\n")
	b.Run("last", func(b *testing.B) {
		var l last
		b.SetBytes(int64(len(event)))
		b.ReportAllocs()
		for b.Loop() {
			l.endIn(event, true)
		}
	})
	b.Run("read", func(b *testing.B) {
		var l last
		b.SetBytes(int64(len(event)))
		b.ReportAllocs()
		for b.Loop() {
			l.end(event)
		}
	})
	b.Run("done", func(b *testing.B) {
		b.SetBytes(int64(len(event)))
		for b.Loop() {
			doneEnd(event, true)
		}
	})
}
