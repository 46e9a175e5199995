package guard_test

import (
	"slices"
	"strings"
	"testing"

	"signalbox/stream/guard"
)

func TestTheMarkerStandsAtTheEndOfItsClaim(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"tokens that begin with a blank": {[]string{"This", " is", " false", ".", " The", " sky"}, "This is false. [unverified] The sky"},
		"tokens that end with a blank":   {[]string{"This ", "is ", "false. ", "The ", "sky"}, "This is false. [unverified] The sky"},
		"a blank of its own":             {[]string{"This is false.", " ", "The sky"}, "This is false. [unverified] The sky"},
		"a line break":                   {[]string{"This is false.", "\n\n", "The sky"}, "This is false. [unverified]\n\nThe sky"},
		"everything at once":             {[]string{"This is false. The sky is blue. Gras is green. "}, "This is false. [unverified] The sky is blue. Gras is green. "},
		"two at once":                    {[]string{"This is false. That is false. So"}, "This is false. [unverified] That is false. [unverified] So"},
		"at the end":                     {[]string{"The sky. This is false."}, "The sky. This is false. [unverified]"},
	} {
		t.Run(name, func(t *testing.T) {
			var stream strings.Builder
			for _, p := range c.pieces {
				stream.WriteString(chunk(p))
			}
			got, _, err := pass(t, g, jobOf(t, guard.Annotate), stream.String()+stop()+done)
			if heard := listen(t, got); err != nil || heard.texts[0] != c.want {
				t.Errorf("error %v, text %q, want %q", err, heard.texts[0], c.want)
			}
			got, _, err = pass(t, g, jobOf(t, guard.Annotate), responseOf(c.pieces...))
			deltas, wholes, _ := answerOf(t, got)
			if err != nil || deltas != c.want {
				t.Errorf("response: error %v, deltas %q, want %q", err, deltas, c.want)
			}
			for _, w := range wholes {
				if w != deltas {
					t.Errorf("told as a whole %q, in pieces %q", w, deltas)
				}
			}
		})
	}
}

func TestDeltasAndWholesOfAResponseAgreeWhenTheVerdictIsLate(t *testing.T) {
	for _, c := range []struct {
		early, late []string // pieces before and after the verdict
		want        string
	}{
		{[]string{"This is slow and false.", " The", " sky."}, nil, "This is slow and false. The sky. [unverified]"},
		{
			[]string{"This is slow and false.", " The sk"},
			[]string{"y is", " up."},
			"This is slow and false. The sky [unverified] is up.",
		},
	} {
		parts := strings.SplitAfter(responseOf(slices.Concat(c.early, c.late)...), "\n\n")
		deltas, wholes, _ := answerOf(t, lateVerdict(t, parts, len(c.early)+2))
		if deltas != c.want {
			t.Errorf("deltas %q, want %q", deltas, c.want)
		}
		for _, w := range wholes {
			if w != deltas {
				t.Errorf("told as a whole %q, in pieces %q", w, deltas)
			}
		}
	}
}

func TestHeldTextDoesNotWaitForAToolCall(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	call := func(arguments string) string {
		return chunkOf(0, `{"tool_calls":[{"index":0,"function":{"arguments":`+quote(arguments)+`}}]}`, "null")
	}
	job := jobOf(t, guard.Hold)
	job.Policy.Reasoning = true
	thought := chunkOf(0, `{"reasoning_content":"Hm, so"}`, "null")
	first, _, err := pass(t, g, job, role(), thought, call("{"), chunk("Well."), stop(), done)
	if strings.Index(first, "Hm, so") > strings.Index(first, "tool_calls") || err != nil {
		t.Errorf("error %v, the call comes before the thought:\n%s", err, first)
	}
	got, out, err := pass(t, g, jobOf(t, guard.Hold), role(), chunk("All is"), chunk(" well"), call("{"), call("}"), chunkOf(0, `{}`, `"tool_calls"`), done)
	text, tool := strings.LastIndex(got, `"content":"`), strings.Index(got, call("{"))
	if heard := listen(t, got); err != nil || heard.texts[0] != "All is well" || heard.tools[0] != "{}" || tool < text || out.Claims != 1 {
		t.Errorf("error %v, %+v, text at %d, call at %d\n%s", err, out, text, tool, got)
	}
}

func TestAChoiceEndsAtItsLastFinish(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	last := func(text string) string { return chunkOf(0, `{"content":`+quote(text)+`}`, `"stop"`) }
	early := []string{role(), last("All is well."), chunk(" This is false."), chunk(" Good."), done}
	var each []string
	for _, w := range strings.SplitAfter("All is well. This is old. It is good and tall.", " ") {
		each = append(each, last(w))
	}
	t.Run("terminate ends what went on", func(t *testing.T) {
		got, out, err := pass(t, g, jobOf(t, guard.Terminate), early...)
		if heard := listen(t, got); err != nil || !out.Cut || heard.finish[0] != "content_filter" || !heard.done {
			t.Errorf("error %v, %+v, %+v", err, out, heard)
		}
	})
	t.Run("the last summary tells everything", func(t *testing.T) {
		got, out, err := pass(t, g, jobOf(t, guard.Hold), early...)
		tail := got[strings.LastIndex(got, `"x_signalbox"`):]
		if heard := listen(t, got); err != nil || heard.texts[0] != "All is well. [unverified] Good." || !strings.Contains(tail, `"claims":3`) {
			t.Errorf("error %v, %+v, text %q, summary %s", err, out, heard.texts[0], tail)
		}
	})
	t.Run("without an end mark too", func(t *testing.T) {
		got, _, err := pass(t, g, jobOf(t, guard.Hold), early[:len(early)-1]...)
		if tail := got[strings.LastIndex(got, `"x_signalbox"`):]; err != nil || !strings.Contains(tail, `"claims":3`) {
			t.Errorf("error %v, summary %s", err, tail)
		}
	})
	t.Run("a finish on every chunk", func(t *testing.T) {
		for _, m := range []guard.Mode{guard.Annotate, guard.Hold} {
			got, out, err := pass(t, g, jobOf(t, m), append(each, done)...)
			heard := listen(t, got)
			if err != nil || heard.texts[0] != "All is well. This is old. It is good and tall." || out.Claims > 4 || strings.Count(got, "x_signalbox") > 2 {
				t.Errorf("%v: error %v, %+v\n%s", m, err, out, got)
			}
		}
	})
}
