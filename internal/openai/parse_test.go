package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

// mustParse parses a body that is meant to be valid.
func mustParse(t *testing.T, body string) *Request {
	t.Helper()
	r, err := ParseChat([]byte(body), DefaultLimits())
	if err != nil {
		t.Fatalf("ParseChat(%s): %v", body, err)
	}
	return r
}

// parseError parses a body that is meant to be refused.
func parseError(t *testing.T, body string, l Limits) *Error {
	t.Helper()
	r, err := ParseChat([]byte(body), l)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("ParseChat(%.200s): got %+v, %v, want an *Error", body, r, err)
	}
	return e
}

// user wraps further fields into a body that is otherwise valid.
func user(fields string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + fields + `}`
}

// message wraps a message into a body that is otherwise valid.
func message(m string) string { return `{"model":"m","messages":[` + m + `]}` }

func TestParseChatReadsTheFieldsThatDecisionsNeed(t *testing.T) {
	body := `{
		"model": "auto", "stream": true, "stream_options": {"include_usage": true, "x": 1},
		"messages": [
			{"role": "developer", "content": "be brief", "name": "ops"},
			{"role": "user", "content": [{"type": "text", "text": "what is"}, {"type": "image_url", "image_url": {"url": "data:x"}}, {"type": "text", "text": "this\u003f"}]},
			{"role": "assistant", "content": null}
		],
		"max_tokens": 16, "max_completion_tokens": 32.0, "reasoning_effort": "high",
		"chat_template_kwargs": {"enable_thinking": false},
		"tools": [{"type": "function"}], "seed": 12345678901234567890
	}`
	r := mustParse(t, body)
	n16, n32 := int64(16), int64(32)
	got := []any{
		r.Model, r.Stream, r.IncludeUsage, r.SystemIndex, r.MaxTokens, r.MaxCompletionTokens, r.ReasoningEffort,
		r.HasTools, r.HasImages, r.HasMedia, r.Extras.Present, body[r.ChatTemplateKwargs.Start:r.ChatTemplateKwargs.End],
	}
	want := []any{"auto", true, true, 0, &n16, &n32, "high", true, true, true, false, `{"enable_thinking": false}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
	type view struct {
		Role, Text, Name, Content string
		HasImage                  bool
	}
	var views []view
	for _, m := range r.Messages {
		if s := body[m.Span.Start:m.Span.End]; s[0] != '{' || s[len(s)-1] != '}' {
			t.Errorf("span of a message is %q", s)
		}
		views = append(views, view{m.Role, m.Text, m.Name, body[m.Content.Start:m.Content.End], m.HasImage})
	}
	wantViews := []view{
		{Role: "developer", Text: "be brief", Name: "ops", Content: `"be brief"`},
		{Role: "user", Text: "what is\nthis?", HasImage: true, Content: `[{"type": "text", "text": "what is"}, ` +
			`{"type": "image_url", "image_url": {"url": "data:x"}}, {"type": "text", "text": "this\u003f"}]`},
		{Role: "assistant", Content: `null`},
	}
	if d := cmp.Diff(wantViews, views); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	if string(r.Raw) != body {
		t.Error("Raw differs from the body")
	}
}

func TestParseChatTreatsNullLikeAbsent(t *testing.T) {
	r := mustParse(t, user(`,"stream":null,"stream_options":null,"max_tokens":null,"max_completion_tokens":null,`+
		`"reasoning_effort":null,"chat_template_kwargs":null,"tools":null,"functions":[],"documents":null`))
	if r.Stream || r.IncludeUsage || r.MaxTokens != nil || r.MaxCompletionTokens != nil || r.ReasoningEffort != "" ||
		r.ChatTemplateKwargs.Present() || r.HasTools {
		t.Errorf("got %+v", r)
	}
	if r.SystemIndex != -1 {
		t.Errorf("SystemIndex = %d without a system message, want -1", r.SystemIndex)
	}
}

func TestABodyThatIsNoObjectIsToldSo(t *testing.T) {
	t.Parallel()
	_, err := ParseChat([]byte(`[]`), Limits{})
	if err == nil || err.Error() != "the body must be an object" {
		t.Errorf("error %v", err)
	}
}

func TestParseChatRefusesBadFieldsAndNamesThem(t *testing.T) {
	tests := []struct{ name, body, param string }{
		{"body is a list", `[]`, ""},
		{"body is null", `null`, ""},
		{"model is missing", `{"messages":[{"role":"user","content":"x"}]}`, "model"},
		{"model is empty", `{"model":"","messages":[{"role":"user","content":"x"}]}`, "model"},
		{"model is null", `{"model":null,"messages":[{"role":"user","content":"x"}]}`, "model"},
		{"model is a number", `{"model":7,"messages":[{"role":"user","content":"x"}]}`, "model"},
		{"messages are missing", `{"model":"m"}`, "messages"},
		{"messages are null", `{"model":"m","messages":null}`, "messages"},
		{"messages are an object", `{"model":"m","messages":{}}`, "messages"},
		{"messages are empty", `{"model":"m","messages":[]}`, "messages"},
		{"message is a string", message(`"hi"`), "messages[0]"},
		{"second message is a string", message(`{"role":"user"},"hi"`), "messages[1]"},
		{"role is missing", message(`{"content":"x"}`), "messages[0].role"},
		{"role is missing in the second", message(`{"role":"user"},{"content":"x"}`), "messages[1].role"},
		{"role is a number", message(`{"role":1}`), "messages[0].role"},
		{"role is null", message(`{"role":null}`), "messages[0].role"},
		{"content is a number", message(`{"role":"user","content":1}`), "messages[0].content"},
		{"content is an object", message(`{"role":"user","content":{"text":"x"}}`), "messages[0].content"},
		{"content is true", message(`{"role":"user","content":true}`), "messages[0].content"},
		{"part is a number", message(`{"role":"user","content":["a",1]}`), "messages[0].content[1]"},
		{"part's text is a list", message(`{"role":"user","content":[{"type":"text","text":["x"]}]}`), "messages[0].content[0].text"},
		{"part's type is a number", message(`{"role":"user","content":[{"type":1}]}`), "messages[0].content[0].type"},
		{"name is a number", message(`{"role":"user","name":1}`), "messages[0].name"},
		{"tool calls are an object", message(`{"role":"assistant","tool_calls":{}}`), "messages[0].tool_calls"},
		{"tool call is a string", message(`{"role":"assistant","tool_calls":["x"]}`), "messages[0].tool_calls[0]"},
		{"function is a string", message(`{"role":"assistant","tool_calls":[{"function":"x"}]}`), "messages[0].tool_calls[0].function"},
		{"function call is a list", message(`{"role":"assistant","function_call":[]}`), "messages[0].function_call"},
		{"stream is a string", user(`,"stream":"true"`), "stream"},
		{"stream is a number", user(`,"stream":1`), "stream"},
		{"stream options are a list", user(`,"stream_options":[]`), "stream_options"},
		{"include_usage is a string", user(`,"stream_options":{"include_usage":"yes"}`), "stream_options.include_usage"},
		{"max_tokens is a string", user(`,"max_tokens":"16"`), "max_tokens"},
		{"max_tokens has a fraction", user(`,"max_tokens":1.5`), "max_tokens"},
		{"max_tokens is beyond 64 bits", user(`,"max_tokens":1e400`), "max_tokens"},
		{"max_tokens is a float that names no single integer", user(`,"max_tokens":9007199254740994.0`), "max_tokens"},
		{"max_completion_tokens is a list", user(`,"max_completion_tokens":[1]`), "max_completion_tokens"},
		{"reasoning_effort is a number", user(`,"reasoning_effort":1`), "reasoning_effort"},
		{"chat_template_kwargs is a string", user(`,"chat_template_kwargs":"x"`), "chat_template_kwargs"},
		{"tools are an object", user(`,"tools":{}`), "tools"},
		{"extras are a string", user(`,"signalbox":"x"`), "signalbox"},
		{"extras have an unknown name", user(`,"signalbox":{"guards":"hold"}`), "signalbox.guards"},
		{"extras' guard is unknown", user(`,"signalbox":{"guard":"on"}`), "signalbox.guard"},
		{"extras' explain is a string", user(`,"signalbox":{"explain":"yes"}`), "signalbox.explain"},
		{"extras' session is a number", user(`,"signalbox":{"session":1}`), "signalbox.session"},
		{"context is a number", user(`,"signalbox":{"context":1}`), "signalbox.context"},
		{"context is empty", user(`,"signalbox":{"context":""}`), "signalbox.context"},
		{"context's version is zero", user(`,"signalbox":{"context":"ctx_a@0"}`), "signalbox.context"},
		{"context in a list is bad", user(`,"signalbox":{"context":["ctx_a","ctx_b@x"]}`), "signalbox.context[1]"},
		{"context has no id", user(`,"signalbox":{"context":{"version":1}}`), "signalbox.context.id"},
		{"context's id holds a version", user(`,"signalbox":{"context":{"id":"ctx_a@3"}}`), "signalbox.context.id"},
		{"context's required is null", user(`,"signalbox":{"context":{"id":"c","required":null}}`), "signalbox.context.required"},
		{"context has an unknown name", user(`,"signalbox":{"context":{"id":"c","needed":true}}`), "signalbox.context.needed"},
		{"fact is a number", user(`,"signalbox":{"facts":[1]}`), "signalbox.facts[0]"},
		{"fact is empty", user(`,"signalbox":{"facts":[""]}`), "signalbox.facts[0]"},
		{"fact has no text", user(`,"signalbox":{"facts":[{"id":"a"}]}`), "signalbox.facts[0].text"},
		{"fact's kind is unknown", user(`,"signalbox":{"facts":[{"text":"a","kind":"opinion"}]}`), "signalbox.facts[0].kind"},
		{"ttl has no unit", user(`,"signalbox":{"save_context":{"ttl":"5"}}`), "signalbox.save_context.ttl"},
		{"ttl is negative", user(`,"signalbox":{"save_context":{"ttl":"-5m"}}`), "signalbox.save_context.ttl"},
		{"save_context has an unknown name", user(`,"signalbox":{"save_context":{"x":1}}`), "signalbox.save_context.x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := parseError(t, tt.body, DefaultLimits())
			if e.Status != http.StatusBadRequest || e.Type != TypeInvalidRequest || e.Param != tt.param || e.Code != "" {
				t.Errorf("got %+v, want status 400 and param %q", e, tt.param)
			}
			if e.Message == "" || strings.Contains(e.Message, "jsontext") {
				t.Errorf("message is %q", e.Message)
			}
		})
	}
}

// Each body is one that two common parsers read differently, or that one of them accepts although
// it is no JSON.
func TestParseChatRefusesWhatParsersDisagreeOn(t *testing.T) {
	ok := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	tests := []struct{ name, body, message string }{
		{"empty body", ``, "byte 0"},
		{"only whitespace", " \n", "byte "},
		{"byte order mark", "\xef\xbb\xbf" + ok, "byte 0"},
		{"UTF-16", "{\x00\"\x00m\x00", "byte 1"},
		{"duplicate messages", `{"model":"m","messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}`, "duplicate"},
		{"duplicate spelled with an escape", `{"model":"m","messages":[{"role":"user","content":"a"}],"m\u0065ssages":[]}`, "duplicate"},
		{"duplicate role", message(`{"role":"user","role":"tool"}`), "duplicate"},
		{"duplicate content", message(`{"role":"user","content":"a","content":"b"}`), "duplicate"},
		{"duplicate in a part", message(`{"role":"user","content":[{"text":"a","text":"b"}]}`), "duplicate"},
		{"duplicate in a field that is not read", user(`,"metadata":{"a":{"b":1,"b":2}}`), "duplicate"},
		{"case variant of messages", user(`,"Messages":[]`), "spelled differently"},
		{"case variant of model", user(`,"MODEL":"x"`), "spelled differently"},
		{"case variant before the name itself", `{"Messages":[],"model":"m","messages":[{"role":"user"}]}`, "spelled differently"},
		{"long s folds to s", user(`,"me` + "\u017f\u017f" + `ages":[]`), "spelled differently"},
		{"Kelvin sign folds to k", user(`,"max_to` + "\u212a" + `ens":5`), "spelled differently"},
		{"case variant in escapes", user(`,"\u004dodel":"x"`), "spelled differently"},
		{"case variant of role", message(`{"role":"user","Role":"system"}`), "spelled differently"},
		{"case variant of content", message(`{"role":"user","CONTENT":"x"}`), "spelled differently"},
		{"case variant in a part", message(`{"role":"user","content":[{"type":"text","Text":"x"}]}`), "spelled differently"},
		{"case variant in a tool call", message(`{"role":"assistant","tool_calls":[{"Function":{}}]}`), "spelled differently"},
		{"case variant in a function", message(`{"role":"assistant","tool_calls":[{"function":{"Arguments":""}}]}`), "spelled differently"},
		{"case variant in stream options", user(`,"stream_options":{"Include_Usage":true}`), "spelled differently"},
		{"invalid UTF-8 in a text", message("{\"role\":\"user\",\"content\":\"\xff\"}"), "UTF-8"},
		{"overlong UTF-8", message("{\"role\":\"user\",\"content\":\"\xc0\xaf\"}"), "UTF-8"},
		{"invalid UTF-8 in a name", user(",\"\xff\":1"), "UTF-8"},
		{"lone surrogate", message(`{"role":"user","content":"\ud800"}`), "surrogate"},
		{"second object", ok + ok, "data after"},
		{"trailing comma", `{"model":"m",}`, "byte 12"},
		{"trailing bracket", ok + "]", "byte "},
		{"trailing NUL", ok + "\x00", "byte "},
		{"comment", `{/**/"model":"m"}`, "byte 1"},
		{"single quotes", `{'model':"m"}`, "byte 1"},
		{"NaN", user(`,"temperature":NaN`), "byte "},
		{"Infinity", user(`,"temperature":-Infinity`), "byte "},
		{"leading zero", user(`,"n":01`), "byte "},
		{"leading plus", user(`,"n":+1`), "byte "},
		{"bare point", user(`,"n":1.`), "byte "},
		{"hexadecimal", user(`,"n":0x10`), "byte "},
		{"raw newline in a string", message("{\"role\":\"user\",\"content\":\"a\nb\"}"), "byte "},
		{"raw NUL in a string", message("{\"role\":\"user\",\"content\":\"a\x00b\"}"), "byte "},
		{"bad escape", message(`{"role":"user","content":"\x41"}`), "escape"},
		{"number as name", `{1:2}`, "byte 1"},
		{"missing colon", `{"model" "m"}`, "byte "},
		{"missing comma", `{"model":"m" "n":1}`, "byte "},
		{"form feed as whitespace", "{\f}", "byte 1"},
		{"no-break space as whitespace", "{\u00a0}", "byte 1"},
		{"cut in a string", `{"model":"m`, "EOF"},
		{"cut in a literal", `{"stream":tru`, "EOF"},
		{"misspelled literal", user(`,"stream":True`), "byte "},
		{"misspelled null", user(`,"stream_options":nul`), "byte "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := parseError(t, tt.body, DefaultLimits())
			if e.Status != http.StatusBadRequest || !strings.Contains(e.Message, tt.message) {
				t.Errorf("got %d %q, want 400 and a message with %q", e.Status, e.Message, tt.message)
			}
		})
	}
}

func TestParseChatNamesTheFieldOfASyntaxError(t *testing.T) {
	e := parseError(t, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","role":"x"}]}`, Limits{})
	want := &Error{
		Status: 400, Type: TypeInvalidRequest, Param: "messages[1].role",
		Message: "invalid JSON at byte 70: duplicate object member name", Plain: "invalid JSON at byte 70",
	}
	if d := cmp.Diff(want, e); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestParseChatAcceptsWhatItDoesNotRead(t *testing.T) {
	for name, body := range map[string]string{
		"numbers of any size":            user(`,"seed":123456789012345678901234567890,"x":1e400,"y":-0,"z":1.0E+2`),
		"names close to ours":            user(`,"message":1,"max-tokens":"x","_model":[]`),
		"content absent":                 message(`{"role":"assistant"}`),
		"unknown part":                   message(`{"role":"user","content":[{"type":"hologram","hologram":{"Text":"x"}}]}`),
		"part without type":              message(`{"role":"user","content":[{"text":"x"},{}]}`),
		"bare string as part":            message(`{"role":"user","content":["x"]}`),
		"empty list of parts":            message(`{"role":"user","content":[]}`),
		"null text in a part":            message(`{"role":"user","content":[{"type":"image_url","text":null}]}`),
		"empty name":                     user(`,"":{"":""}`),
		"escaped NUL":                    message(`{"role":"user","content":"a\u0000b"}`),
		"surrogate pair":                 message(`{"role":"user","content":"\ud83d\ude00"}`),
		"whitespace around":              " \r\n\t" + user("") + " \r\n\t",
		"null tool calls":                message(`{"role":"assistant","tool_calls":null,"function_call":null,"refusal":null}`),
		"negative and zero token limits": user(`,"max_tokens":-1,"max_completion_tokens":0`),
		"long name that is not ours":     user(`,"` + strings.Repeat("M", 10_000) + `":1`),
	} {
		t.Run(name, func(t *testing.T) { mustParse(t, body) })
	}
}

func TestParseChatEnforcesLimits(t *testing.T) {
	nested := func(n int) string {
		return user(`,"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1))
	}
	mustParse(t, nested(128))
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	var members strings.Builder
	for i := range 20 {
		fmt.Fprintf(&members, `,"k%d":0`, i)
	}
	small := Limits{MaxMessages: 3, MaxDepth: 8, MaxParts: 4, MaxMembers: 10, MaxContexts: 2, MaxFacts: 2}
	tests := []struct {
		name, body, param string
		limits            Limits
	}{
		{"one level too deep", nested(129), "x", Limits{}},
		{"one hundred thousand levels", nested(100_000), "x", Limits{}},
		{"deep objects", user(`,"x":` + strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)), "x.a", Limits{}},
		{"deep tool arguments", message(`{"role":"assistant","tool_calls":[{"function":{"arguments":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}]}`), "messages[0].tool_calls[0].function.arguments", Limits{}},
		{"too many messages", message(many(4, `{"role":"user"}`)), "messages", small},
		{"too many parts", message(`{"role":"user","content":[` + many(5, `""`) + `]}`), "messages", small},
		{"too many parts over messages", message(`{"role":"user","content":["",""]},{"role":"user","content":["","",""]}`), "messages", small},
		{"too many tool calls", message(`{"role":"user","tool_calls":[` + many(5, `{}`) + `]}`), "messages", small},
		{"too many documents", user(`,"documents":[` + many(5, `"x"`) + `]`), "messages", small},
		{"too many members", user(members.String()), "k8", small},
		{"too many members below", user(`,"x":{` + members.String()[1:] + `}`), "x.k10", small},
		{"too many contexts", user(`,"signalbox":{"context":["a","b","c"]}`), "signalbox.context", small},
		{"too many facts", user(`,"signalbox":{"facts":["a","b","c"]}`), "signalbox.facts", small},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := parseError(t, tt.body, tt.limits)
			if limited := strings.Contains(e.Message, "more than") || strings.Contains(e.Message, "deeper"); !limited || !strings.HasPrefix(e.Param, tt.param) {
				t.Errorf("got param %q, message %q, want param %q", e.Param, e.Message, tt.param)
			}
			if len(e.Param) > maxParam+len("…") {
				t.Errorf("param has %d bytes", len(e.Param))
			}
		})
	}
}

func TestParseChatReadsExtras(t *testing.T) {
	tests := []struct {
		name, extras string
		want         Extras
	}{
		{"null", `null`, Extras{}},
		{"empty", `{}`, Extras{}},
		{"one context", `{"context":"ctx_a"}`, Extras{Contexts: []ContextRef{{ID: "ctx_a", Required: true}}}},
		{"contexts in every form", `{"context":["ctx_a@3",{"id":"ctx_b","version":2,"required":false,"lease":"l1"},{"id":"ctx_c"}]}`, Extras{
			Contexts: []ContextRef{{"ctx_a", 3, true, ""}, {"ctx_b", 2, false, "l1"}, {"ctx_c", 0, true, ""}},
		}},
		{"one fact", `{"facts":"the sky is blue"}`, Extras{Facts: []Fact{{Text: "the sky is blue"}}}},
		{"facts in every form", `{"facts":["a",{"id":"1","text":"b","source":"s","kind":"date"}]}`, Extras{
			Facts: []Fact{{Text: "a"}, {ID: "1", Text: "b", Source: "s", Kind: "date"}},
		}},
		{"the rest", `{"session":"s1","explain":true,"guard":"hold","save_context":{"name":"n","ttl":"2d"}}`, Extras{
			Session: "s1", Explain: true, Guard: "hold", SaveContext: &SaveContext{Name: "n", TTL: 48 * time.Hour},
		}},
		{"nulls", `{"context":null,"session":null,"facts":null,"explain":null,"guard":null,"save_context":null}`, Extras{}},
		{"save with defaults", `{"save_context":{}}`, Extras{SaveContext: &SaveContext{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustParse(t, user(`,"signalbox":`+tt.extras))
			tt.want.Present = true
			if d := cmp.Diff(tt.want, r.Extras); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if got, want := string(NewPatch(r).Bytes()), user(""); got != want {
				t.Errorf("forwarded %s, want %s", got, want)
			}
		})
	}
}

// A picture says nothing of what a request is about: neither one of the user nor one of a tool,
// which goes to the user's turn behind the result.
func TestTheLastWordOfTheUserHasText(t *testing.T) {
	const (
		picture = `{"type":"image_url","image_url":{"url":"data:,"}}`
		call    = `,{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}` +
			`,{"role":"tool","tool_call_id":"c","content":"[image]"}`
		shown = `{"role":"user","content":[` + picture + `]}`
	)
	for messages, want := range map[string]signal.Text{
		`{"role":"user","content":"first"},{"role":"user","content":"second"}` + call + `,` + shown: {
			LastUser: "second", Before: []string{"first"},
		},
		`{"role":"user","content":"first"},` + shown + `,{"role":"user","content":" \n"},{"role":"user","content":"second"}`: {
			LastUser: "second", Before: []string{"first"},
		},
		shown + `,{"role":"user","content":"first"}`: {LastUser: "first"},
		shown: {},
	} {
		got := mustParse(t, `{"model":"m","messages":[`+messages+`]}`).Text()
		if got.LastUser != want.LastUser || !slices.Equal(got.Before, want.Before) {
			t.Errorf("%s: %q behind %q, want %q behind %q", messages, got.LastUser, got.Before, want.LastUser, want.Before)
		}
	}
}

func TestTextHoldsEveryTextTheModelSees(t *testing.T) {
	r := mustParse(t, `{"tools":[{"type":"function","function":{"name":"n","description":"what it does","parameters":{"properties":{"p":{"type":"string","description":"a value"}}}}}],
	"response_format":{"type":"json_schema","json_schema":{"name":"s","description":"a shape","schema":{"title":"a title that says more than a name does","enum":["short","a choice that says more than a name does"],"$defs":{"a name that says more than a name does":{}}}}},"prediction":{"type":"content","content":"guess"},
	"chat_template":"{{ x }}","chat_template_kwargs":{"enable_thinking":true,"persona":"P","more":{"list":["Q",1]}},"documents":[{"title":"T","text":"D"}],"model":"m","messages":[
		{"role":"system","content":"S"},
		{"role":"user","content":"first","name":"ann"},
		{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"q\":1}"}},
			{"type":"custom","custom":{"name":"g","input":"I"}}],"reasoning_content":"R","refusal":"no","role":"assistant"},
		{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"42"}]},
		{"role":"assistant","function_call":{"name":"h","arguments":{"deep":["A",1,null,{"x":"B"}]}}},
		{"role":"assistant","content":[{"type":"refusal","refusal":"cannot"},{"type":"thinking","thinking":"hm"}]},
		{"role":"user","content":["second","",{"text":"half"}]},
		{"role":"assistant","content":""}
	]}`)
	want := signal.Text{
		LastUser: "second\nhalf", Before: []string{"first"},
		Segments: []signal.Segment{
			seg("system", "S"),
			seg("user", "ann"),
			seg("user", "first"),
			seg("assistant", "f"),
			seg("assistant", `{"q":1}`),
			seg("assistant", "g"),
			seg("assistant", "I"),
			seg("assistant", "R"),
			seg("assistant", "no"),
			short(signal.OriginModel, "assistant", "c1"),
			seg("tool", "42"),
			short(signal.OriginData, "tool", "c1"),
			seg("assistant", "h"),
			seg("assistant", "A"),
			seg("assistant", "B"),
			short(signal.OriginModel, "assistant", "deep\nx"),
			seg("assistant", "cannot\nhm"),
			seg("user", "second\nhalf"),
			from(signal.OriginInstructions, "tool", "what it does"),
			from(signal.OriginInstructions, "tool", "a value"),
			short(signal.OriginInstructions, "tool", "p"),
			from(signal.OriginInstructions, "tool", "a shape"),
			from(signal.OriginInstructions, "tool", "a title that says more than a name does"),
			from(signal.OriginInstructions, "tool", "a choice that says more than a name does"),
			from(signal.OriginInstructions, "tool", "a name that says more than a name does"),
			short(signal.OriginInstructions, "tool", "s\nshort"),
			from(signal.OriginUser, "tool", "content"),
			from(signal.OriginUser, "tool", "guess"),
			from(signal.OriginInstructions, "tool", "{{ x }}"),
			from(signal.OriginAny, "tool", "P"),
			from(signal.OriginAny, "tool", "Q"),
			short(signal.OriginAny, "tool", "persona\nmore\nlist"),
			seg("tool", "T"),
			seg("tool", "D"),
		},
	}
	if d := cmp.Diff(want, r.Text()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestParseChatTellsMediaFromText(t *testing.T) {
	tests := []struct {
		name, part    string
		images, media bool
	}{
		{"text", `{"type":"text","text":"x"}`, false, false},
		{"image_url", `{"type":"image_url","image_url":{"url":"u"}}`, true, true},
		{"image without a type", `{"image_url":"u"}`, true, true},
		{"input_image", `{"type":"input_image","detail":"low"}`, true, true},
		{"image embeddings", `{"type":"image_embeds","image_embeds":"b"}`, true, true},
		{"audio", `{"type":"input_audio","input_audio":{}}`, false, true},
		{"video", `{"type":"video_url","video_url":{}}`, false, true},
		{"file", `{"type":"file","file":{}}`, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := mustParse(t, message(`{"role":"user","content":[`+tt.part+`]}`))
			if r.HasImages != tt.images || r.Messages[0].HasImage != tt.images || r.HasMedia != tt.media {
				t.Errorf("images %t, message %t, media %t; want %t, %t", r.HasImages, r.Messages[0].HasImage, r.HasMedia, tt.images, tt.media)
			}
		})
	}
}

// A body that was cut names the field in which it ends, as far as that is known: a name that is not
// complete names nothing.
func TestACutBodyNamesTheFieldWhereItEnds(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"auto","mess`:                                                                  "",
		`{"model":"au`:                                                                           "model",
		`{"model":"auto","messages":[`:                                                           "messages",
		`{"model":"auto","messages":[{"role":"us`:                                                "messages[0].role",
		`{"model":"auto","messages":[{"role":"user","content":"hel`:                              "messages[0].content",
		`{"model":"auto","messages":[{"role":"user","content":"hello"}`:                          "messages",
		`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"a`:         "messages[0].content[0].text",
		`{"model":"auto","messages":[{"role":"user","content":"hello"}],"tools":[{"function":{"`: "tools[0].function",
		`{"model":"auto","messages":[{"role":"user","content":"hello"}],"x":{"a":tru`:            "x.a",
	} {
		_, err := ParseChat([]byte(body), Limits{})
		if e, ok := errors.AsType[*Error](err); !ok || e.Param != want || !strings.Contains(e.Message, fmt.Sprintf("at byte %d", len(body))) {
			t.Errorf("%s: param %q with %v, want %q", body, e.Param, err, want)
		}
	}
}

func TestALargeTextStaysWhatItWasWhenOtherBodiesAreRead(t *testing.T) {
	t.Parallel()
	body := func(text string) []byte {
		return []byte(`{"model":"m","messages":[{"role":"user","content":` + text + `}]}`)
	}
	for name, spelled := range map[string]func(letter string) string{
		"as it is": func(letter string) string { return `"` + strings.Repeat(letter, minShared) + `"` },
		"escaped":  func(letter string) string { return `"\n` + strings.Repeat(letter, minShared) + `"` },
		"all escapes": func(letter string) string {
			return `"` + strings.Repeat(fmt.Sprintf(`\u%04x`, letter[0]), minShared) + `"`
		},
		"small": func(letter string) string { return `"\n` + strings.Repeat(letter, 100) + `"` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want string
			if err := json.Unmarshal([]byte(spelled("a")), &want); err != nil {
				t.Fatal(err)
			}
			first, err := ParseChat(body(spelled("a")), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // one of them gets the memory of the first
				if _, err := ParseChat(body(spelled("b")), Limits{}); err != nil {
					t.Fatal(err)
				}
			}
			if first.Messages[0].Text != want {
				t.Error("the text changed")
			}
		})
	}
}

func TestTextSaysWhereMessagesComeFrom(t *testing.T) {
	r := mustParse(t, `{"model":"m","messages":[
		{"role":"developer","name":"dn","content":"d"},
		{"role":"function","name":"fn","content":"f"},
		{"role":"assistant","content":"a","reasoning":"r","tool_calls":[{"function":{"name":"c","arguments":"{}"}}]},
		{"role":"user","name":"un","content":[{"type":"text","text":"u"},{"type":"text","text":"v"}]}]}`)
	want := []signal.Segment{
		seg("developer", "dn"), seg("developer", "d"), seg("function", "fn"), seg("function", "f"),
		seg("assistant", "a"), seg("assistant", "r"), seg("assistant", "c"), seg("assistant", "{}"),
		seg("user", "un"), seg("user", "u\nv"),
	}
	if d := cmp.Diff(want, r.Text().Segments); d != "" {
		t.Errorf("segments (-want +got):\n%s", d)
	}
}
