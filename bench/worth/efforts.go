package main

import (
	"context"
	"fmt"
)

// knownOutcomes is the number of prompts of a task that the product knows at both efforts, for each
// row of the table; 0 means all.
//
//nolint:gochecknoglobals // constant table
var knownOutcomes = []int{5, 20, 40, 60, 0}

// effort measures the tokens that reasoning: auto saves for a model that could always reason.
func (r *report) effort(ctx context.Context, s *set) error {
	for _, pr := range r.efforts {
		ps := whole(s.prompts, pr.small, pr.large)
		if len(ps) < fewest {
			continue
		}
		inTokens, models := &report{}, []string{pr.small, pr.large} // without prices a token costs 1
		at, best := inTokens.singles(ps, models), inTokens.oracle(ps, models)
		r.printf("%s and %s as efforts of one model: "+
			"%.3f with %.0f tokens, %.3f with %.0f; the oracle %.3f with %.0f\n\n",
			pr.small, pr.large, at[0].quality, at[0].cost, at[1].quality, at[1].cost, best.quality, best.cost)
		r.printf("| outcomes known | may lose | right | over always %s, points | tokens, of its own | "+
			"without reasoning |\n| --- | --- | --- | --- | --- | --- |\n", pr.large)
		for _, w := range s.ways() {
			for _, n := range knownOutcomes {
				for _, loss := range r.losses {
					if err := r.effortRow(ctx, pr, w, ps, known{n, loss}); err != nil {
						return err
					}
				}
			}
		}
		r.printf("\n")
	}
	return r.err
}

// known is the knowledge of a product in one row: the number of outcomes of each task, 0 for all,
// and its outcomes.max_quality_loss.
type known struct {
	outcomes int
	loss     float64
}

// effortRow sends every prompt to a product with the given knowledge.
func (r *report) effortRow(ctx context.Context, pr pair, w way, ps []*prompt, k known) error {
	const model = "one"
	set := setup{
		arms:   []arm{{model: model, effort: "none", of: pr.small}, {model: model, effort: "high", of: pr.large}},
		prices: r.prices, known: k.outcomes, loss: k.loss,
	}
	as, err := replay(ctx, r.read, set, ps, w.part, byEffort)
	if err != nil {
		return err
	}
	mean := func(of func(*asked) float64) interval {
		return bootstrap(as, r.resamples, func(as []asked) float64 {
			sum := 0.0
			for i := range as {
				sum += of(&as[i]) / float64(len(as))
			}
			return sum
		})
	}
	right := mean(func(a *asked) float64 { return a.got(byEffort).score })
	over := mean(func(a *asked) float64 { return 100 * (a.got(byEffort).score - a.out[pr.large].score) })
	direct := mean(func(a *asked) float64 {
		if a.served[byEffort].arm.of == pr.small {
			return 1
		}
		return 0
	})
	left := bootstrap(as, r.resamples, func(as []asked) float64 {
		used, all := 0.0, 0.0
		for i := range as {
			used += as[i].served[byEffort].tokens
			all += as[i].out[pr.large].tokens
		}
		return used / all
	})
	outcomes := "all"
	if k.outcomes > 0 {
		outcomes = fmt.Sprintf("%d a task", k.outcomes)
	}
	r.printf("| %s, %s | %g | %v | %v | %v | %.2f |\n", w.name, outcomes, 100*k.loss, right, over, left, direct.at)
	return r.err
}
