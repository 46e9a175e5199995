package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// numbersOf returns evidence with size bytes of numbers, and a claim with 48 of them.
func numbersOf(tb testing.TB, size int) (*evidence.Evidence, check.Claim) {
	tb.Helper()
	text := []byte("Stock: ")
	for i := 1; len(text) < size; i++ {
		text = fmt.Appendf(text, "%d ", i*7919%99991)
	}
	e, err := evidence.New(tb.Context(), []evidence.Source{{ID: "tool", Text: string(text)}}, evidence.Options{MaxBytes: 1 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	claim := "The stock is "
	for i := 1; i <= 48; i++ {
		claim += fmt.Sprintf("%d ", i*7919%99991)
	}
	return e, check.Claim{Text: claim}
}

func TestAClaimOfManyNumbersIsLeftToCheck(t *testing.T) {
	t.Parallel()
	e, claim := numbersOf(t, 250<<10)
	c := checker(t, check.Options{})
	if r, final := c.Quick(e, claim); final || r.Verdict != check.Unchecked {
		t.Errorf("quick: %v %+v, want it left open", final, r)
	}
	claim.Text += "and 123456789."
	if r, final := c.Quick(e, claim); final || r.Verdict != check.Unchecked {
		t.Errorf("quick: %v %+v, want it left open", final, r)
	}
	if r := c.Check(t.Context(), e, "", []check.Claim{claim})[0]; r.Verdict != check.Unsupported || r.By != check.Numeric || r.Err != nil {
		t.Errorf("check without a judge: %+v, want unsupported by the numbers", r)
	}
}

func TestAHeadingOfManyNumbersStatesNothing(t *testing.T) {
	t.Parallel()
	e, claim := numbersOf(t, 250<<10)
	heading := "# " + claim.Text + strings.Repeat("7919 15838 ", 50) + "\n\n"
	got, err := checker(t, check.Options{}).Text(t.Context(), e, "", heading+"The stock is 7919.\n")
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Claims[0]; r.Verdict != check.NotCheckable {
		t.Errorf("%.60q is %v (%s)", r.Text, r.Verdict, r.Reason)
	}
}

func TestManyNumbersAreNotComparedForNobody(t *testing.T) {
	t.Parallel()
	e, claim := numbersOf(t, 250<<10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	few := check.Claim{Text: "The stock is 123456789."}
	got := checker(t, check.Options{Judge: always(entails)}).Check(ctx, e, "", []check.Claim{claim, few})
	if got[0].Verdict != check.Unchecked || !errors.Is(got[0].Err, context.Canceled) {
		t.Errorf("%+v, want unchecked and the context's error", got[0])
	}
}

func TestAClaimThatIsTooMuchForCheckIsUnchecked(t *testing.T) {
	t.Parallel()
	e, err := evidence.New(t.Context(), []evidence.Source{{Text: strings.Repeat("a 1;", 64<<10)}}, evidence.Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	claim := check.Claim{Text: strings.Repeat("a 1;", 500)}
	r := checker(t, check.Options{Judge: always(entails)}).Check(t.Context(), e, "", []check.Claim{claim})[0]
	if r.Verdict != check.Unchecked || r.Err == nil {
		t.Errorf("%+v, want unchecked, never supported", r)
	}
}

func TestQuickOfManyNumbersDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector allocates")
	}
	e, claim := numbersOf(t, 64<<10)
	c := checker(t, check.Options{})
	if n := testing.AllocsPerRun(20, func() { c.Quick(e, claim) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkManyNumbers measures a claim with 48 numbers against 250 KiB of numbers, as in the
// stream and as on a worker.
func BenchmarkManyNumbers(b *testing.B) {
	e, claim := numbersOf(b, 250<<10)
	c := checker(b, check.Options{})
	b.Run("quick", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Quick(e, claim)
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			c.Check(b.Context(), e, "", []check.Claim{claim})
		}
	})
}
