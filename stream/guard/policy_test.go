package guard_test

import (
	"strings"
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
)

func TestModesAreReadAndOrdered(t *testing.T) {
	for m := guard.Off; m <= guard.Hold; m++ {
		if got, ok := guard.ParseMode(m.String()); !ok || got != m {
			t.Errorf("%v is read as %v, %v", m, got, ok)
		}
	}
	if _, ok := guard.ParseMode("on"); ok {
		t.Error("on is a mode")
	}
	if guard.Stricter(guard.Hold, guard.Observe) != guard.Hold || guard.Stricter(guard.Annotate, guard.Terminate) != guard.Terminate {
		t.Error("the stricter mode is not the stricter one")
	}
}

func TestWordsOfAPolicyAreRead(t *testing.T) {
	if m, ok := guard.ParseMarkerAs("field"); !ok || m != guard.Field {
		t.Error("field")
	}
	if m, ok := guard.ParseMarkerAs("text"); !ok || m != guard.Text {
		t.Error("text")
	}
	if u, ok := guard.ParseOnUnchecked("block"); !ok || u != guard.Block {
		t.Error("block")
	}
	if u, ok := guard.ParseOnUnchecked("pass"); !ok || u != guard.Pass {
		t.Error("pass")
	}
	if _, ok := guard.ParseMarkerAs(""); ok {
		t.Error("nothing marks")
	}
	if _, ok := guard.ParseOnUnchecked(""); ok {
		t.Error("nothing decides")
	}
}

func TestOnlyWhatIsToBeActedOnFails(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Hold)
	job.Policy.ActOn = guard.VerdictsOf(check.Unsupported)
	got, out, err := pass(t, g, job, words(story)...)
	if heard := listen(t, got); err != nil || heard.texts[0] != story || out.Failed != 0 || out.Verdict != check.Unsupported {
		t.Errorf("error %v, %+v, %q", err, out, heard.texts[0])
	}
}

// TestAWrongNumberIsHeldBack uses the real checker without a model, which checks only numbers.
func TestAWrongNumberIsHeldBack(t *testing.T) {
	checker, err := check.New(check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := evidence.New(t.Context(), []evidence.Source{{ID: "height", Text: "The Eiffel Tower is 330 metres tall.", Fact: true}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := guardOf(t, checker, guard.Options{})
	job := guard.Job{Evidence: e, Policy: guard.Policy{Mode: guard.Hold}, MayAnnotate: true}
	got, out, err := pass(t, g, job, words("The Eiffel Tower is 330 metres tall. The Eiffel Tower is 410 metres tall.")...)
	heard := listen(t, got)
	if err != nil || heard.texts[0] != "The Eiffel Tower is 330 metres tall. [unverified]" || out.Failed != 1 {
		t.Errorf("error %v, %+v, %q", err, out, heard.texts[0])
	}
	if !strings.Contains(got, `"fact":"height"`) {
		t.Errorf("no fact in\n%s", got)
	}
}
