package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// writer spells random JSON in the many ways that mean the same.
type writer struct {
	t *rapid.T
	b strings.Builder
}

func (w *writer) space() {
	w.b.WriteString(rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t ", "\r\n  "}).Draw(w.t, "space"))
}

// str writes a string, some of its characters as escapes.
func (w *writer) str(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		switch escaped := rapid.IntRange(0, 5).Draw(w.t, "escape") == 0; {
		case r > 0xffff && escaped:
			r -= 0x10000
			fmt.Fprintf(&w.b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r < ' ' || r == '"' || r == '\\' || escaped && r <= 0xffff:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
}

// list writes n elements between the given brackets.
func (w *writer) list(brackets string, n int, element func(i int)) {
	w.b.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.space()
		element(i)
		w.space()
	}
	w.b.WriteByte(brackets[1])
}

func (w *writer) member(name string, value func()) {
	w.str(name)
	w.space()
	w.b.WriteByte(':')
	w.space()
	value()
}

var (
	texts   = rapid.StringMatching(`[ -~é😀\n"\\/]{0,8}`)
	numbers = rapid.SampledFrom([]string{"0", "-0", "1.0", "1e400", "12345678901234567890", "0.10", "1E+2"})
)

func (w *writer) value(depth int) {
	switch rapid.IntRange(0, 3+2*min(depth, 1)).Draw(w.t, "kind") {
	case 0:
		w.b.WriteString(rapid.SampledFrom([]string{"null", "true", "false"}).Draw(w.t, "literal"))
	case 1, 2:
		w.b.WriteString(numbers.Draw(w.t, "number"))
	case 3:
		w.str(texts.Draw(w.t, "text"))
	case 4:
		w.list("[]", rapid.IntRange(0, 3).Draw(w.t, "elements"), func(int) { w.value(depth - 1) })
	case 5:
		w.list("{}", rapid.IntRange(0, 3).Draw(w.t, "members"), func(i int) {
			w.member(fmt.Sprintf("k%d", i), func() { w.value(depth - 1) })
		})
	}
}

func (w *writer) message() {
	fields := rapid.Permutation([]string{"role", "content", "extra"}).Draw(w.t, "fields")
	if rapid.Bool().Draw(w.t, "without content") {
		fields = slices.DeleteFunc(fields, func(f string) bool { return f == "content" })
	}
	w.list("{}", len(fields), func(i int) {
		w.member(fields[i], func() {
			switch fields[i] {
			case "role":
				roles := []string{"user", "system", "assistant", "tool"}
				w.str(rapid.SampledFrom(roles).Draw(w.t, "role"))
			case "content":
				w.content()
			default:
				w.value(2)
			}
		})
	})
}

func (w *writer) content() {
	switch rapid.IntRange(0, 4).Draw(w.t, "content") {
	case 0:
		w.b.WriteString("null")
	case 1, 2:
		w.str(texts.Draw(w.t, "text"))
	default:
		w.list("[]", rapid.IntRange(0, 4).Draw(w.t, "parts"), func(int) { w.part() })
	}
}

func (w *writer) part() {
	text := func() { w.str(texts.Draw(w.t, "text")) }
	switch rapid.IntRange(0, 4).Draw(w.t, "part") {
	case 0:
		text()
	case 1:
		w.list("{}", 2, func(i int) {
			w.member([]string{"type", "image_url"}[i], []func(){func() { w.str("image_url") }, func() { w.value(1) }}[i])
		})
	case 2:
		w.list("{}", 2, func(i int) {
			w.member([]string{"text", "image_url"}[i], []func(){text, func() { w.value(1) }}[i])
		})
	default:
		w.list("{}", 2, func(i int) {
			w.member([]string{"type", "text"}[i], []func(){func() { w.str("text") }, text}[i])
		})
	}
}

func (w *writer) body() string {
	names := []string{"model", "messages"}
	for _, n := range []string{"signalbox", "chat_template_kwargs", "k1", "k2", "k3"} {
		if rapid.Bool().Draw(w.t, n) {
			names = append(names, n)
		}
	}
	names = rapid.Permutation(names).Draw(w.t, "names")
	w.space()
	w.list("{}", len(names), func(i int) {
		w.member(names[i], func() {
			switch names[i] {
			case "model":
				w.str("mödel/1")
			case "messages":
				w.list("[]", rapid.IntRange(1, 4).Draw(w.t, "messages"), func(int) { w.message() })
			case "signalbox":
				w.b.WriteString(`{"explain":true}`)
			case "chat_template_kwargs":
				w.list("{}", rapid.IntRange(0, 2).Draw(w.t, "kwargs"), func(i int) {
					w.member(fmt.Sprintf("k%d", i), func() { w.value(1) })
				})
			default:
				w.value(3)
			}
		})
	})
	w.space()
	return w.b.String()
}

// decoded is a body as a plain decoder sees it, numbers by their spelling.
func decoded(t *rapid.T, body []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

// rawMembers lists the members of an object with the bytes of their values.
func rawMembers(t *rapid.T, object []byte) (names []string, values map[string]string) {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	values = make(map[string]string)
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		t.Fatalf("%s: %v", object, err)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		n := name.String()
		value, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, n)
		values[n] = string(value)
	}
	return names, values
}

func rawElements(t *rapid.T, list string) (out []string) {
	d := jsontext.NewDecoder(strings.NewReader(list))
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(v))
	}
	return out
}

// oracle applies the edits to the decoded body.
type oracle struct {
	body     map[string]any
	edited   map[string]bool // fields
	text     []string        // of each message of the original
	touched  []bool
	inserted [][]any // in front of message i
}

// edit draws one edit and applies it to both.
func (o *oracle) edit(t *rapid.T, p *Patch) {
	field := rapid.SampledFrom([]string{"k1", "k2", "k3", "new", "chat_template_kwargs"})
	i := rapid.IntRange(0, len(o.text)-1).Draw(t, "message")
	s := texts.Draw(t, "new text")
	switch rapid.IntRange(0, 6).Draw(t, "edit") {
	case 0:
		p.SetModel("m" + s)
		o.body["model"], o.edited["model"] = "m"+s, true
	case 1:
		f := field.Draw(t, "field")
		p.SetField(f, []byte(` {"n": 1.50}`))
		o.body[f], o.edited[f] = map[string]any{"n": json.Number("1.50")}, true
	case 2:
		f := field.Draw(t, "field")
		p.DeleteField(f)
		delete(o.body, f)
		o.edited[f] = true
	case 3:
		f, key := field.Draw(t, "field"), rapid.SampledFrom([]string{"k0", "k1", "x\"y"}).Draw(t, "key")
		p.SetNested(f, key, []byte("false"))
		object, ok := o.body[f].(map[string]any)
		if !ok {
			object = make(map[string]any)
		}
		object[key] = false
		o.body[f], o.edited[f] = object, true
	case 4:
		at := rapid.IntRange(0, len(o.text)).Draw(t, "at")
		p.InsertMessage(at, "system", s)
		o.inserted[at] = append(o.inserted[at], map[string]any{"role": "system", "content": s})
	case 5:
		p.ReplaceMessageText(i, s)
		o.text[i], o.touched[i] = s, true
	case 6:
		p.PrependToMessageText(i, s)
		o.text[i] = s + o.text[i]
		o.touched[i] = o.touched[i] || s != ""
	}
}

func TestPatchEqualsTheSameEditsOfTheDecodedBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := (&writer{t: t}).body()
		r, err := ParseChat([]byte(body), Limits{})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		n := len(r.Messages)
		o := &oracle{body: decoded(t, r.Raw), edited: map[string]bool{"signalbox": true}, touched: make([]bool, n), inserted: make([][]any, n+1)}
		delete(o.body, "signalbox")
		for _, m := range r.Messages {
			o.text = append(o.text, m.Text)
		}
		p := NewPatch(r)
		for range rapid.IntRange(0, 6).Draw(t, "edits") {
			o.edit(t, p)
		}
		out := p.Bytes()
		if string(r.Raw) != body {
			t.Fatal("Raw changed")
		}
		checkMeaning(t, o, out)
		checkBytes(t, o, body, out)
	})
}

// checkMeaning compares the result with the decoded body after the edits; of messages that were
// touched, the text and everything that is not content.
func checkMeaning(t *rapid.T, o *oracle, out []byte) {
	got, err := ParseChat(out, Limits{})
	if err != nil {
		t.Fatalf("result is refused: %v\n%s", err, out)
	}
	want := o.body
	var messages []any
	var texts []string
	for i, m := range want["messages"].([]any) {
		for _, in := range o.inserted[i] {
			messages = append(messages, in)
			texts = append(texts, in.(map[string]any)["content"].(string))
		}
		messages = append(messages, m)
		texts = append(texts, o.text[i])
	}
	for _, in := range o.inserted[len(o.text)] {
		messages = append(messages, in)
		texts = append(texts, in.(map[string]any)["content"].(string))
	}
	want["messages"] = messages
	gotBody := decoded(t, out)
	for i, m := range got.Messages {
		if m.Text != texts[i] {
			t.Fatalf("text of message %d is %q, want %q\n%s", i, m.Text, texts[i], out)
		}
	}
	blank(gotBody)
	blank(want)
	if d := cmp.Diff(want, gotBody); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

// blank removes the contents of messages, whose texts are compared apart.
func blank(body map[string]any) {
	for _, m := range body["messages"].([]any) {
		delete(m.(map[string]any), "content")
	}
}

// checkBytes compares the spelling of everything that was not edited, and its order.
func checkBytes(t *rapid.T, o *oracle, body string, out []byte) {
	before, rawBefore := rawMembers(t, []byte(body))
	after, rawAfter := rawMembers(t, out)
	for name, value := range rawBefore {
		if name != "messages" && !o.edited[name] && rawAfter[name] != value {
			t.Fatalf("%s was %s and is %s", name, value, rawAfter[name])
		}
	}
	kept := slices.DeleteFunc(before, func(n string) bool { _, ok := rawAfter[n]; return !ok })
	if d := cmp.Diff(kept, after[:len(kept)]); d != "" {
		t.Fatalf("order (-want +got):\n%s", d)
	}
	rest := rawElements(t, rawAfter["messages"])
	for i, m := range rawElements(t, rawBefore["messages"]) {
		rest = rest[len(o.inserted[i]):]
		if !o.touched[i] && rest[0] != m {
			t.Fatalf("message %d was %s and is %s", i, m, rest[0])
		}
		rest = rest[1:]
	}
	if !slices.Contains(o.touched, true) && slices.IndexFunc(o.inserted, func(in []any) bool { return len(in) > 0 }) < 0 &&
		rawBefore["messages"] != rawAfter["messages"] {
		t.Fatal("messages changed")
	}
}
