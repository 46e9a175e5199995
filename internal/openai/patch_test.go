package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatchChangesOnlyWhatItIsTold(t *testing.T) {
	const one = `{"role":"user","content":"hi"}`
	tests := []struct {
		name, body string
		edit       func(*Patch)
		want       string
	}{
		{
			"model is replaced between odd spellings",
			"{ \"z\" :1.0,\t\"model\" : \"m\" ,\n\"messages\":[" + one + "] , \"seed\":1e400, \"u\":\"\\u00e9\\/\" }\n",
			func(p *Patch) { p.SetModel(`Qwen/"x"`) },
			"{ \"z\" :1.0,\t\"model\" : \"Qwen/\\\"x\\\"\" ,\n\"messages\":[" + one +
				"] , \"seed\":1e400, \"u\":\"\\u00e9\\/\" }\n",
		},
		{
			"model under an escaped name",
			`{"m\u006fdel":"m","messages":[` + one + `]}`,
			func(p *Patch) { p.SetModel("n") },
			`{"m\u006fdel":"n","messages":[` + one + `]}`,
		},
		{
			"new field follows the last one",
			"{\"model\":\"m\",\"messages\":[" + one + "]\n}",
			func(p *Patch) { p.SetField("max_tokens", []byte("64")); p.SetField("a\"b", []byte(`[]`)) },
			"{\"model\":\"m\",\"messages\":[" + one + "],\"max_tokens\":64,\"a\\\"b\":[]\n}",
		},
		{
			"field that exists is replaced in place, and the last edit holds",
			`{"max_tokens" : 5,"model":"m","messages":[` + one + `]}`,
			func(p *Patch) { p.SetField("max_tokens", []byte("64")); p.SetField("max_tokens", []byte("7")) },
			`{"max_tokens" : 7,"model":"m","messages":[` + one + `]}`,
		},
		{
			"first field goes",
			`{ "a":1 , "model":"m","messages":[` + one + `]}`,
			func(p *Patch) { p.DeleteField("a") },
			`{ "model":"m","messages":[` + one + `]}`,
		},
		{
			"last fields go and a new one comes",
			`{"model":"m","messages":[` + one + `] , "a":1, "b":2 }`,
			func(p *Patch) { p.DeleteField("b"); p.DeleteField("a"); p.SetField("c", []byte("3")) },
			`{"model":"m","messages":[` + one + `],"c":3 }`,
		},
		{
			"run in the middle goes",
			`{"model":"m", "a":1, "b":2, "messages":[` + one + `]}`,
			func(p *Patch) { p.DeleteField("a"); p.DeleteField("b") },
			`{"model":"m", "messages":[` + one + `]}`,
		},
		{
			"every field goes and a new one comes",
			`{ "model":"m","messages":[` + one + `] }`,
			func(p *Patch) { p.DeleteField("model"); p.DeleteField("messages"); p.SetField("x", []byte("1")) },
			`{ "x":1 }`,
		},
		{
			"deleted field comes back in its place",
			`{"a":1,"model":"m","messages":[` + one + `]}`,
			func(p *Patch) { p.DeleteField("a"); p.SetField("a", []byte("2")) },
			`{"a":2,"model":"m","messages":[` + one + `]}`,
		},
		{
			"nested member is added beside the others",
			`{"model":"m","chat_template_kwargs": { "x" : 1.0 },"messages":[` + one + `]}`,
			func(p *Patch) { p.SetNested("chat_template_kwargs", "enable_thinking", []byte("false")) },
			`{"model":"m","chat_template_kwargs": { "x" : 1.0,"enable_thinking":false },"messages":[` + one + `]}`,
		},
		{
			"nested member is replaced, twice",
			`{"model":"m","chat_template_kwargs":{"enable_thinking":true,"k":{}},"messages":[` + one + `]}`,
			func(p *Patch) {
				p.SetNested("chat_template_kwargs", "enable_thinking", []byte("false"))
				p.SetNested("chat_template_kwargs", "budget", []byte("5"))
			},
			`{"model":"m","chat_template_kwargs":{"enable_thinking":false,"k":{},"budget":5},"messages":[` + one + `]}`,
		},
		{
			"nested member of an absent, a null, an empty and a list field",
			`{"model":"m","messages":[` + one + `],"b":null,"c":{ },"d":[1]}`,
			func(p *Patch) {
				for _, f := range []string{"a", "b", "c", "d"} {
					p.SetNested(f, "k", []byte("1"))
				}
			},
			`{"model":"m","messages":[` + one + `],"b":{"k":1},"c":{"k":1 },"d":{"k":1},"a":{"k":1}}`,
		},
		{
			"messages are inserted around others",
			`{"model":"m","messages":[ ` + one + ` , ` + one + ` ]}`,
			func(p *Patch) {
				p.InsertMessage(0, "system", "A\n")
				p.InsertMessage(2, "user", "Z")
				p.InsertMessage(0, "system", "B")
				p.InsertMessage(1, "tool", "M")
			},
			`{"model":"m","messages":[ {"role":"system","content":"A\n"},{"role":"system","content":"B"},` + one +
				` , {"role":"tool","content":"M"},` + one + `,{"role":"user","content":"Z"} ]}`,
		},
		{
			"text of a string is replaced",
			message(`{"content" : "o\u006cd" , "role":"user"}`),
			func(p *Patch) { p.ReplaceMessageText(0, "new\x01") },
			message(`{"content" : "new\u0001" , "role":"user"}`),
		},
		{
			"text before a string leaves its escapes alone",
			message(`{"content":"o\u006cd","role":"user"}`),
			func(p *Patch) { p.PrependToMessageText(0, "b\""); p.PrependToMessageText(0, "a") },
			message(`{"content":"ab\"o\u006cd","role":"user"}`),
		},
		{
			"what is prepended before a replacement goes, what is prepended after stays",
			message(`{"content":"old","role":"user"}`),
			func(p *Patch) {
				p.PrependToMessageText(0, "lost")
				p.ReplaceMessageText(0, "new")
				p.PrependToMessageText(0, "kept ")
			},
			message(`{"content":"kept new","role":"user"}`),
		},
		{
			"null and absent content take a text",
			message(`{"role":"user","content": null },{"role":"user" }`),
			func(p *Patch) { p.PrependToMessageText(0, "a"); p.ReplaceMessageText(1, "b") },
			message(`{"role":"user","content": "a" },{"role":"user" ,"content":"b"}`),
		},
		{
			"parts keep images, and the first text that is not empty carries the new one",
			message(`{"role":"user","content":[ "" , {"type":"text","text":"a"}, {"image_url":{"url":"u"} } , {"text":"b","type":"text"} ]}`),
			func(p *Patch) { p.ReplaceMessageText(0, "N") },
			message(`{"role":"user","content":[ {"type":"text","text":"N"}, {"image_url":{"url":"u"} } ]}`),
		},
		{
			"text of a part that is media too is emptied",
			message(`{"role":"user","content":["a",{"type":"image_url","text":"caption"}]}`),
			func(p *Patch) { p.ReplaceMessageText(0, "N") },
			message(`{"role":"user","content":["N",{"type":"image_url","text":""}]}`),
		},
		{
			"parts take a text in front of the first text that is not empty",
			message(`{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"a"}]}`),
			func(p *Patch) { p.PrependToMessageText(0, "P ") },
			message(`{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"P a"}]}`),
		},
		{
			"parts without a text get one",
			message(`{"role":"user","content":[ {"type":"image_url"}]},{"role":"user","content":[]}`),
			func(p *Patch) { p.ReplaceMessageText(0, "N"); p.PrependToMessageText(1, "P") },
			message(`{"role":"user","content":[{"type":"text","text":"N"}, {"type":"image_url"}]},{"role":"user","content":[{"type":"text","text":"P"}]}`),
		},
		{
			"whole messages hold against edits of one",
			message(one),
			func(p *Patch) {
				p.ReplaceMessageText(0, "x")
				p.SetField("messages", []byte(`[]`))
				p.InsertMessage(0, "a", "b")
			},
			`{"model":"m","messages":[]}`,
		},
		{
			"the proxy's object goes with other edits",
			`{"signalbox":{"explain":true}, "model":"m","messages":[` + one + `],"stream":true}`,
			func(p *Patch) { p.SetModel("n"); p.SetField("signalbox", []byte("1")); p.StripExtras() },
			`{"model":"n","messages":[` + one + `],"stream":true}`,
		},
		{
			"member of an object goes, the others keep their spelling",
			`{"model":"m","o":{ "a":1 , "b":1.0,"c":"\u0041"},"messages":[` + one + `]}`,
			func(p *Patch) { p.DeleteNested("o", "a"); p.DeleteNested("o", "c") },
			`{"model":"m","o":{ "b":1.0},"messages":[` + one + `]}`,
		},
		{
			"member that an edit added goes again",
			`{"model":"m","messages":[` + one + `]}`,
			func(p *Patch) { p.SetNested("o", "k", []byte("1")); p.DeleteNested("o", "k") },
			`{"model":"m","messages":[` + one + `],"o":{}}`,
		},
		{
			"first message goes and one comes in its place",
			message(`{"role":"system","content":"s"} , ` + one),
			func(p *Patch) { p.DeleteMessage(0); p.InsertMessage(0, "system", "N") },
			message(`{"role":"system","content":"N"},` + one),
		},
		{
			"last messages go, what was inserted around them stays in order",
			message(one + ` , {"role":"tool"} , {"role":"user"}`),
			func(p *Patch) {
				p.InsertMessage(3, "z", "end")
				p.InsertMessage(2, "y", "between")
				p.DeleteMessage(1)
				p.DeleteMessage(2)
			},
			message(one + `,{"role":"y","content":"between"},{"role":"z","content":"end"}`),
		},
		{
			"message in the middle goes, whatever else was asked for it",
			message(one + `,{"role":"tool"},` + one),
			func(p *Patch) { p.PrependToMessageText(1, "x"); p.DeleteMessage(1); p.ReplaceMessageText(1, "y") },
			message(one + `,` + one),
		},
		{
			"every message goes and two come",
			message(`{"role":"tool"}, {"role":"user"}`),
			func(p *Patch) {
				p.DeleteMessage(0)
				p.DeleteMessage(1)
				p.InsertMessage(1, "y", "2")
				p.InsertMessage(0, "x", "1")
			},
			message(`{"role":"x","content":"1"},{"role":"y","content":"2"}`),
		},
		{
			"text with invalid UTF-8 becomes valid",
			message(one),
			func(p *Patch) { p.ReplaceMessageText(0, "a\xffb") },
			message("{\"role\":\"user\",\"content\":\"a\ufffdb\"}"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustParse(t, tt.body)
			p := NewPatch(r)
			tt.edit(p)
			if d := cmp.Diff(tt.want, string(p.Bytes())); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.want, string(p.Bytes())); d != "" {
				t.Errorf("applied again (-want +got):\n%s", d)
			}
			if string(r.Raw) != tt.body {
				t.Error("the patch changed Raw")
			}
		})
	}
}

func TestPatchWithoutEffectReturnsTheBodyItself(t *testing.T) {
	tests := map[string]func(*Patch){
		"no edits":                  func(*Patch) {},
		"same model":                func(p *Patch) { p.SetModel("m") },
		"model there and back":      func(p *Patch) { p.SetModel("n"); p.SetModel("m") },
		"same value":                func(p *Patch) { p.SetField("stream", []byte("true")) },
		"same nested value":         func(p *Patch) { p.SetNested("o", "k", []byte("1")) },
		"removal of what is absent": func(p *Patch) { p.DeleteField("nothing"); p.StripExtras() },
		"removal of absent members": func(p *Patch) { p.DeleteNested("o", "x"); p.DeleteNested("stream", "x"); p.DeleteNested("x", "y") },
		"empty prefix":              func(p *Patch) { p.PrependToMessageText(0, "") },
		"setting the proxy's own":   func(p *Patch) { p.SetField("signalbox", []byte("{}")) },
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			// The spelling of the model differs from what a writer would choose.
			r := mustParse(t, `{"model":"\u006d","messages":[{"role":"user","content":"hi"}],"stream":true,"o":{"k":1}}`)
			p := NewPatch(r)
			edit(p)
			if got := p.Bytes(); &got[0] != &r.Raw[0] || len(got) != len(r.Raw) {
				t.Errorf("got another slice: %s", got)
			}
		})
	}
}

func TestPatchPanicsOnAnIndexOutOfRange(t *testing.T) {
	for name, edit := range map[string]func(*Patch){
		"insert after the end": func(p *Patch) { p.InsertMessage(2, "user", "x") },
		"insert before 0":      func(p *Patch) { p.InsertMessage(-1, "user", "x") },
		"replace at the end":   func(p *Patch) { p.ReplaceMessageText(1, "x") },
		"delete at the end":    func(p *Patch) { p.DeleteMessage(1) },
		"prepend before 0":     func(p *Patch) { p.PrependToMessageText(-1, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			edit(NewPatch(mustParse(t, user(""))))
		})
	}
}

func TestPatchedBodyParsesToTheEditedRequest(t *testing.T) {
	r := mustParse(t, message(`{"role":"system","content":["a",{"type":"text","text":""},"b"]},{"role":"user","content":"q"}`))
	p := NewPatch(r)
	p.SetModel("n")
	p.PrependToMessageText(0, "P ")
	p.ReplaceMessageText(1, "Q")
	p.InsertMessage(1, "tool", strings.Repeat("x", 100))
	got := mustParse(t, string(p.Bytes()))
	var texts []string
	for _, m := range got.Messages {
		texts = append(texts, m.Role+": "+m.Text)
	}
	if d := cmp.Diff([]string{"system: P a\nb", "tool: " + strings.Repeat("x", 100), "user: Q"}, texts); d != "" || got.Model != "n" {
		t.Errorf("model %q, messages (-want +got):\n%s", got.Model, d)
	}
}

func TestFieldsAndMembersAreReadAsTheyWereSpelled(t *testing.T) {
	r := mustParse(t, `{"model":"m","messages":[{"role":"user","content":"hi"}],`+
		`"a\u0062": { "x" : 1.0,"\u0079":[ ] } ,"n":null,"q\\":1}`)
	for name, want := range map[string]string{
		"ab": `{ "x" : 1.0,"\u0079":[ ] }`, "n": "null", "model": `"m"`, "absent": "", `q\`: "1", `q\\`: "", `a\u0062`: "",
	} {
		if got := string(r.Field(name)); got != want {
			t.Errorf("field %s is %q, want %q", name, got, want)
		}
	}
	for _, tt := range []struct{ object, name, want string }{
		{string(r.Field("ab")), "x", "1.0"},
		{string(r.Field("ab")), "y", "[ ]"},
		{string(r.Field("ab")), "z", ""},
		{"null", "x", ""},
		{`"x"`, "x", ""},
		{"", "x", ""},
	} {
		if got := string(Member([]byte(tt.object), tt.name)); got != tt.want {
			t.Errorf("member %s of %s is %q, want %q", tt.name, tt.object, got, tt.want)
		}
	}
}
