package check_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"signalbox/stream/check"
)

// impatient is a context that ends when it has been looked at so many times.
type impatient struct {
	context.Context
	looks, left int
}

func (c *impatient) Err() error {
	c.looks++
	if c.looks > c.left {
		return context.Canceled
	}
	return nil
}

// Reading the numbers of a long text takes seconds: nobody is left to read them for.
func TestATextThatNobodyWaitsForIsReadNoFurther(t *testing.T) {
	t.Parallel()
	answer := strings.Repeat("The Eiffel Tower is 350 m tall. ", 100)
	j := &judge{says: louvre}
	for _, left := range []int{0, 3} {
		ctx := &impatient{Context: t.Context(), left: left}
		_, err := checker(t, check.Options{Judge: j}).Text(ctx, facts(t, towers...), "", answer)
		if !errors.Is(err, context.Canceled) || ctx.looks > left+2 || len(j.batches) > 0 {
			t.Errorf("after %d looks: error %v, %d looks, %d batches", left, err, ctx.looks, len(j.batches))
		}
	}
}
