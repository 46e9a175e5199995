package response_test

import (
	"errors"
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/stream/response"
)

// TestOfAnEndlessAnswerNothingIsCollected checks that a server that never ends its answer does not
// use unlimited memory.
func TestOfAnEndlessAnswerNothingIsCollected(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("word ", 20_000)
	for name, delta := range map[string]string{
		"text":      `{"content":"` + piece + `"}`,
		"reasoning": `{"reasoning_content":"` + piece + `"}`,
		"a call":    `{"tool_calls":[{"index":0,"id":"c","function":{"arguments":"` + piece + `"}}]}`,
	} {
		var all response.Collector
		s := response.NewStream()
		s.Reset(response.StreamOptions{API: openai.Chat})
		event := []byte(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta +
			`,"finish_reason":null}]}` + "\n\n")
		put := func(n int) {
			for range n {
				s.Feed(event)
				for c := s.Next(); c != nil; c = s.Next() {
					all.Add(c.Content())
				}
			}
		}
		put(80)
		if n, err := all.Len(); n != 1 || err != nil {
			t.Errorf("%s of 8 MB: %d choices, %v", name, n, err)
		}
		put(5)
		if n, err := all.Len(); n != 0 || !errors.Is(err, response.ErrLong) {
			t.Errorf("%s of 8.5 MB: %d choices, %v", name, n, err)
		}
	}
}
