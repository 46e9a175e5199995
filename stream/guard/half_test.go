package guard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/guard"
)

// ending is how an answer with a false last claim ends, and whether that claim is checked.
type ending struct {
	text, finish string
	calls        bool // a tool call follows the text
	judged       bool
}

func endings() map[string]ending {
	return map[string]ending{
		"at its limit":               {"All is well. This is false", "length", false, false},
		"at a filter":                {"All is well. This is false", "content_filter", false, false},
		"at its limit behind a stop": {"All is well. This is false.", "length", false, true},
		"in order":                   {"All is well. This is false", "stop", false, true},
		"in a call":                  {"All is well. This is false", "length", true, true},
		"a model is needed":          {"All is well. This is slow and false", "length", false, false},
		"in order, by a model":       {"All is well. This is slow and false", "stop", false, true},
	}
}

func TestWhatStopsInTheMiddleIsNotJudged(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for name, e := range endings() {
		for m := guard.Annotate; m <= guard.Hold; m++ {
			job := jobOf(t, m)
			job.Policy.Failures = 1
			piece, tools := "", ""
			if e.calls {
				piece, tools = chunkOf(0, `{"tool_calls":[{"index":0,"id":"x","function":{"name":"f",`+
					`"arguments":"{"}}]}`, "null"), call
			}
			got, out, err := pass(t, g, job, role()+chunk(e.text)+piece+chunkOf(0, `{}`, quote(e.finish))+done)
			heard := listen(t, got)
			agree(t, name+", a stream", m, e, out, err, heard.texts[0], heard.finish[0])

			whole := strings.Replace(strings.Replace(body(e.text), `"stop"`, quote(e.finish), 1), call, "", 1)
			whole = strings.Replace(whole, `,}`, `,`+tools+`}`, 1)
			whole = strings.Replace(whole, `,}`, `}`, 1)
			answer, out, err := g.Body(t.Context(), []byte(whole), job)
			var s said
			if jerr := json.Unmarshal(answer, &s); jerr != nil {
				t.Fatalf("%v: %s", jerr, whole)
			}
			agree(t, name+", whole", m, e, out, err, s.Choices[0].Message.Content, s.Choices[0].Finish)

			reason, item := "completed", "completed"
			if e.finish != "stop" {
				reason, item = "incomplete", "incomplete"
			}
			list := responseParts(e, item, reason)
			streamed, out, err := pass(t, g, job, list...)
			deltas, _, last := answerOf(t, streamed)
			ended, _ := last["response"].(map[string]any)["status"].(string)
			agree(t, name+", a stream of events", m, e, out, err, deltas, map[string]string{"completed": "stop", "incomplete": e.finish}[ended])

			final := list[len(list)-1]
			final = final[strings.Index(final, `"response":`)+len(`"response":`) : strings.LastIndex(final, "}")]
			one, out, err := g.Body(t.Context(), []byte(final), job)
			end := endOf(t, one)
			agree(t, name+", a response", m, e, out, err, strings.Join(end.Texts, ""), map[string]string{"completed": "stop", "incomplete": e.finish}[end.Status])
		}
	}
}

// agree checks whether a claim was acted on, or left alone.
func agree(t *testing.T, name string, m guard.Mode, e ending, out guard.Outcome, err error, text, finish string) {
	t.Helper()
	failed, verdict := 0, check.Supported
	if e.judged {
		failed, verdict = 1, check.Unsupported
	}
	cut := e.judged && m > guard.Annotate
	if err != nil || out.Failed != failed || out.Verdict != verdict || out.Claims != 2 || out.Cut != cut {
		t.Errorf("%s, %v: error %v, %+v", name, m, err, out)
	}
	if !e.judged && (text != e.text || finish != e.finish) ||
		cut == (finish == e.finish) && e.finish != "content_filter" && !strings.Contains(name, "response") &&
			!strings.Contains(name, "events") {
		t.Errorf("%s, %v: ended with %q: %q", name, m, finish, text)
	}
}

// responseParts returns a stream of the Responses API whose message and response have the given
// states.
func responseParts(e ending, item, status string) []string {
	whole := strings.SplitAfter(responseOf(e.text), "\n\n")
	whole = whole[:len(whole)-1]
	n := len(whole)
	call := ""
	if e.calls {
		item = "completed"
		call = event("response.output_item.added", `"sequence_number":93,"output_index":1,`+
			`"item":{"type":"function_call","name":"f","arguments":""}`)
	}
	whole[n-2] = strings.Replace(whole[n-2], `"completed"`, quote(item), 1) + call
	whole[n-1] = strings.ReplaceAll(whole[n-1], "response.completed", "response."+status)
	whole[n-1] = strings.ReplaceAll(whole[n-1], `"status":"completed"`, `"status":`+quote(status))
	if e.calls {
		whole[n-1] = strings.Replace(whole[n-1], "]}]}}", `]},{"type":"function_call","name":"f","arguments":"{"}]}}`, 1)
	}
	return whole
}

func TestHalfAClaimAtALimitIsLeftOutWhereNothingUncheckedPasses(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for block, want := range map[guard.OnUnchecked]string{guard.Pass: "All is well. And so", guard.Block: "All is well. "} {
		job := jobOf(t, guard.Hold)
		job.Policy.OnUnchecked = block
		got, out, err := pass(t, g, job, chunk("All is well. And so"), chunkOf(0, `{}`, `"length"`)+done)
		if heard := listen(t, got); err != nil || heard.texts[0] != want || heard.finish[0] != "length" || out.Cut {
			t.Errorf("block %v: error %v, %+v, text %q", block, err, out, heard.texts[0])
		}
		whole, out, err := g.Body(t.Context(), []byte(strings.Replace(strings.Replace(body("All is well. And so"), ","+call, "", 1), `"stop"`, `"length"`, 1)), job)
		var s said
		if jerr := json.Unmarshal(whole, &s); err != nil || jerr != nil || s.Choices[0].Message.Content != want ||
			s.Choices[0].Finish != "length" || out.Cut {
			t.Errorf("block %v: error %v, %+v, %s", block, err, out, whole)
		}
	}
}

// TestHalfAClaimIsReadByACheckerOfTheAnswersOwn checks that the answer's own checker also reads an
// unfinished sentence, because forbidden content is forbidden in half a sentence too.
func TestHalfAClaimIsReadByACheckerOfTheAnswersOwn(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Terminate)
	job.Checker = &judge{}
	for _, text := range []string{"All is well. This is false", "All is well. This is slow and false"} {
		_, out, err := pass(t, g, job, chunk(text), chunkOf(0, `{}`, `"length"`)+done)
		if err != nil || out.Failed != 1 || !out.Cut {
			t.Errorf("%q: error %v, %+v", text, err, out)
		}
	}
}

func TestAResponseThatFailedStaysSo(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for text, failed := range map[string]int{"All is well. This is false": 0, "This is false. All is": 1} {
		body := `{"id":"r1","object":"response","status":"failed","error":{"code":"x","message":"m"},"output":[` +
			`{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[` +
			`{"type":"output_text","annotations":[],"text":` + quote(text) + `}]}]}`
		for m := guard.Annotate; m <= guard.Hold; m++ {
			got, out, err := g.Body(t.Context(), []byte(body), jobOf(t, m))
			if err != nil || out.Failed != failed || !strings.Contains(string(got), `"status":"failed"`) {
				t.Errorf("%v, %q: error %v, %+v: %s", m, text, err, out, got)
			}
		}
	}
}
