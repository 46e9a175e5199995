package simulator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/simulator"
)

func TestReadAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, err string
		want          []simulator.Answer
	}{
		{name: "nothing", in: "\n \n"},
		{
			name: "all members, empty lines left out",
			in:   `{"match":"tower","text":"It is tall.","chunk":3,"tpot":"20ms"}` + "\n\n" + `{"text":"Anything."}`,
			want: []simulator.Answer{{Match: "tower", Text: "It is tall.", Chunk: 3, TPOT: 20 * time.Millisecond}, {Text: "Anything."}},
		},
		{name: "a text is required", in: "\n" + `{"match":"a"}`, err: "line 2: text: is missing"},
		{name: "unknown members are errors", in: `{"text":"a","delay":"1s"}`, err: "delay"},
		{name: "a duration needs a unit", in: `{"text":"a","tpot":"20"}`, err: "line 1: tpot"},
		{name: "nothing is negative", in: `{"text":"a","tpot":"-1s","chunk":-1}`, err: "chunk: -1 is negative\ntpot: -1s is negative"},
		{name: "no JSON", in: `hello`, err: "line 1"},
		{name: "a line of any length", in: `{"text":"` + strings.Repeat("a", 2<<20) + `"}`, err: "line 1: bufio.Scanner: token too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := simulator.ReadAnswers(strings.NewReader(c.in))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("answers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzReadAnswers(f *testing.F) {
	f.Add(`{"match":"tower","text":"It is tall.","chunk":3,"tpot":"20ms"}`)
	f.Add("\n{}\n")
	f.Fuzz(func(t *testing.T, in string) {
		answers, err := simulator.ReadAnswers(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, a := range answers {
			if err := a.Validate(); err != nil {
				t.Errorf("%+v was read and is not valid: %v", a, err)
			}
		}
	})
}

// script are the answers of the tests below.
func script(o *simulator.Options) {
	o.Answers = []simulator.Answer{
		{Match: "tower", Text: "Größe: 330 m. Done.", Chunk: 3, TPOT: 20 * time.Millisecond},
		{Match: "tower of", Text: "never reached"},
		{Match: "river", Text: "It is long."},
	}
}

// said returns the text of a stream and how many chunks it came in.
func said(tb testing.TB, stream string) (text string, chunks int) {
	tb.Helper()
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			tb.Fatal(err)
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			if c.Delta.Content != "" {
				chunks++
			}
		}
	}
	return text, chunks
}

func TestScriptedAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, body, want string }{
		{"the first match is given", "/v1/chat/completions", `{"messages":[{"role":"user","content":"the tower of X?"}]}`, `"content":"Größe: 330 m. Done."`},
		{"the last user message counts", "/v1/chat/completions", `{"messages":[{"role":"user","content":"tower?"},{"role":"user","content":"river?"}]}`, `"content":"It is long."`},
		{
			"no match is filler", "/v1/chat/completions",
			`{"messages":[{"role":"user","content":"Tower?"}]}`, `This text is simulated. `,
		},
		{"a limit holds", "/v1/chat/completions", `{"max_tokens":2,"messages":[{"role":"user","content":"tower?"}]}`, `"content":"Größe:"`},
		{"a stop string holds", "/v1/chat/completions", `{"stop":"330","messages":[{"role":"user","content":"tower?"}]}`, `"stop_reason":"330"`},
		{"completions too", "/v1/completions", `{"prompt":"tower?"}`, `"text":"Größe: 330 m. Done."`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newServer(t, func(o *simulator.Options) {
				script(o)
				o.Answers[0].TPOT = 0
			}).Handler()
			w := post(t, h, c.path, c.body)
			if w.Code != 200 || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %s\nwant %s", w.Code, w.Body, c.want)
			}
		})
	}
}

func TestScriptedAnswersHaveTheirOwnPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) {
			script(o)
			o.TTFT, o.TPOT = time.Second, time.Minute
		}).Handler()
		start := time.Now()
		w := post(t, h, "/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"tower?"}]}`)
		if text, chunks := said(t, w.Body.String()); text != "Größe: 330 m. Done." || chunks != 7 {
			t.Errorf("%q in %d chunks", text, chunks)
		}
		if took := time.Since(start); took != time.Second+6*20*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestAnswersAreValidated(t *testing.T) {
	t.Parallel()
	o := simulator.DefaultOptions()
	o.Model, o.Answers = "m", []simulator.Answer{{Text: "a"}, {}}
	if err := o.Validate(); err == nil || err.Error() != "answers[1]: text: is missing" {
		t.Errorf("error %v", err)
	}
}
