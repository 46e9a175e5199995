package redact

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// nestedBodies are requests in which %s is a text that may be JSON: as arguments, and as results.
var nestedBodies = []struct {
	name string
	api  openai.API
	body string
	text func(sent []byte) (string, error) // which stands in it
}{
	{
		"the arguments of a call", openai.Chat,
		`{"model":"m","messages":[{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":%s}}]}]}`,
		textAt("messages", 0, "tool_calls", 0, "function", "arguments"),
	},
	{
		"the arguments of a function", openai.Chat,
		`{"model":"m","messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":%s}}]}`,
		textAt("messages", 0, "function_call", "arguments"),
	},
	{
		"the result of a tool", openai.Chat, `{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":%s}]}`,
		textAt("messages", 0, "content"),
	},
	{
		"the result of a function", openai.Chat, `{"model":"m","messages":[{"role":"function","name":"f","content":%s}]}`,
		textAt("messages", 0, "content"),
	},
	{
		"a part of a result", openai.Chat,
		`{"model":"m","messages":[{"role":"tool","tool_call_id":"c",` +
			`"content":[{"type":"text","text":"{}"},{"type":"text","text":%s}]}]}`,
		textAt("messages", 0, "content", 1, "text"),
	},
	{
		"the arguments of an item", openai.Response,
		`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":%s}]}`,
		textAt("input", 0, "arguments"),
	},
	{
		"the output of an item", openai.Response, `{"model":"m","input":[{"type":"function_call_output",` +
			`"call_id":"c","output":%s}]}`,
		textAt("input", 0, "output"),
	},
	{
		"the output of a call of the server", openai.Response,
		`{"model":"m","input":[{"type":"mcp_call","id":"c","name":"f","server_label":"s","arguments":"{}","output":%s}]}`,
		textAt("input", 0, "output"),
	},
	{
		"a part of an output", openai.Response,
		`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":%s}]}]}`,
		textAt("input", 0, "output", 0, "text"),
	},
}

// textAt reads the string at a path of names and indexes.
func textAt(path ...any) func(sent []byte) (string, error) {
	return func(sent []byte) (string, error) {
		var v any
		if err := json.Unmarshal(sent, &v); err != nil {
			return "", err
		}
		for _, at := range path {
			switch at := at.(type) {
			case string:
				v = v.(map[string]any)[at]
			case int:
				v = v.([]any)[at]
			}
		}
		return v.(string), nil
	}
}

func TestJSONInATextStaysJSON(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"a number becomes a string", `{"age": 43, "to": "ann@example.com"}`, `{"age": "[AGE_1]", "to": "[EMAIL_1]"}`},
		{"a list", `[{"age":43}, 43, "43", 4111111111111111]`, `[{"age":"[AGE_1]"}, "[AGE_1]", "[AGE_1]", "[CARD_1]"]`},
		{"other numbers stay", `{"n": 7, "x": [1.5e3, -2]}`, `{"n": 7, "x": [1.5e3, -2]}`},
		{"names of members", `{"ann@example.com": {"x": 43}}`, `{"[EMAIL_1]": {"x": "[AGE_1]"}}`},
		{"values behind each other", "{\"a\":43}\n{\"a\":\"43\"}\n", "{\"a\":\"[AGE_1]\"}\n{\"a\":\"[AGE_1]\"}\n"},
		{"an escape", `{"a":"x\nann@example.com"}`, `{"a":"x\n[EMAIL_1]"}`},
		{
			"a number and a string of one value", `{"a":4111111111111111,"b":"4111 1111 1111 1111"}`,
			`{"a":"[CARD_1]","b":"[CARD_1]"}`,
		},
	}
	for _, b := range nestedBodies {
		for _, tt := range tests {
			t.Run(b.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				out, _ := hideIn(t, b.api, fmt.Sprintf(b.body, quoted(t, tt.text)))
				got, err := b.text(out.Raw)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Text that is not JSON, or that no application parses, is redacted as a whole.
func TestATextWithNumbersIsHidden(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{
			"what the user says",
			`{"model":"m","messages":[{"role":"user","content":"{\"a\":4111111111111111}"},` +
				`{"role":"tool","tool_call_id":"c","content":"{\"a\":4111111111111111}"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"{\"a\":[CARD_1]}"},` +
				`{"role":"tool","tool_call_id":"c","content":"{\"a\":\"[CARD_1]\"}"}]}`,
		},
		{
			"a result that is a number",
			`{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"4111111111111111"}]}`,
			`{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"[CARD_1]"}]}`,
		},
		{
			"a result with more than JSON",
			`{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"[1] 4111111111111111"},` +
				`{"role":"tool","tool_call_id":"c","content":"{\"a\":43} ok"}]}`,
			`{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"[1] [CARD_1]"},` +
				`{"role":"tool","tool_call_id":"c","content":"{\"a\":[AGE_1]} ok"}]}`,
		},
		{
			"a result of which one part is JSON",
			`{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":["found:","{\"a\":4111111111111111}"]}]}`,
			`{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":["found:","{\"a\":[CARD_1]}"]}]}`,
		},
		{
			"arguments that were cut off",
			`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c",` +
				`"type":"function","function":{"name":"f","arguments":"{\"a\":43,\"b\""}}]}]}`,
			`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c",` +
				`"type":"function","function":{"name":"f","arguments":"{\"a\":[AGE_1],\"b\""}}]}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, _ := hide(t, tt.body)
			if diff := cmp.Diff(tt.want, string(out.Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever a classifier finds in valid JSON, the request and the restored response are valid JSON.
func TestValidJSONInATextStaysValid(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		text := "{" + member(rnd, 3) + "}"
		if rnd.IntN(2) == 0 {
			text = "[" + value(rnd, 3) + "," + value(rnd, 3) + "]"
		}
		b := nestedBodies[seed%uint64(len(nestedBodies))]
		req, err := openai.Parse(b.api, fmt.Appendf(nil, b.body, quoted(t, text)), openai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		out, v, err := Hide(t.Context(), req, guesses(rnd, req, text), nil, nil)
		if err != nil {
			t.Fatalf("seed %d: %s: %s: %v", seed, b.name, text, err)
		}
		sent, err := b.text(out.Raw)
		if err != nil || !json.Valid([]byte(text)) || !json.Valid([]byte(sent)) {
			t.Errorf("seed %d: %s: %v\n%s became\n%s", seed, b.name, err, text, sent)
		}
		if !strings.Contains(b.name, "arguments") {
			continue
		}
		r := v.Body()
		came := string(r.Feed(out.Raw)) + string(r.Rest())
		if back, err := b.text([]byte(came)); err != nil || !json.Valid([]byte(back)) {
			t.Errorf("seed %d: %s: %v\n%s came back as\n%s", seed, b.name, err, text, back)
		}
	}
}

// guesses returns random spans in the segments that contain a text.
func guesses(rnd *rand.Rand, req *openai.Request, text string) (out []signal.Span) {
	for i, s := range req.Text().Segments {
		if s.List || !strings.Contains(s.Text, text) {
			continue
		}
		for range 1 + rnd.IntN(6) {
			start := rnd.IntN(len(s.Text))
			end := min(len(s.Text), start+1+rnd.IntN(20))
			if onBoundary(s.Text, start) && onBoundary(s.Text, end) {
				kind := secrets[rnd.IntN(len(secrets))].kind
				out = append(out, signal.Span{Type: kind, Segment: i, Start: start, End: end, Score: 1})
			}
		}
	}
	return out
}

// value returns a random JSON value with at most that many levels.
func value(rnd *rand.Rand, levels int) string {
	kinds := 5
	if levels > 0 {
		kinds = 7
	}
	switch rnd.IntN(kinds) {
	case 0:
		return fmt.Sprint(rnd.IntN(99), "e", rnd.IntN(9))
	case 1:
		return fmt.Sprint("4155552", rnd.IntN(999))
	case 2:
		return [...]string{"null", "true", "false"}[rnd.IntN(3)]
	case 5:
		return "[ " + value(rnd, levels-1) + " ,\n" + value(rnd, levels-1) + "]"
	case 6:
		return "{" + member(rnd, levels-1) + ", " + member(rnd, levels-1) + "}"
	}
	return word(rnd)
}

func member(rnd *rand.Rand, levels int) string { return word(rnd) + ": " + value(rnd, levels) }

// word returns a random JSON string.
func word(rnd *rand.Rand) string {
	var b strings.Builder
	for range rnd.IntN(5) {
		b.WriteString([...]string{
			"ann@example.com", "Ann O'Neil", `\n`, `\"`, `\\`, `\u00e9`, `\ud83d\ude42`, "é", " ",
			"4155552671", "[", "]", "[ROW_1]", "43",
		}[rnd.IntN(14)])
	}
	return `"` + b.String() + `"`
}

// quoted returns a text as a JSON string.
func quoted(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// A street and its town are one finding, and the member name between them is a word of the
// application.
func TestAFindingOverSeveralMembersIsHiddenInEach(t *testing.T) {
	t.Parallel()
	const text = `{"street":"1 Elm St","zip":12345,"city":"Springfield","of Ann O'Neil":true,"to":"Ann O'Neil"}`
	for _, b := range nestedBodies {
		req, err := openai.Parse(b.api, fmt.Appendf(nil, b.body, quoted(t, text)), openai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		spans := spansOf(req)
		for i, s := range req.Text().Segments {
			start, end := strings.Index(s.Text, "1 Elm"), strings.Index(s.Text, `,"of`)
			if start >= 0 {
				spans = append(spans, signal.Span{Type: "STREET_ADDRESS", Segment: i, Start: start, End: end - 1, Score: 1})
			}
		}
		out, _, err := Hide(t.Context(), req, spans, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"street":"[ADDRESS_2]","zip":"[ADDRESS_3]",` +
			`"city":"[ADDRESS_4]","of [PERSON_1]":true,"to":"[PERSON_1]"}`
		if got, err := b.text(out.Raw); got != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", b.name, err, got, want)
		}
	}
}

// foundOnce hides a person whose name a reader has found in the first message alone.
func foundOnce(t *testing.T, body, name string) (*openai.Request, *Vault) {
	t.Helper()
	req := parse(t, body)
	at := strings.Index(req.Text().Segments[0].Text, name)
	span := signal.Span{Type: "PERSON", Start: at, End: at + len(name), Score: 1}
	out, v, err := Hide(t.Context(), req, []signal.Span{span}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out, v
}

// called is a request in which a tool was called.
func called(said, arguments, result string) string {
	return `{"messages":[{"role":"user","content":` + said + `},{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"c","type":"function","function":{"name":"f","arguments":` + strconv.Quote(arguments) + `}}]},` +
		`{"role":"tool","tool_call_id":"c","content":` + strconv.Quote(result) + `}],"model":"auto"}`
}

// Python's json.dumps writes all beyond ASCII as numbers, and so do others.
func TestMentionsThatAreWrittenAsNumbersAreReplaced(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Zoë Núñez", "山田太郎", "𠮷田", "Ольга"} {
		numbers := strings.Trim(strconv.QuoteToASCII(name), `"`)
		if name == "𠮷田" {
			numbers = `\ud842\udfb7\u7530`
		}
		body := called(`"I am `+name+`."`, `{"a":"`+numbers+`"}`, `["`+numbers+` is here", 1]`)
		out, v := foundOnce(t, body, name)
		want := called(`"I am [PERSON_1]."`, `{"a":"[PERSON_1]"}`, `["[PERSON_1] is here", 1]`)
		if diff := cmp.Diff(want, string(out.Raw)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got := string(v.Body().Feed([]byte(`{"arguments":"{\"a\":\"[PERSON_1]\"}"}`)))
		if got != `{"arguments":"{\"a\":\"`+name+`\"}"}` {
			t.Errorf("restored to %s", got)
		}
	}
}
