package redact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

// secrets are the values that the tests redact, with their types, in search order.
var secrets = []struct{ kind, value string }{
	{"EMAIL_ADDRESS", "ann@example.com"},
	{"EMAIL_ADDRESS", "ANN@Example.com"},
	{"EMAIL_ADDRESS", "bob@example.org"},
	{"CREDIT_CARD", "4111 1111 1111 1111"},
	{"CREDIT_CARD", "4111111111111111"},
	{"PERSON", "Ann O'Neil"},
	{"PERSON", `Jo "JJ" Doe`},
	{"PERSON", `Jos\u00e9`},
	{"PERSON", "José"},
	{"STREET_ADDRESS", "1 Elm St\nSpringfield"},
	{"AGE", "43"},
	{"x-custom", "K-77"},
}

// spansOf finds the secrets in the texts of a request, like a classifier.
func spansOf(req *openai.Request) []signal.Span {
	var out []signal.Span
	for i, s := range req.Text().Segments {
		for _, x := range secrets {
			for from := 0; ; {
				k := strings.Index(s.Text[from:], x.value)
				if k < 0 {
					break
				}
				out = append(out, signal.Span{Type: x.kind, Segment: i, Start: from + k, End: from + k + len(x.value), Score: 1})
				from += k + len(x.value)
			}
		}
	}
	return out
}

func parse(tb testing.TB, body string) *openai.Request {
	tb.Helper()
	req, err := openai.ParseChat([]byte(body), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return req
}

func hide(tb testing.TB, body string) (*openai.Request, *Vault) {
	tb.Helper()
	req := parse(tb, body)
	out, v, err := Hide(tb.Context(), req, spansOf(req), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return out, v
}

func TestHideRewritesNothingButWhatItHides(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{
			"a text without anything stays as it is",
			`{"model":"auto", "messages":[{"role":"user","content":"h\u00e9 [EMAIL_1]"}]}`,
			`{"model":"auto", "messages":[{"role":"user","content":"h\u00e9 [EMAIL_1]"}]}`,
		},
		{
			"the spelling around a value stays",
			`{"model":"auto","temperature":1.0,"messages":[{"role":"user","content":"h\u00e9 \ud83d\ude42 ann@example.com \/ x"}]}`,
			`{"model":"auto","temperature":1.0,"messages":[{"role":"user","content":"h\u00e9 \ud83d\ude42 [EMAIL_1] \/ x"}]}`,
		},
		{
			"one value has one placeholder, whatever its case and separators",
			`{"model":"auto","messages":[{"role":"user","content":"ann@example.com ANN@Example.com bob@example.org 4111 1111 1111 1111 4111111111111111"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"[EMAIL_1] [EMAIL_1] [EMAIL_2] [CARD_1] [CARD_1]"}]}`,
		},
		{
			"every role, part, call and result is rewritten",
			`{"messages":[{"role":"system","content":"for ann@example.com"},{"role":"user","name":"ann@example.com","content":[{"type":"text","text":"I am Ann O'Neil"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},"bob@example.org"]},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"mail","arguments":"{\"to\":\"ann@example.com\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"sent to bob@example.org"}],"model":"auto"}`,
			`{"messages":[{"role":"system","content":"for [EMAIL_1]"},{"role":"user","name":"[EMAIL_1]","content":[{"type":"text","text":"I am [PERSON_1]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},"[EMAIL_2]"]},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"mail","arguments":"{\"to\":\"[EMAIL_1]\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"sent to [EMAIL_2]"}],"model":"auto"}`,
		},
		{
			"mentions that no reader found are replaced, in any case, and outside of messages",
			`{"model":"auto","user":"ann@example.com","metadata":{"id":"bob@example.org"},"stop":["ANN O'NEIL"],"messages":[{"role":"user","content":"ann@example.com, bob@example.org, Ann O'Neil, 43"},{"role":"user","content":"ann  o'neil and Ann O'Neillo"}]}`,
			`{"model":"auto","user":"[EMAIL_1]","metadata":{"id":"[EMAIL_2]"},"stop":["[PERSON_1]"],"messages":[{"role":"user","content":"[EMAIL_1], [EMAIL_2], [PERSON_1], [AGE_1]"},{"role":"user","content":"[PERSON_1] and [PERSON_1]lo"}]}`,
		},
		{
			"a placeholder that the request holds already is not used",
			`{"model":"auto","messages":[{"role":"user","content":"[EMAIL_1] \u005bEMAIL_2] ann@example.com"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"[EMAIL_1] \u005bEMAIL_2] [EMAIL_3]"}]}`,
		},
		{
			"a value over two parts is replaced in the first and cut out of the second",
			`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"at 1 Elm St"},{"type":"text","text":""},{"type":"text","text":"Springfield now"}]}]}`,
			`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"at [ADDRESS_1]"},{"type":"text","text":""},{"type":"text","text":" now"}]}]}`,
		},
		{
			"a type that is not ours gives its own word",
			`{"model":"auto","messages":[{"role":"user","content":"K-77"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"[XCUSTOM_1]"}]}`,
		},
		{
			"two messages of the same parts are both rewritten",
			`{"model":"auto","messages":[{"role":"user","content":["ann@example.com","x"]},{"role":"user","content":["ann@example.com","x"]}]}`,
			`{"model":"auto","messages":[{"role":"user","content":["[EMAIL_1]","x"]},{"role":"user","content":["[EMAIL_1]","x"]}]}`,
		},
		{
			"an escape in front of a value inside arguments stays whole",
			`{"model":"auto","messages":[{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"x\\nann@example.com\",\"b\":\"Jos\\u00e9\"}"}}]},{"role":"user","content":"José"}]}`,
			`{"model":"auto","messages":[{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"x\\n[EMAIL_1]\",\"b\":\"[PERSON_1]\"}"}}]},{"role":"user","content":"[PERSON_1]"}]}`,
		},
		{
			"members of a call's own object may have any name",
			`{"model":"auto","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"id":"ann@example.com","role":"Ann O'Neil"}}}]}]}`,
			`{"model":"auto","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"id":"[EMAIL_1]","role":"[PERSON_1]"}}}]}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _ := hide(t, tt.body)
			if diff := cmp.Diff(tt.want, string(out.Raw)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// A mention is a whole word: inside a longer word it is another name, except in scripts that do not
// separate words.
func TestAMentionIsAWholeWord(t *testing.T) {
	req := parse(t, `{"model":"auto","messages":[{"role":"user","content":"Anna, anna, Annabel, Rose, rose, 漢字, ສົມພອນ"},{"role":"user","content":"x漢字y ANNA ທ້າວສົມພອນມາ"}]}`)
	spans := []signal.Span{{Type: "PERSON", End: 4}, {Type: "PERSON", Start: 21, End: 25}, {Type: "PERSON", Start: 33, End: 39}, {Type: "PERSON", Start: 41, End: 59}}
	out, _, err := Hide(t.Context(), req, spans, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"auto","messages":[{"role":"user","content":"[PERSON_1], [PERSON_1], Annabel, [PERSON_2], rose, [PERSON_3], [PERSON_4]"},{"role":"user","content":"x[PERSON_3]y [PERSON_1] ທ້າວ[PERSON_4]ມາ"}]}`
	if diff := cmp.Diff(want, string(out.Raw)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestASpanThatStartsInsideAnEscapeOfArgumentsLeavesTheEscape(t *testing.T) {
	req := parse(t, `{"model":"auto","messages":[{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"\\nann@example.com\"}"}}]}]}`)
	// A reader that does not know JSON takes the n of the line break for the first letter.
	text := req.Text().Segments[1].Text
	start := strings.Index(text, "nann@")
	out, v, err := Hide(t.Context(), req, []signal.Span{{Type: "EMAIL_ADDRESS", Segment: 1, Start: start, End: start + len("nann@example.com"), Score: 1}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"a":"\n[EMAIL_1]"}`
	if got := out.Text().Segments[1].Text; got != want {
		t.Errorf("arguments are %s, want %s", got, want)
	}
	if got := v.secrets["[EMAIL_1]"].value; got != "ann@example.com" {
		t.Errorf("the value kept is %q", got)
	}
}

func TestHideFailsRatherThanLeaveSomething(t *testing.T) {
	req := parse(t, `{"model":"auto","messages":[{"role":"user","content":"né ann@example.com"}]}`)
	tests := []struct {
		name string
		span signal.Span
	}{
		{"a span of no segment", signal.Span{Segment: 1, End: 1}},
		{"a span before the text", signal.Span{Start: -1, End: 1}},
		{"a span beyond the text", signal.Span{Start: 1, End: 99}},
		{"an empty span", signal.Span{Start: 1, End: 1}},
		{"a span that cuts a character", signal.Span{Start: 2, End: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, v, err := Hide(t.Context(), req, []signal.Span{tt.span}, nil, nil)
			if !errors.Is(err, ErrIncomplete) || out != nil || v != nil {
				t.Errorf("got %v, %v, %v; want nothing but ErrIncomplete", out, v, err)
			}
			if err != nil && strings.Contains(err.Error(), "example") {
				t.Errorf("the error tells the text: %v", err)
			}
		})
	}
}

// A restored response must decode to the text in which each placeholder is replaced by its value.
func TestABodyIsRestoredWhateverThePieces(t *testing.T) {
	_, v := hide(t, `{"model":"auto","messages":[{"role":"user","content":"ann@example.com Jo \"JJ\" Doe 1 Elm St\nSpringfield [EMAIL_2] bob@example.org"}]}`)
	const answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"To [EMAIL_1], [PERSON_1] ` +
		`[EMAIL_2] [EMAIL_9] [EMA \"[ADDRESS_1]\" \\[EMAIL_1]","reasoning_content":"[[PERSON_1]] \\[PERSON\\_1\\]\\",` +
		`"tool_calls":[{"function":{"name":"f","arguments":"{\"to\":\"[PERSON_1]\",` +
		`\"at\":[\"\\\\[ADDRESS\\\\_1\\\\]\"]}"}}]},"logprobs":[[1,2],[]]}],"usage":{"total_tokens":3}}`
	const want = `{"choices":[{"index":0,"message":{"role":"assistant","content":"To ann@example.com, Jo \"JJ\" Doe ` +
		`[EMAIL_2] [EMAIL_9] [EMA \"1 Elm St\nSpringfield\" \\ann@example.com","reasoning_content":"[Jo \"JJ\" Doe] Jo ` +
		`\"JJ\" Doe\\",` +
		`"tool_calls":[{"function":{"name":"f","arguments":"{\"to\":\"Jo \\\"JJ\\\" Doe\",\"at\":[\"1 Elm St\\nSpringfield\"]}"}}]},"logprobs":[[1,2],[]]}],"usage":{"total_tokens":3}}`
	for size := 1; size <= len(answer); size++ {
		b := v.Body()
		var got []byte
		for from := 0; from < len(answer); from += size {
			got = append(got, b.Feed([]byte(answer[from:min(len(answer), from+size)]))...)
		}
		got = append(got, b.Rest()...)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Fatalf("in pieces of %d (-want +got):\n%s", size, diff)
		}
	}
	var call struct {
		Choices []struct {
			Message struct {
				Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(want), &call); err != nil || !json.Valid([]byte(call.Choices[0].Message.Calls[0].Function.Arguments)) {
		t.Errorf("restored arguments are no JSON: %v", err)
	}
}

// Text of a request with Markdown escapes is not a placeholder.
func TestAPlaceholderWithEscapesInARequestIsLeftAlone(t *testing.T) {
	const text = `\\[EMAIL\\_1\\] and [EMAIL_2\\]`
	out, v := hide(t, `{"model":"auto","messages":[{"role":"user","content":"`+text+` ann@example.com"}]}`)
	if got, want := string(openai.Member(out.Raw, "messages")), `[{"role":"user","content":"`+text+` [EMAIL_3]"}]`; got != want {
		t.Errorf("hidden as %s", got)
	}
	if got := string(v.Body().Feed([]byte(`{"content":"` + text + ` \\[EMAIL\\_3\\]"}`))); got != `{"content":"`+text+` ann@example.com"}` {
		t.Errorf("restored to %s", got)
	}
}

func TestContentThatIsJSONIsRestoredAsJSON(t *testing.T) {
	const (
		plain = `{"content":"{\"name\":\"Jo \"JJ\" Doe\"}","reasoning":"Jo \"JJ\" Doe"}`
		inner = `{"content":"{\"name\":\"Jo \\\"JJ\\\" Doe\"}","reasoning":"Jo \"JJ\" Doe"}`
	)
	for asked, want := range map[string]string{
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}}`: inner,
		`"guided_json":{"type":"object"}`:                                                 inner,
		`"structured_outputs":{"json":{}}`:                                                inner,
		`"structured_outputs":{"json":"{}"}`:                                              inner,
		`"structured_outputs":{"json_object":true}`:                                       inner,
		`"structured_outputs":{"json":null,"json_object":false,"regex":"json"}`:           plain,
	} {
		_, v := hide(t, `{"model":"auto",`+asked+`,"messages":[{"role":"user","content":"Jo \"JJ\" Doe"}]}`)
		got := string(v.Body().Feed([]byte(`{"content":"{\"name\":\"[PERSON_1]\"}","reasoning":"[PERSON_1]"}`)))
		if got != want {
			t.Errorf("%s: got  %s\nwant %s", asked, got, want)
		}
	}
}

func TestWithoutSpansNothingIsTouched(t *testing.T) {
	req := parse(t, `{"model":"auto","messages":[{"role":"user","content":"[EMAIL_1]"}]}`)
	out, v, err := Hide(t.Context(), req, nil, nil, nil)
	if out != req || v != nil || err != nil {
		t.Fatalf("got %v, %v, %v", out, v, err)
	}
	piece := []byte("[EMAIL_1]")
	if got := v.Body().Feed(piece); &got[0] != &piece[0] {
		t.Error("a nil Body does not pass on what it gets")
	}
	next := &collected{new([]byte)}
	if got := v.Stream(next); got != next {
		t.Error("there is something between a stream and its client")
	}
	if len(v.Body().Rest()) != 0 {
		t.Error("a nil Body holds something")
	}
}

func TestATextThatLooksLikeMediaIsRewritten(t *testing.T) {
	const text = "data: please write to ann@example.com about it, which is quite important to all of us here"
	out, _ := hide(t, `{"model":"auto","user":"`+text+`","messages":[{"role":"user","content":"`+text+`"},{"role":"user","content":[{"type":"text","text":"`+text+`"}]}]}`)
	if got := strings.Count(string(out.Raw), "[EMAIL_1]"); got != 3 || strings.Contains(string(out.Raw), "ann@") {
		t.Errorf("sent %s", out.Raw)
	}
}

func TestHidingTakesTimeInProportionToTheText(t *testing.T) {
	const n, limit = 20_000, 5 * time.Second // a search for each value in turn takes minutes
	var distinct, parts strings.Builder
	for i := range n {
		fmt.Fprintf(&distinct, "aa%06d@example.com ", i)
		fmt.Fprintf(&parts, `,{"type":"text","text":"aa%06d@example.com"}`, i)
	}
	for _, tt := range []struct{ name, body string }{
		{"many values that begin alike", `{"model":"auto","messages":[{"role":"user","content":"` + distinct.String() + `"}]}`},
		{"many parts", `{"model":"auto","messages":[{"role":"user","content":[` + parts.String()[1:] + `]}]}`},
		{"many mentions", `{"model":"auto","user":"` + strings.Repeat("aa000001@example.com ", n) + `","messages":[{"role":"user","content":"aa000001@example.com"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := parse(t, tt.body)
			var spans []signal.Span
			for i, s := range req.Text().Segments {
				at := 0
				for word := range strings.FieldsSeq(s.Text) {
					spans = append(spans, signal.Span{Type: "EMAIL_ADDRESS", Segment: i, Start: at, End: at + len(word), Score: 1})
					at += len(word) + 1
				}
			}
			var out *openai.Request
			var err error
			took := testkit.CPUTime(t, func() { out, _, err = Hide(t.Context(), req, spans, nil, nil) })
			if err != nil || strings.Contains(string(out.Raw), "@example") {
				t.Fatalf("error %v, or a value is left", err)
			}
			if took > limit {
				t.Errorf("%d bytes took %v, want at most %v", len(tt.body), took, limit)
			}
		})
	}
}

func TestAValueComesBackOnOneLine(t *testing.T) {
	const answer = `{"choices":[{"message":{"content":"To [ADDRESS_1]."}}]}`
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	parts := func(one, two string) string {
		return user(`[{"type":"text","text":"` + one + `"},{"type":"text","text":"` + two + `"}]`)
	}
	call := func(arguments string) string {
		return `{"role":"assistant","tool_calls":[{"id":"c","type":"function",` +
			`"function":{"name":"f","arguments":"` + arguments + `"}}]}`
	}
	lines := user(`"1 Elm St\nSpringfield"`)
	for name, tt := range map[string]struct{ messages, want string }{
		"found on one line elsewhere": {
			user(`"1 Elm St\nSpringfield, or 1 ELM ST SPRINGFIELD"`), `To 1 ELM ST SPRINGFIELD.`,
		},
		"written over two parts":       {parts("at 1 Elm St", "Springfield."), `To 1 Elm St Springfield.`},
		"written over two lines alone": {lines, `To 1 Elm St\nSpringfield.`},
		"mentioned over two parts": {
			lines + "," + parts("at 1 ELM ST", "SPRINGFIELD."), `To 1 ELM ST SPRINGFIELD.`,
		},
		"mentioned in a call, as JSON": {
			lines + "," + call(`{\"a\":\"1 ELM ST\\nSPRINGFIELD\"}`), `To 1 Elm St\nSpringfield.`,
		},
		"mentioned on one line in a call": {
			lines + "," + call(`{\"a\":\"1 Elm St Springfield\"}`), `To 1 Elm St Springfield.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, v := hide(t, `{"model":"auto","messages":[`+tt.messages+`]}`)
			if strings.Contains(strings.ToLower(string(out.Raw)), "springfield") {
				t.Errorf("a value is left in %s", out.Raw)
			}
			got := string(v.Body().Feed([]byte(answer)))
			if !strings.Contains(got, `"`+tt.want+`"`) {
				t.Errorf("restored to %s", got)
			}
		})
	}
}

func TestAPathComesBackAsItIsSpelled(t *testing.T) {
	out, v := hide(t, `{"model":"auto","messages":[{"role":"user","content":"I am José, or JOSÉ: open /home/josé/app, josé-fix."},`+
		`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"p\":\"C:\\\\josé\\\\a\"}"}}]}]}`)
	const text = `I am [PERSON_1], or [PERSON_1]: open /home/[PERSON_ID_1]/app, [PERSON_ID_1]-fix.`
	if got := out.Messages[0].Text; got != text {
		t.Errorf("hidden as %q", got)
	}
	if !strings.Contains(string(out.Raw), `"{\"p\":\"C:\\\\[PERSON_ID_1]\\\\a\"}"`) {
		t.Errorf("hidden as %s", out.Raw)
	}
	const want = `{"choices":[{"message":{"content":"José: /home/josé/b"}}]}`
	if got := string(v.Body().Feed([]byte(`{"choices":[{"message":{"content":"[PERSON_1]: /home/[PERSON_ID_1]/b"}}]}`))); got != want {
		t.Errorf("restored to %s", got)
	}
}

func TestAWordBesideAHiddenValueIsAWord(t *testing.T) {
	out, _ := hide(t, `{"model":"auto","messages":[{"role":"user","content":"JOSÉJosé"}]}`)
	if got := out.Messages[0].Text; got != "[PERSON_1][PERSON_1]" {
		t.Errorf("hidden as %q", got)
	}
}

func TestAValueIsHiddenWholeWhereAPartOfItWasFound(t *testing.T) {
	const whole, half, last = "Uwe Kern-Lohse", "Uwe Kern", "Lohse"
	text := "Ich bin " + whole + ", Tel. 030 1234567.\nGruß\n" + whole + "\nKopie an " + half
	signed, copied := strings.LastIndex(text, whole), strings.LastIndex(text, half)
	span := func(start int, value string) signal.Span {
		return signal.Span{Type: "PERSON", Start: start, End: start + len(value), Score: 1}
	}
	req := parse(t, `{"model":"auto","messages":[{"role":"user","content":`+strconv.Quote(text)+`}]}`)
	for name, found := range map[string][]signal.Span{
		"its beginning":   {span(signed, half)},
		"its end":         {span(signed+len(whole)-len(last), last)},
		"both":            {span(signed, half), span(signed+len(whole)-len(last), last)},
		"the whole of it": {span(signed, whole)},
	} {
		spans := append([]signal.Span{span(strings.Index(text, whole), whole), span(copied, half)}, found...)
		out, v, err := Hide(t.Context(), req, spans, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := out.Text().Segments[0].Text
		if !strings.Contains(got, "Gruß\n[PERSON_1]\nKopie an [PERSON_") {
			t.Errorf("%s found: got %q", name, got)
		}
		answer := strings.Replace(`{"choices":[{"message":{"role":"assistant","content":TEXT}}]}`, "TEXT", strconv.Quote(got), 1)
		b := v.Body()
		back := string(append(b.Feed([]byte(answer)), b.Rest()...))
		if !strings.Contains(back, strings.ReplaceAll(text, "\n", `\n`)) {
			t.Errorf("%s found: restored %s, want %q in it", name, back, text)
		}
	}
}

func TestEveryPlaceThatAModelReadsIsRewritten(t *testing.T) {
	const v = "ann@example.com"
	chat := func(member string) string {
		return `{"model":"auto","messages":[{"role":"user","content":"hi"}],` + member + `}`
	}
	for name, tt := range map[string]struct{ body, want string }{
		"ids of calls, which stay the same": {
			`{"model":"auto","messages":[{"role":"assistant","tool_calls":[` +
				`{"id":"ann@example.com","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"ann@example.com","content":"x"}]}`,
			`{"model":"auto","messages":[{"role":"assistant","tool_calls":[{"id":"[EMAIL_1]",` +
				`"function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"[EMAIL_1]","content":"x"}]}`,
		},
		"a tool, its parameters and choices": {
			chat(`"tools":[{"function":{"name":"f","parameters":{"properties":{"` + v +
				`":{"enum":["x","` + v + `"]}},"required":["` + v + `"]}}}]`),
			chat(`"tools":[{"function":{"name":"f","parameters":{"properties":{"[EMAIL_1]` +
				`":{"enum":["x","[EMAIL_1]"]}},"required":["[EMAIL_1]"]}}}]`),
		},
		"a name in a document": {
			chat(`"documents":[{"` + v + `":1}]`), chat(`"documents":[{"[EMAIL_1]":1}]`),
		},
		"a name in the arguments of a call": {
			`{"model":"auto","messages":[{"role":"assistant","function_call":{"name":"f",` +
				`"arguments":{"ann@example.com":1}}}]}`,
			`{"model":"auto","messages":[{"role":"assistant","function_call":{"name":"f",` +
				`"arguments":{"[EMAIL_1]":1}}}]}`,
		},
		"an unknown part": {
			`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"a"},` +
				`{"type":"x","x":{"y":"ann@example.com"}}]}]}`,
			`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"a"},` +
				`{"type":"x","x":{"y":"[EMAIL_1]"}}]}]}`,
		},
		"an unknown member": {chat(`"x":{"type":"` + v + `"}`), chat(`"x":{"type":"[EMAIL_1]"}`)},
		"effort": {
			chat(`"reasoning_effort":"` + v + `"`), chat(`"reasoning_effort":"[EMAIL_1]"`),
		},
		"two strings of one list": {
			chat(`"x":["1 Elm St","Springfield"]`), chat(`"x":["[ADDRESS_1]","[ADDRESS_2]"]`),
		},
		"what is not sent to the model, where the value was found elsewhere": {
			chat(`"x":"` + v + `","user":"` + v + `","metadata":{"` + v + `":"` + v +
				`"},"stop":["` + v + `"]`),
			chat(`"x":"[EMAIL_1]","user":"[EMAIL_1]","metadata":{"[EMAIL_1]":"[EMAIL_1]` +
				`"},"stop":["[EMAIL_1]"]`),
		},
		"ids of tokens stay": {
			chat(`"x":"4111111111111111","logit_bias":{"4111111111111111":1}`),
			chat(`"x":"[CARD_1]","logit_bias":{"4111111111111111":1}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, _ := hide(t, tt.body)
			if diff := cmp.Diff(tt.want, string(out.Raw)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// When the client leaves, at any point, a request is rewritten no further and nothing of it is
// sent.
func TestHidingStopsWithItsContext(t *testing.T) {
	const address = "ann@example.com"
	long := strings.Repeat(" The harbour was quiet.", 1<<20/23)
	for _, tt := range []struct {
		name, more string
		looks      int // at least
	}{
		{"one long text", long, 3 * len(long) / bytesPerLook}, // searched twice, and checked
		{"many texts", strings.Repeat(`"},{"role":"user","content":"a`, 10_000), 2 * 10_000},
	} {
		req := parse(t, `{"model":"auto","messages":[{"role":"user","content":"`+address+tt.more+`"}]}`)
		spans := []signal.Span{{Type: "EMAIL_ADDRESS", End: len(address), Score: 1}}
		all := testkit.NewCountdown(t.Context(), 1<<30, context.Canceled)
		if out, _, err := Hide(all, req, spans, nil, nil); err != nil || out == req || all.Looks() < tt.looks {
			t.Fatalf("%s: error %v, %d looks, want at least %d", tt.name, err, all.Looks(), tt.looks)
		}
		for _, left := range []int{0, 1, all.Looks() / 3, all.Looks() / 2, all.Looks() - 1} {
			ctx := testkit.NewCountdown(t.Context(), left, context.Canceled)
			out, v, err := Hide(ctx, req, spans, nil, nil)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrIncomplete) || out != nil || v != nil {
				t.Errorf("%s, cancelled at %d of %d: %v, %v", tt.name, left, all.Looks(), out != nil, err)
			}
			if ctx.Looks() > left+8 {
				t.Errorf("%s, cancelled at %d of %d: %d looks", tt.name, left, all.Looks(), ctx.Looks())
			}
		}
	}
}

func TestTypesThatARouteLeavesAreSent(t *testing.T) {
	req := parse(t, `{"model":"auto","user":"ann@example.com","messages":[{"role":"user","content":"Ann, today: ann@example.com"}]}`)
	spans := []signal.Span{
		{Type: "PERSON", End: 3, Score: 1},
		{Type: "DATE_TIME", Start: 5, End: 10, Score: 1},
		{Type: "EMAIL_ADDRESS", Start: 12, End: 27, Score: 1},
	}
	for kind, want := range map[string]string{
		"PERSON":        `{"model":"auto","user":"[PERSON_ID_1]@example.com","messages":[{"role":"user","content":"[PERSON_1], today: [PERSON_ID_1]@example.com"}]}`,
		"DATE_TIME":     `{"model":"auto","user":"ann@example.com","messages":[{"role":"user","content":"Ann, [DATE_1]: ann@example.com"}]}`,
		"EMAIL_ADDRESS": `{"model":"auto","user":"[EMAIL_1]","messages":[{"role":"user","content":"Ann, today: [EMAIL_1]"}]}`,
	} {
		out, _, err := Hide(t.Context(), req, spans, mailFinder{}, func(k string) bool { return k == kind })
		if err != nil {
			t.Fatal(err)
		}
		if got := string(out.Raw); got != want {
			t.Errorf("%s alone:\ngot  %s\nwant %s", kind, got, want)
		}
	}
	if out, _, err := Hide(t.Context(), req, spans, mailFinder{}, func(string) bool { return false }); err != nil || out != req {
		t.Errorf("nothing taken: sent %v, %v", out, err)
	}
}
