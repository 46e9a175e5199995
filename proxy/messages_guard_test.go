package proxy

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

func TestTheGuardMarksAndCutsMessages(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct{ text, reason string }{
		"annotate":  {towerTrue + towerFalse + " [unverified]" + towerRest, "end_turn"},
		"terminate": {"", "refusal"},
		"hold":      {towerTrue + " [unverified] It is", "end_turn"},
	} {
		up := testkit.NewUpstream(t, testkit.Stream(towerStream(towerTrue, towerFalse, towerRest)...))
		b := watched(t, mode, up)
		got := b.message(guarded(askMessage("How high?", `,"stream":true`), towerFact))
		_, text := eventsOf(t, got.body)
		if !strings.Contains(text, want.text) || !strings.Contains(got.body, `"stop_reason":"`+want.reason+`"`) ||
			!strings.Contains(got.body, `"x_signalbox":{"guard":{"mode":"`+mode) {
			t.Errorf("%s: %q of %s", mode, text, got.body)
		}
		if !regexp.MustCompile(`"usage":\{"output_tokens":[1-9]`).MatchString(got.body) {
			t.Errorf("%s: no usage of what was sent in %s", mode, got.body)
		}
		if mode != "annotate" {
			continue
		}
		up.Next(testkit.JSON(200, towerBody()))
		got = b.message(guarded(askMessage("How high?", ""), towerFact))
		if !strings.Contains(got.body, "[unverified]") ||
			!strings.Contains(got.body, `"x_signalbox":{"guard":{"mode":"annotate"`) {
			t.Errorf("whole: %s", got.body)
		}
	}
}

func TestAMessageThatTheGuardCutsCallsNoTool(t *testing.T) {
	t.Parallel()
	const calls = `"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"refund",` +
		`"arguments":"{}"}}]`
	up := testkit.NewUpstream(t, testkit.JSON(200, strings.NewReplacer(
		`"content":`, calls+`,"content":`, `"finish_reason":"stop"`, `"finish_reason":"tool_calls"`).Replace(towerBody())))
	b := watched(t, "terminate", up)
	for _, more := range []string{"", `,"stream":true`} {
		if more != "" {
			up.Next(testkit.Stream(
				testkit.Event(towerTrue), testkit.Event(towerFalse),
				strings.Replace(testkit.Event("x"), `"content":"x"`, calls, 1),
				strings.Replace(testkit.Finish, `"stop"`, `"tool_calls"`, 1), testkit.Done))
		}
		got := b.message(guarded(askMessage("How high?", more), towerFact))
		if got.status != http.StatusOK || strings.Contains(got.body, "tool_use") || strings.Contains(got.body, "refund") ||
			!strings.Contains(got.body, "330 m") || !strings.Contains(got.body, `"stop_reason":"refusal"`) {
			t.Errorf("%q: %d %s", more, got.status, got.body)
		}
	}
}
