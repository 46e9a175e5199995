package check

import (
	"context"
	"errors"
	"fmt"
	"math"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
)

// Examined is a claim of a text with everything that its verdict was made from, for those who fit a
// Fusion.
type Examined struct {
	claims.Claim

	Premises   []evidence.Premise // that the words are looked for in, best first
	Read       []evidence.Premise // that the Judge read
	Inferences []Inference        // of these, in their order
	Features   []float64          // as Features gives them
	Result     Result
}

// Examine is Text for training: it returns the claims that count for Report.Support, with their
// features. An error of the Judge is one of Examine, so that no features are taken for complete
// that are not.
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
