package guard_test

import (
	"strings"
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/guard"
)

// twice returns a chunk with its text both as a delta and as the text of the choice, as Together AI
// sends it.
func twice(text string) string {
	return `data: {"id":"t","choices":[{"index":0,"delta":{"content":` + quote(text) + `},"text":` + quote(text) + `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
}

func TestATextThatStandsTwiceIsCheckedOnce(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	stream := []string{twice("All is well. This"), twice(" is false."), twice(" It is old."), stop(), done}
	for _, c := range []struct {
		mode guard.Mode
		want string
	}{
		{guard.Hold, "All is well. [unverified] It is old."},
		{guard.Annotate, "All is well. This is false. [unverified] It is old."},
	} {
		mode, want := c.mode, c.want
		got, out, err := pass(t, g, jobOf(t, mode), stream...)
		if heard := listen(t, got); err != nil || heard.texts[0] != want || out.Claims != 3 || out.Failed != 1 {
			t.Errorf("%v: error %v, %+v, text %q", mode, err, out, heard.texts[0])
		}
		if n := strings.Count(got, "[unverified]"); n != 2 {
			t.Errorf("%v: the marker stands %d times in\n%s", mode, n, got)
		}
		if mode == guard.Hold && strings.Contains(got, "false") {
			t.Errorf("the claim got out:\n%s", got)
		}
	}
}

const (
	repeated = `data: {"choices":[{"index":0,"delta":{"content":"x","content":"This is false."}}]}` + "\n\n"
	unequal  = `data: {"choices":[{"index":0,"delta":{"content":"x"},"text":"This is false."}]}` + "\n\n"
	spoken   = `data: {"choices":[{"index":0,"delta":{"audio":{"id":"a","transcript":"This is false."}}}]}` + "\n\n"
)

func TestAnAnswerThatIsNotReadInFullIsNotSupported(t *testing.T) {
	for name, event := range map[string]string{"a member named twice": repeated, "two texts": unequal, "speech": spoken} {
		t.Run(name, func(t *testing.T) {
			o := newTally()
			g := guardOf(t, &judge{}, guard.Options{Observer: o})
			got, out, err := pass(t, g, jobOf(t, guard.Hold), chunk("All is well."), event, stop(), done)
			if err != nil || out.Verdict != check.Unchecked || out.Claims != 2 || o.of(check.Unchecked) != 1 || o.done(guard.Unreadable) != 1 {
				t.Errorf("error %v, %+v, %d actions", err, out, o.done(guard.Unreadable))
			}
			if !strings.Contains(got, `"verdict":"unchecked","claims":2`) {
				t.Errorf("no word of it in the summary:\n%s", got)
			}
		})
	}
}

func TestWhatCannotBeReadIsBlockedInEveryModeThatActs(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for _, event := range []string{repeated, unequal, spoken} {
		for m := guard.Observe; m <= guard.Hold; m++ {
			job := jobOf(t, m)
			job.Policy.OnUnchecked = guard.Block
			got, out, err := pass(t, g, job, chunk("All is well."), event, stop(), done)
			acts := m > guard.Observe
			if err != nil || out.Cut != acts || strings.Contains(got, "false") == acts {
				t.Errorf("%v: error %v, %+v\n%s", m, err, out, got)
			}
		}
	}
}

func TestABodyThatIsNotReadInFullIsNotSupported(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	const body = `{"choices":[{"index":0,"message":{"content":"All is well.","audio":{"transcript":"This is false."}},"finish_reason":"stop"}]}`
	job := jobOf(t, guard.Hold)
	if _, out, err := g.Body(t.Context(), []byte(body), job); err != nil || out.Verdict != check.Unchecked || out.Claims != 2 {
		t.Errorf("error %v, %+v", err, out)
	}
	job.Policy.OnUnchecked = guard.Block
	if got, _, err := g.Body(t.Context(), []byte(body), job); err == nil {
		t.Errorf("let go: %s", got)
	}
}

func TestTheSumOfAResponseIsHeldToo(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	const body = `{"object":"response","status":"completed","output_text":"Well. This is false.",` +
		`"output":[{"type":"message","content":[{"type":"output_text","text":"Well. This is false."}]}]}`
	got, out, err := g.Body(t.Context(), []byte(body), jobOf(t, guard.Hold))
	if err != nil || out.Failed != 1 || strings.Contains(string(got), "false") || strings.Count(string(got), "[unverified]") != 2 {
		t.Errorf("error %v, %+v\n%s", err, out, got)
	}
}

func TestHoldLetsNoLogprobsRunAhead(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	ahead := `data: {"choices":[{"index":0,"delta":{"content":""},"logprobs":{"content":[{"token":"false"}]},"token_ids":[7777],"finish_reason":null}]}` + "\n\n"
	for _, m := range []guard.Mode{guard.Hold, guard.Annotate} {
		got, _, err := pass(t, g, jobOf(t, m), role(), ahead, chunk("This is false."), stop(), done)
		told := strings.Contains(got, `"token":"false"`) || strings.Contains(got, "7777")
		if err != nil || told != (m == guard.Annotate) {
			t.Errorf("%v: error %v\n%s", m, err, got)
		}
	}
}
