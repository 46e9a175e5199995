package messages_test

import (
	"strings"
	"testing"

	"signalbox/stream/messages"
)

// Clients count what is left of the model's window by the usage.
func TestAMessageWhoseServerTellsNoUsageHasAnEstimate(t *testing.T) {
	t.Parallel()
	const said = `"choices":[{"index":0,"message":{"role":"assistant","content":"0123456789",` +
		`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]`
	for body, want := range map[string]string{
		`{` + said + `}`:                                 `{"input_tokens":30,"output_tokens":4}`,
		`{` + said + `,"usage":null}`:                    `{"input_tokens":30,"output_tokens":4}`,
		`{` + said + `,"usage":{"prompt_tokens":9}}`:     `{"input_tokens":9,"output_tokens":0}`,
		`{` + said + `,"usage":{"completion_tokens":0}}`: `{"input_tokens":0,"output_tokens":0}`,
	} {
		got, err := (&messages.Answer{ID: "req", Prompt: 30}).Body([]byte(body))
		if err != nil || !strings.HasSuffix(string(got), `"usage":`+want+"}") {
			t.Errorf("%s became %s, %v", body, got, err)
		}
	}
}
