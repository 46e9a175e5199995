package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
)

// hideIn redacts the test secrets in a body of any API.
func hideIn(tb testing.TB, api openai.API, body string) (*openai.Request, *Vault) {
	tb.Helper()
	req, err := openai.Parse(api, []byte(body), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	out, v, err := Hide(tb.Context(), req, spansOf(req), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return out, v
}

func TestEveryAPIIsHidden(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		api        openai.API
		body, want string
	}{
		{
			"a prompt with a suffix", openai.Completion, `{"model":"m","prompt":"I am ann@example.com","suffix":"or ANN@example.com","user":"ann@example.com"}`,
			`{"model":"m","prompt":"I am [EMAIL_1]","suffix":"or [EMAIL_1]","user":"[EMAIL_1]"}`,
		},
		{
			"prompts", openai.Completion, `{"model":"m","prompt":["ann@example.com","\u0041 bob@example.org"]}`,
			`{"model":"m","prompt":["[EMAIL_1]","\u0041 [EMAIL_2]"]}`,
		},
		{
			"instructions and an input", openai.Response, `{"model":"m","instructions":"For ann@example.com.","input":"bob@example.org"}`,
			`{"model":"m","instructions":"For [EMAIL_1].","input":"[EMAIL_2]"}`,
		},
		{
			"items", openai.Response, `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"ann@example.com"},{"type":"input_text","text":"and ann@example.com"}]},
			{"type":"function_call","call_id":"ann@example.com","name":"f","arguments":"{\"n\":\"Ann O'Neil\"}"},
			{"type":"function_call_output","call_id":"c","output":"ann@example.com"},
			{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"ann@example.com"}]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"ann@example.com"}],"content":[{"type":"reasoning_text","text":"ann@example.com"}]}],"reasoning":{"effort":"low"}}`,
			`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"[EMAIL_1]"},{"type":"input_text","text":"and [EMAIL_1]"}]},
			{"type":"function_call","call_id":"[EMAIL_1]","name":"f","arguments":"{\"n\":\"[PERSON_1]\"}"},
			{"type":"function_call_output","call_id":"c","output":"[EMAIL_1]"},
			{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"[EMAIL_1]"}]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"[EMAIL_1]"}],"content":[{"type":"reasoning_text","text":"[EMAIL_1]"}]}],"reasoning":{"effort":"low"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, _ := hideIn(t, tt.api, tt.body)
			if diff := cmp.Diff(tt.want, string(out.Raw)); diff != "" || out.API != tt.api {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// responseVault returns the vault for the streams below: [EMAIL_1], [PERSON_1] and [EMAIL_2].
func responseVault(tb testing.TB, more string) *Vault {
	tb.Helper()
	_, v := hideIn(tb, openai.Response, `{"model":"m","input":"ann@example.com Jo \"JJ\" Doe bob@example.org"`+more+`}`)
	return v
}

// responseEvent returns an event of the Responses API; fields are its other members.
func responseEvent(kind string, item int, fields string) string {
	return "event: response." + kind + "\ndata: {" + fields + `,"output_index":` + strconv.Itoa(item) + `,"sequence_number":1,"type":"response.` + kind + "\"}\n\n"
}

// answered returns what a client assembles from the deltas of a stream, by type and item, and the
// texts of the events with whole texts.
func answered(tb testing.TB, stream string) (deltas, wholes map[string]string) {
	tb.Helper()
	deltas, wholes = map[string]string{}, map[string]string{}
	over := map[string]bool{}
	for event := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		name, data, ok := strings.Cut(event, "\ndata: ")
		var e struct {
			Type, Delta, Text, Arguments string
			Item                         int `json:"output_index"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || !ok || name != "event: "+e.Type {
			tb.Fatalf("event %q: %v", event, err)
		}
		what, isDelta := strings.CutSuffix(strings.TrimPrefix(e.Type, "response."), ".delta")
		key := what + strconv.Itoa(e.Item)
		if isDelta {
			if deltas[key] += e.Delta; over[key] {
				tb.Errorf("%s goes on after its end: %q", key, event)
			}
			continue
		}
		if what == "completed" {
			continue
		}
		key = strings.TrimSuffix(what, ".done") + strconv.Itoa(e.Item)
		over[key] = true
		wholes[key] += e.Text + e.Arguments
	}
	return deltas, wholes
}

func TestAResponseStreamIsRestored(t *testing.T) {
	t.Parallel()
	text := func(item int, s string) string {
		return responseEvent("output_text.delta", item, `"content_index":0,"delta":`+strconv.Quote(s)+`,"logprobs":[]`)
	}
	textDone := func(item int, s string) string {
		return responseEvent("output_text.done", item, `"text":`+strconv.Quote(s))
	}
	call := func(item int, s string) string {
		return responseEvent("function_call_arguments.delta", item, `"delta":`+strconv.Quote(s))
	}
	callDone := func(item int, s string) string {
		return responseEvent("function_call_arguments.done", item, `"arguments":`+strconv.Quote(s))
	}
	tests := []struct {
		name, more, stream string
		deltas, wholes     map[string]string
	}{
		{
			"a placeholder over four deltas", "", text(0, "To [") + text(0, "EMAIL") + text(0, "_1") + text(0, "]!") + textDone(0, "To [EMAIL_1]!"),
			map[string]string{"output_text0": "To ann@example.com!"},
			map[string]string{"output_text0": "To ann@example.com!"},
		},
		{
			"escapes of Markdown", "", text(0, `To \`) + text(0, `[EMAIL\`) + text(0, `_1\`) + text(0, `]\`) + textDone(0, `To \[EMAIL\_1\]\`) + call(1, `{"a":"\\`) + call(1, `[PERSON_1\\]"}`) + callDone(1, `{"a":"\\[PERSON_1\\]"}`),
			map[string]string{"output_text0": `To ann@example.com\`, "function_call_arguments1": `{"a":"Jo \"JJ\" Doe"}`},
			map[string]string{"output_text0": `To ann@example.com\`, "function_call_arguments1": `{"a":"Jo \"JJ\" Doe"}`},
		},
		{
			"two items that take turns", "", text(0, "[EMA") + text(1, "[PER") + text(0, "IL_1]") + text(1, "SON_1]"),
			map[string]string{"output_text0": "ann@example.com", "output_text1": `Jo "JJ" Doe`},
			map[string]string{},
		},
		{
			"arguments of a call", "", call(0, `{"a":"[PERS`) + call(0, `ON_1]"}`) + callDone(0, `{"a":"[PERSON_1]"}`),
			map[string]string{"function_call_arguments0": `{"a":"Jo \"JJ\" Doe"}`},
			map[string]string{"function_call_arguments0": `{"a":"Jo \"JJ\" Doe"}`},
		},
		{
			"text that is JSON", `,"text":{"format":{"type":"json_schema","name":"n","schema":{}}}`, text(0, `{"a":"[PERS`) + text(0, `ON_1]"}`) + textDone(0, `{"a":"[PERSON_1]"}`),
			map[string]string{"output_text0": `{"a":"Jo \"JJ\" Doe"}`},
			map[string]string{"output_text0": `{"a":"Jo \"JJ\" Doe"}`},
		},
		{
			"a front at the end leaves before the end", "", text(0, "a [EMAIL_1") + text(1, "b [E") + textDone(0, "a [EMAIL_1") + textDone(1, "b [E"),
			map[string]string{"output_text0": "a [EMAIL_1", "output_text1": "b [E"},
			map[string]string{"output_text0": "a [EMAIL_1", "output_text1": "b [E"},
		},
		{
			"a front before the last event", "", text(0, "a [EMAIL_1") + "event: response.completed\ndata: {\"response\":{\"output\":[{\"content\":[{\"text\":\"[EMAIL_1]\"}]}]},\"type\":\"response.completed\"}\n\n",
			map[string]string{"output_text0": "a [EMAIL_1"},
			map[string]string{},
		},
		{
			"a front in a stream that is cut", "", text(0, "a [EMAIL_1"),
			map[string]string{"output_text0": "a [EMAIL_1"},
			map[string]string{},
		},
		{
			"reasoning beside text", "", responseEvent("reasoning_text.delta", 0, `"delta":"[EMAIL"`) + text(0, "x") + responseEvent("reasoning_text.delta", 0, `"delta":"_2]"`),
			map[string]string{"reasoning_text0": "bob@example.org", "output_text0": "x"},
			map[string]string{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := responseVault(t, tt.more)
			for size := 1; size <= len(tt.stream); size += 1 + len(tt.stream)/20 {
				var pieces []string
				for from := 0; from < len(tt.stream); from += size {
					pieces = append(pieces, tt.stream[from:min(len(tt.stream), from+size)])
				}
				got := restored(v, pieces...)
				deltas, wholes := answered(t, got)
				if diff := cmp.Diff(tt.deltas, deltas) + cmp.Diff(tt.wholes, wholes); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s\n%s", size, diff, got)
				}
				if strings.Contains(tt.stream, "response.completed") && !strings.Contains(got, `"text":"ann@example.com"`) {
					t.Fatalf("the last event is %s", got)
				}
			}
		})
	}
}

// The server knows the placeholders of earlier turns, which stood for other values.
func TestAPlaceholderOfAnEarlierTurnIsNobodyElse(t *testing.T) {
	t.Parallel()
	const turn = `{"model":"m","input":"ann@example.com Jo \"JJ\" Doe"`
	form := regexp.MustCompile(`^\{"model":"m","input":"\[EMAIL_([A-Z2-7]{5})_1\] \[PERSON_([A-Z2-7]{5})_1\]"`)
	for _, more := range []string{
		`,"previous_response_id":"r"}`, `,"conversation":"c"}`, `,"conversation":{"id":"c"}}`,
		`,"background":true}`,
	} {
		out, v := hideIn(t, openai.Response, turn+more)
		next, _ := hideIn(t, openai.Response, turn+more)
		own := form.FindSubmatch(out.Raw)
		if own == nil || !bytes.Equal(own[1], own[2]) || bytes.Equal(out.Raw, next.Raw) {
			t.Errorf("%s: sent %s, then %s", more, out.Raw, next.Raw)
			continue
		}
		tag := string(own[1])
		told := "to [EMAIL_1], [EMAIL_" + tag + "_1], [EMAIL_" + tag + "_2] [PERSON_" + tag + "_1]"
		const want = `to [EMAIL_1], ann@example.com, [EMAIL_TAG_2] Jo "JJ" Doe`
		for cut := range told {
			stream := responseEvent("output_text.delta", 0, `"content_index":0,"delta":`+strconv.Quote(told[:cut])) +
				responseEvent("output_text.delta", 0, `"content_index":0,"delta":`+strconv.Quote(told[cut:])) +
				responseEvent("output_text.done", 0, `"content_index":0,"text":`+strconv.Quote(told))
			deltas, wholes := answered(t, restored(v, stream))
			for _, got := range []string{deltas["output_text0"], wholes["output_text0"]} {
				if got = strings.ReplaceAll(got, tag, "TAG"); got != want {
					t.Errorf("cut at %d: got %q, want %q", cut, got, want)
				}
			}
			answer := `{"output":[{"content":[{"text":` + strconv.Quote(told) + `}]}]}`
			b := v.Body()
			whole := string(b.Feed([]byte(answer[:20+cut]))) // the next call takes the memory
			whole += string(b.Feed([]byte(answer[20+cut:]))) + string(b.Rest())
			if !strings.Contains(strings.ReplaceAll(whole, tag, "TAG"), strconv.Quote(want)) {
				t.Errorf("cut at %d: got %s", cut, whole)
			}
		}
	}
}

func TestARequestThatRefersToAnItemHasPlaceholdersOfItsOwn(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","input":[{"type":"item_reference","id":"i"},{"role":"user","content":"ann@example.com"}]}`
	out, _ := hideIn(t, openai.Response, body)
	if !regexp.MustCompile(`"\[EMAIL_[A-Z2-7]{5}_1\]"`).Match(out.Raw) {
		t.Errorf("sent %s", out.Raw)
	}
}

func TestACompletionStreamIsRestored(t *testing.T) {
	t.Parallel()
	_, v := hideIn(t, openai.Completion, `{"model":"m","prompt":"ann@example.com"}`)
	chunk := func(text, finish string) string {
		return `data: {"id":"cmpl-1","choices":[{"index":0,"text":"` + text + `","finish_reason":` + finish + "}]}\n\n"
	}
	got := restored(v, chunk("To [EM", "null"), chunk("AIL_1], [E", "null"), chunk("", `"stop"`), done)
	said := ""
	for event := range strings.SplitSeq(got, "\n\n") {
		var c struct{ Choices []struct{ Text string } }
		if data := strings.TrimPrefix(event, "data: "); data != "" && data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				t.Fatalf("%q: %v", event, err)
			}
			said += c.Choices[0].Text
		}
	}
	if said != "To ann@example.com, [E" || !strings.HasSuffix(got, done) {
		t.Errorf("restored to %q: %s", said, got)
	}
}

func TestABodyOfEveryAPIIsRestored(t *testing.T) {
	t.Parallel()
	v := responseVault(t, `,"text":{"format":{"type":"json_object"}}`)
	const body = `{"output":[{"type":"message","content":[{"type":"output_text","text":"{\"n\":\"[PERSON_1]\"}"}]},{"type":"function_call","arguments":"{\"n\":\"[PERSON_1]\"}"}]}`
	const want = `{"output":[{"type":"message","content":[{"type":"output_text","text":"{\"n\":\"Jo \\\"JJ\\\" Doe\"}"}]},{"type":"function_call","arguments":"{\"n\":\"Jo \\\"JJ\\\" Doe\"}"}]}`
	if got := string(v.Body().Feed([]byte(body))); got != want {
		t.Errorf("got %s", got)
	}
}

func TestAResponseStreamWithoutBracketsCostsNoAllocation(t *testing.T) {
	s := feed(responseVault(t, ""))
	plain := []byte(responseEvent("output_text.delta", 0, `"delta":"hello"`))
	s.Feed(plain)
	if n := testing.AllocsPerRun(200, func() { s.Feed(plain) }); n > 0 {
		t.Errorf("an event costs %v allocations", n)
	}
	held, rest := []byte(responseEvent("output_text.delta", 0, `"delta":"a [EMA"`)), []byte(responseEvent("output_text.delta", 0, `"delta":"IL_1]"`))
	s.Feed(held)
	s.Feed(rest)
	if n := testing.AllocsPerRun(200, func() { s.Feed(held); s.Feed(rest) }); n > 0 {
		t.Errorf("a placeholder in two events costs %v allocations", n)
	}
}
