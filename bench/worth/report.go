package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
)

// pair is a cheap way to answer and a dear one.
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
	read      *reader
	resamples int
	draws     int
	pairs     []pair
	efforts   []pair
	losses    []float64 // outcomes.max_quality_loss that efforts are tried with
	prices    prices
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
		for _, part := range [...]func(context.Context, *set) error{r.pool, r.choices, r.effort, r.feedback} {
			if err := part(ctx, s); err != nil {
				return err
			}
		}
	}
	return r.err
}

// ofRows makes a figure of predictions one of prompts, of each of which there are several.
func ofRows(of func([]judged) float64) func([][]judged) float64 {
	return func(rows [][]judged) float64 { return of(slices.Concat(rows...)) }
}

// pool tells how well P(good answer) is predicted, and what choosing among all models is worth.
func (r *report) pool(ctx context.Context, s *set) error {
	models := s.models()
	ps := whole(s.prompts, models...)
	r.printf("%d prompts, %d models, benchmarks %v\n\n", len(s.prompts), len(models), s.benchmarks())
	if len(ps) < fewest || len(models) < 2 {
		r.printf("Too few prompts have answers of the same models.\n\n")
		return r.err
	}
	routes := []string{byQuality}
	for _, m := range margins {
		routes = append(routes, byCost(m))
	}
	set := setup{arms: arms(models...), prices: r.prices}
	byWay := map[string][]asked{}
	for _, w := range s.ways() {
		got, err := replay(ctx, r.read, set, ps, w.part, routes...)
		if err != nil {
			return err
		}
		byWay[w.name] = got
	}
	r.answers(s, models, byWay)
	r.references(ps, models)
	for _, w := range s.ways() {
		r.served(w.name, models[0], byWay[w.name], routes)
	}
	r.printf("\n")
	for _, w := range s.ways() {
		r.costs(w.name, models, byWay[w.name])
	}
	return r.err
}

// answers tells how well P(good answer) is predicted.
func (r *report) answers(s *set, models []string, byWay map[string][]asked) {
	r.printf("| P(good answer) | AUC over models and prompts | ECE | AUC within a model, mean |\n")
	r.printf("| --- | --- | --- | --- |\n")
	for _, w := range s.ways() {
		byPrompt := [][]judged{}
		by := make([][]judged, len(models))
		for _, a := range byWay[w.name] {
			var row []judged
			for _, f := range a.served[byQuality].expect {
				j := judged{f.quality, a.out[f.model].score}
				i := slices.Index(models, f.model)
				row, by[i] = append(row, j), append(by[i], j)
			}
			byPrompt = append(byPrompt, row)
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
			"| %s | %v | %v | %.3f |\n", w.name,
			bootstrap(byPrompt, n, ofRows(auc)), bootstrap(byPrompt, n, ofRows(ece)), within/k,
		)
	}
	r.printf("\n")
}

// references prints what there is to compare with.
func (r *report) references(ps []*prompt, models []string) {
	single := r.singles(ps, models)
	random := point{}
	for _, x := range single {
		random.quality += x.quality / float64(len(single))
		random.cost += x.cost / float64(len(single))
	}
	oracle := bootstrap(ps, r.resamples, func(ps []*prompt) float64 { return r.oracle(ps, models).quality })
	r.printf("| all models | quality | cost of a prompt |\n| --- | --- | --- |\n")
	best := bootstrap(ps, r.resamples, func(ps []*prompt) float64 { return mean(ps, models[0]) })
	r.printf("| best single, %s | %v | %.0f |\n", models[0], best, single[0].cost)
	r.printf("| random mix of all | %.3f | %.0f |\n", random.quality, random.cost)
	r.printf("| oracle: the cheapest right one | %v | %.0f |\n", oracle, r.oracle(ps, models).cost)
}

// costOf is what an answer of a model costs, in millionths of a USD.
func (r *report) costOf(model string, x result) float64 { return r.prices.of(model) * x.tokens }

// singles are quality and cost of each model alone.
func (r *report) singles(ps []*prompt, models []string) []point {
	out := make([]point, len(models))
	for i, m := range models {
		for _, p := range ps {
			out[i].quality += p.out[m].score / float64(len(ps))
			out[i].cost += r.costOf(m, p.out[m]) / float64(len(ps))
		}
	}
	return out
}

// oracle takes for each prompt the cheapest of the best answers.
func (r *report) oracle(ps []*prompt, models []string) (out point) {
	for _, p := range ps {
		best := models[0]
		for _, m := range models[1:] {
			a, b := p.out[m], p.out[best]
			if a.score > b.score || a.score == b.score && r.costOf(m, a) < r.costOf(best, b) {
				best = m
			}
		}
		out.quality += p.out[best].score / float64(len(ps))
		out.cost += r.costOf(best, p.out[best]) / float64(len(ps))
	}
	return out
}

// served prints what the routes of the product gave.
func (r *report) served(way, best string, as []asked, routes []string) {
	for _, route := range routes {
		quality := bootstrap(as, r.resamples, func(as []asked) float64 {
			sum := 0.0
			for i := range as {
				sum += as[i].got(route).score
			}
			return sum / float64(len(as))
		})
		over := bootstrap(as, r.resamples, func(as []asked) float64 {
			sum := 0.0
			for i := range as {
				sum += as[i].got(route).score - as[i].out[best].score
			}
			return sum / float64(len(as))
		})
		cost := 0.0
		for i := range as {
			s := as[i].served[route]
			cost += r.prices.of(s.arm.of) * s.tokens / float64(len(as))
		}
		r.printf("| served by %s, %s | %v; over the best single %v | %.0f |\n", route, way, quality, over, cost)
	}
}

// costs tells what a share of the best model's quality costs, as a share of what that model costs:
// by the cheapest expected model within a margin of the best expected one, as the product chooses
// by cost, at the best of all margins; by the best model alone where no margin does.
func (r *report) costs(way string, models []string, as []asked) {
	ps := make([]*prompt, len(as))
	for i := range as {
		ps[i] = as[i].prompt
	}
	best := r.singles(ps, models)[0]
	r.printf("Cost of 95 / 99 / 100 %% of the best model's quality, as a share of its own, %s:", way)
	for _, part := range parts {
		cost := bootstrap(as, min(r.resamples, 100), func(as []asked) float64 {
			at, single := r.margins(as, models[0])
			return cheapest(append(at, single), part*single.quality) / single.cost
		})
		r.printf(" %v;", cost)
	}
	hull := r.singles(ps, models)
	r.printf(" random mix of two models")
	for i, part := range parts {
		r.printf("%s %.2f", []string{"", " /", " /"}[i], mixed(hull, part*best.quality)/best.cost)
	}
	r.printf("\n\n")
}

// parts are the shares of the best model's quality that costs are told of.
//
//nolint:gochecknoglobals // constant table
var parts = []float64{0.95, 0.99, 1}

// margins are quality and cost of choosing by cost at many margins, and those of the best model.
func (r *report) margins(as []asked, best string) (at []point, single point) {
	const steps = 60
	at = make([]point, steps+1)
	n := float64(len(as))
	for i := range as {
		a := &as[i]
		single.quality += a.out[best].score / n
		single.cost += r.costOf(best, a.out[best]) / n
		figures := a.served[byQuality].expect
		for k := range at {
			x := float64(k) / steps
			m := withinMargin(figures, x*x*x) // finer where qualities are near each other
			at[k].quality += a.out[m].score / n
			at[k].cost += r.costOf(m, a.out[m]) / n
		}
	}
	return at, single
}

// withinMargin is the model with the least expected cost whose expected quality is within a margin
// of the best; of equals, the better one.
func withinMargin(figures []figure, margin float64) string {
	top := math.Inf(-1)
	for i := range figures {
		top = max(top, figures[i].quality)
	}
	var chosen *figure
	for i := range figures {
		f := &figures[i]
		if f.quality < top-margin-1e-9 {
			continue
		}
		if chosen == nil || f.cost < chosen.cost || f.cost == chosen.cost && f.quality > chosen.quality {
			chosen = f
		}
	}
	return chosen.model
}

// choices tells what choosing between two models is worth.
func (r *report) choices(ctx context.Context, s *set) error {
	for _, pr := range r.pairs {
		ps := whole(s.prompts, pr.small, pr.large)
		if len(ps) < fewest {
			continue
		}
		if lo, hi := mean(ps, pr.small), mean(ps, pr.large); hi <= lo {
			r.printf("%s is no better than %s here (%.3f, %.3f).\n\n", pr.large, pr.small, hi, lo)
			continue
		}
		for i, w := range s.ways() {
			set := setup{arms: arms(pr.small, pr.large), prices: r.prices}
			got, err := replay(ctx, r.read, set, ps, w.part, byQuality)
			if err != nil {
				return err
			}
			cs := choicesOf(pr, got)
			if i == 0 {
				r.pairHead(pr, cs)
			}
			r.pairRow(w.name, cs)
		}
		r.printf("\n")
	}
	return r.err
}

// choicesOf are the prompts of a pair with what the product expects the large one to gain.
func choicesOf(pr pair, as []asked) []choice {
	out := make([]choice, len(as))
	for i := range as {
		a := &as[i]
		c := choice{small: a.out[pr.small], large: a.out[pr.large], part: a.fold()}
		for _, f := range a.served[byQuality].expect {
			if f.model == pr.large {
				c.gain += f.quality
			} else {
				c.gain -= f.quality
			}
		}
		out[i] = c
	}
	return out
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
		"thresholds from other folds: 0.5 points less allowed: lost points; share; tokens of all-large |\n" +
		"| --- | --- | --- | --- | --- |\n")
}

// pointAllowed is what honest thresholds may lose: half a point.
const pointAllowed = 0.005

func (r *report) pairRow(name string, cs []choice) {
	lost, share, tokens := honest(cs, pointAllowed)
	r.printf(
		"| %s | %v | %.2f / %v / %.2f | %.2f / %.2f / 1 | %.2f; %.2f; %.2f |\n",
		name, bootstrap(cs, r.resamples, apgr), shareFor(cs, 0.95),
		bootstrap(cs, r.resamples, func(cs []choice) float64 { return shareFor(cs, 0.99) }),
		shareFor(cs, 1), randomShare(cs, 0.95), randomShare(cs, 0.99), 100*lost, share, tokens,
	)
}
