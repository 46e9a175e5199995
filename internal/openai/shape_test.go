package openai

import "testing"

func TestTheShapeOfAConversation(t *testing.T) {
	const (
		system = `{"role":"system","content":"s"}`
		user   = `{"role":"user","content":"a"}`
		answer = `{"role":"assistant","content":"b"}`
		call   = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		result = `{"role":"tool","tool_call_id":"c","content":"r"}`
	)
	for _, c := range []struct {
		api            API
		body           string
		turns, results int
		loop           bool
	}{
		{Chat, `{"model":"m","messages":[` + user + `]}`, 1, 0, false},
		{Chat, `{"model":"m","messages":[` + user + `,` + call + `,` + result + `]}`, 1, 1, true},
		{Chat, `{"model":"m","messages":[` + user + `,` + call + `,` + result + `,` + call + `,` + result + `,` + result + `]}`, 1, 3, true},
		{Chat, `{"model":"m","messages":[` + user + `,` + call + `,` + result + `,` + answer + `]}`, 1, 1, false},
		{Chat, `{"model":"m","messages":[` + user + `,` + call + `,` + result + `,` + answer + `,` + user + `]}`, 2, 0, false},
		// what stands beside results: an agent's reminder, a picture, a text of the user
		{Chat, `{"model":"m","messages":[` + user + `,` + call + `,` + result + `,` + user + `]}`, 1, 1, true},
		{Chat, `{"model":"m","messages":[` + user + `,` + call + `,` + result + `,` + system + `]}`, 1, 1, true},
		{
			Chat,
			`{"model":"m","messages":[` + system + `,` + user + `,` + call + `,` + result + `,` + user + `,` +
				call + `,` + user + `,` + result + `]}`,
			1, 2, true,
		},
		{
			Chat,
			`{"model":"m","messages":[` + user + `,` + call + `,` + result + `,` + user + `,` + answer + `,` + user + `]}`,
			2, 0, false,
		},
		{Chat, `{"model":"m","messages":[` + user + `,` + user + `]}`, 2, 0, false},
		{Chat, `{"model":"m","messages":[` + user + `,` + answer + `,` + system + `]}`, 1, 0, false},
		{Response, `{"model":"m","input":"hello"}`, 1, 0, false},
		{Response, `{"model":"m","input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c","output":"r"}]}`, 1, 1, true},
	} {
		req, err := Parse(c.api, []byte(c.body), DefaultLimits())
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		turns, results, loop := req.Shape()
		if turns != c.turns || results != c.results || loop != c.loop {
			t.Errorf("%s: %d turns, %d results, loop %v, want %d, %d, %v", c.body, turns, results, loop, c.turns, c.results, c.loop)
		}
	}
}
