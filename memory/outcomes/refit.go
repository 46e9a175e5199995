package outcomes

import "math"

// guess is by how much the responses of a model are better than its prior.
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

// refit computes the guesses of all models from the sums. Each model deviates from its prior by a
// common amount and by one of its own, both normally distributed; the guess is the mean over
// spreads, weighted by how well each explains the data (a hierarchical normal model, Gelman and
// others, Bayesian Data Analysis, section 5.4, with a discrete hyperprior). A model that falls
// short of its prior by chance thus changes little, and one that falls far short makes all priors
// doubtful.
//
// What is hard for all models, and for each, is also fitted again if enough outcomes have arrived.
func (t *table) refit() {
	t.guesses()
	t.hard.refit(t)
}

// guesses computes the guesses of all models.
func (t *table) guesses() {
	const n = len(spreads)
	var (
		fits [n]float64 // log likelihood of the data, up to a constant
		mean [n]float64 // of the common amount
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

// mixed returns the mean and the variance of a mixture with the given shares.
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

// seen returns the mean of a model's scores minus its prior, and the squared standard error; ok is
// false without scores.
func (m *ofModel) seen() (off, error2 float64, ok bool) {
	const none = 1e-9 // rounding error of sums after removals
	if m.weight <= none {
		return 0, 0, false
	}
	prior := min(max(m.prior/m.weight, 0.1), 0.9)
	p := (doubtScore*prior + m.score) / (doubtScore + m.weight)
	return (m.score - m.prior) / m.weight, max(p*(1-p), leastSpread) / m.weight, true
}
