package guard_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"signalbox/stream/guard"
)

// TestACallBehindTheCutIsDropped checks that nothing after the claim that ends an answer reaches
// the client, in a body or a stream, because a client would run the call.
func TestACallBehindTheCutIsDropped(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for name, text := range map[string]string{
		"found at once": "All is well. This is false.", "found by a model": "All is well. This is slow and false.",
	} {
		for _, m := range []guard.Mode{guard.Terminate, guard.Hold} {
			job := jobOf(t, m)
			job.Policy.Failures = 1
			got, out, err := pass(t, g, job, role()+chunk(text)+
				chunkOf(0, `{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, "null")+
				chunkOf(0, `{}`, `"tool_calls"`)+usage+done)
			heard := listen(t, got)
			if err != nil || !out.Cut || heard.tools[0] != "" || heard.finish[0] != "content_filter" || !heard.done {
				t.Errorf("%s, %v: error %v, %+v\n%s", name, m, err, heard, got)
			}
			whole, out, err := g.Body(t.Context(), []byte(body(text)), job)
			var s said
			if jerr := json.Unmarshal(whole, &s); err != nil || jerr != nil || !out.Cut ||
				strings.Contains(string(whole), "arguments") ||
				s.Choices[0].Message.Content != "All is well. " || s.Choices[0].Finish != "content_filter" {
				t.Errorf("%s, %v: error %v, %v: %s", name, m, err, jerr, whole)
			}
		}
	}
}

func TestACallIsNotHeldUpWhereNothingEndsTheAnswer(t *testing.T) {
	// for JSON, which prose is not
	for _, formed := range []guard.Mode{guard.Off, guard.Terminate} {
		testCallGoes(t, formed)
	}
}

func testCallGoes(t *testing.T, formed guard.Mode) {
	t.Helper()
	g := guardOf(t, &judge{gate: make(chan struct{})}, guard.Options{Workers: 1})
	job, dst := jobOf(t, guard.Annotate), &record{wrote: make(chan struct{}, 9)}
	job.Policy.MaxHold, job.Formed = 60e9, formed
	called := chunkOf(0, `{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`, "null")
	src := newScript(chunk("This is slow.") + called)
	src.hangs = true
	ctx, cancel := context.WithCancel(t.Context())
	r := start(ctx, g, src, dst, job)
	if <-dst.wrote; !strings.Contains(dst.String(), called) {
		t.Errorf("no call in %s", dst)
	}
	cancel()
	<-r
}

// items returns output items of the Responses API: a call, a message and another call.
func items(text string) []string {
	return []string{
		`{"id":"fc_1","type":"function_call","status":"completed","call_id":"a","name":"before","arguments":"{}"}`,
		`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[` +
			`{"type":"output_text","annotations":[],"text":` + quote(text) + `},` +
			`{"type":"output_text","annotations":[],"text":"More."}]}`,
		`{"id":"fc_2","type":"function_call","status":"completed","call_id":"b","name":"behind","arguments":"{}"}`,
	}
}

func TestItemsOfAResponseBehindTheCutAreDropped(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	list := items("All is well. This is false.")
	whole := `{"id":"r1","object":"response","status":"completed","incomplete_details":null,"output":[` +
		strings.Join(list, ", ") + `],"output_text":"All is well. This is false.More."}`
	got, out, err := g.Body(t.Context(), []byte(whole), jobOf(t, guard.Terminate))
	ends := endOf(t, got)
	want := theEnd{Status: "incomplete", Names: []string{"before", ""}, Texts: []string{"All is well. "}, Message: "incomplete"}
	want.Details.Reason = "content_filter"
	if err != nil || !out.Cut || !ends.equal(want) || !strings.Contains(string(got), `"output_text":"All is well. "`) {
		t.Errorf("error %v, %+v, want %+v\n%s", err, ends, want, got)
	}

	var stream strings.Builder
	stream.WriteString(event("response.created", `"response":{"id":"r1","object":"response","status":"in_progress",`+
		`"incomplete_details":null,"output":[]}`))
	item := func(n, one string) {
		head, _, _ := strings.Cut(one, `,"status"`)
		stream.WriteString(event("response.output_item.added", `"output_index":`+n+`,"item":`+head+`,"status":"in_progress"}`))
		if n == "1" {
			stream.WriteString(event("response.output_text.delta", `"item_id":"msg_1","output_index":1,"content_index":0,`+
				`"delta":"All is well. This is false."`))
			stream.WriteString(event("response.output_text.done", `"item_id":"msg_1","output_index":1,"content_index":0,`+
				`"text":"All is well. This is false."`))
		}
		stream.WriteString(event("response.output_item.done", `"output_index":`+n+`,"item":`+one))
	}
	for i, n := range []string{"0", "1", "2"} {
		item(n, list[i])
	}
	stream.WriteString(event("response.completed", `"response":`+whole))
	streamed, out, err := pass(t, g, jobOf(t, guard.Terminate), stream.String())
	_, _, last := answerOf(t, streamed)
	told, _ := json.Marshal(last["response"])
	// which the client has received
	ends, want.Texts = endOf(t, told), []string{"All is well. This is false."}
	if err != nil || !out.Cut || !ends.equal(want) || strings.Contains(streamed, "behind") {
		t.Errorf("error %v, %+v, want %+v\n%s", err, ends, want, streamed)
	}
}

// theEnd is how a client sees the end of a response.
type theEnd struct {
	Status  string
	Details struct{ Reason string } `json:"incomplete_details"`
	Names   []string                `json:"-"` // of the items
	Texts   []string                `json:"-"`
	Message string                  `json:"-"` // its status
}

func (r *theEnd) equal(o theEnd) bool {
	return r.Status == o.Status && r.Details == o.Details && slices.Equal(r.Names, o.Names) &&
		slices.Equal(r.Texts, o.Texts) && r.Message == o.Message
}

func endOf(tb testing.TB, data []byte) (r theEnd) {
	tb.Helper()
	var output struct {
		Output []struct {
			Name, Type, Status string
			Content            []struct{ Text string }
		}
	}
	if err := json.Unmarshal(data, &r); err != nil {
		tb.Fatalf("%v: %s", err, data)
	}
	if err := json.Unmarshal(data, &output); err != nil {
		tb.Fatalf("%v: %s", err, data)
	}
	for _, one := range output.Output {
		r.Names = append(r.Names, one.Name)
		if one.Type == "message" {
			r.Message = one.Status
		}
		for _, c := range one.Content {
			r.Texts = append(r.Texts, c.Text)
		}
	}
	return r
}

// TestTheAnswerBehindACutThoughtIsDropped checks that failed reasoning ends the answer after it,
// wherever the server puts it.
func TestTheAnswerBehindACutThoughtIsDropped(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Terminate)
	job.Policy.Reasoning = true
	whole := `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"All is well.",` +
		`"reasoning_content":"Hm. This is false. So."},"finish_reason":"stop"}]}`
	got, out, err := g.Body(t.Context(), []byte(whole), job)
	if err != nil || !out.Cut || !strings.Contains(string(got), `"content":"","reasoning_content":"Hm. "`) {
		t.Errorf("error %v, %+v\n%s", err, out, got)
	}
}
