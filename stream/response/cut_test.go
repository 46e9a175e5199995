package response_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"signalbox/stream/response"
)

func TestABodyThatIsCutEndsThere(t *testing.T) {
	t.Parallel()
	const (
		words = `[{"token":"All","logprob":-1,"bytes":[65,108,108]},{"token":" is","logprob":-2}, {"token":" ` +
			`w\u00e9ll","logprob":-3,"top_logprobs":[]}]`
		two = `[{"token":"All","logprob":-1,"bytes":[65,108,108]},{"token":" is","logprob":-2}]`
	)
	for name, tt := range map[string]struct {
		delta, at int
		in, want  string
	}{
		"calls go": {
			0, 6,
			`{"choices":[{"index":0,"message":{"content":"All is ` +
				`well","tool_calls":[{"function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"g",` +
				`"arguments":"{}"}},"finish_reason":"tool_calls"}]}`,
			`{"choices":[{"index":0,"message":{"content":"All ` +
				`is","tool_calls":[],"function_call":null},"finish_reason":"filter"}]}`,
		},
		"calls before the text go too": {
			2, 0,
			`{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}],"content":"All"},` +
				`"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"tool_calls":[],"content":""},"finish_reason":"filter"}]}`,
		},
		"another choice stays": {
			2, 3,
			`{"choices":[{"index":1,"message":{"content":"Well","tool_calls":[{"function":{"name":"f"}}]},` +
				`"finish_reason":"stop"}, {"index":0,"message":{"content":"All is"},"finish_reason":"stop"}]}`,
			`{"choices":[{"index":1,"message":{"content":"Well","tool_calls":[{"function":{"name":"f"}}]},` +
				`"finish_reason":"stop"}, {"index":0,"message":{"content":"All"},"finish_reason":"filter"}]}`,
		},
		"thoughts stay before the answer": {
			0, 3,
			`{"choices":[{"message":{"content":"All is","refusal":"No.","reasoning_content":"Hm."},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":"All","refusal":"","reasoning_content":"Hm."},"finish_reason":"filter"}]}`,
		},
		"the answer goes behind thoughts": {
			1, 1,
			`{"choices":[{"message":{"content":"All ` +
				`is","reasoning_content":"Hm."},"logprobs":{"content":` + words + `},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":"","reasoning_content":"H"},"logprobs":null,"finish_reason":"filter"}]}`,
		},
		"tokens of a refusal behind it go": {
			0, 6,
			`{"choices":[{"message":{"content":"All is well","refusal":"No."},"logprobs":{"content":` + words +
				`,"refusal":[{"token":"No."}]},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":"All is","refusal":""},"logprobs":{"content":` + two +
				`,"refusal":null},"finish_reason":"filter"}]}`,
		},
		"parts go": {
			1, 2,
			`{"choices":[{"message":{"content":[{"type":"text","text":"A"}, {"type":"text","text":"All"}, ` +
				`{"type":"text","text":"B"}]},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":[{"type":"text","text":"A"}, ` +
				`{"type":"text","text":"Al"}]},"finish_reason":"filter"}]}`,
		},
		"a completion": {
			0, 3,
			`{"choices":[{"text":"All is","logprobs":{"tokens":["All"," is"]},"finish_reason":"stop"}]}`,
			`{"choices":[{"text":"All","logprobs":null,"finish_reason":"filter"}]}`,
		},
		"log probabilities stay up to there": {
			0, 7,
			`{"choices":[{"message":{"content":"All is ` +
				`w\u00e9ll"},"logprobs":{"content":` + words + `,"refusal":null},"token_ids":[1,2,3],"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":"All is ` +
				`"},"logprobs":{"content":` + two + `,"refusal":null},"token_ids":null,"finish_reason":"filter"}]}`,
		},
		"none stay before the first token": {
			0, 2,
			`{"choices":[{"message":{"content":"All is"},"logprobs":{"content":` + words + `},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":"Al"},"logprobs":{"content":[]},"finish_reason":"filter"}]}`,
		},
		"none stay that spell another text": {
			0, 4,
			`{"choices":[{"message":{"content":"This is"},"logprobs":{"content":` + words + `},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":"This"},"logprobs":null,"finish_reason":"filter"}]}`,
		},
		"items of a response go": {
			2, 6,
			`{"object":"response","status":"completed","incomplete_details":null,"output":[{"type":"function_call",` +
				`"status":"completed","name":"f","arguments":"{}"},` +
				`{"type":"message","status":"completed","content":[{"type":"output_text","text":"All is ` +
				`well","logprobs":` + words + `},{"type":"output_text","text":"More"}]},` +
				`{"type":"function_call","status":"completed","name":"g","arguments":"{}"} ],"output_text":"All is wellMore"}`,
			`{"object":"response","status":"incomplete","incomplete_details":{"reason":"filter"},` +
				`"output":[{"type":"function_call","status":"completed","name":"f","arguments":"{}"},` +
				`{"type":"message","status":"incomplete","content":[{"type":"output_text","text":"All ` +
				`is","logprobs":` + two + `}]} ],"output_text":"All is"}`,
		},
	} {
		e := new(response.Reader).ReadBody([]byte(tt.in))
		got := e.Append(nil, response.Rewrite{Cuts: []response.Cut{{Delta: tt.delta, At: tt.at}}, Finish: "filter"})
		if diff := gocmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if again := new(response.Reader).ReadBody(got); again.Shape != e.Shape {
			t.Errorf("%s: shape %v: %s", name, again.Shape, again.Why)
		}
	}
}

func TestLogProbabilitiesStayWhereTextIsOnlyPutIn(t *testing.T) {
	t.Parallel()
	const in = `{"choices":[{"message":{"content":"All ` +
		`is"},"logprobs":{"content":[{"token":"All"}]},"token_ids":[1],"finish_reason":"stop"}]}`
	for want, c := range map[string]response.Change{
		`{"choices":[{"message":{"content":"All! ` +
			`is"},"logprobs":{"content":[{"token":"All"}]},"token_ids":[1],"finish_reason":"stop"}]}`: {
			From: 3, To: 3, Text: []byte("!"),
		},
		`{"choices":[{"message":{"content":"All!is"},"logprobs":null,"token_ids":null,"finish_reason":"stop"}]}`: {
			From: 3, To: 4, Text: []byte("!"),
		},
	} {
		got := new(response.Reader).ReadBody([]byte(in)).Append(nil, response.Rewrite{Changes: []response.Change{c}})
		if diff := gocmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c, diff)
		}
	}
}
