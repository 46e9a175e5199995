package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"signalbox/memory/outcomes"
)

// pair is a cheap way to answer and a dear one: two models, or two efforts of one.
type pair struct{ small, large string }

// builtin are pairs of public models whose prices differ at least threefold.
func builtin() []pair {
	return []pair{
		{"Meta-Llama-3_1-8B-Instruct", "Meta-Llama-3_1-70B-Instruct"},
		{"gemini-1.5-flash-002", "gemini-1.5-pro-002"},
		{"mistralai/mixtral-8x7b-chat", "gpt-4-1106-preview"},
		{"gpt-3.5-turbo-1106", "gpt-4-1106-preview"},
		{"gpt-4o-mini-2024-07-18", "o1-mini-2024-09-12"},
		{"gpt-4o-2024-08-06", "o1-mini-2024-09-12"},
		{"Meta-Llama-3.1-8B-Instruct", "Meta-Llama-3.1-70B-Instruct"},
	}
}

// report prints Markdown.
type report struct {
	out       io.Writer
	resamples int
	draws     int
	pairs     []pair
	err       error
}

func (r *report) printf(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.out, format, args...)
	}
}

// fewest is how many prompts a set has to have to be measured.
const fewest = 100

func (r *report) run(ctx context.Context, sets []*set) error {
	for _, s := range sets {
		r.printf("\n## %s\n\n", s.name)
		if len(s.prompts) < fewest {
			r.printf("%d prompts: too few to be measured.\n", len(s.prompts))
			continue
		}
		for _, part := range [...]func(*set) error{r.answers, r.pool, r.choices, r.feedback} {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := part(s); err != nil {
				return err
			}
		}
	}
	return r.err
}

// way is what is left out together when outcomes are predicted.
type way struct {
	name string
	part func(*prompt) string
}

// ways are those of a set: with one benchmark there is none that could be left out.
func (s *set) ways() []way {
	out := []way{{"same benchmarks", s.foldOf}}
	if len(s.benchmarks()) > 1 {
		out = append(out, way{"unseen benchmark", s.benchmark})
	}
	return out
}

// ofRows makes a figure of predictions one of prompts, of each of which there are several.
func ofRows(of func([]judged) float64) func([][]judged) float64 {
	return func(rows [][]judged) float64 { return of(slices.Concat(rows...)) }
}

// answers tells how well P(good answer) is predicted.
func (r *report) answers(s *set) error {
	models := s.models()
	r.printf("%d prompts, %d models, benchmarks %v\n\n", len(s.prompts), len(models), s.benchmarks())
	r.printf(
		"| P(good answer) | AUC over models and prompts | ECE | AUC within a model, mean |\n| --- | --- | --- | --- |\n",
	)
	for _, way := range s.ways() {
		byPrompt := [][]judged{}
		by := make([][]judged, len(models))
		err := each(s.prompts, models, way.part, func(p *prompt, ps []outcomes.Prediction) {
			var row []judged
			for i := range ps {
				if res, ok := p.out[models[i]]; ok {
					j := judged{ps[i].Mean, res.score}
					row, by[i] = append(row, j), append(by[i], j)
				}
			}
			byPrompt = append(byPrompt, row)
		})
		if err != nil {
			return err
		}
		n := min(r.resamples, 50) // each sorts all models' predictions
		within, k := 0.0, 0.0
		for i := range by {
			if a := auc(by[i]); !math.IsNaN(a) {
				within += a
				k++
			}
		}
		r.printf(
			"| %s | %v | %v | %.3f |\n",
			way.name,
			bootstrap(byPrompt, n, ofRows(auc)),
			bootstrap(byPrompt, n, ofRows(ece)),
			within/k,
		)
	}
	r.printf("\n")
	return r.err
}

// pool tells what choosing among all models is worth.
func (r *report) pool(s *set) error {
	models := s.models()
	ps := whole(s.prompts, models)
	if len(ps) < fewest || len(models) < 2 {
		return nil
	}
	best, random, oracle := mean(ps, models[0]), 0.0, 0.0
	for _, m := range models {
		random += mean(ps, m) / float64(len(models))
	}
	for _, p := range ps {
		top := 0.0
		for _, m := range models {
			top = max(top, p.out[m].score)
		}
		oracle += top / float64(len(ps))
	}
	r.printf(
		"All models, the one with the best prediction: best single %s %.3f, random %.3f, oracle %.3f\n\n",
		models[0],
		best,
		random,
		oracle,
	)
	for _, way := range s.ways() {
		var gains []float64
		err := each(ps, models, way.part, func(p *prompt, preds []outcomes.Prediction) {
			gains = append(gains, p.out[models[top(preds)]].score-p.out[models[0]].score)
		})
		if err != nil {
			return err
		}
		r.printf("- %s: over the best single %v\n", way.name, bootstrap(gains, r.resamples, average))
	}
	r.printf("\n")
	return r.err
}

func top(ps []outcomes.Prediction) int {
	best := 0
	for i := range ps {
		if ps[i].Mean > ps[best].Mean {
			best = i
		}
	}
	return best
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// choices tells what choosing between two models is worth.
func (r *report) choices(s *set) error {
	for _, pr := range r.pairs {
		models := []string{pr.small, pr.large}
		ps := whole(s.prompts, models)
		if len(ps) < fewest {
			continue
		}
		if lo, hi := mean(ps, pr.small), mean(ps, pr.large); hi <= lo {
			r.printf("%s is no better than %s here (%.3f, %.3f).\n\n", pr.large, pr.small, hi, lo)
			continue
		}
		for i, way := range s.ways() {
			var cs []choice
			var parts []int
			err := each(ps, models, way.part, func(p *prompt, preds []outcomes.Prediction) {
				cs = append(cs, choice{preds[1].Mean - preds[0].Mean, p.out[pr.small], p.out[pr.large]})
				parts = append(parts, p.fold())
			})
			if err != nil {
				return err
			}
			if i == 0 {
				r.pairHead(pr, cs)
			}
			r.pairRow(way.name, cs, parts)
		}
		r.printf("\n")
	}
	return r.err
}

func (r *report) pairHead(pr pair, cs []choice) {
	q, tok := curve(cs)
	n, both := len(cs), 0.0
	sent := 0.0
	for i := range cs {
		both += max(cs[i].small.score, cs[i].large.score) / float64(n)
		if cs[i].large.score > cs[i].small.score {
			sent += 1 / float64(n)
		}
	}
	r.printf("%s -> %s: %.3f -> %.3f, tokens %.0f -> %.0f; the oracle %.3f with %.2f to the large one\n\n",
		pr.small, pr.large, q[0], q[n], tok[0], tok[n], both, sent)
	r.printf("| | APGR | share to the large one for 95 / 99 / 100 %% of its quality | a random mix | " +
		"thresholds from other folds: 0.5 points less allowed: lost points; share; tokens of all-large |\n| --- | --- | --- | --- | --- |\n")
}

func (r *report) pairRow(name string, cs []choice, parts []int) {
	lost, share, tokens := honest(cs, parts, 0.005)
	r.printf(
		"| %s | %v | %.2f / %v / %.2f | %.2f / %.2f / 1 | %.2f; %.2f; %.2f |\n",
		name,
		bootstrap(cs, r.resamples, apgr),
		shareFor(cs, 0.95),
		bootstrap(cs, r.resamples, func(cs []choice) float64 { return shareFor(cs, 0.99) }),
		shareFor(cs, 1),
		randomShare(cs, 0.95),
		randomShare(cs, 0.99),
		100*lost,
		share,
		tokens,
	)
}

// honest sends to the large model what is predicted to gain more than a threshold, which for each
// fold is the greatest at which the others lose at most allowed; it returns what is lost of the
// large model's quality, the share that it gets, and the tokens as a share of its own.
func honest(cs []choice, parts []int, allowed float64) (lost, share, tokens float64) {
	var used, all float64
	for f := range folds {
		var others []choice
		for i := range cs {
			if parts[i] != f {
				others = append(others, cs[i])
			}
		}
		at := threshold(others, allowed)
		for i := range cs {
			if parts[i] != f {
				continue
			}
			c := &cs[i]
			chosen := c.small
			if c.gain >= at {
				chosen = c.large
				share++
			}
			lost += c.large.score - chosen.score
			used += chosen.tokens
			all += c.large.tokens
		}
	}
	n := float64(len(cs))
	return lost / n, share / n, used / all
}
