package check

import (
	"context"

	"signalbox/stream/evidence"
)

// ReadWithin gives the results of the claims of a text, as Text does without a model, where only
// one part of the steps may be taken that Text takes.
func ReadWithin(ctx context.Context, e *evidence.Evidence, answer string, part int) ([]Result, error) {
	list, err := split(answer)
	if err != nil {
		return nil, err
	}
	steps := textSteps / part
	results, _, _ := readings(ctx, e, "", list, &steps)
	return results, ctx.Err()
}
