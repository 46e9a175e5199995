package check_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/check"
)

// TestATextThatNobodyWaitsForIsReadNoFurther checks that reading the numbers of a long text, which
// takes seconds, stops when the caller is gone.
func TestATextThatNobodyWaitsForIsReadNoFurther(t *testing.T) {
	t.Parallel()
	answer := strings.Repeat("The Eiffel Tower is 350 m tall. ", 100)
	j := &judge{says: louvre}
	for _, left := range []int{0, 3} {
		ctx := testkit.NewCountdown(t.Context(), left, context.Canceled)
		_, err := checker(t, check.Options{Judge: j}).Text(ctx, facts(t, towers...), "", answer)
		if !errors.Is(err, context.Canceled) || ctx.Looks() > left+2 || len(j.batches) > 0 {
			t.Errorf("after %d looks: error %v, %d looks, %d batches", left, err, ctx.Looks(), len(j.batches))
		}
	}
}
