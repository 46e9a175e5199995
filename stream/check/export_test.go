package check

import (
	"context"

	"signalbox/stream/evidence"
)

// ReadWithin returns the results of the claims of a text, like Text without a model, with only
// 1/part of the steps.
func ReadWithin(ctx context.Context, e *evidence.Evidence, answer string, part int) ([]Result, error) {
	list, err := split(answer)
	if err != nil {
		return nil, err
	}
	steps := textSteps / part
	results, _, _ := readings(ctx, e, "", list, &steps)
	return results, ctx.Err()
}
