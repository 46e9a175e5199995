package openai

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

// seg is a text of a role with the origin that the role has.
func seg(role, text string) signal.Segment {
	origins := map[string]signal.Origin{
		"system": signal.OriginInstructions, "developer": signal.OriginInstructions,
		"user":      signal.OriginUser,
		"assistant": signal.OriginModel, "tool": signal.OriginData, "function": signal.OriginData,
	}
	return from(origins[role], role, text)
}

func from(o signal.Origin, role, text string) signal.Segment {
	return signal.Segment{Role: role, Text: text, Origin: o}
}

// short is a text of short strings.
func short(o signal.Origin, role, text string) signal.Segment {
	return signal.Segment{Role: role, Text: text, Origin: o, List: true}
}

func TestParseCompletionReadsEveryFormOfAPrompt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       signal.Text
		opaque     bool
	}{
		{"a string", `{"model":"m","prompt":"P"}`, signal.Text{LastUser: "P", Segments: []signal.Segment{seg("user", "P")}}, false},
		{
			"with a suffix", `{"model":"m","suffix":"S","prompt":"P"}`,
			signal.Text{LastUser: "P", Segments: []signal.Segment{seg("user", "P"), seg("user", "S")}},
			false,
		},
		{"strings", `{"model":"m","prompt":["P","Q"]}`, signal.Text{LastUser: "Q", Segments: []signal.Segment{seg("user", "P"), seg("user", "Q")}}, false},
		{"token ids", `{"model":"m","prompt":[1,2]}`, signal.Text{Segments: []signal.Segment{}}, true},
		{"lists of token ids", `{"model":"m","prompt":[[1],[2,3]]}`, signal.Text{Segments: []signal.Segment{}}, true},
		{"vectors", `{"model":"m","prompt_embeds":"AAAA"}`, signal.Text{Segments: []signal.Segment{}}, true},
		{"null", `{"model":"m","prompt":null}`, signal.Text{Segments: []signal.Segment{}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseCompletion([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, r.Text()); d != "" || r.OpaquePrompt != tt.opaque || r.API != Completion {
				t.Errorf("opaque %t, api %s, text (-want +got):\n%s", r.OpaquePrompt, r.API, d)
			}
		})
	}
}

func TestParseResponseReadsEveryItem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       signal.Text
	}{
		{
			"a string", `{"model":"m","input":"P","instructions":"I"}`,
			signal.Text{LastUser: "P", Segments: []signal.Segment{seg("system", "I"), seg("user", "P")}},
		},
		{
			"messages with parts", `{"model":"m","input":[{"role":"developer","content":"D"},
			{"content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:x"},{"type":"input_text","text":"b"}],"role":"user"},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"c","annotations":[]}]}]}`,
			signal.Text{LastUser: "a\nb", Segments: []signal.Segment{seg("developer", "D"), seg("user", "a\nb"), seg("assistant", "c")}},
		},
		{
			"what the server's tools gave", `{"model":"m","input":[{"role":"user","content":"u"},
			{"type":"mcp_call","name":"f","output":"M","server_label":"s"},
			{"type":"file_search_call","id":"i","results":[{"text":"R"}]},
			{"type":"code_interpreter_call","id":"i","outputs":[{"type":"logs","logs":"L"}]}]}`,
			signal.Text{LastUser: "u", Segments: []signal.Segment{
				seg("user", "u"), seg("tool", "M"), seg("tool", "f"),
				short(signal.OriginData, "tool", "server_label\ns"), seg("tool", "R"),
				seg("tool", "L"),
			}},
		},
		{
			"a call and what it gave", `{"model":"m","input":[{"role":"user","content":"u"},
			{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c","output":"42"},
			{"output":[{"type":"input_text","text":"43"}],"type":"custom_tool_call_output"}]}`,
			signal.Text{LastUser: "u", Segments: []signal.Segment{
				seg("user", "u"), seg("assistant", "f"), seg("assistant", "{}"),
				short(signal.OriginModel, "assistant", "c"), seg("tool", "42"),
				short(signal.OriginData, "tool", "c"), seg("tool", "43"),
			}},
		},
		{
			"reasoning", `{"model":"m","input":[{"type":"reasoning","id":"rs_1","encrypted_content":"x","summary":[{"type":"summary_text","text":"s"}],"content":[{"type":"reasoning_text","text":"r"}]}]}`,
			signal.Text{Segments: []signal.Segment{seg("assistant", "r"), seg("assistant", "s")}},
		},
		{
			"content beside output", `{"model":"m","input":[{"type":"function_call_output","output":"42","content":"43"}]}`,
			signal.Text{Segments: []signal.Segment{seg("tool", "42"), seg("tool", "43")}},
		},
		{
			"tools, a schema and a stored prompt", `{"model":"m","tools":[{"type":"function","name":"f","description":"T"}],
			"text":{"format":{"type":"json_schema","schema":{"description":"S"}}},"prompt":{"id":"p","variables":{"x":"V"}}}`,
			signal.Text{LastUser: "V", Segments: []signal.Segment{
				from(signal.OriginInstructions, "tool", "T"),
				short(signal.OriginInstructions, "tool", "f"),
				from(signal.OriginInstructions, "tool", "S"), seg("user", "V"),
				short(signal.OriginUser, "user", "x"),
			}},
		},
		{
			"earlier turns sent along", `{"model":"m","previous_response":{"id":"r","output":[{"content":[{"text":"F"}]}]},
			"previous_input_messages":[{"role":"user","content":[{"type":"text","text":"E"}]}]}`,
			signal.Text{Segments: []signal.Segment{
				from(signal.OriginModel, "tool", "F"),
				short(signal.OriginModel, "tool", "r"),
				from(signal.OriginAny, "tool", "E"),
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseResponse([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, r.Text()); d != "" {
				t.Errorf("text (-want +got):\n%s", d)
			}
		})
	}
}

func TestParseResponseReadsItsParameters(t *testing.T) {
	t.Parallel()
	r, err := ParseResponse([]byte(`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"u"}]}],
		"stream":true,"max_output_tokens":1e2,"reasoning":{"effort":"low","summary":"auto"},"tools":[{"type":"web_search"}],"previous_response_id":"resp_1"}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Stream || !r.IncludeUsage || *r.MaxCompletionTokens != 100 || r.ReasoningEffort != "low" || !r.HasTools || !r.HasImages || r.PromptField() != "input" {
		t.Errorf("got %+v", r)
	}
}

func TestErrorsNameTheParameter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		api               API
		name, body, param string
	}{
		{Completion, "no model", `{"prompt":"x"}`, "model"},
		{Completion, "no prompt", `{"model":"m"}`, "prompt"},
		{Completion, "an empty list", `{"model":"m","prompt":[]}`, "prompt"},
		{Completion, "a mixed list", `{"model":"m","prompt":["a",1]}`, "prompt[1]"},
		{Completion, "ids and lists of them", `{"model":"m","prompt":[1,[2]]}`, "prompt[1]"},
		{Completion, "a list of lists of strings", `{"model":"m","prompt":[["a"]]}`, "prompt[0][0]"},
		{Completion, "an object", `{"model":"m","prompt":{}}`, "prompt"},
		{Completion, "an object in a list", `{"model":"m","prompt":[{}]}`, "prompt[0]"},
		{Completion, "case variant", `{"model":"m","prompt":"a","Prompt":"x"}`, "Prompt"},
		{Completion, "suffix", `{"model":"m","prompt":"a","suffix":1}`, "suffix"},
		{Completion, "echo", `{"model":"m","prompt":"a","echo":"yes"}`, "echo"},
		{Completion, "n", `{"model":"m","prompt":"a","n":1.5}`, "n"},
		{Completion, "best_of", `{"model":"m","prompt":"a","best_of":"20"}`, "best_of"},
		{Completion, "max_tokens", `{"model":"m","prompt":"a","max_tokens":"1"}`, "max_tokens"},
		{Response, "no input", `{"model":"m"}`, "input"},
		{Response, "a null input", `{"model":"m","input":null}`, "input"},
		{Response, "a number", `{"model":"m","input":1}`, "input"},
		{Response, "a string item", `{"model":"m","input":["a"]}`, "input[0]"},
		{Response, "content", `{"model":"m","input":[{"role":"user","content":1}]}`, "input[0].content"},
		{Response, "text of a part", `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":1}]}]}`, "input[0].content[0].text"},
		{Response, "role", `{"model":"m","input":[{"role":1}]}`, "input[0].role"},
		{Response, "type", `{"model":"m","input":[{"type":1}]}`, "input[0].type"},
		{Response, "instructions", `{"model":"m","input":"a","instructions":["x"]}`, "instructions"},
		{Response, "max_output_tokens", `{"model":"m","input":"a","max_output_tokens":"1"}`, "max_output_tokens"},
		{Response, "effort", `{"model":"m","input":"a","reasoning":{"effort":1}}`, "reasoning.effort"},
		{Response, "case variant of effort", `{"model":"m","input":"a","reasoning":{"Effort":"low"}}`, "reasoning.Effort"},
		{Response, "case variant in an item", `{"model":"m","input":[{"Content":"x"}]}`, "input[0].Content"},
		{Response, "case variant", `{"model":"m","input":"a","Instructions":"x"}`, "Instructions"},
		{Response, "a duplicate", `{"model":"m","input":"a","input":"b"}`, "input"},
		{Response, "guard", `{"model":"m","input":"a","signalbox":{"guard":"no"}}`, "signalbox.guard"},
	}
	for _, tt := range tests {
		t.Run(tt.api.String()+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tt.api, []byte(tt.body), Limits{})
			if e, ok := err.(*Error); !ok || e.Param != tt.param || e.Status != 400 { //nolint:errorlint // the type itself is promised
				t.Errorf("got %#v, want param %q", err, tt.param)
			}
		})
	}
}

func TestLimitsHoldForPromptsAndItems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		api         API
		body, param string
	}{
		{Completion, `{"model":"m","prompt":["a","b","c"]}`, "prompt"},
		{Response, `{"model":"m","input":[{},{},{}]}`, "input"},
	} {
		_, err := Parse(tt.api, []byte(tt.body), Limits{MaxMessages: 2})
		if e, ok := err.(*Error); !ok || e.Param != tt.param { //nolint:errorlint // as above
			t.Errorf("%s: got %v", tt.api, err)
		}
	}
	_, err := ParseResponse([]byte(`{"model":"m","input":[{"content":["a","b","c"]}]}`), Limits{MaxParts: 2})
	if e, ok := err.(*Error); !ok || e.Param != "input" { //nolint:errorlint // as above
		t.Errorf("got %v", err)
	}
}

func TestPatchesOfAResponse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, want string
		edit             func(*Patch)
	}{
		{"new instructions", `{"model":"m", "input":"a"}`, `{"model":"m", "input":"a","instructions":"I\"I"}`, func(p *Patch) { p.SetInstructions(`I"I`) }},
		{"other instructions", `{"instructions":"\u0041","model":"m","input":"a"}`, `{"instructions":"I","model":"m","input":"a"}`, func(p *Patch) { p.SetInstructions("I") }},
		{"instructions in front", `{"instructions":"\u0041","model":"m","input":"a"}`, `{"instructions":"I\n\u0041","model":"m","input":"a"}`, func(p *Patch) { p.PrependToInstructions("I\n") }},
		{"instructions in front of null", `{"instructions":null,"model":"m","input":"a"}`, `{"instructions":"I","model":"m","input":"a"}`, func(p *Patch) { p.PrependToInstructions("I") }},
		{
			"an item less", `{"model":"m","input":[{"role":"system","content":"s"}, {"role":"user","content":"u"}]}`,
			`{"model":"m","input":[{"role":"user","content":"u"}]}`, func(p *Patch) { p.DeleteMessage(0) },
		},
		{
			"text in an item without any", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"u"}]}]}`,
			`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"T"},{"type":"input_image","image_url":"u"}]}]}`,
			func(p *Patch) { p.ReplaceMessageText(0, "T") },
		},
		{"an input that is a string", `{"model":"m","input":"a"}`, `{"model":"m","input":"Ta"}`, func(p *Patch) { p.PrependToMessageText(0, "T") }},
		{
			"effort beside the summary", `{"model":"m","input":"a","reasoning":{"summary":"auto"},"signalbox":{}}`,
			`{"model":"m","input":"a","reasoning":{"summary":"auto","effort":"high"}}`, func(p *Patch) { p.SetNested("reasoning", "effort", []byte(`"high"`)) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseResponse([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			p := NewPatch(r)
			tt.edit(p)
			if d := cmp.Diff(tt.want, string(p.Bytes())); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// FuzzParseCompletion checks that nothing panics, that syntax is judged strictly, that every prompt
// that a plain decoder sees is a text here, and that an edited body is accepted again.
func FuzzParseCompletion(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","prompt":"a","suffix":"b","echo":true,"n":2}`, `{"model":"m","prompt":["a","\u0041"]}`, `{"model":"m","prompt":[1,2e0]}`,
		`{"model":"m","prompt":[[1],[]]}`, `{"model":"m","prompt_embeds":["x"],"prompt":null}`, `{"model":"m","prompt":["a",[1]]}`,
		`{"model":"m","prompt":"a","signalbox":{"explain":true},"stream":true,"stream_options":{"include_usage":true}}`, `{"model":"m","pROMPT":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := parseFuzzed(t, Completion, raw)
		if r == nil {
			return
		}
		var plain struct {
			Prompt any `json:"prompt"`
		}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		var want []string
		switch v := plain.Prompt.(type) {
		case string:
			want = []string{v}
		case []any:
			for _, e := range v {
				if s, ok := e.(string); ok {
					want = append(want, s)
				}
			}
		}
		var got []string
		for i := range r.Messages {
			got = append(got, r.Messages[i].Text)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("prompts %q, decoded %q", got, want)
		}
	})
}

// FuzzParseResponse is the same for the Responses API: every text of a message is seen.
func FuzzParseResponse(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","input":"a","instructions":"i"}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a"},"b",{"type":"input_image","image_url":"u"}]},{"type":"function_call","name":"f","arguments":"{}"},{"type":"function_call_output","output":[{"text":"x"}]},{"output":{"a":"b"}}]}`,
		`{"model":"m","input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"content":null}],"reasoning":{"effort":null},"text":{"format":{"description":"d"}}}`,
		`{"model":"m","previous_response_id":"r","prompt":{"variables":{"a":{"type":"input_text","text":"x"}}},"tools":[],"chat_template_kwargs":{"a":"b"}}`,
		`{"model":"m","Input":1}`, `{"model":"m","input":[]}`, `{"model":"m","input":[{"content":"a","output":"b"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := parseFuzzed(t, Response, raw)
		if r == nil {
			return
		}
		var plain struct {
			Input        any     `json:"input"`
			Instructions *string `json:"instructions"`
		}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		if plain.Instructions != nil && *plain.Instructions != r.Instructions {
			t.Fatalf("instructions %q, decoded %q", r.Instructions, *plain.Instructions)
		}
		var all strings.Builder
		for _, s := range r.Text().Segments {
			all.WriteString(s.Text + "\n")
		}
		for _, want := range plainTexts(plain.Input) {
			if !strings.Contains(all.String(), want) {
				t.Fatalf("text %q is not among %q", want, all.String())
			}
		}
	})
}

// plainTexts lists what a plain decoder takes for the texts of an input.
func plainTexts(input any) (out []string) {
	switch v := input.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			fields, _ := item.(map[string]any)
			for _, name := range []string{"content", "output", "arguments"} {
				out = append(out, contentTexts(fields[name])...)
			}
		}
	}
	return out
}

func contentTexts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, part := range v {
			switch p := part.(type) {
			case string:
				out = append(out, p)
			case map[string]any:
				if s, ok := p["text"].(string); ok {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// parseFuzzed parses raw and checks what holds for every body; nil when it was refused.
func parseFuzzed(t *testing.T, api API, raw []byte) *Request {
	t.Helper()
	before := bytes.Clone(raw)
	r, err := Parse(api, raw, Limits{})
	if !bytes.Equal(raw, before) {
		t.Fatal("the body was changed")
	}
	var value jsontext.Value
	strict := json.Unmarshal(raw, &value)
	if err != nil {
		if e, ok := err.(*Error); !ok || e.Status != 400 || strings.HasPrefix(e.Message, "invalid JSON") && strict == nil { //nolint:errorlint // the type itself is promised
			t.Fatalf("error is %#v", err)
		}
		return nil
	}
	if strict != nil {
		t.Fatalf("accepted although it is invalid: %v", strict)
	}
	if out := NewPatch(r).Bytes(); !r.Extras.Present && &out[0] != &r.Raw[0] {
		t.Fatal("a patch without edits copies")
	}
	p := NewPatch(r)
	p.SetModel(r.Model + "x")
	got, err := Parse(api, p.Bytes(), Limits{})
	if err != nil || got.Model != r.Model+"x" || got.Extras.Present {
		t.Fatalf("got %+v, %v from %q", got, err, p.Bytes())
	}
	if d := cmp.Diff(r.Text(), got.Text()); d != "" {
		t.Fatalf("text (-want +got):\n%s", d)
	}
	p.SetNested("reasoning", "effort", []byte(`"high"`))
	for i := range r.Messages {
		p.DeleteMessage(i)
	}
	if api == Response {
		p.PrependToInstructions("I\n")
		got, err = ParseResponse(p.Bytes(), Limits{})
		if err == nil && (got.ReasoningEffort != "high" || got.Instructions != "I\n"+r.Instructions) {
			t.Fatalf("got %+v from %q", got, p.Bytes())
		}
	}
	return r
}
