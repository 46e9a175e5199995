package anthropic

import (
	"encoding/json"
	"errors"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
)

// chatOf translates a body that is complete but for what a test is about.
func chatOf(t *testing.T, more string) *Request {
	t.Helper()
	r, err := ToChat([]byte(`{"model":"m","max_tokens":9`+more+`}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openai.ParseChat(r.Chat, openai.Limits{}); err != nil {
		t.Fatalf("%s is no chat: %v", r.Chat, err)
	}
	return r
}

func TestARequestBecomesTheChatThatSaysTheSame(t *testing.T) {
	t.Parallel()
	const hi = `,"messages":[{"role":"user","content":"hi"}]`
	tests := map[string]struct{ in, want string }{
		"a text": {hi, `"messages":[{"role":"user","content":"hi"}]`},
		"spelled as it came": {
			`,"messages":[{"role":"user","content":"h\u0069 \ud83d\ude00\/"}]`,
			`"messages":[{"role":"user","content":"h\u0069 \ud83d\ude00\/"}]`,
		},
		"blocks of text": {
			`,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
			`"messages":[{"role":"user","content":"a\nb"}]`,
		},
		"a system prompt": {
			`,"system":"s"` + hi,
			`"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]`,
		},
		"blocks of the system": {
			`,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},` +
				`{"type":"text","text":"b"}]` + hi,
			`"messages":[{"role":"system","content":"a\nb"},{"role":"user","content":"hi"}]`,
		},
		"a reminder": {
			`,"messages":[{"role":"user","content":"hi"},{"role":"system","content":"r"}]`,
			`"messages":[{"role":"user","content":"hi"},{"role":"system","content":"r"}]`,
		},
		"billing": {
			`,"system":[{"type":"text","text":"x-anthropic-billing-header: v=1; cch=abc"},` +
				`{"type":"text","text":"b"}]` + hi,
			`"messages":[{"role":"system","content":"b"},{"role":"user","content":"hi"}]`,
		},
		"pictures": {
			`,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64",` +
				`"media_type":"image/png","data":"aGk="}},{"type":"image",` +
				`"source":{"type":"url","url":"https://x/y"}},{"type":"text","text":"a"}]}]`,
			`"messages":[{"role":"user","content":[{"type":"image_url",` +
				`"image_url":{"url":"data:image/png;base64,aGk="}},{"type":"image_url",` +
				`"image_url":{"url":"https://x/y"}},{"type":"text","text":"a"}]}]`,
		},
		"documents": {
			`,"messages":[{"role":"user","content":[{"type":"document","title":"T",` +
				`"context":"C","source":{"type":"text","media_type":"text/plain","data":"D"}},` +
				`{"type":"document","source":{"type":"content","content":[{"type":"text",` +
				`"text":"E"}]}},{"type":"search_result","title":"F","source":"G",` +
				`"content":[{"type":"text","text":"H"}]}]}]`,
			`"messages":[{"role":"user","content":"T\nC\nD\nE\nF\nG\nH"}]`,
		},
		"a file": {
			`,"messages":[{"role":"user","content":[{"type":"document",` +
				`"source":{"type":"base64","media_type":"application/pdf","data":"aGk="}}]}]`,
			`"messages":[{"role":"user","content":[{"type":"file",` +
				`"file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,` +
				`aGk="}}]}]`,
		},
		"a tool loop": {
			`,"messages":[{"role":"user","content":"w?"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"look"},{"type":"tool_use","id":"t1","name":"f","input":{"a": "b\"c"}},{"type":"tool_use","id":"t2","name":"g"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r1"},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"r2"},{"type":"image","source":{"type":"url","url":"u"}}]},{"type":"text","text":"go on"}]}]`,
			`"messages":[{"role":"user","content":"w?"},{"role":"assistant","content":"look","reasoning_content":"hm","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\": \"b\\\"c\"}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"t1","content":"r1"},{"role":"tool","tool_call_id":"t2","content":"Error:\nr2\n[image]"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"go on"}]}]`,
		},
		"calls alone": {
			`,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t",` +
				`"name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result",` +
				`"tool_use_id":"t"}]}]`,
			`"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"t",` +
				`"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool",` +
				`"tool_call_id":"t","content":""}]`,
		},
		"tools": {
			hi + `,"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},` +
				`"cache_control":{"type":"ephemeral"}},{"type":"custom","name":"g",` +
				`"strict":true,"input_schema":{}}]`,
			`"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function",` +
				`"function":{"name":"f","description":"d","parameters":{"type":"object"}}},` +
				`{"type":"function","function":{"name":"g","strict":true,"parameters":{}}}]`,
		},
		"any tool": {
			hi + `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`,
			`"messages":[{"role":"user","content":"hi"}],"tool_choice":"required","parallel_tool_calls":false`,
		},
		"one tool": {
			hi + `,"tool_choice":{"type":"tool","name":"f"}`,
			`"messages":[{"role":"user","content":"hi"}],"tool_choice":{"type":"function","function":{"name":"f"}}`,
		},
		"stream": {
			`,"stream":true,"stop_sequences":["x"]` + hi,
			`"stream":true,"stream_options":{"include_usage":true},"stop":["x"],` +
				`"messages":[{"role":"user","content":"hi"}]`,
		},
		"who asks": {
			`,"metadata":{"user_id":"u"}` + hi,
			`"user":"u","messages":[{"role":"user","content":"hi"}]`,
		},
		"low budget": {
			hi + `,"thinking":{"type":"enabled","budget_tokens":2048}`,
			`"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"low"`,
		},
		"medium budget": {
			hi + `,"thinking":{"type":"enabled","budget_tokens":16384}`,
			`"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"medium"`,
		},
		"high budget": {
			hi + `,"thinking":{"type":"enabled","budget_tokens":16385}`,
			`"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"high"`,
		},
		"no thinking": {
			hi + `,"thinking":{"type":"disabled"}`,
			`"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"none"`,
		},
		"effort": {
			hi + `,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`,
			`"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"max"`,
		},
		"a form": {
			hi + `,"output_config":{"format":{"type":"json_schema","schema":{"a":1}}}`,
			`"messages":[{"role":"user","content":"hi"}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"output",` +
				`"strict":true,"schema":{"a":1}}}`,
		},
		"what nobody knows": {
			`,"top_k":3,"temperature":1e0,"signalbox":{"guard":"hold"}` + hi,
			`"top_k":3,"temperature":1e0,"signalbox":{"guard":"hold"},"messages":[{"role":"user","content":"hi"}]`,
		},
		"nulls": {
			`,"system":null,"tools":null,"thinking":null,"stop_sequences":null` + hi,
			`"messages":[{"role":"user","content":"hi"}]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, want any
			if err := json.Unmarshal(chatOf(t, tt.in).Chat, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(`{"model":"m","max_tokens":9,`+tt.want+`}`), &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if got := string(
		chatOf(t, tests["spelled as it came"].in).Chat,
	); !strings.Contains(
		got,
		`"h\u0069 \ud83d\ude00\/"`,
	) {
		t.Errorf("a text is spelled another way: %s", got)
	}
}

func TestWhatHasNoPlaceIsTold(t *testing.T) {
	t.Parallel()
	const hi = `,"messages":[{"role":"user","content":"hi"}]`
	for in, want := range map[string]string{
		hi: "",
		hi + `,"cache_control":{"type":"ephemeral","ttl":"1h"}`:                                  "",
		hi + `,"cache_control":{"type":"a text"}`:                                                "cache_control",
		hi + `,"context_management":{"edits":[]},"service_tier":"auto"`:                          "context_management service_tier",
		hi + `,"tools":[{"name":"f","input_schema":{},"defer_loading":true,"X Y":1}]`:            "tools.defer_loading tools.?",
		`,"messages":[{"role":"user","content":[{"type":"text","text":"a","foo":1}]}]`:           "text.foo",
		`,"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}]`: "redacted_thinking",
		`,"system":[{"type":"text","text":"x-anthropic-billing-header: v"}]` + hi:                "system.billing_header",
		`,"messages":[{"role":"assistant","content":[{"type":"text","text":"a",` +
			`"citations":[{"type":"x"}]}]}]`: "text.citations",
	} {
		r := chatOf(t, in)
		if got := strings.Join(r.LeftOut, " "); got != want || r.Exact != (want == "") {
			t.Errorf("%s: left out %q, exact %v, want %q", in, got, r.Exact, want)
		}
	}
}

func TestMessagesKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	const result, text = `{"type":"tool_result","tool_use_id":"c","content":"r"}`, `{"type":"text","text":"t"}`
	const shown = `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url","url":"u"}}]}`
	turn := func(blocks ...string) string {
		return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
	}
	said := func(turns ...string) string { return `,"messages":[` + strings.Join(turns, ",") + `]` }
	const plain = `{"role":"user","content":"a"}`
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}`
	for in, want := range map[string]string{
		said(plain):                             "messages[0]",
		`,"system":"s"` + said(plain):           "system, messages[0]",
		`,"system":[]` + said(plain):            "messages[0]",
		said(plain, call, turn(result, result)): "messages[0], messages[1], messages[2].content[0], messages[2].content[1]",
		said(plain, call, turn(result, text)):   "messages[0], messages[1], messages[2].content[0], messages[2].content[1]",
		said(turn(result, text, text)):          "messages[0].content[0], messages[0]",
		said(turn(shown)):                       "messages[0].content[0], messages[0].content[0]",
		said(turn(text)):                        "messages[0].content[0]",
		said(turn()):                            "messages[0]",
		said(turn(result), `{"role":"system","content":"r"}`, plain): "messages[0].content[0], messages[1], messages[2]",
	} {
		r := chatOf(t, in)
		var got []string
		for _, p := range r.Places {
			got = append(got, p.String())
		}
		chat, err := openai.ParseChat(r.Chat, openai.Limits{})
		if err != nil || len(chat.Messages) != len(got) || strings.Join(got, ", ") != want {
			t.Errorf("%s: places %v of %s, want %s (%v)", in, got, r.Chat, want, err)
		}
	}
}

func TestErrorsNameTheFieldInTheirMessage(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]openai.Error{
		"messages.3.content.0: Declined.": {Param: "messages[3].content[0]", Message: "Declined."},
		"messages.3.content.0.text is needed": {
			Param: "messages[3].content[0].text", Message: "messages[3].content[0].text is needed",
		},
		"system: Do not change the system.":     {Param: "system", Message: "Do not change the system."},
		"unknown model \\\"a[0]\\\"":            {Param: "model", Message: `unknown model "a[0]"`},
		"no":                                    {Message: "no"},
		"messages.1: invalid JSON at byte 5: x": {Param: "messages[1]", Message: "invalid JSON at byte 5: x"},
	} {
		if got := string(AppendError(nil, &e, "")); !strings.Contains(got, `"message":"`+want+`"`) {
			t.Errorf("%+v: %s, want %s", e, got, want)
		}
	}
}

// A schema of a tool lies one level deeper in a chat, so that it is the parser's to refuse.
func TestErrorsOfTheChatNameTheFieldThatWasSent(t *testing.T) {
	t.Parallel()
	const hi = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],`
	const deep = `{"a":{"b":{}}}`
	for in, want := range map[string]string{
		`"tools":[{"name":"f","input_schema":` + deep + `}]`:                      "tools[0].input_schema.a",
		`"output_config":{"format":{"type":"json_schema","schema":` + deep + `}}`: "output_config.format.schema.a.b",
		`"output_format":{"type":"json_schema","schema":` + deep + `}`:            "output_format.schema.a.b",
		`"x":{"function":{"parameters":` + deep + `}}`:                            "x.function.parameters.a.b",
	} {
		r, err := ToChat([]byte(hi+in+"}"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = openai.ParseChat(r.Chat, openai.Limits{MaxDepth: 5})
		e, ok := errors.AsType[*openai.Error](r.Blame(err))
		if !ok || e.Param != want || e.Message != want+" nested deeper than 5 levels" {
			t.Errorf("%s: %v, want an error about %s", in, r.Blame(err), want)
		}
	}
	for _, err := range []error{errors.New("other"), &openai.Error{Message: "no field"}, nil} {
		if got := new(Request).Blame(err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestBadRequestsNameTheField(t *testing.T) {
	t.Parallel()
	const hi = `,"messages":[{"role":"user","content":"hi"}]`
	block := func(role, b string) string {
		return `,"messages":[{"role":"user","content":"a"},{"role":"` + role + `","content":[{"type":"text","text":"x"},` + b + `]}]`
	}
	const at = "messages[1].content[1]"
	fields := map[string]string{
		``:                              "messages",
		`,"messages":[]`:                "messages",
		`,"messages":{}`:                "messages",
		`,"messages":["a"]`:             "messages[0]",
		`,"messages":[{"content":"a"}]`: "messages[0].role",
		`,"messages":[{"role":"user"}]`: "messages[0].content",
		`,"messages":[{"role":"tool","content":"a"}]`:                            "messages[0].role",
		`,"messages":[{"role":"user","content":7}]`:                              "messages[0].content",
		`,"messages":[{"role":"user","content":["bare"]}]`:                       "messages[0].content[0]",
		block("user", `{"text":"a"}`):                                            at + ".type",
		block("user", `{"type":"text"}`):                                         at + ".text",
		block("user", `{"type":"text","text":7}`):                                at + ".text",
		block("user", `{"type":"tool_use","id":"a","name":"b","input":{}}`):      at + ".type",
		block("user", `{"type":"server_tool_use"}`):                              at + ".type",
		block("user", `{"type":"image"}`):                                        at + ".source",
		block("user", `{"type":"image","source":{"type":"file","file_id":"f"}}`): at + ".source.type",
		block("user", `{"type":"image","source":{"type":"base64","data":"x"}}`):  at + ".source.media_type",
		block("user", `{"type":"image","source":{"type":"base64","media_type":"a;b","data":"x"}`+
			`}`): at + ".source.media_type",
		block("user", `{"type":"document","source":{"type":"url","url":"x"}}`): at + ".source.type",
		block("user", `{"type":"document","citations":{"enabled":true},"source":{"type":"text"}`+
			`}`): at + ".citations.enabled",
		block("user", `{"type":"tool_result","content":"x"}`):                              at + ".tool_use_id",
		block("user", `{"type":"tool_result","tool_use_id":"x","is_error":"yes"}`):         at + ".is_error",
		block("user", `{"type":"tool_result","tool_use_id":"x","content":[{"type":"x"}]}`): at + ".content[0].type",
		block("assistant", `{"type":"tool_use","id":"a","name":"b","input":"c"}`):          at + ".input",
		block("assistant", `{"type":"tool_use","id":"a","input":{}}`):                      at + ".name",
		block("assistant", `{"type":"tool_result","tool_use_id":"a"}`):                     at + ".type",
	}
	maps.Copy(fields, map[string]string{
		hi + `,"system":7`:                                 "system",
		hi + `,"system":[{"type":"image"}]`:                "system[0].type",
		hi + `,"stream":"yes"`:                             "stream",
		hi + `,"stop_sequences":[7]`:                       "stop_sequences[0]",
		hi + `,"metadata":{"user_id":7}`:                   "metadata.user_id",
		hi + `,"tools":[{"name":"f"}]`:                     "tools[0].input_schema",
		hi + `,"tool_choice":{"type":"required"}`:          "tool_choice.type",
		hi + `,"tool_choice":{"type":"tool"}`:              "tool_choice.name",
		hi + `,"thinking":{"type":"enabled"}`:              "thinking.budget_tokens",
		hi + `,"thinking":{"type":"on"}`:                   "thinking.type",
		hi + `,"output_config":{"effort":"some"}`:          "output_config.effort",
		hi + `,"output_config":{"format":{"type":"text"}}`: "output_config.format.type",
		hi + `,"mcp_servers":[{"url":"x"}]`:                "mcp_servers",
		hi + `,"n":2`:                                      "n",
		hi + `,"max_completion_tokens":2`:                  "max_completion_tokens",

		hi + `,"tools":[{"type":"web_search_20250305","name":"web_search"}]`: "tools[0].type",
	})
	for in, want := range fields {
		_, err := ToChat([]byte(`{"model":"m","max_tokens":9`+in+`}`), Options{})
		var e *openai.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Param != want || !strings.HasPrefix(e.Message, want) {
			t.Errorf("%s: %+v, want a 400 about %s", in, err, want)
		}
	}
	const noSystem = "system must be a string or a list of blocks"
	for in, want := range map[string]string{
		``:                        "invalid JSON at byte 0",
		`[]`:                      "the body must be an object",
		`{"model":"m"} x`:         "invalid JSON",
		`{"model":"m","model":1}`: "invalid JSON",
		"{\"model\":\"\xff\"}":    "invalid JSON",
		`{"model":"","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`:             "model must not be empty",
		`{"model":"m","messages":[{"role":"user","content":"a"}]}`:                           "max_tokens is required",
		`{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"a"}]}`:            "max_tokens must be",
		`{"model":"m","max_tokens":9,"system":5,"messages":[{"role":"user","content":"a"}]}`: noSystem,
	} {
		if _, err := ToChat([]byte(in), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, err := ToChat(
		[]byte(`{"model":"m","messages":[{"role":"user","content":"a"}]}`),
		Options{Counting: true},
	); err != nil {
		t.Errorf("to count: %v", err)
	}
}

func TestBlocksAndMessagesAreBounded(t *testing.T) {
	t.Parallel()
	many := func(one string) string { return strings.TrimSuffix(strings.Repeat(one+",", 20), ",") }
	o := Options{Limits: openai.Limits{MaxMessages: 10, MaxParts: 10}}
	for in, want := range map[string]string{
		`"messages":[` + many(`{"role":"user","content":"a"}`) + `]`:                                          "messages holds more than 10 messages",
		`"messages":[{"role":"user","content":[` + many(`{"type":"text","text":"a"}`) + `]}]`:                 "messages holds more than 10 blocks",
		`"messages":[{"role":"user","content":"a"}],"tools":[` + many(`{"name":"f","input_schema":{}}`) + `]`: "messages holds more than 10 blocks",
	} {
		if _, err := ToChat([]byte(`{"model":"m","max_tokens":1,`+in+`}`), o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTheNestingOfABodyIsBounded(t *testing.T) {
	t.Parallel()
	const open, end = `{"type":"document","source":{"type":"content","content":[`, `]}}`
	documents := func(n int) string {
		return `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[` +
			strings.Repeat(open, n) + `{"type":"text","text":"a"}` + strings.Repeat(end, n) + `]}]}]`
	}
	nested := func(n int, s string) string {
		return `"messages":[{"role":"user","content":"a"}],"metadata":` +
			strings.Repeat(`{"a":`, n) + s + strings.Repeat("}", n)
	}
	const in = "messages[0].content[0].content[0].source.content[0].source.content[0].source.content"
	for _, tt := range []struct{ body, want, param string }{
		{documents(1), "", ""},
		{documents(3), "", ""},
		{documents(4), in + "[0].source.content lies within more than 4 blocks", in + "[0].source.content"},
		{documents(3000), "the body is nested deeper than 128 levels", ""},
		{nested(127, "1"), "", ""},
		{nested(128, "1"), "the body is nested deeper than 128 levels", ""},
		{nested(127, `"[{\\\"["`), "", ""},
		{nested(127, `["\\"]`), "the body is nested deeper than 128 levels", ""},
		{nested(127, `"`), "invalid JSON at byte", ""},
	} {
		_, err := ToChat([]byte(`{"model":"m","max_tokens":1,`+tt.body+`}`), Options{})
		e, _ := errors.AsType[*openai.Error](err)
		if (tt.want == "") != (err == nil) ||
			err != nil && (e.Param != tt.param && tt.param != "" || !strings.HasPrefix(e.Message, tt.want)) {
			t.Errorf("%.200s: %v, want %q", tt.body, err, tt.want)
		}
	}
	o := Options{Limits: openai.Limits{MaxDepth: 200}}
	if _, err := ToChat([]byte(`{"model":"m","max_tokens":1,`+nested(150, "1")+`}`), o); err != nil {
		t.Errorf("with a higher limit: %v", err)
	}
}

// What is read of a block, and has no meaning for its kind, is left out as well as what nobody
// knows.
func TestMembersOfOtherBlocksAreLeftOut(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]string{
		`{"type":"text","text":"a","title":"b"}`:                                            "text.title",
		`{"type":"image","source":{"type":"url","url":"u","data":"d"}}`:                     "source.data",
		`{"type":"document","citations":{"k":"v"},"source":{"type":"text","data":"d"}}`:     "citations.k",
		`{"type":"tool_result","tool_use_id":"i","content":"c","name":"n","signature":"s"}`: "tool_result.name tool_result.signature",
	} {
		r := chatOf(t, `,"messages":[{"role":"user","content":[`+block+`]}]`)
		if got := strings.Join(r.LeftOut, " "); got != want || r.Exact {
			t.Errorf("%s: left out %q, exact %v", block, got, r.Exact)
		}
	}
}

// TestTheWholeRequestHoldsEveryMember reads the names that the translation knows from its source:
// one that the body lacks would be one whose readers nobody has looked at (proxy/redact,
// docs/members.md).
func TestTheWholeRequestHoldsEveryMember(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("../openai/testdata/whole/messages.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ToChat(whole, Options{}); err != nil {
		t.Fatal(err)
	}
	refused := []string{ // by ToChat, or values that it holds one of
		"container",
		"mcp_servers",
		"stop",
		"stream_options",
		"n",
		"best_of",
		"functions",
		"function_call",
		"response_format",
		"parallel_tool_calls",
		"reasoning_effort",
		"max_completion_tokens",
		"user",
		"betas",
		"anthropic_beta",
		"output_format",
		"auto",
		"none",
		"any",
		"adaptive",
		"disabled",
		"omitted",
		"updates",
	}
	testkit.Cases(t, func(at token.Position, quoted string) {
		if !strings.Contains(string(whole), quoted) && !slices.Contains(refused, strings.Trim(quoted, `"`)) {
			t.Errorf("%s: the body lacks %s", at, quoted)
		}
	}, "request.go", "blocks.go", "tools.go")
}

// FuzzToChat: nothing panics; what is translated is a chat unless the parser of chats refuses it
// for a reason of its own, is valid JSON, and where nothing was left out every string of the
// content is in it.
func FuzzToChat(f *testing.F) {
	whole, err := os.ReadFile("../openai/testdata/whole/messages.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(
		[]byte(
			`{"model":"m","max_tokens":9,"messages":[{"role":"user",` +
				`"content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text",` +
				`"text":"\u00e9"}]}]}]}`,
		),
	)
	f.Add([]byte(`{"model":"m","max_tokens":9,"system":[],"messages":[{"role":"assistant","content":[]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := ToChat(raw, Options{})
		if err != nil {
			if e, ok := errors.AsType[*openai.Error](err); !ok || e.Status != 400 || e.Message == "" {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !json.Valid(r.Chat) {
			t.Fatalf("%q became %q", raw, r.Chat)
		}
		if got := raw[r.Model.Start:r.Model.End]; !json.Valid(got) || got[0] != '"' {
			t.Fatalf("the model of %q is at %v", raw, r.Model)
		}
		req, err := openai.ParseChat(r.Chat, openai.Limits{})
		if err == nil && req.Model == "" {
			t.Fatalf("%q has no model", r.Chat)
		}
	})
}

func BenchmarkToChat(b *testing.B) {
	turn := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"` + strings.Repeat(
		`a line of code();\n`,
		50,
	) + `"},{"type":"text","text":"go on"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"look"},{"type":"tool_use",` +
		`"id":"t","name":"read","input":{"path":"a/b.go"}}]}`
	raw := []byte(
		`{"model":"m","max_tokens":9,"messages":[` + strings.TrimSuffix(strings.Repeat(turn+",", 100), ",") + `]}`,
	)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ToChat(raw, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
