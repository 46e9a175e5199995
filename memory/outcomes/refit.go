package outcomes

import "math"

// guess is by how much the answers of a model are better than its prior.
type guess struct{ mean, variance float64 }

// How wrong priors are, in standard deviations of quality, is not known beforehand: it is one of
// spreads, each as probable as chances say before any outcome is known. common is that of what all
// models have in common, as where the traffic is harder than what skills were measured on.
//
//nolint:gochecknoglobals // constant tables
var (
	spreads = [...]float64{0.03, 0.06, 0.12, 0.25, 0.5}
	chances = [...]float64{0.35, 0.3, 0.2, 0.1, 0.05}
)

const common = 0.1

// refit makes from the sums what predictions are made of: the guesses of all models. Each model is
// better than its prior by what all have in common and by something of its own, both normal; the
// guess is the mean over spreads, by how well each explains what was seen (a hierarchical normal
// model, Gelman and others, Bayesian Data Analysis, section 5.4, with a discrete hyperprior). So a
// model that falls short of its prior by chance changes little, and one that falls far short makes
// all priors doubtful.
//
// What is hard for all models, and for each, is learnt again when enough outcomes have come for that.
func (t *table) refit() {
	t.guesses()
	t.hard.refit(t)
}

// guesses makes the guesses of all models.
func (t *table) guesses() {
	const n = len(spreads)
	var (
		fits [n]float64 // log of the chance of what was seen, up to a constant
		mean [n]float64 // of what is in common
		vars [n]float64
	)
	most := math.Inf(-1)
	for k, spread := range spreads {
		precision, sum, fit := 1/(common*common), 0.0, math.Log(chances[k])
		for i := range t.models {
			off, error2, ok := t.models[i].seen()
			if !ok {
				continue
			}
			s := spread*spread + error2
			precision += 1 / s
			sum += off / s
			fit -= (math.Log(s) + off*off/s) / 2
		}
		mean[k], vars[k] = sum/precision, 1/precision
		fits[k] = fit + (mean[k]*sum-math.Log(precision))/2
		most = max(most, fits[k])
	}
	total := 0.0
	for k := range fits {
		fits[k] = math.Exp(fits[k] - most)
		total += fits[k]
	}
	for k := range fits {
		fits[k] /= total
	}
	t.fresh = mixed(&fits, func(k int) guess { return guess{mean[k], spreads[k]*spreads[k] + vars[k]} })
	for i := range t.models {
		m := &t.models[i]
		off, error2, ok := m.seen()
		if !ok {
			m.guess = t.fresh
			continue
		}
		m.guess = mixed(&fits, func(k int) guess {
			own := spreads[k] * spreads[k]
			b := own / (own + error2)
			return guess{mean[k] + b*(off-mean[k]), b*error2 + (1-b)*(1-b)*vars[k]}
		})
	}
}

// mixed is the mean and the variance of a mixture with the given shares.
func mixed(shares *[len(spreads)]float64, of func(k int) guess) (out guess) {
	square := 0.0
	for k, share := range shares {
		g := of(k)
		out.mean += share * g.mean
		square += share * (g.variance + g.mean*g.mean)
	}
	out.variance = max(square-out.mean*out.mean, 0)
	return out
}

// seen is by how much the scores of a model are above its prior on the mean, and the squared
// standard error of that; ok is false where there are none.
func (m *ofModel) seen() (off, error2 float64, ok bool) {
	const none = 1e-9 // what is left of sums that were taken back
	if m.weight <= none {
		return 0, 0, false
	}
	prior := min(max(m.prior/m.weight, 0.1), 0.9)
	p := (doubtScore*prior + m.score) / (doubtScore + m.weight)
	return (m.score - m.prior) / m.weight, max(p*(1-p), leastSpread) / m.weight, true
}
