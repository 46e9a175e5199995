package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
)

// TestManyNumbersAreComparedByAWorkerWithoutAModel checks an answer of wrong numbers against 250
// KiB of numbers. Quick leaves them open, and they are withheld nevertheless.
func TestManyNumbersAreComparedByAWorkerWithoutAModel(t *testing.T) {
	text, claim := []byte("Stock: "), "The stock is "
	for i := 1; len(text) < 250<<10; i++ {
		text = fmt.Appendf(text, "%d ", i*7919%99991)
	}
	for i := range 40 {
		claim += fmt.Sprintf("%d ", 900_000_001+i)
	}
	e, err := evidence.New(t.Context(), []evidence.Source{{ID: "tool", Text: string(text)}}, evidence.Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	checker, err := check.New(check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, final := checker.Quick(e, check.Claim{Text: claim}); final {
		t.Fatal("the claim is quick to check")
	}
	job := jobOf(t, guard.Hold)
	job.Evidence, job.Policy.MaxHold = e, time.Minute
	got, out, err := pass(t, guardOf(t, checker, guard.Options{}), job, chunk(claim+". "), stop(), "data: [DONE]\n\n")
	if err != nil {
		t.Fatal(err)
	}
	if out.Shed > 0 || out.Failed == 0 || strings.Contains(got, "900000001") {
		t.Errorf("%+v, want a claim that failed and was withheld: %s", out, got)
	}
}
