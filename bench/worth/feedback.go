package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"signalbox/bench/lab"
	"signalbox/memory/outcomes"
	"signalbox/proxy/decide"
)

// counts are the numbers of ratings after which a policy is measured.
//
//nolint:gochecknoglobals // constant table
var counts = []int{0, 50, 200, 1000}

// mostTests is the maximum number of prompts that a policy is measured on.
const mostTests = 400

// rater defines the responses that are rated.
type rater struct {
	name    string
	random  bool // of a uniformly drawn model, as in an initial exploration; else of the product's choice
	explore decide.ExploreOptions
}

// raters lists the compared ones.
func raters() []rater {
	return []rater{
		{name: "at random", random: true},
		{name: "as chosen"},
		{name: "explored", explore: decide.ExploreOptions{Share: 1, MaxQualityLoss: 0.005}},
	}
}

// lesson is one experiment: requests arrive in random order, each is answered by one of four
// models, and only that response is rated.
type lesson struct {
	models      []string
	train, test []*prompt
	right       map[string]float64 // skills as measured
	wrong       map[string]float64 // the worst model is assumed to be the best
	best        float64            // quality of the best policy
}

// lessonOf selects four models of a set; nil if it has too few models or prompts.
func lessonOf(s *set) *lesson {
	models := s.models()
	if len(models) < 4 {
		return nil
	}
	n := len(models)
	l := &lesson{models: []string{models[0], models[n/4], models[n/2], models[3*n/4]}}
	for _, p := range whole(s.prompts, l.models...) {
		if p.fold() < 2 {
			l.test = append(l.test, p)
		} else {
			l.train = append(l.train, p)
		}
	}
	if len(l.test) < fewest/2 {
		return nil
	}
	l.test = lab.Spread(l.test, mostTests)
	l.right, l.wrong = map[string]float64{}, map[string]float64{}
	for _, m := range l.models {
		l.right[m] = mean(l.train, m)
	}
	for i, m := range l.models {
		l.wrong[m] = l.right[l.models[len(l.models)-1-i]]
	}
	return l
}

// open creates a product that chooses among the models of a lesson.
func (l *lesson) open(ctx context.Context, r *report, prior map[string]float64, e decide.ExploreOptions) (*product, error) {
	s := setup{arms: arms(l.models...), prior: prior, prices: r.prices, explore: e}
	return open(ctx, s, r.read, append(slices.Clone(l.train), l.test...))
}

// feedback measures how fast ratings correct wrong skills, and whether they do harm if skills are
// right. Policies are measured on prompts that are never sent otherwise.
func (r *report) feedback(ctx context.Context, s *set) error {
	l := lessonOf(s)
	if l == nil {
		return nil
	}
	full, err := l.open(ctx, r, l.right, decide.ExploreOptions{})
	if err != nil {
		return err
	}
	err = full.teach(ctx, l.train)
	if err == nil {
		l.best, err = full.policy(ctx, l.test)
	}
	if err = errors.Join(err, full.close()); err != nil {
		return err
	}
	l.best = max(l.best, mean(l.test, l.models[0]))
	r.printf("Feedback one by one, on %v; the best policy, with all outcomes of %d prompts: %.3f\n\n",
		l.models, len(l.train), l.best)
	r.printf("| skills | whose answers are rated | without | after 50 | 200 | 1,000 | share of the gap | " +
		"worst order, points | meanwhile, points | worst order |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, how := range raters() {
		for _, p := range []prior{{"turned round", l.wrong}, {"right", l.right}} {
			if err := r.learns(ctx, l, how, p); err != nil {
				return err
			}
		}
	}
	r.printf("\n")
	return r.err
}

// prior is the product's knowledge of the models before it learns.
type prior struct {
	name   string
	skills map[string]float64
}

// learns prints one row, over several orders of the requests.
func (r *report) learns(ctx context.Context, l *lesson, how rater, p prior) error {
	sum := make([]float64, len(counts))
	worst, meanwhile, worstMeanwhile := 0.0, 0.0, 0.0
	for d := range r.draws {
		c, err := r.course(ctx, l, how, p.skills, uint64(d))
		if err != nil {
			return err
		}
		for i, q := range c.after {
			sum[i] += q / float64(r.draws)
			worst = min(worst, q-c.after[0])
		}
		meanwhile += c.meanwhile / float64(r.draws)
		worstMeanwhile = min(worstMeanwhile, c.meanwhile)
	}
	r.printf("| %s | %s | %.3f | %.3f | %.3f | %.3f |", p.name, how.name, sum[0], sum[1], sum[2], sum[3])
	for i := 1; i < len(sum) && p.name != "right"; i++ {
		r.printf(" %.0f %%", 100*(sum[i]-sum[0])/(l.best-sum[0]))
	}
	r.printf(" | %.1f | %.1f | %.1f |\n", 100*worst, 100*meanwhile, 100*worstMeanwhile)
	return r.err
}

// course is the result of a learning product.
type course struct {
	after     []float64 // quality of its policy after each number of ratings in counts
	meanwhile float64   // mean score of the rated responses, relative to the first choice by skills
}

// course makes a product learn from the requests in one order.
func (r *report) course(
	ctx context.Context, l *lesson, how rater, prior map[string]float64, seed uint64,
) (c course, err error) {
	rnd := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // reproducible, not secret
	p, err := l.open(ctx, r, prior, how.explore)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	without := l.models[0]
	for _, m := range l.models {
		if prior[m] > prior[without] {
			without = m
		}
	}
	order := rnd.Perm(len(l.train))
	order = order[:min(len(order), counts[len(counts)-1])]
	for n := 0; ; n++ {
		if slices.Contains(counts, n) || n == len(order) {
			q, err := p.policy(ctx, l.test)
			if err != nil {
				return c, err
			}
			c.after = append(c.after, q)
		}
		if n == len(order) {
			break
		}
		x := l.train[order[n]]
		score, err := p.learn(ctx, x, how, rnd)
		if err != nil {
			return c, err
		}
		c.meanwhile += (score - x.out[without].score) / float64(len(order))
	}
	for len(c.after) < len(counts) { // there are fewer prompts than ratings
		c.after = append(c.after, c.after[len(c.after)-1])
	}
	return c, nil
}

// learn sends a prompt and rates the response.
func (p *product) learn(ctx context.Context, x *prompt, how rater, rnd *rand.Rand) (float64, error) {
	if how.random {
		a := &p.arms[rnd.IntN(len(p.arms))]
		v, _ := p.read.vector(ctx, x.text)
		got := x.out[a.of]
		return got.score, p.store.Add(outcomes.Outcome{
			Tenant: tenant, ID: x.id, Model: a.model, Prior: p.prior[a.model], Score: got.score, Weight: 1,
			Tokens: int(got.tokens), Source: "bench",
		}, v)
	}
	s, err := p.ask(ctx, x, byQuality)
	if err != nil {
		return 0, err
	}
	score := x.out[s.arm.of].score
	return score, p.rate(ctx, s, score)
}

// policy returns the mean score of the model with the product's highest expectation, as explained,
// without exploration.
func (p *product) policy(ctx context.Context, ps []*prompt) (float64, error) {
	scores := make([]float64, len(ps))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, x := range ps {
		g.Go(func() error {
			m, err := p.explain(ctx, x)
			if err == nil {
				scores[i] = x.out[m].score
			}
			return err
		})
	}
	err := g.Wait()
	return average(scores), err
}

// explain returns the model to which the product would send a prompt.
func (p *product) explain(ctx context.Context, x *prompt) (string, error) {
	_, answer, err := p.post(ctx, "/signalbox/v1/explain", map[string]any{
		"model": "auto", "messages": []any{map[string]any{"role": "user", "content": x.text}},
	}, byQuality)
	if err != nil {
		return "", fmt.Errorf("explain %s: %w", x.id, err)
	}
	var got struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return "", fmt.Errorf("explain %s: %w", x.id, err)
	}
	return got.Model, nil
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
