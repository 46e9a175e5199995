package main

import (
	"math/rand/v2"
	"slices"

	"signalbox/memory/outcomes"
)

// counts is after how many rated answers a policy is looked at.
//
//nolint:gochecknoglobals // constant table
var counts = []int{0, 50, 200, 1000}

// feedback tells how soon ratings make up for priors that are wrong, and whether they do harm where
// priors are right. Requests come one by one in random order; each is answered by one of four
// models, whose answer alone is rated. Policies are judged on prompts that are never asked.
func (r *report) feedback(s *set) error {
	models := s.models()
	if len(models) < 4 {
		return nil
	}
	n := len(models) - 1
	models = []string{models[0], models[n/4], models[n/2], models[3*n/4]}
	ps := whole(s.prompts, models)
	var train, test []*prompt
	for _, p := range ps {
		if p.fold() < 2 {
			test = append(test, p)
		} else {
			train = append(train, p)
		}
	}
	if len(test) < fewest/2 {
		return nil
	}
	right := priorsOf(train, models)
	wrong := make(map[string]float64, len(models)) // the worst model is taken for the best
	for i, m := range models {
		wrong[m] = right[models[len(models)-1-i]]
	}
	full, err := taught(train, models, right)
	if err != nil {
		return err
	}
	best := max(policy(full, test, models, right), mean(test, models[0]))
	r.printf(
		"Feedback one by one, on %v; the best policy, with all %d prompts' outcomes of all models: %.3f\n\n",
		models,
		len(train),
		best,
	)
	r.printf(
		"| priors | who answers meanwhile | without | after 50 | 200 | 1,000 | share of the gap | worst draw, points |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
	)
	for _, c := range []struct {
		name  string
		prior map[string]float64
	}{{"turned round", wrong}, {"right", right}} {
		for _, how := range []string{"at random", "as predicted", "explored"} {
			if err := r.learns(c.name, how, models, c.prior, train, test, best); err != nil {
				return err
			}
		}
	}
	r.printf("\n")
	return r.err
}

// learns prints one row.
func (r *report) learns(
	name, how string, models []string, prior map[string]float64, train, test []*prompt, best float64,
) error {
	sum := make([]float64, len(counts))
	worst := make([]float64, len(counts)) // of all draws, against none
	for d := range r.draws {
		qs, err := learn(how, models, prior, train, test, uint64(d))
		if err != nil {
			return err
		}
		for i, q := range qs {
			sum[i] += q / float64(r.draws)
			worst[i] = min(worst[i], q-qs[0])
		}
	}
	r.printf("| %s | %s | %.3f | %.3f | %.3f | %.3f |", name, how, sum[0], sum[1], sum[2], sum[3])
	for i := 1; i < len(sum); i++ {
		if name == "right" {
			break
		}
		r.printf(" %.0f %%", 100*(sum[i]-sum[0])/(best-sum[0]))
	}
	r.printf(" | %.1f |\n", 100*slices.Min(worst))
	return r.err
}

// learn gives the quality of the policy after each of counts ratings.
func learn(
	how string, models []string, prior map[string]float64, train, test []*prompt, seed uint64,
) (out []float64, err error) {
	rnd := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // reproducible, not secret
	order := rnd.Perm(len(train))
	st, err := taught(nil, models, prior)
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		if slices.Contains(counts, n) || n == len(order) {
			out = append(out, policy(st, test, models, prior))
		}
		if n == len(order) || n == counts[len(counts)-1] {
			break
		}
		p := train[order[n]]
		preds := ask(st, p, models, prior)
		i := top(preds)
		if how == "explored" && rnd.Float64() < exploreShare {
			i = explore(preds, i, rnd)
		}
		if how == "at random" {
			i = rnd.IntN(len(models))
		}
		o := outcomes.Outcome{
			Tenant: tenant, ID: p.id, Model: models[i], Prior: prior[models[i]],
			Score: p.out[models[i]].score, Weight: 1, Tokens: int(p.out[models[i]].tokens),
		}
		if err := st.Add(o, p.vector); err != nil {
			return nil, err
		}
	}
	for len(out) < len(counts) { // fewer prompts than ratings
		out = append(out, out[len(out)-1])
	}
	return out, nil
}

// What the product would be told in outcomes.explore.
const (
	exploreShare = 0.1
	exploreLoss  = 0.02
)

// explore draws as the product does, for a request that explores.
func explore(preds []outcomes.Prediction, best int, rnd *rand.Rand) int {
	var fit []int
	for i := range preds {
		if i != best && exploreShare*(preds[best].Mean-preds[i].Mean) <= exploreLoss {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return best
	}
	return fit[rnd.IntN(len(fit))]
}

// policy is the quality of the best prediction.
func policy(st *outcomes.Store, ps []*prompt, models []string, prior map[string]float64) float64 {
	sum := 0.0
	for _, p := range ps {
		sum += p.out[models[top(ask(st, p, models, prior))]].score
	}
	return sum / float64(len(ps))
}
