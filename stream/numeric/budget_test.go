package numeric_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/numeric"
)

// ledgerOf returns an index of n sentences with numbers.
func ledgerOf(n int) *numeric.Index {
	var list []numeric.Sentence
	for i := range n {
		list = append(list, numeric.Sentence{Text: fmt.Sprintf("Store %d sold %d pumps, %d hoses and %d valves.", i, 7*i+3, 11*i+5, 13*i+7), Group: i})
	}
	return numeric.NewIndex(context.Background(), list)
}

// checkWithin is CheckFrom with a budget of its own.
func checkWithin(
	ctx context.Context, x *numeric.Index, dst []numeric.Finding, claim, before string, steps int,
) (numeric.Verdict, []numeric.Finding, error) {
	return x.CheckFrom(ctx, dst, claim, before, &steps)
}

func TestCheckFromFindsWhatCheckFinds(t *testing.T) {
	t.Parallel()
	x := ledgerOf(50)
	const claim = "Store 4 sold 31 pumps, 50 hoses and 59 valves, a total of 139."
	want, all := x.Check(nil, claim, "")
	stopped := 0
	for steps := 1; steps < 1<<20; steps *= 2 {
		got, found, err := checkWithin(t.Context(), x, nil, claim, "", steps)
		switch {
		case err == nil && (got != want || !slices.Equal(found, all)):
			t.Fatalf("%d steps: %v %+v, want %v %+v", steps, got, found, want, all)
		case err != nil && !errors.Is(err, numeric.ErrBudget):
			t.Fatalf("%d steps: %v", steps, err)
		case err != nil && !slices.Equal(found, all[:len(found)]):
			t.Fatalf("%d steps: %+v is not the beginning of %+v", steps, found, all)
		case err != nil:
			stopped++
		}
	}
	if _, _, err := checkWithin(t.Context(), x, nil, claim, "", math.MaxInt); err != nil || stopped == 0 {
		t.Errorf("without a bound %v, stopped %d times", err, stopped)
	}
}

func TestCheckFromEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, found, err := checkWithin(ctx, ledgerOf(50), nil, "Store 4 sold 31 pumps.", "", math.MaxInt); !errors.Is(err, context.Canceled) || v != numeric.NotCheckable || len(found) > 0 {
		t.Errorf("%v %+v %v, want nothing and the context's error", v, found, err)
	}
}

// TestStepsBoundTheWork checks that the charge for a claim with many numbers grows with them, so
// that a limit leaves most of them unjudged.
func TestStepsBoundTheWork(t *testing.T) {
	t.Parallel()
	x := ledgerOf(1000)
	claim := "Stores 1 and 2 sold " + strings.Repeat("5,017 and ", 200) + "9 pumps."
	_, found, err := checkWithin(t.Context(), x, nil, claim, "", 200_000)
	if !errors.Is(err, numeric.ErrBudget) || len(found) > 100 {
		t.Errorf("%d of 200 numbers were looked at, %v", len(found), err)
	}
}

func TestABoundDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector allocates")
	}
	x := ledgerOf(1000)
	claim := strings.Repeat("5,017 pumps and ", 100)
	room := make([]numeric.Finding, 0, 200)
	if n := testing.AllocsPerRun(20, func() {
		_, _, _ = checkWithin(t.Context(), x, room, claim, "", 100_000)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
