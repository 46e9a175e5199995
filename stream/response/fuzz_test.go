package response_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"signalbox/stream/response"
)

func seed(f *testing.F) {
	f.Helper()
	for _, name := range []string{"openai_chat", "openai_tools", "openai_responses", "vllm_chat", "vllm_completion", "sglang_chat", "llamacpp_chat", "ollama_chat", "errors"} {
		for _, data := range events(f, fixture(f, name+".sse")) {
			f.Add(data, 1, 3, "x")
		}
	}
	for _, name := range []string{"chat", "parts", "completion", "openai_responses"} {
		f.Add(fixture(f, name+".json"), 0, 1000, "")
	}
	for _, inside := range []string{`\ud83d`, `\ud83d\ude42`, "\xff", `\u0000\"`, "h\u00e9"} {
		f.Add(chunk(inside), 2, 2, "\n\"\xff")
	}
}

// FuzzRead checks that reading never fails, that texts are at their positions and equal those read
// by encoding/json, that nothing changes without a rewrite, and that a rewrite changes only its
// target and leaves valid JSON.
func FuzzRead(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, from, to int, with string) {
		if len(data) > 1<<16 || from > to {
			t.Skip("longer than needed, or no range")
		}
		var r response.Reader
		e := r.Read(data)
		if out := e.Append(nil, response.Rewrite{}); !bytes.Equal(out, data) {
			t.Fatalf("%q became %q", data, out)
		}
		if e.Shape == response.Opaque {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%v, which is no JSON: %q", e.Shape, data)
		}
		for i := range e.Deltas {
			d := &e.Deltas[i]
			quoted := data[d.At.Start-1 : d.At.End+1]
			var want string
			if err := json.Unmarshal(quoted, &want); err != nil || want != string(d.Text) {
				t.Fatalf("text %q of %q (%v)", d.Text, quoted, err)
			}
		}
		for i := range e.Deltas {
			checkChange(t, data, i, response.Change{Delta: i, From: from, To: to, Text: []byte(with)})
		}
		extended := e.Append(nil, response.Rewrite{Extension: []byte(`"` + "mark" + `"`), Finish: "content_filter"})
		var top map[string]any
		if err := json.Unmarshal(extended, &top); err != nil || top["x_signalbox"] != "mark" {
			t.Fatalf("extended to %s (%v)", extended, err)
		}
	})
}

// checkChange applies one change and reads the result.
func checkChange(t *testing.T, data []byte, i int, c response.Change) {
	t.Helper()
	var r, again response.Reader
	e := r.Read(data)
	text := string(e.Deltas[i].Text)
	first, last := min(max(c.From, 0), len(text)), min(max(c.To, 0), len(text))
	if first == last {
		for first > 0 && first < len(text) && !utf8.RuneStart(text[first]) {
			first--
		}
		last = first
	} else {
		for first > 0 && first < len(text) && !utf8.RuneStart(text[first]) {
			first--
		}
		for last < len(text) && !utf8.RuneStart(text[last]) {
			last++
		}
	}
	want := text[:first] + strings.ToValidUTF8(runes(string(c.Text)), "") + text[last:]
	out := e.Append(nil, response.Rewrite{Changes: []response.Change{c}})
	if !json.Valid(out) {
		t.Fatalf("%q became %q", data, out)
	}
	got := again.Read(out)
	if want == "" {
		if len(got.Deltas) != len(e.Deltas)-1 {
			t.Fatalf("%q became %q, with %d texts", data, out, len(got.Deltas))
		}
		return
	}
	if len(got.Deltas) != len(e.Deltas) || string(got.Deltas[i].Text) != want {
		t.Fatalf("%q became %q, want the text %q", data, out, want)
	}
	for j := range got.Deltas {
		if j != i && !reflect.DeepEqual(string(got.Deltas[j].Text), string(e.Deltas[j].Text)) {
			t.Fatalf("another text changed: %q", out)
		}
	}
}

// runes replaces each invalid UTF-8 byte.
func runes(s string) string { return string([]rune(s)) }

// FuzzBuild checks that built events are valid and contain the text, for any stream and text.
func FuzzBuild(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte, choice, _ int, text string) {
		if len(data) > 1<<16 || text == "" {
			t.Skip("longer than needed, or no text")
		}
		var r response.Reader
		e := r.Read(data)
		likes := []response.Delta{{Choice: choice & 0xff}}
		likes = append(likes, e.Deltas...)
		for _, like := range likes {
			built := r.AppendDelta(nil, like, []byte(text))
			var again response.Reader
			got := again.Read(built)
			if len(got.Deltas) != 1 || string(got.Deltas[0].Text) != runes(text) {
				t.Fatalf("%q, read as %s", built, dump(got))
			}
		}
		var again response.Reader
		if got := again.Read(r.AppendFinish(nil, choice&0xff, text, nil)); len(got.Finishes) != 1 {
			t.Fatalf("read as %s", dump(got))
		}
	})
}
