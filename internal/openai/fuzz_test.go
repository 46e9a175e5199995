package openai

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// FuzzParseChat checks that nothing panics, that syntax is judged as by an independent strict
// reading of the whole body, that the text seen here is the text a plain decoder sees, and that a
// patched body is accepted again.
func FuzzParseChat(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, user(""), user(`,"Model":1`), user(`,"stream":true,"stream_options":{"include_usage":true}`),
		message(`{"role":"user","content":[{"type":"text","text":"a"},"b",{"type":"image_url","image_url":{"url":"u"}}]}`),
		message(`{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"tool"}`),
		"\xef\xbb\xbf" + user(""), user("") + "x", user(`,"x":"\ud800"`), user(",\"\xff\":1"), user(`,"m\u006fdel":1`),
		user(`,"signalbox":{"context":["c@1",{"id":"d"}],"facts":["x",{"text":"y","kind":"date"}],"guard":"hold","save_context":{"ttl":"1h"}}`),
		user(`,"max_tokens":1e2,"max_completion_tokens":-0.0,"seed":1e400`),
		" { \"messages\" : [ { \"content\" : [ ] , \"role\" : \"\\u0075ser\" } ] , \"model\" : \"\\\"\" } ",
		strings.Repeat("[", 300), strings.Repeat(`{"a":`, 300),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		r, err := ParseChat(raw, Limits{})
		if !bytes.Equal(raw, before) {
			t.Fatal("the body was changed")
		}
		var value jsontext.Value
		strict := json.Unmarshal(raw, &value)
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Status != http.StatusBadRequest || e.Message == "" {
				t.Fatalf("error is %#v", err)
			}
			if strings.HasPrefix(e.Message, "invalid JSON") && strict == nil {
				t.Fatalf("refused as invalid although it is valid: %v", e)
			}
			if b := StreamError(e); !stdjson.Valid(b[len("data: "):]) {
				t.Fatalf("envelope is no JSON: %q", b)
			}
			return
		}
		if strict != nil {
			t.Fatalf("accepted although it is invalid: %v", strict)
		}
		checkPlain(t, r)
		checkPatched(t, r)
	})
}

// checkPlain compares the typed view with a plain decoding of the same bytes.
func checkPlain(t *testing.T, r *Request) {
	t.Helper()
	var plain map[string]any
	d := stdjson.NewDecoder(bytes.NewReader(r.Raw))
	d.UseNumber()
	if err := d.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	if r.Model != plain["model"] {
		t.Fatalf("model %q, decoded %v", r.Model, plain["model"])
	}
	if stream, ok := plain["stream"].(bool); r.Stream != (ok && stream) {
		t.Fatalf("stream %t, decoded %v", r.Stream, plain["stream"])
	}
	messages := plain["messages"].([]any)
	if len(messages) != len(r.Messages) {
		t.Fatalf("%d messages, decoded %d", len(r.Messages), len(messages))
	}
	for i, m := range messages {
		fields := m.(map[string]any)
		if fields["role"] != r.Messages[i].Role {
			t.Fatalf("role %q, decoded %v", r.Messages[i].Role, fields["role"])
		}
		want := ""
		switch c := fields["content"].(type) {
		case string:
			want = c
		case []any:
			want = r.Messages[i].Text
			for _, p := range c {
				if text, ok := p.(string); ok && !strings.Contains(want, text) {
					t.Fatalf("text %q lacks %q", want, text)
				}
				if part, ok := p.(map[string]any); ok {
					if text, ok := part["text"].(string); ok && !strings.Contains(want, text) {
						t.Fatalf("text %q lacks %q", want, text)
					}
				}
			}
		}
		if r.Messages[i].Text != want {
			t.Fatalf("text %q, decoded %q", r.Messages[i].Text, want)
		}
	}
}

// checkPatched edits everything that can be edited and reads the result.
func checkPatched(t *testing.T, r *Request) {
	t.Helper()
	if out := NewPatch(r).Bytes(); !r.Extras.Present && &out[0] != &r.Raw[0] {
		t.Fatal("a patch without edits copies")
	}
	p := NewPatch(r)
	p.SetModel(r.Model + "x")
	p.SetNested("chat_template_kwargs", "enable_thinking", []byte("true"))
	p.SetField("max_tokens", []byte("5"))
	p.DeleteField("stream")
	last := len(r.Messages) - 1
	p.ReplaceMessageText(last, "R")
	if last > 0 {
		p.PrependToMessageText(0, "P\n")
	}
	p.InsertMessage(0, "system", "first")
	p.InsertMessage(last+1, "user", "last")
	out := p.Bytes()
	got, err := ParseChat(out, Limits{MaxDepth: 1000, MaxMessages: 1 << 20, MaxParts: 1 << 20})
	if err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	if got.Model != r.Model+"x" || got.Stream || *got.MaxTokens != 5 || got.Extras.Present || len(got.Messages) != len(r.Messages)+2 {
		t.Fatalf("got %+v from %q", got, out)
	}
	if got.Messages[last+1].Text != "R" || last > 0 && got.Messages[1].Text != "P\n"+r.Messages[0].Text {
		t.Fatalf("texts %q and %q in %q", got.Messages[1].Text, got.Messages[last+1].Text, out)
	}
}

// FuzzParseBody checks that nothing panics, that syntax is judged strictly, and that an edit of a
// field leaves a body that is accepted.
func FuzzParseBody(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","prompt":["a",[1],2]}`,
		`{"model":"m","instructions":"i","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"output":"x"}]}`,
		`{"signalbox":{"session":"s"},"model":"m","messages":[{"tool_calls":[{"function":{"arguments":"{}"}}]}]}`,
		`{"model":"m","Input":1}`, `{"model":"m"} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := ParseBody(raw, Limits{})
		var value jsontext.Value
		strict := json.Unmarshal(raw, &value)
		if err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || strings.HasPrefix(e.Message, "invalid JSON") && strict == nil {
				t.Fatalf("error is %#v", err)
			}
			return
		}
		if strict != nil {
			t.Fatalf("accepted although it is invalid: %v", strict)
		}
		p := NewPatch(r)
		p.SetModel(r.Model + "x")
		got, err := ParseBody(p.Bytes(), Limits{})
		if err != nil || got.Model != r.Model+"x" || got.Extras.Present {
			t.Fatalf("got %+v, %v from %q", got, err, p.Bytes())
		}
		if d := cmp.Diff(r.Text(), got.Text()); d != "" {
			t.Fatalf("text (-want +got):\n%s", d)
		}
	})
}
