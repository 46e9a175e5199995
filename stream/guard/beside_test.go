package guard_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"signalbox/stream/guard"
)

// together returns a chat chunk with the delta of one choice after the other.
func together(deltas ...string) string {
	list := make([]string, len(deltas))
	for i, d := range deltas {
		list[i] = `{"index":` + strconv.Itoa(i) + `,"delta":` + d + `,"finish_reason":null}`
	}
	return `data: {"id":"c1","object":"chat.completion.chunk","choices":[` + strings.Join(list, ",") + "]}\n\n"
}

// thoughts returns the reasoning of each choice of a stream.
func thoughts(tb testing.TB, stream string) map[int]string {
	tb.Helper()
	out := map[int]string{}
	for line := range strings.Lines(stream) {
		var c struct {
			Choices []struct {
				Index int
				Delta struct {
					Reasoning string `json:"reasoning_content"`
				}
			}
		}
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte("{"+data), &c); err != nil {
			tb.Fatalf("%v: %s", err, data)
		}
		for _, x := range c.Choices {
			out[x.Index] += x.Delta.Reasoning
		}
	}
	return out
}

// Reasoning that is not checked may come with texts of other choices that are.
func TestReasoningBesideSeveralHeldTextsIsKept(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	got, _, err := pass(t, g, jobOf(t, guard.Hold),
		together(`{"content":"One is "}`, `{"content":"Two is "}`, `{"reasoning_content":"Three is"}`),
		together(`{"content":"slow. "}`, `{"content":"slow. "}`, `{"reasoning_content":" here."}`),
		chunkOf(0, `{}`, `"stop"`), chunkOf(1, `{}`, `"stop"`), chunkOf(2, `{}`, `"stop"`), done)
	heard := listen(t, got)
	if err != nil || heard.texts[0] != "One is slow. " || heard.texts[1] != "Two is slow. " {
		t.Errorf("%v: %v", err, heard.texts)
	}
	if said := thoughts(t, got)[2]; said != "Three is here." {
		t.Errorf("the reasoning is %q in\n%s", said, got)
	}
}

func TestReasoningDoesNotOvertakeAnEventThatWaits(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := []string{
		together(`{"reasoning_content":"One "}`, `{"content":"Two is "}`),
		together(`{"reasoning_content":"after "}`),
		together(`{"reasoning_content":"the other"}`, `{"content":"slow. "}`),
		chunkOf(0, `{}`, `"stop"`), chunkOf(1, `{}`, `"stop"`), done,
	}
	got, _, err := pass(t, g, jobOf(t, guard.Hold), stream...)
	if said := thoughts(t, got)[0]; err != nil || said != "One after the other" {
		t.Errorf("%v: the reasoning is %q in\n%s", err, said, got)
	}
}
