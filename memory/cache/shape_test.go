package cache_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/memory/cache"
)

// object decodes JSON.
func object(tb testing.TB, data []byte) (v map[string]any) {
	tb.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		tb.Fatalf("%s: %v", data, err)
	}
	return v
}

const chunkHead = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[`

// chunk is an event with one choice.
func chunk(choice string) string { return "data: " + chunkHead + choice + "]}\n\n" }

const usageEvent = "data: " + chunkHead + `],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n\n"

func TestAStreamIsGatheredToABody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ stream, body string }{
		"text": {
			chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`) + chunk(`{"index":0,"delta":{"content":"he"}}`) +
				chunk(`{"index":0,"delta":{"content":"llo"}}`) + chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`) + usageEvent + done,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},
			"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		},
		"a call": {
			chunk(`{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":""}}]}}`) +
				chunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}}`) +
				chunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}`) + chunk(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`) + done,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,
			"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"logprobs":null,"finish_reason":"tool_calls"}]}`,
		},
		"reasoning": {
			chunk(`{"index":0,"delta":{"reasoning_content":"hm"}}`) + chunk(`{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}`) + done,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok",
			"reasoning_content":"hm"},"logprobs":null,"finish_reason":"stop"}]}`,
		},
		"a completion": {
			`data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"he"}]}` + "\n\n" +
				`data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"llo","finish_reason":"stop"}]}` + "\n\n" + done,
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"hello","logprobs":null,"finish_reason":"stop"}]}`,
		},
		"a response": {
			"data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"object\":\"response\"}}\n\n",
			`{"id":"r","object":"response"}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := mustRecord(t, true, tt.stream).As(false, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(object(t, []byte(tt.body)), object(t, a.Data)); d != "" || a.Streamed() || a.ContentType != "application/json" {
				t.Errorf("body (-want +got), %s:\n%s", a.ContentType, d)
			}
			if err := a.Check(); err != nil && name != "a response" {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestABodySpreadAndGatheredIsItself(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some words of a long answer, ", 30)
	for name, body := range map[string]string{
		"text":         testkit.Completion,
		"long":         strings.Replace(testkit.Completion, "hello", long, 1),
		"calls":        `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"y","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"total_tokens":3}}`,
		"a completion": `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"` + long + `","finish_reason":"length"}],"usage":{"total_tokens":3}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := mustRecord(t, false, body)
			s, err := a.As(true, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil || !s.Streamed() {
				t.Fatalf("the stream is not whole: %v\n%s", err, s.Data)
			}
			back, err := s.As(false, false)
			if err != nil {
				t.Fatal(err)
			}
			want, got := object(t, []byte(body)), object(t, back.Data)
			for _, c := range got["choices"].([]any) {
				delete(c.(map[string]any), "logprobs")
			}
			for _, c := range want["choices"].([]any) {
				delete(c.(map[string]any), "logprobs")
				if m, ok := c.(map[string]any)["message"].(map[string]any); ok && m["content"] == nil {
					m["content"] = "" // a stream begins with an empty text
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			without, err := s.As(true, false)
			if err != nil || strings.Contains(string(without.Data), `"usage"`) || without.Check() != nil {
				t.Errorf("error %v, or a stream with a usage: %s", err, without.Data)
			}
		})
	}
}

func TestWhatCannotBeTurnedIsAMiss(t *testing.T) {
	t.Parallel()
	end := chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`) + done
	tests := map[string]struct {
		streamed        bool
		data            string
		toStream, usage bool
	}{
		"an event that tells more": {true, `data: {"x_signalbox":{"guard":1},"choices":[]}` + "\n\n" + end, false, false},
		"a delta that tells more":  {true, chunk(`{"index":0,"delta":{"audio":{"id":"a"}}}`) + end, false, false},
		"a choice that tells more": {true, chunk(`{"index":0,"delta":{},"logprobs":{"content":[1]}}`) + end, false, false},
		"calls out of order":       {true, chunk(`{"index":0,"delta":{"tool_calls":[{"index":3}]}}`) + end, false, false},
		"no usage was streamed":    {true, end, true, true},
		"no usage was told":        {false, strings.Replace(testkit.Completion, `"usage"`, `"was"`, 1), true, true},
		"a body that tells more":   {false, strings.Replace(testkit.Completion, `{"id"`, `{"citations":["a"],"id"`, 1), true, false},
		"a message with notes":     {false, strings.Replace(testkit.Completion, `{"role"`, `{"annotations":["a"],"role"`, 1), true, false},
		"a body of a response":     {false, `{"object":"response","status":"completed"}`, true, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := mustRecord(t, tt.streamed, tt.data).As(tt.toStream, tt.usage); !errors.Is(err, cache.ErrShape) {
				t.Errorf("%v, %v; want ErrShape", got, err)
			}
		})
	}
}

func FuzzShapes(f *testing.F) {
	f.Add([]byte(testkit.Completion), false)
	f.Add([]byte(testkit.Event("a")+testkit.Finish+usageEvent+done), true)
	f.Add([]byte("data: a\r\rdata: b\r\n\r\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, streamed bool) {
		a, err := record(streamed, string(data))
		if err != nil {
			return
		}
		for _, usage := range []bool{true, false} {
			for _, to := range []bool{true, false} {
				b, err := a.As(to, usage)
				if err != nil {
					continue
				}
				if b.Streamed() != to || len(b.Data) == 0 {
					t.Fatalf("%q became %q", data, b.Data)
				}
			}
		}
	})
}
