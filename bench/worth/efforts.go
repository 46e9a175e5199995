package main

import (
	"context"
	"fmt"
)

// knownOutcomes are how many prompts of a task the product knows at both efforts, for each row of
// the table; 0 is all.
//
//nolint:gochecknoglobals // constant table
var knownOutcomes = []int{5, 20, 40, 60, 0}

// effort tells what reasoning: auto saves of the tokens of a model that could always reason.
func (r *report) effort(ctx context.Context, s *set) error {
	for _, pr := range r.efforts {
		ps := whole(s.prompts, pr.small, pr.large)
		if len(ps) < fewest {
			continue
		}
		inTokens, models := &report{}, []string{pr.small, pr.large} // without prices a token costs 1
		at, best := inTokens.singles(ps, models), inTokens.oracle(ps, models)
		r.printf("%s and %s as efforts of one model: %.3f with %.0f tokens, %.3f with %.0f; the oracle %.3f with %.0f\n\n",
			pr.small, pr.large, at[0].quality, at[0].cost, at[1].quality, at[1].cost, best.quality, best.cost)
		r.printf("| outcomes known | right | over always %s, points | tokens, of its own | without reasoning |\n"+
			"| --- | --- | --- | --- | --- |\n", pr.large)
		for _, w := range s.ways() {
			for _, n := range knownOutcomes {
				if err := r.effortRow(ctx, pr, w, ps, n); err != nil {
					return err
				}
			}
		}
		r.printf("\n")
	}
	return r.err
}

// effortRow asks every prompt of a product that has n outcomes of each task, and effort.
func (r *report) effortRow(ctx context.Context, pr pair, w way, ps []*prompt, n int) error {
	const model = "one"
	set := setup{
		arms:   []arm{{model: model, effort: "none", of: pr.small}, {model: model, effort: "high", of: pr.large}},
		prices: r.prices, known: n,
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
	known := "all"
	if n > 0 {
		known = fmt.Sprintf("%d a task", n)
	}
	r.printf("| %s, %s | %v | %v | %v | %.2f |\n", w.name, known, right, over, left, direct.at)
	return r.err
}
