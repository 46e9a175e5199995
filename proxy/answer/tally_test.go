package answer

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

func TestWhatAnAnswerTellsOfItsEnd(t *testing.T) {
	event := func(s string) string { return "data: " + s + "\n\n" }
	tests := []struct {
		name   string
		chunks []string
		finish string
		tokens int64
	}{
		{"nothing", nil, "", 0},
		{"null all the way", []string{event(`{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`)}, "", 1},
		{"spaces", []string{event(`{"choices":[{"delta":{}, "finish_reason" : "tool_calls"}]}`)}, "tool_calls", 0},
		{"a word of its own", []string{event(`{"choices":[{"delta":{},"finish_reason":"eos"}]}`)}, "other", 0},
		{
			"several events in one read",
			[]string{strings.Repeat(event(`{"choices":[{"delta":{"content":"a"},`+
				`"finish_reason":null}]}`),
				5) + event(`{"choices":[{"delta":{},"finish_reason":"length"}]}`) + testkit.Done},
			"length", 2,
		},
		{
			"as many events as bytes",
			[]string{strings.Repeat(event(`{"choices":[{"delta":{"content":"a"}}]}`), 40)},
			"", 10,
		},
		{
			"several tokens in an event",
			[]string{strings.Repeat(event(`{"choices":[{"delta":{"content":" some words more"}}]}`), 7)},
			"", 28,
		},
		{
			"a text that looks like it",
			[]string{event(`{"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""},` +
				`"finish_reason":null}]}`)},
			"", 7,
		},
		{
			"text in several places",
			[]string{event(`{"choices":[{"delta":{"role":"assistant","content":null,` +
				`"reasoning_content":"0123456789\"\\",` +
				`"tool_calls":[{"function":{"arguments":"{\"a\": \"bc\"}"}}]},` +
				`"logprobs":{"content":[{"token":"a long one that is no text"}]},` +
				`"finish_reason":null}]}`)},
			"", (9 + 14 + 15 + 3) / 4,
		},
		{"text that does not end", []string{
			`{"delta":{"content":"0123456789`,
			`{"delta":{"content":"01234567\`,
		}, "", 5},
		{"cut in the name", []string{`{"finish_rea`, `son":"stop"}`}, "", 0},
		{"cut in the value", []string{`{"finish_reason":`}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Tally
			for _, c := range tt.chunks {
				m.Ends([]byte(c))
				m.Counts([]byte(c))
			}
			if m.Finish != tt.finish || m.Length() != tt.tokens {
				t.Errorf("finish %q after %d tokens, want %q after %d", m.Finish, m.Length(), tt.finish, tt.tokens)
			}
		})
	}
}

func BenchmarkMeasureChunk(b *testing.B) {
	chunk := []byte(testkit.Event(" token"))
	var m Tally
	b.ReportAllocs()
	for range b.N {
		m.Ends(chunk)
		m.Counts(chunk)
	}
}

func TestUsageIsFoundWhereverItStands(t *testing.T) {
	t.Parallel()
	want := Usage{Prompt: 9, Cached: 4, Completion: 12}
	for name, body := range map[string]string{
		"compact":           testkit.Completion,
		"spaced":            `{ "usage" : { "prompt_tokens" : 9, "completion_tokens" : 12, "prompt_tokens_details" : {"cached_tokens": 4} } }`,
		"quoted in a text":  `{"choices":[{"text":"\"usage\":{\"prompt_tokens\":1}"}],"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12}}`,
		"null, then filled": `{"usage":null}{"usage":{"prompt_tokens":9,"cached_tokens":4,"completion_tokens":12}}`,
	} {
		var c Tally
		c.Body(nil, []byte(body))
		if c.Usage != want {
			t.Errorf("%s: %+v", name, c.Usage)
		}
		var split Tally
		at := strings.LastIndex(body, "usage") + 2
		split.Body([]byte(body[:at]), []byte(body[at:]))
		if split.Usage != want {
			t.Errorf("%s, split: %+v", name, split.Usage)
		}
	}
	for _, body := range []string{"", `{"usage":null}`, `{"usage"`, `{"usage":{"prompt_tokens":"9"}}`} {
		var c Tally
		c.Body(nil, []byte(body))
		if c.Usage != (Usage{}) {
			t.Errorf("%q: %+v", body, c.Usage)
		}
	}
}

// What is found where it was found before is what a search would have found, however the pieces change.
func TestDeltasAreCountedWhereverTheyStand(t *testing.T) {
	t.Parallel()
	first := `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	word := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}]}` + "\n\n"
	reversed := `data: {"choices":[{"finish_reason":null,"delta":{"content":"\"delta\": no"},"index":0}],"id":"c"}` + "\n\n"
	usage := `data: {"id":"c","choices":[],"usage":{"completion_tokens":3}}` + "\n\n"
	cut := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"half`
	pieces := []string{first, word, word + word + word, reversed, usage + word, word + usage, reversed + first + word, cut, ": delta\n\n", `"delta"`, "", word}
	var all Tally
	want := Tally{}
	for _, p := range pieces {
		all.Counts([]byte(p))
		var one Tally
		one.Counts([]byte(p))
		want.chunks, want.text = want.chunks+one.chunks, want.text+one.text
	}
	if all.chunks != want.chunks || all.text != want.text {
		t.Errorf("%d deltas with %d bytes, want %d with %d", all.chunks, all.text, want.chunks, want.text)
	}
	if want.chunks != 14 {
		t.Errorf("%d deltas one piece at a time, want 14", want.chunks)
	}
}
