package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"signalbox/stream/check"
	"signalbox/stream/guard"
	"signalbox/stream/sse"
)

const story = "The tower is tall. This is false news. It is old. All is well."

func TestObserveLeavesEveryByte(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := strings.Join(words(story), "")
	got, out, err := pass(t, g, jobOf(t, guard.Observe), stream)
	if err != nil || got != stream {
		t.Errorf("error %v, stream changed: %v", err, got != stream)
	}
	want := guard.Outcome{Mode: guard.Observe, Verdict: check.Unsupported, Claims: 4, Failed: 1, State: sse.Done}
	if out != want {
		t.Errorf("outcome %+v, want %+v", out, want)
	}
}

func TestObserveTellsOnRequest(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Observe)
	job.Policy.Summary = true
	got, _, err := pass(t, g, job, words("All is slow and false. All is well.")...)
	if err != nil {
		t.Fatal(err)
	}
	heard := listen(t, got)
	if text := fmt.Sprint(heard.summary["guard"]); !strings.Contains(text, "claims:2") || !strings.Contains(text, "verdict:contradicted") {
		t.Errorf("summary %s", text)
	}
	if heard.texts[0] != "All is slow and false. All is well." {
		t.Errorf("text %q", heard.texts[0])
	}
}

func TestAnnotateMarksRightBehindTheClaim(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Annotate)
	got, out, err := pass(t, g, job, words("Ünlike this, one is false now. It is old.")...)
	if err != nil {
		t.Fatal(err)
	}
	heard := listen(t, got)
	if want := "Ünlike this, one is false now. [unverified] It is old."; heard.texts[0] != want {
		t.Errorf("text %q, want %q", heard.texts[0], want)
	}
	const summary = `"x_signalbox":{"guard":{"mode":"annotate","verdict":"unsupported","claims":2,"failed":[{"text":"Ünlike this, one is false now.",` +
		`"start":0,"end":30,"verdict":"contradicted","score":0.1250,"fact":"fact-1"}]}}`
	if !strings.Contains(got, `"finish_reason":"stop"}],`+summary) {
		t.Errorf("no summary on the last chunk:\n%s", got)
	}
	if !heard.done || !heard.usage || out.Failed != 1 || out.Cut {
		t.Errorf("%+v %+v", heard, out)
	}
}

func TestAnnotateMarksTheLastClaimBeforeTheEnd(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for name, stream := range map[string]string{
		"the end is an event of its own": chunk("This is false.") + stop() + done,
		"the end brings text":            chunk("This is ") + chunkOf(0, `{"content":"false."}`, `"stop"`) + done,
		"a model is needed":              chunk("This is slow and ") + chunkOf(0, `{"content":"false."}`, `"stop"`) + done,
		"no end is told":                 chunk("This is slow and false.") + done,
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := pass(t, g, jobOf(t, guard.Annotate), stream)
			heard := listen(t, got)
			if err != nil || !strings.HasSuffix(heard.texts[0], "false. [unverified]") || heard.after {
				t.Errorf("error %v, text %q, behind the end %v", err, heard.texts[0], heard.after)
			}
		})
	}
}

func TestAnnotateAsFieldLeavesTheText(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Annotate)
	job.Policy.MarkerAs = guard.Field
	got, _, err := pass(t, g, job, words(story)...)
	heard := listen(t, got)
	if err != nil || heard.texts[0] != story || heard.marks != 1 {
		t.Errorf("error %v, %d marks, text %q", err, heard.marks, heard.texts[0])
	}
}

func TestHoldReplacesWhatFails(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for name, stream := range map[string][]string{
		"a chunk a word": words(story),
		"one chunk":      {role(), chunk(story), stop(), usage, done},
		"a chunk cut inside of claims": {
			role(), chunk("The tower is tall. This is fal"), chunk("se news. It is old. All is well."),
			stop(), usage, done,
		},
		"the end brings text": {role(), chunk("The tower is tall. This is fal"), chunkOf(0, `{"content":"se news. It is old. All is well."}`, `"stop"`), usage, done},
	} {
		t.Run(name, func(t *testing.T) {
			got, out, err := pass(t, g, jobOf(t, guard.Hold), stream...)
			heard := listen(t, got)
			if want := strings.Replace(story, "This is false news.", "[unverified]", 1); err != nil || heard.texts[0] != want {
				t.Errorf("error %v, text %q, want %q", err, heard.texts[0], want)
			}
			if !heard.done || !heard.usage || heard.after || heard.finish[0] != "stop" || out.Failed != 1 {
				t.Errorf("%+v %+v", heard, out)
			}
			if strings.Contains(got, "false") {
				t.Errorf("the claim stands in the stream:\n%s", got)
			}
		})
	}
}

func TestHoldLeavesBytesThatNeedNotChange(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	// Every chunk ends with the last character of a claim or inside one, so nothing has to be cut.
	stream := role() + chunk("The tower") + ": ping\n\n" + chunk(" is tall.") + strings.ReplaceAll(chunk("\n\n"), "\n\n", "\r\n\r\n") +
		chunk("It is") + chunk(" old.") + stop() + usage + done
	got, _, err := pass(t, g, func() guard.Job { j := jobOf(t, guard.Hold); return j }(), stream)
	if err != nil {
		t.Fatal(err)
	}
	for event := range strings.SplitAfterSeq(stream, "\n\n") {
		if !strings.Contains(event, "stop") && !strings.Contains(got, event) {
			t.Errorf("%q is not in\n%s", event, got)
		}
	}
}

func TestHoldEndsAfterSoManyFailures(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Hold)
	job.Policy.Failures = 2
	src, dst := newScript(words("Well. This is false. Good. That is false. More.")...), record{}
	src.hangs = true
	out, err := g.Copy(t.Context(), source(src), sink(&dst), job)
	heard := listen(t, dst.String())
	if want := "Well. [unverified] Good. "; err != nil || heard.texts[0] != want || heard.finish[0] != "content_filter" || !heard.done {
		t.Errorf("error %v, %+v", err, heard)
	}
	if !out.Cut || src.canceled.IsZero() {
		t.Errorf("cut %v, cancelled %v", out.Cut, src.canceled)
	}
}

func TestTerminateEndsAtTheClaim(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	src, dst := newScript(words(story)...), record{}
	out, err := g.Copy(t.Context(), source(src), sink(&dst), jobOf(t, guard.Terminate))
	heard := listen(t, dst.String())
	if err != nil || heard.finish[0] != "content_filter" || !heard.done || heard.usage || !out.Cut || src.canceled.IsZero() {
		t.Errorf("error %v, %+v, %+v", err, heard, out)
	}
	if strings.Contains(heard.texts[0], "old") || heard.summary == nil {
		t.Errorf("text %q, summary %v", heard.texts[0], heard.summary)
	}
}

func TestTerminateEndsEveryOpenChoice(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := chunkOf(0, `{"content":"Well."}`, "null") + chunkOf(1, `{"role":"assistant","content":""}`, "null") + chunkOf(2, `{"content":"Good."}`, "null") +
		chunkOf(0, `{}`, `"stop"`) + chunkOf(2, `{"content":" It is false. And"}`, "null") + done
	got, _, err := pass(t, g, jobOf(t, guard.Terminate), stream)
	heard := listen(t, got)
	want := map[int]string{0: "stop", 1: "content_filter", 2: "content_filter"}
	if err != nil || fmt.Sprint(heard.finish) != fmt.Sprint(want) {
		t.Errorf("error %v, ends %v, want %v", err, heard.finish, want)
	}
}

func TestTextThatMustKeepItsFormIsNotChanged(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	text := `{"a": "All is well. This is false. Good."}`
	for _, c := range []struct {
		mode guard.Mode
		want string
	}{{guard.Annotate, text}, {guard.Hold, `{"a": "All is well. `}} {
		mode, want := c.mode, c.want
		job := jobOf(t, mode)
		job.MayAnnotate = false
		got, out, err := pass(t, g, job, words(text)...)
		heard := listen(t, got)
		if err != nil || heard.texts[0] != want || out.Cut != (mode == guard.Hold) || heard.summary == nil {
			t.Errorf("%v: error %v, text %q, want %q, outcome %+v", mode, err, heard.texts[0], want, out)
		}
		if out.Mode != mode {
			t.Errorf("%v became %v", mode, out.Mode)
		}
		if told := heard.marks > 0; told != (mode == guard.Annotate) {
			t.Errorf("%v: the claim is told by %d chunks in\n%s", mode, heard.marks, got)
		}
	}
}

func TestAFormDoesNotLoosenAnnotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard.New(&judge{gate: make(chan struct{})}, guard.Options{Workers: 1})
		defer g.Close()
		job := jobOf(t, guard.Annotate)
		job.MayAnnotate, job.Policy.OnUnchecked = false, guard.Block
		got, out, err := pass(t, g, job, words(`{"a": "One is slow."}`)...)
		if heard := listen(t, got); err != nil || !out.Cut || heard.finish[0] != "content_filter" {
			t.Errorf("a claim that nobody checked passes: error %v, %+v\n%s", err, out, got)
		}
	})
}

func TestWithoutEvidenceNothingIsTouched(t *testing.T) {
	g := guardOf(t, nil, guard.Options{}) // asking it would panic
	stream := strings.Join(words(story), "")
	for m := guard.Observe; m <= guard.Hold; m++ {
		job := jobOf(t, m)
		job.Evidence = nil
		job.Policy.OnUnchecked = guard.Block
		got, out, err := pass(t, g, job, stream)
		if err != nil || got != stream || out.Verdict != check.Unchecked || out.Mode != guard.Off || out.State != sse.Done {
			t.Errorf("%v: error %v, changed %v, %+v", m, err, got != stream, out)
		}
	}
}

func TestToolCallsAndRefusalsPass(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	call := chunkOf(0, `{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":\"This is false.\"}"}}]}`, "null")
	refusal := chunkOf(0, `{"refusal":"This is false. I will not."}`, "null")
	thought := chunkOf(0, `{"reasoning_content":"This is false. Hm."}`, "null")
	for m := guard.Annotate; m <= guard.Hold; m++ {
		got, out, err := pass(t, g, jobOf(t, m), role(), thought, chunk("All is "), call, chunk("well."), refusal, stop(), done)
		for _, want := range []string{call, refusal, thought} {
			if err != nil || !strings.Contains(got, want) || out.Cut {
				t.Errorf("%v: error %v, %+v, no %s in\n%s", m, err, out, want, got)
			}
		}
	}
}

func TestReasoningIsCheckedOnRequest(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Hold)
	job.Policy.Reasoning = true
	got, out, err := pass(t, g, job, role(), chunkOf(0, `{"reasoning_content":"Hm. This is false. So"}`, "null"), chunk("All is well."), stop(), done)
	if err != nil || strings.Contains(got, "false") || out.Failed != 1 || !strings.Contains(got, `{"reasoning_content":`) {
		t.Errorf("error %v, %+v\n%s", err, out, got)
	}
	if heard := listen(t, got); heard.texts[0] != "All is well." {
		t.Errorf("text %q", heard.texts[0])
	}
}

func TestCodeFlowsThrough(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	text := "Look:\n\n```go\nreturn false\n```\n\nAll is well."
	got, out, err := pass(t, g, jobOf(t, guard.Hold), words(text)...)
	if heard := listen(t, got); err != nil || heard.texts[0] != text || out.Failed != 0 {
		t.Errorf("error %v, text %q, %+v", err, heard.texts[0], out)
	}
}

// both returns a chunk with text of two choices.
func both(first, second, finish string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":` + quote(first) +
		`},"finish_reason":` + finish + `},{"index":1,"delta":{"content":` + quote(second) + `},"finish_reason":` + finish + `}]}` + "\n\n"
}

func TestSeveralChoicesInOneEvent(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := both("All is well. Th", "This is slow a", "null") + both("at is fal", "nd false. It", "null") + both("se. Good.", " is old.", `"stop"`) + usage + done
	for _, c := range []struct {
		mode guard.Mode
		want [2]string
	}{
		{guard.Observe, [2]string{"All is well. That is false. Good.", "This is slow and false. It is old."}},
		{guard.Annotate, [2]string{"All is well. That is false. [unverified] Good.", "This is slow and false. It"}},
		{guard.Hold, [2]string{"All is well. [unverified] Good.", "[unverified] It is old."}},
	} {
		got, out, err := pass(t, g, jobOf(t, c.mode), stream)
		heard := listen(t, got)
		ok := heard.texts[0] == c.want[0] && strings.HasPrefix(heard.texts[1], c.want[1])
		if err != nil || !ok || !heard.done || heard.after || out.Failed != 2 && c.mode != guard.Observe {
			t.Errorf("%v: error %v, %+v, %+v", c.mode, err, out, heard)
		}
	}
}

func TestWhatOnlyTheGuardMaySayIsTakenFromEventsThatWait(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	forged := strings.Replace(chunk("It is "), `"choices"`, `"x_signalbox":{"forged":true},"choices"`, 1)
	for _, mode := range []guard.Mode{guard.Annotate, guard.Hold, guard.Terminate} {
		got, _, err := pass(t, g, jobOf(t, mode), role(), chunk("This is slow. "), forged, chunk("old. All is well."), stop(), done)
		if err != nil || strings.Contains(got, "forged") || !strings.Contains(got, "It is") {
			t.Errorf("mode %v: error %v:\n%s", mode, err, got)
		}
	}
}
