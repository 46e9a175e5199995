package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"signalbox/bench/lab"
)

// interval is an estimate with its 95 % interval.
type interval struct{ at, low, high float64 }

// figures are the figures of one policy.
type figures struct {
	quality interval // share of correct answers
	gain    interval // over the best single model
	blind   interval // over a blind mix of small and large at the same cost; not defined if prices are ignored
	cost    float64  // USD per 1,000 requests
	share   []float64
}

// evaluate computes the figures of every policy. Intervals come from a paired bootstrap over the
// questions (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, percentile intervals);
// if the worth of an answer is a share, the outcomes behind it are resampled as well.
func (e *experiment) evaluate(resamples int) []figures {
	all := make([]int, len(e.questions))
	for i := range all {
		all[i] = i
	}
	out := make([]figures, len(e.policies))
	at := e.summary(all, nil)
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible on purpose
	draws := make([][]point, resamples)
	sample := make([]int, len(all))
	for r := range draws {
		for i := range sample {
			sample[i] = rng.IntN(len(all))
		}
		draws[r] = e.summary(sample, e.redraw(rng))
	}
	column := func(i int, of func(point) float64) interval {
		values := make([]float64, resamples)
		for r := range draws {
			values[r] = of(draws[r][i])
		}
		slices.Sort(values)
		return interval{of(at[i]), quantile(values, 0.025), quantile(values, 0.975)}
	}
	for i := range out {
		out[i] = figures{
			quality: column(i, func(p point) float64 { return p.quality }),
			gain:    column(i, func(p point) float64 { return p.gain }),
			blind:   column(i, func(p point) float64 { return p.blind }),
			cost:    at[i].cost * 1000,
			share:   e.shareOf(&e.policies[i]),
		}
	}
	return out
}

// point holds the figures of one policy on one sample.
type point struct{ quality, cost, gain, blind float64 }

// summary evaluates every policy on a sample of the questions. worth, by category, replaces that of
// the questions if it is not nil.
func (e *experiment) summary(sample []int, worth map[string][]float64) []point {
	out := make([]point, len(e.policies))
	single, n := 0, float64(len(sample))
	for i := range e.policies {
		for _, at := range sample {
			q := &e.questions[at]
			m := e.policies[i].chosen[at]
			if worth != nil {
				redrawn := question{worth: worth[q.category]}
				out[i].quality += redrawn.right(m) / n
			} else {
				out[i].quality += q.right(m) / n
			}
			out[i].cost += e.cost(q, m) / n
		}
		if e.policies[i].name == singleBest {
			single = i
		}
	}
	small, large := out[0], out[1] // if the experiment has prices; see decide
	for i := range out {
		out[i].gain = out[i].quality - out[single].quality
		if !e.samePrice {
			part := (out[i].cost - small.cost) / (large.cost - small.cost)
			out[i].blind = out[i].quality - (small.quality + part*(large.quality-small.quality))
		}
	}
	return out
}

// redraw resamples the outcomes behind shares; nil for an experiment with exact outcomes.
func (e *experiment) redraw(rng *rand.Rand) map[string][]float64 {
	if e.similar == nil {
		return nil
	}
	out := make(map[string][]float64, len(e.similar))
	for _, category := range sortedKeys(e.similar) { // in order, so that the draws are reproducible
		from := e.similar[category]
		drawn := make([]outcome, len(from))
		for i := range drawn {
			drawn[i] = from[rng.IntN(len(from))]
		}
		out[category] = e.worth(drawn)
	}
	return out
}

// shareOf returns the share of requests of each contender.
func (e *experiment) shareOf(p *policy) []float64 {
	out := make([]float64, len(e.pool))
	for _, m := range p.chosen {
		for i := range out {
			if m == hedge {
				out[i] += 1 / float64(len(out)*len(p.chosen))
			}
		}
		if m != hedge {
			out[m] += 1 / float64(len(p.chosen))
		}
	}
	return out
}

// quantile returns a quantile of sorted values, by linear interpolation.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(math.Floor(at))
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// wilson returns the 95 % interval of a share.
func wilson(k, n int) (i interval) {
	i.at, i.low, i.high = lab.Wilson(k, n)
	return i
}
