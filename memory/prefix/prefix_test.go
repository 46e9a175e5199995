package prefix

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"signalbox/internal/openai"
	"signalbox/memory/ledger"
)

func textContext(parts ...string) Context {
	c := Context{Kind: ledger.Text}
	for _, p := range parts {
		c.Fragments = append(c.Fragments, []byte(p))
	}
	return c
}

func messages(parts ...string) Context {
	c := textContext(parts...)
	c.Kind = ledger.Messages
	return c
}

// The bytes below are the format. A change of any of them empties the prefix caches of all servers
// once.
func TestBytesOfCompiledRequests(t *testing.T) {
	t.Parallel()
	lease, law := textContext(`The \"lessee\" pays.\n`), textContext("Law ", "§ 1.")
	talk := messages(`{"content":"hi","role":"user"}`, `{"content":"yes","role":"assistant"}`)
	for _, c := range []struct {
		name string
		in   Request
		want string
	}{
		{"nothing to put in", Request{Body: []byte(`{"a": 1}`)}, `{"a": 1}`},
		{
			"a context in front of a question",
			Request{Body: []byte(`{"model":"m", "messages": [{"role":"user","content":"q"}] }`), Contexts: []Context{lease}},
			`{"model":"m", "messages": [{"role":"system","content":"The \"lessee\" pays.\n"},{"role":"user","content":"q"}] }`,
		},
		{
			"contexts keep their order, and the domain prompt follows",
			Request{Body: []byte(`{"messages":[{"role":"user","content":"q"}]}`), Contexts: []Context{law, lease}, Domain: "Be \"exact\"."},
			`{"messages":[{"role":"system","content":"Law § 1.\n\nThe \"lessee\" pays.\n\n\nBe \"exact\"."},{"role":"user","content":"q"}]}`,
		},
		{
			"the caller's system text comes last, as it was spelled",
			Request{Body: []byte(`{"messages":[{ "content":"You are \u0041.", "role":"system" },{"role":"user","content":"q"}]}`), Contexts: []Context{law}, Domain: "D"},
			`{"messages":[{"role":"system","content":"Law § 1.\n\nD\n\nYou are \u0041."},{"role":"user","content":"q"}]}`,
		},
		{
			"an empty system text adds no separator",
			Request{Body: []byte(`{"messages":[{"role":"system","content":""},{"role":"user","content":"q"}]}`), Contexts: []Context{law}},
			`{"messages":[{"role":"system","content":"Law § 1."},{"role":"user","content":"q"}]}`,
		},
		{
			"a system text in parts",
			Request{Body: []byte(`{"messages":[{"role":"system","content":[{"type":"text","text":"S"}]},{"role":"user","content":"q"}]}`), Contexts: []Context{law}, Domain: "D"},
			`{"messages":[{"role":"system","content":[{"type":"text","text":"Law § 1.\n\nD\n\n"},{"type":"text","text":"S"}]},{"role":"user","content":"q"}]}`,
		},
		{
			"a developer and a system with a name stay apart",
			Request{Body: []byte(`{"messages":[{"role":"developer","content":"S"},{"role":"user","content":"q"}]}`), Contexts: []Context{law}},
			`{"messages":[{"role":"system","content":"Law § 1."},{"role":"developer","content":"S"},{"role":"user","content":"q"}]}`,
		},
		{
			"a system with a name stays apart",
			Request{Body: []byte(`{"messages":[{"role":"system","name":"n","content":"S"}]}`), Contexts: []Context{law}},
			`{"messages":[{"role":"system","content":"Law § 1."},{"role":"system","name":"n","content":"S"}]}`,
		},
		{
			"templates without a system role",
			Request{Body: []byte(`{"messages":[{"role":"developer","content":"S"},{"role":"user","content":"q"}]}`), Contexts: []Context{law}, Role: User},
			`{"messages":[{"role":"user","content":"Law § 1.\n\nS"},{"role":"user","content":"q"}]}`,
		},
		{
			"messages go first, and the system's words behind them",
			Request{Body: []byte(`{"messages":[{"role":"system","content":"S"},{"role":"user","content":"q"}]}`), Contexts: []Context{lease, talk}, Domain: "D"},
			`{"messages":[{"role":"system","content":"The \"lessee\" pays.\n"},{"content":"hi","role":"user"},{"content":"yes","role":"assistant"},{"role":"system","content":"D\n\nS"},{"role":"user","content":"q"}]}`,
		},
		{
			"messages alone leave the rest as it is",
			Request{Body: []byte(`{"messages":[ {"role":"system","content":"S"} ]}`), Contexts: []Context{talk}},
			`{"messages":[ {"content":"hi","role":"user"},{"content":"yes","role":"assistant"},{"role":"system","content":"S"} ]}`,
		},
		{
			"messages, then a text",
			Request{Body: []byte(`{"messages":[{"role":"user","content":"q"}]}`), Contexts: []Context{talk, law}},
			`{"messages":[{"content":"hi","role":"user"},{"content":"yes","role":"assistant"},{"role":"system","content":"Law § 1."},{"role":"user","content":"q"}]}`,
		},
		{
			"a domain prompt alone",
			Request{Body: []byte(`{"messages":[{"role":"user","content":"q"}]}`), Domain: "D"},
			`{"messages":[{"role":"system","content":"D"},{"role":"user","content":"q"}]}`,
		},
		{
			"a completion",
			Request{API: openai.Completion, Body: []byte(`{"prompt": "Once"}`), Contexts: []Context{lease, law}, Domain: "D"},
			`{"prompt": "The \"lessee\" pays.\n\n\nLaw § 1.\n\nD\n\nOnce"}`,
		},
		{
			"several prompts",
			Request{API: openai.Completion, Body: []byte(`{"prompt":["a", ""]}`), Contexts: []Context{law}},
			`{"prompt":["Law § 1.\n\na", "Law § 1."]}`,
		},
		{
			"a response with instructions",
			Request{API: openai.Response, Body: []byte(`{"instructions":"I","input":"q"}`), Contexts: []Context{law}, Domain: "D"},
			`{"instructions":"Law § 1.\n\nD\n\nI","input":"q"}`,
		},
		{
			"a response without instructions",
			Request{API: openai.Response, Body: []byte(` {"model":"m","input":"q"}`), Contexts: []Context{law}},
			` {"instructions":"Law § 1.","model":"m","input":"q"}`,
		},
		{
			"a response with messages",
			Request{API: openai.Response, Body: []byte(`{"input":"q","instructions":null}`), Contexts: []Context{talk, law}},
			`{"input":[{"content":"hi","role":"user"},{"content":"yes","role":"assistant"},{"role":"user","content":"q"}],"instructions":"Law § 1."}`,
		},
		{
			"a response with a list",
			Request{API: openai.Response, Body: []byte(`{"input":[{"role":"user","content":"q"}]}`), Contexts: []Context{talk}},
			`{"input":[{"content":"hi","role":"user"},{"content":"yes","role":"assistant"},{"role":"user","content":"q"}]}`,
		},
	} {
		got, err := Compile(c.in)
		if err != nil || string(got.Bytes()) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.name, got.Bytes(), err, c.want)
		}
		if !json.Valid(got.Bytes()) {
			t.Errorf("%s: no JSON", c.name)
		}
		if got.Len() != len(c.want) {
			t.Errorf("%s: length %d, want %d", c.name, got.Len(), len(c.want))
		}
	}
}

func TestWhatCannotHoldContextsSaysSo(t *testing.T) {
	t.Parallel()
	law := []Context{textContext("L")}
	for name, in := range map[string]Request{
		"embeddings":                   {API: openai.Other, Body: []byte(`{"input":"x"}`), Contexts: law},
		"token ids":                    {API: openai.Completion, Body: []byte(`{"prompt":[1,2]}`), Contexts: law},
		"messages in a completion":     {API: openai.Completion, Body: []byte(`{"prompt":"x"}`), Contexts: []Context{messages(`{}`)}},
		"no prompt":                    {API: openai.Completion, Body: []byte(`{}`), Contexts: law},
		"no messages":                  {Body: []byte(`{"messages":[]}`), Contexts: law},
		"a response without any input": {API: openai.Response, Body: []byte(`{}`), Contexts: []Context{messages(`{}`)}},
		"instructions that are a list": {API: openai.Response, Body: []byte(`{"instructions":[]}`), Contexts: law},
	} {
		if got, err := Compile(in); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s became %s, %v", name, got.Bytes(), err)
		}
	}
}

func TestAgentsOverOneContextShareItsBytes(t *testing.T) {
	t.Parallel()
	contexts := []Context{textContext("A long contract."), textContext("A law.")}
	want := `{"model":"m","messages":[{"role":"system","content":"A long contract.\n\nA law.`
	for _, agent := range []string{
		`{"role":"user","content":"q"}`,
		`{"role":"system","content":"You are terse."},{"role":"user","content":"q"}`,
		`{"content":"You are kind.","role":"system"},{"role":"user","content":"other"}`,
		`{"role":"system","name":"x","content":"S"},{"role":"user","content":"q"}`,
		`{"role":"developer","content":"S"},{"role":"user","content":"q"}`,
	} {
		for _, domain := range []string{"", "Finance.", "Law."} {
			got, err := Compile(Request{Body: []byte(`{"model":"m","messages":[` + agent + `]}`), Contexts: contexts, Domain: domain})
			if err != nil || !strings.HasPrefix(string(got.Bytes()), want) {
				t.Errorf("agent %s with domain %q begins otherwise: %s, %v", agent, domain, got.Bytes(), err)
			}
		}
	}
}

func TestABodyReadsLikeItsBytes(t *testing.T) {
	t.Parallel()
	b := Body{[]byte("abc"), nil, []byte("d"), []byte("efgh")}
	if err := iotest.TestReader(b.Reader(), b.Bytes()); err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	r := b.Reader()
	if _, err := io.ReadFull(r, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.WriteTo(&out); err != nil || n != 6 || out.String() != "cdefgh" {
		t.Errorf("the rest is %q, %d, %v", out.String(), n, err)
	}
	if b.Len() != 8 || string(b.Bytes()) != "abcdefgh" {
		t.Errorf("the body became %q", b.Bytes())
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"q"}]}`), "D")
	f.Add([]byte(`{"model":"m", "messages" : [ { "role" : "system" , "content" : [ {"type":"text","text":"a"} ] } ] }`), "")
	f.Fuzz(func(t *testing.T, body []byte, domain string) {
		before, err := openai.ParseChat(body, openai.Limits{})
		if err != nil {
			t.Skip()
		}
		for _, role := range []Role{System, User} {
			got, err := Compile(Request{Body: body, Contexts: []Context{textContext("ctx")}, Domain: domain, Role: role})
			if err != nil {
				continue // a domain prompt that is no UTF-8
			}
			after, err := openai.ParseChat(got.Bytes(), openai.Limits{MaxMessages: 20_000, MaxParts: 70_000, MaxDepth: 200})
			if err != nil {
				t.Fatalf("%s became %s: %v", body, got.Bytes(), err)
			}
			if !strings.HasPrefix(after.Messages[0].Text, "ctx") || after.Messages[0].Role != role.String() {
				t.Fatalf("%s became %s", body, got.Bytes())
			}
			if n := len(after.Messages) - len(before.Messages); n != 0 && n != 1 {
				t.Fatalf("%d messages became %d", len(before.Messages), len(after.Messages))
			}
		}
	})
}

// BenchmarkSplice puts a context of 600 KiB into a request of 2 KiB.
func BenchmarkSplice(b *testing.B) {
	fragment := []byte(strings.Repeat(`The lessee pays on the \"first\" of the month.\n`, 600<<10/48))
	body := []byte(`{"model":"m","messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"` + strings.Repeat("why? ", 400) + `"}]}`)
	in := Request{Body: body, Contexts: []Context{{Fragments: [][]byte{fragment}}}, Domain: "Answer as a lawyer."}
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Compile(in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compile and write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			got, err := Compile(in)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := got.Reader().WriteTo(io.Discard); err != nil || n < int64(len(fragment)) {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("decode and encode the full body", func(b *testing.B) {
		got, err := Compile(in)
		if err != nil {
			b.Fatal(err)
		}
		full := got.Bytes()
		b.ReportAllocs()
		for b.Loop() {
			var v map[string]any
			if err := json.Unmarshal(full, &v); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
