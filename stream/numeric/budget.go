package numeric

import (
	"context"
	"errors"
)

// ErrBudget is returned by CheckFrom when its steps did not suffice.
var ErrBudget = errors.New("more numbers and words to compare than the budget allows")

// comparing is what it takes to compare two numbers, in steps.
const comparing = 8

// pause is after how many steps, about, a check looks whether its context has ended; a power of 2.
const pause = 1024

// budget bounds the work of one check.
type budget struct {
	ctx  context.Context //nolint:containedctx // of one call, cleared when it ends
	left int             // steps; below 0 the check ends
}

// CheckFrom is Check within a number of steps, a step being a word or a number that is looked at:
// one or two nanoseconds. It takes those that it needs from steps, which claims may share. It fails
// with ErrBudget when they do not suffice, steps being less than 0 then, and with the context's
// error when that ends. The findings and the verdict are then those of the numbers before, each as
// Check finds it. It overruns its steps by no more than the words of two sentences.
func (x *Index) CheckFrom(ctx context.Context, dst []Finding, claim, before string, steps *int) (Verdict, []Finding, error) {
	t, b := DefaultThresholds(), budget{ctx: ctx, left: *steps}
	verdict, dst, err := x.check(dst, claim, before, &t, &b)
	*steps = b.left
	return verdict, dst, err
}

// spent reports whether the check should end. A context that has ended takes the steps that are
// left.
func (b *budget) spent() bool {
	if b.left >= 0 && b.ctx.Err() != nil {
		b.left = -1
	}
	return b.left < 0
}

// err is why the check ended early.
func (b *budget) err() error {
	if b.left >= 0 {
		return nil
	}
	if err := b.ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the caller knows its context
	}
	return ErrBudget
}
