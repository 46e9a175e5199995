package numeric

import (
	"context"
	"errors"
)

// ErrBudget is returned by CheckFrom when the budget of steps is used up.
var ErrBudget = errors.New("more numbers and words to compare than the budget allows")

// comparing is the cost of comparing two numbers, in steps.
const comparing = 8

// pause is the approximate number of comparisons between two checks of the context; a power of 2.
const pause = 1024

// budget limits the work of one check.
type budget struct {
	ctx  context.Context //nolint:containedctx // of one call, cleared when it ends
	left int             // remaining steps; the check ends when negative
}

// CheckFrom is Check with a limit on its work. A step is one word or number looked at, about one or
// two nanoseconds. CheckFrom subtracts the steps it uses from *steps, which several claims may
// share. It returns ErrBudget if they run out (*steps is then negative) and the context's error if
// the context ends. In both cases the findings and the verdict cover the numbers judged so far,
// each as Check would judge it. The budget is overrun by at most the words of two sentences.
func (x *Index) CheckFrom(ctx context.Context, dst []Finding, claim, before string, steps *int) (Verdict, []Finding, error) {
	t, b := DefaultThresholds(), budget{ctx: ctx, left: *steps}
	verdict, dst, err := x.check(dst, claim, before, &t, &b)
	*steps = b.left
	return verdict, dst, err
}

// spent reports whether the check should end. If the context has ended, spent discards the
// remaining steps.
func (b *budget) spent() bool {
	if b.left >= 0 && b.ctx.Err() != nil {
		b.left = -1
	}
	return b.left < 0
}

// err returns why the check ended early, or nil if it did not.
func (b *budget) err() error {
	if b.left >= 0 {
		return nil
	}
	if err := b.ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the caller knows its context
	}
	return ErrBudget
}
