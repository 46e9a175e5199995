package openai

import (
	"strings"
	"testing"
)

// A refusal names the place of the text in the words of the API that the client speaks.
func TestTheFieldOfASegment(t *testing.T) {
	const parts = `[{"type":"input_text","text":"Grüße"},{"type":"input_image","image_url":"http://a/b"},` +
		`{"type":"input_text","text":""},{"type":"input_text","text":"HERE \u00e4"}]`
	for _, c := range []struct {
		api         API
		field, body string
	}{
		{Response, "instructions", `"instructions":"HERE","input":"a"`},
		{Response, "input", `"instructions":"a","input":"HERE"`},
		{Response, "input[1]", `"instructions":"a","input":[{"role":"user","content":"a"},{"role":"user","content":"HERE"}]`},
		{Response, "input[0]", `"input":[{"role":"user","content":[{"type":"input_text","text":"HERE"}]},{"role":"user","content":"a"}]`},
		{Response, "input[0].content[3]", `"input":[{"role":"user","content":` + parts + `}]`},
		{Response, "input[1]", `"input":[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"c","output":"HERE"}]`},
		{Response, "input[1].output[3]", `"input":[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"c","output" : ` + parts + `}]`},
		{Response, "input[0]", `"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":\"HERE\"}"},{"role":"user","content":"a"}]`},
		{Response, "", `"input":"a","tools":[{"type":"function","name":"f","description":"HERE"}]`},
		{Completion, "prompt", `"prompt":"HERE"`},
		{Completion, "prompt[1]", `"prompt":["a","HERE"]`},
		{Chat, "messages[1]", `"messages":[{"role":"user","name":"n","content":"a"},{"role":"user","content":` +
			strings.ReplaceAll(parts, "input_text", "text") + `}]`},
	} {
		req, err := Parse(c.api, []byte(`{"model":"m",`+c.body+`}`), DefaultLimits())
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		for i, s := range req.Text().Segments {
			if at := strings.Index(s.Text, "HERE"); at >= 0 {
				if got := req.SegmentField(i, Span{max(at-3, 0), at + len("HERE")}); got != c.field {
					t.Errorf("%s: %q, want %q", c.body, got, c.field)
				}
			}
		}
	}
	if got := (&Request{}).SegmentField(-1, Span{}); got != "" {
		t.Errorf("of no segment: %q", got)
	}
}
