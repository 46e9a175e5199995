package check

import (
	"context"
	"errors"
	"fmt"
	"math"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
)

// Examined is a claim of a text with everything its verdict is based on. It is used to fit a
// Fusion.
type Examined struct {
	claims.Claim

	Premises   []evidence.Premise // premises whose words are compared, best first
	Read       []evidence.Premise // premises that the Judge read
	Inferences []Inference        // one per premise in Read, in order
	Features   []float64          // see the function Features
	Result     Result
}

// Examine is Text for training. It returns the claims that count for Report.Support, with their
// features. If the Judge or the Marker fails, Examine returns the error, so that incomplete
// features are not taken for complete ones.
func (c *Checker) Examine(ctx context.Context, e *evidence.Evidence, question, answer string) ([]Examined, error) {
	list, err := split(answer)
	if err != nil {
		return nil, err
	}
	steps := math.MaxInt
	_, open, spans := readings(ctx, e, question, list, &steps)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("examine text: %w", err)
	}
	c.ask(ctx, e, question, answer, spans, open, unbounded())
	out := make([]Examined, len(open))
	for i, r := range open {
		if err := errors.Join(r.judgeErr, r.markErr); err != nil {
			return nil, err
		}
		if c.opts.Judge == nil {
			r.prepare(e, c.opts.Premises)
		}
		out[i] = Examined{
			Claim: list[r.at], Premises: r.found, Read: r.read, Inferences: r.inf,
			Features: Features(nil, r.claim, r.found, r.findings, r.inf),
			Result:   c.decide(e, r),
		}
	}
	return out, nil
}
