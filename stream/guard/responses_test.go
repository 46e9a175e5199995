package guard_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"signalbox/stream/guard"
	"signalbox/stream/sse"
)

func event(name, rest string) string {
	return "event: " + name + "\ndata: {\"type\":\"" + name + "\"," + rest + "}\n\n"
}

// responseOf returns a stream of the Responses API with one message of the given pieces.
func responseOf(pieces ...string) string {
	text := quote(strings.Join(pieces, ""))
	part := `{"type":"output_text","annotations":[],"text":` + text + `}`
	item := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[` + part + `]}`
	var b strings.Builder
	b.WriteString(event("response.created", `"sequence_number":0,"response":{"id":"r1","object":"response","status":"in_progress","incomplete_details":null,"output":[]}`))
	b.WriteString(event("response.output_item.added", `"sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`))
	for i, p := range pieces {
		b.WriteString(event("response.output_text.delta", fmt.Sprintf(`"sequence_number":%d,"item_id":"msg_1","output_index":0,"content_index":0,"delta":%s`, i+2, quote(p))))
	}
	b.WriteString(event("response.output_text.done", `"sequence_number":91,"item_id":"msg_1","output_index":0,"content_index":0,"text":`+text))
	b.WriteString(event("response.content_part.done", `"sequence_number":92,"item_id":"msg_1","output_index":0,"content_index":0,"part":`+part))
	b.WriteString(event("response.output_item.done", `"sequence_number":93,"output_index":0,"item":`+item))
	b.WriteString(event("response.completed", `"sequence_number":94,"response":{"id":"r1","object":"response","status":"completed","incomplete_details":null,"output":[`+item+`]}`))
	return b.String()
}

// answerOf returns the joined deltas of a stream of the Responses API, its whole texts, and its
// last event.
func answerOf(tb testing.TB, stream string) (deltas string, wholes []string, last map[string]any) {
	tb.Helper()
	for line := range strings.SplitSeq(stream, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		last = nil
		if err := json.Unmarshal([]byte(data), &last); err != nil {
			tb.Fatalf("%v: %s", err, data)
		}
		if s, ok := last["delta"].(string); ok {
			deltas += s
		}
		wholes = append(wholes, textsOf(last)...)
	}
	return deltas, wholes, last
}

// textsOf returns every member "text" that is a string.
func textsOf(v any) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, textsOf(e)...)
		}
	case map[string]any:
		for name, e := range v {
			if s, ok := e.(string); ok && name == "text" {
				out = append(out, s)
			}
			if name != "x_signalbox" {
				out = append(out, textsOf(e)...)
			}
		}
	}
	return out
}

func TestHoldReplacesInTextsToldAsAWholeToo(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := responseOf("All is well. T", "his is slow and fal", "se. It is o", "ld.")
	got, out, err := pass(t, g, jobOf(t, guard.Hold), stream)
	deltas, wholes, last := answerOf(t, got)
	const want = "All is well. [unverified] It is old."
	if err != nil || deltas != want || out.State != sse.Done || out.Failed != 1 || out.Claims != 3 {
		t.Errorf("error %v, %+v, deltas %q", err, out, deltas)
	}
	for _, w := range wholes {
		if w != want {
			t.Errorf("told as a whole: %q", w)
		}
	}
	if len(wholes) != 4 || last["x_signalbox"] == nil || strings.Contains(got, "se. ") {
		t.Errorf("%d wholes, last %v", len(wholes), last)
	}
}

func TestATextThatOnlyComesAsAWholeIsChecked(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := responseOf("All is well. This is false.")
	from, to := strings.Index(stream, "event: response.output_text.delta"), strings.Index(stream, "event: response.output_text.done")
	stream = stream[:from] + stream[to:]
	for _, c := range []struct {
		mode guard.Mode
		want string
	}{{guard.Hold, "All is well. [unverified]"}, {guard.Annotate, "All is well. This is false. [unverified]"}} {
		m, want := c.mode, c.want
		got, out, err := pass(t, g, jobOf(t, m), stream)
		deltas, wholes, _ := answerOf(t, got)
		if err != nil || out.Failed != 1 || out.Claims != 2 || deltas != "" || len(wholes) != 4 {
			t.Errorf("%v: error %v, %+v, deltas %q, %d wholes", m, err, out, deltas, len(wholes))
		}
		for _, w := range wholes {
			if w != want {
				t.Errorf("%v: told as a whole: %q, want %q", m, w, want)
			}
		}
	}
}

func TestAWholeThatSaysSomethingElseIsCheckedAgain(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := strings.Replace(responseOf("All is well. Good."), `"text":"All is well. Good."}],"`, `"text":"All is false. Good."}],"`, 1)
	stream = strings.ReplaceAll(stream, `"content_index":0,"text":"All is well. Good."`, `"content_index":0,"text":"All is false. Good."`)
	got, out, err := pass(t, g, jobOf(t, guard.Hold), stream)
	if err != nil || out.Failed != 1 || strings.Contains(got, "false") {
		t.Errorf("error %v, %+v\n%s", err, out, got)
	}
}

func TestAnnotateMarksBeforeTheTextIsDone(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	got, _, err := pass(t, g, jobOf(t, guard.Annotate), responseOf("All is well. T", "his is slow and fal", "se."))
	deltas, wholes, last := answerOf(t, got)
	const want = "All is well. This is slow and false. [unverified]"
	if err != nil || deltas != want || last["x_signalbox"] == nil {
		t.Errorf("error %v, deltas %q, last %v", err, deltas, last)
	}
	for _, w := range wholes {
		if w != want {
			t.Errorf("told as a whole: %q", w)
		}
	}
	if strings.LastIndex(got, ".delta\n") > strings.Index(got, "output_text.done") {
		t.Errorf("a delta behind the end of the text:\n%s", got)
	}
}

// TestTerminateEndsAResponse checks that what the client has received is closed event by event and
// is the output of the response.
func TestTerminateEndsAResponse(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	got, out, err := pass(t, g, jobOf(t, guard.Terminate), responseOf("All is well. T", "his is slow and fal", "se."))
	deltas, wholes, last := answerOf(t, got)
	if err != nil || !out.Cut || out.State != sse.Done || last["x_signalbox"] == nil ||
		strings.Contains(got, "[DONE]") {
		t.Errorf("error %v, %+v, last %v", err, out, last)
	}
	var types []string
	next := 0.0
	for line := range strings.SplitSeq(got, "\n") {
		var e struct {
			Type     string
			Sequence float64 `json:"sequence_number"`
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
			if types = append(types, strings.TrimPrefix(e.Type, "response.")); e.Sequence != next {
				t.Errorf("%s is number %v, want %v", e.Type, e.Sequence, next)
			}
			next++
		}
	}
	end := []string{"output_text.done", "content_part.done", "output_item.done", "incomplete"}
	if n := len(types) - len(end); n < 2 || !slices.Equal(types[n:], end) {
		t.Errorf("events %q", types)
	}
	if len(wholes) != 4 || deltas == "" || slices.ContainsFunc(wholes, func(w string) bool { return w != deltas }) {
		t.Errorf("%q was sent, and told as a whole: %q", deltas, wholes)
	}
	response, _ := last["response"].(map[string]any)
	output, _ := json.Marshal(response["output"])
	want := `[` + cutMessage(deltas) + `]`
	why := fmt.Sprint(response["incomplete_details"])
	if string(output) != want || response["status"] != "incomplete" || !strings.Contains(why, "content_filter") {
		t.Errorf("the response is %v,\noutput %s, want\n%s", response, output, want)
	}
}

// cutMessage returns the message of responseOf as reported when it was cut after a text.
func cutMessage(text string) string {
	return `{"content":[{"annotations":[],"text":` + quote(text) + `,"type":"output_text"}],` +
		`"id":"msg_1","role":"assistant","status":"incomplete","type":"message"}`
}

// TestTheOutputOfAResponseThatIsCutIsWhatCameOfIt checks that finished items are in the output
// unchanged. A call in progress is not, because it must not look complete. The output is empty if
// too much was said to keep it.
func TestTheOutputOfAResponseThatIsCutIsWhatCameOfIt(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	thought := event("response.output_item.done",
		`"sequence_number":0,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}`)
	call := event("response.output_item.added",
		`"sequence_number":2,"output_index":2,"item":{"id":"fc_1","type":"function_call","name":"f","arguments":""}`)
	refusal := event("response.refusal.delta",
		`"sequence_number":3,"item_id":"msg_0","output_index":1,"content_index":0,"delta":"No."`)
	const refused = `{"content":[{"refusal":"No.","type":"refusal"}],` +
		`"id":"msg_0","role":"assistant","status":"incomplete","type":"message"}`
	for name, c := range map[string]struct{ before, text, want string }{
		"an item that had ended": {
			thought, "This is false.", `[{"id":"rs_1","type":"reasoning","summary":[]},` + cutMessage("This is false.") + `]`,
		},
		"a call, and a refusal that was not announced": {
			call + refusal, "This is false.", `[` + refused + `,` + cutMessage("This is false.") + `]`,
		},
		"too much": {thought, strings.Repeat("All is well. ", 30_000) + "This is false.", `[]`},
	} {
		stream := strings.ReplaceAll(responseOf(c.text, " It is old."), `"output_index":0`, `"output_index":3`)
		created, rest, _ := strings.Cut(stream, "\n\n")
		got, out, err := pass(t, g, jobOf(t, guard.Terminate), created+"\n\n", c.before, rest)
		_, _, last := answerOf(t, got)
		end := got[strings.LastIndex(got, "data: "):]
		if err != nil || !out.Cut || last["type"] != "response.incomplete" || !strings.Contains(end, `"output":`+c.want) {
			t.Errorf("%s: error %v, %+v, last %.2000v", name, err, out, last)
		}
	}
}

func TestCompletionsAreHeldAsWell(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	piece := func(text, end string) string {
		return `data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":` + quote(text) + `,"finish_reason":` + end + `}]}` + "\n\n"
	}
	got, out, err := pass(t, g, jobOf(t, guard.Hold), piece("All is well. This i", "null")+piece("s false. It ", "null")+piece("is old.", `"stop"`)+done)
	var text string
	for line := range strings.SplitSeq(got, "\n") {
		var c struct{ Choices []struct{ Text string } }
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c) == nil && len(c.Choices) > 0 {
			text += c.Choices[0].Text
		}
	}
	if err != nil || text != "All is well. [unverified] It is old." || out.State != sse.Done {
		t.Errorf("error %v, %q, %+v", err, text, out)
	}
}

func TestAnEventThatCannotBeReadIsBlockedOnRequest(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	twice := `data: {"choices":[{"index":0,"delta":{"content":"x","content":"This is false."}}]}` + "\n\n"
	job := jobOf(t, guard.Hold)
	if got, out, err := pass(t, g, job, chunk("Well."), twice, stop(), done); err != nil || out.Cut || !strings.Contains(got, twice) {
		t.Errorf("pass: error %v, %+v", err, out)
	}
	job.Policy.OnUnchecked = guard.Block
	if got, out, err := pass(t, g, job, chunk("Well."), twice, stop(), done); err != nil || !out.Cut || strings.Contains(got, "false") {
		t.Errorf("block: error %v, %+v", err, out)
	}
}
