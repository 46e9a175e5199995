package response_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/stream/response"
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

// chunkWith returns an event with one choice.
func chunkWith(choice string) string { return "data: " + chunkHead + choice + "]}\n\n" }

const usageEvent = "data: " + chunkHead + `],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n\n"

func TestAStreamIsGatheredToABody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ stream, body string }{
		"text": {
			chunkWith(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`) + chunkWith(`{"index":0,"delta":{"content":"he"}}`) +
				chunkWith(`{"index":0,"delta":{"content":"llo"}}`) + chunkWith(`{"index":0,"delta":{},"finish_reason":"stop"}`) + usageEvent + done,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},
			"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		},
		"a call": {
			chunkWith(`{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":""}}]}}`) +
				chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}}`) +
				chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}`) + chunkWith(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`) + done,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,
			"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"logprobs":null,"finish_reason":"tool_calls"}]}`,
		},
		"calls of one index": {
			chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x",`+
				`"function":{"name":"f","arguments":"{\"a\":"}}]}}`) +
				chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"arguments":"1}"}}]}}`) +
				chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"y","function":{"name":"f","arguments":""}}]}}`) +
				chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}`) +
				chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":1,"id":"z","function":{"name":"g","arguments":"{}"}}]}}`) +
				chunkWith(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`) + done,
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,
			"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
			{"id":"y","type":"function","function":{"name":"f","arguments":"{}"}},
			{"id":"z","type":"function","function":{"name":"g","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}]}`,
		},
		"reasoning": {
			chunkWith(`{"index":0,"delta":{"reasoning_content":"hm"}}`) + chunkWith(`{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}`) + done,
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
			a, _, err := response.As([]byte(tt.stream), true, false, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(object(t, []byte(tt.body)), object(t, a)); d != "" {
				t.Errorf("body (-want +got):\n%s", d)
			}
			if err := response.CheckBody(a); err != nil && name != "a response" {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestABodySpreadAndGatheredIsItself(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some words of a long answer, ", 30)
	for name, body := range map[string]string{
		"text": testkit.Completion,
		"long": strings.Replace(testkit.Completion, "hello", long, 1),
		"calls": `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` +
			`"message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function",` +
			`"function":{"name":"f","arguments":"{}"}},{"id":"y","type":"function","function":{"name":"g",` +
			`"arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"total_tokens":3}}`,
		"a completion": `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,` +
			`"text":"` + long + `","finish_reason":"stop"}],"usage":{"total_tokens":3}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := response.As([]byte(body), false, true, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := checked(true, string(s)); err != nil {
				t.Fatalf("the stream is not whole: %v\n%s", err, s)
			}
			back, _, err := response.As(s, true, false, false)
			if err != nil {
				t.Fatal(err)
			}
			want, got := object(t, []byte(body)), object(t, back)
			for _, c := range got["choices"].([]any) {
				delete(c.(map[string]any), "logprobs")
			}
			for _, c := range want["choices"].([]any) {
				delete(c.(map[string]any), "logprobs")
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			without, gone, err := response.As(s, true, true, false)
			if err != nil || strings.Contains(string(without), `"usage"`) || checked(true, string(without)) != nil || !strings.Contains(string(s[gone.Start:gone.End]), `"usage"`) {
				t.Errorf("error %v, or a stream with a usage: %s", err, without)
			}
		})
	}
}

func TestWhatCannotBeTurnedIsAMiss(t *testing.T) {
	t.Parallel()
	end := chunkWith(`{"index":0,"delta":{},"finish_reason":"stop"}`) + done
	tests := map[string]struct {
		streamed        bool
		data            string
		toStream, usage bool
	}{
		"an event that tells more": {true, `data: {"x_signalbox":{"guard":1},"choices":[]}` + "\n\n" + end, false, false},
		"a delta that tells more":  {true, chunkWith(`{"index":0,"delta":{"audio":{"id":"a"}}}`) + end, false, false},
		"a choice that tells more": {true, chunkWith(`{"index":0,"delta":{},"logprobs":{"content":[1]}}`) + end, false, false},
		"calls out of order":       {true, chunkWith(`{"index":0,"delta":{"tool_calls":[{"index":3}]}}`) + end, false, false},
		"no usage was streamed":    {true, end, true, true},
		"no usage was told":        {false, strings.Replace(testkit.Completion, `"usage"`, `"was"`, 1), true, true},
		"a body that tells more":   {false, strings.Replace(testkit.Completion, `{"id"`, `{"citations":["a"],"id"`, 1), true, false},
		"a message with notes":     {false, strings.Replace(testkit.Completion, `{"role"`, `{"annotations":["a"],"role"`, 1), true, false},
		"a body of a response":     {false, `{"object":"response","status":"completed"}`, true, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _, err := response.As([]byte(tt.data), tt.streamed, tt.toStream, tt.usage); !errors.Is(err, response.ErrShape) {
				t.Errorf("%s, %v; want ErrShape", got, err)
			}
		})
	}
}

func FuzzShapes(f *testing.F) {
	f.Add([]byte(testkit.Completion), false)
	f.Add([]byte(testkit.Event("a")+testkit.Finish+usageEvent+done), true)
	f.Add([]byte("data: a\r\rdata: b\r\n\r\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, streamed bool) {
		if checked(streamed, string(data)) != nil {
			return
		}
		for _, usage := range []bool{true, false} {
			for _, to := range []bool{true, false} {
				b, _, err := response.As(data, streamed, to, usage)
				if err != nil {
					continue
				}
				if to != streamed && checked(to, string(b)) != nil && !bytes.Contains(data, []byte("response.")) || len(b) == 0 {
					t.Fatalf("%q became %q", data, b)
				}
			}
		}
	})
}
