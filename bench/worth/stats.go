package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"signalbox/internal/eval"
)

// judged is a prediction beside what came of it.
type judged struct{ p, y float64 }

// auc is the probability that a good answer was predicted above a bad one; scores from one half on
// are good. NaN without both.
func auc(js []judged) float64 {
	var good, bad []float64
	for _, j := range js {
		if j.y >= 0.5 {
			good = append(good, j.p)
		} else {
			bad = append(bad, j.p)
		}
	}
	return eval.AUC(good, bad)
}

// ece is the expected calibration error over ten bins of equal width.
func ece(js []judged) float64 {
	var n, p, y [10]float64
	for _, j := range js {
		b := min(int(j.p*10), 9)
		n[b]++
		p[b] += j.p
		y[b] += j.y
	}
	sum := 0.0
	for b := range n {
		sum += math.Abs(p[b] - y[b])
	}
	return sum / float64(len(js))
}

// choice is one prompt for which a small and a large model were compared.
type choice struct {
	gain         float64 // predicted, of the large one
	small, large result
	part         int // of the set
}

// curve is the quality of sending the k prompts with the greatest predicted gain to the large
// model, for every k from 0 on, and the tokens that all take.
func curve(cs []choice) (quality, tokens []float64) {
	cs = slices.Clone(cs)
	slices.SortStableFunc(cs, func(a, b choice) int { return cmp.Compare(b.gain, a.gain) })
	q, t := 0.0, 0.0
	for i := range cs {
		q += cs[i].small.score
		t += cs[i].small.tokens
	}
	n := float64(len(cs))
	quality, tokens = append(quality, q/n), append(tokens, t/n)
	for i := range cs {
		q += cs[i].large.score - cs[i].small.score
		t += cs[i].large.tokens - cs[i].small.tokens
		quality, tokens = append(quality, q/n), append(tokens, t/n)
	}
	return quality, tokens
}

// apgr is the area under the curve of the share of the gap between two models that is recovered,
// over the share of prompts that the large one gets: .5 for a random mix (RouteLLM, section 4).
func apgr(cs []choice) float64 {
	q, _ := curve(cs)
	lo, hi := q[0], q[len(q)-1]
	sum := 0.0
	for _, x := range q {
		sum += (x - lo) / (hi - lo)
	}
	return sum / float64(len(q))
}

// shareFor is the least share of prompts that the large model gets for a part of its own quality.
func shareFor(cs []choice, part float64) float64 {
	q, _ := curve(cs)
	want := part * q[len(q)-1]
	for k, x := range q {
		if x >= want-1e-12 {
			return float64(k) / float64(len(cs))
		}
	}
	return 1
}

// randomShare is the same of a random mix, whose quality is linear in the share.
func randomShare(cs []choice, part float64) float64 {
	q, _ := curve(cs)
	lo, hi := q[0], q[len(q)-1]
	return min(1, max(0, (part*hi-lo)/(hi-lo)))
}

// interval is a figure with its 95 % interval.
type interval struct{ at, lo, hi float64 }

func (i interval) String() string {
	return fmt.Sprintf("%.3f [%.3f, %.3f]", i.at, i.lo, i.hi)
}

// bootstrap gives a figure of a sample with its interval, over n resamples of the sample.
func bootstrap[T any](xs []T, n int, of func([]T) float64) interval {
	r := rand.New(rand.NewPCG(1, uint64(len(xs)))) //nolint:gosec // reproducible, not secret
	var all []float64
	sample := make([]T, len(xs))
	for range n {
		for i := range sample {
			sample[i] = xs[r.IntN(len(xs))]
		}
		if x := of(sample); !math.IsNaN(x) && !math.IsInf(x, 0) {
			all = append(all, x)
		}
	}
	out := interval{at: of(xs)}
	if slices.Sort(all); len(all) > 0 {
		out.lo, out.hi = all[len(all)*25/1000], all[min(len(all)-1, len(all)*975/1000)]
	}
	return out
}

// threshold is the greatest gain from which on prompts have to go to the large model for at most
// allowed of its quality to be lost.
func threshold(cs []choice, allowed float64) float64 {
	cs = slices.Clone(cs)
	slices.SortStableFunc(cs, func(a, b choice) int { return cmp.Compare(b.gain, a.gain) })
	q, _ := curve(cs)
	want := q[len(q)-1] - allowed
	for k, x := range q {
		if x < want-1e-12 {
			continue
		}
		if k == 0 {
			return math.Inf(1)
		}
		return cs[k-1].gain
	}
	return math.Inf(-1)
}

// honest sends to the large model what is predicted to gain more than a threshold, which for each
// part is the greatest at which the others lose at most allowed; it returns what is lost of the
// large model's quality, the share that it gets, and the tokens as a share of its own.
func honest(cs []choice, allowed float64) (lost, share, tokens float64) {
	var used, all float64
	for f := range folds {
		var others []choice
		for i := range cs {
			if cs[i].part != f {
				others = append(others, cs[i])
			}
		}
		at := threshold(others, allowed)
		for i := range cs {
			if cs[i].part != f {
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

// point is what a way to choose makes of a set, as means over its prompts.
type point struct{ quality, cost float64 }

// cheapest is the least cost of the points that have a quality; infinite where none has.
func cheapest(ps []point, quality float64) float64 {
	least := math.Inf(1)
	for _, p := range ps {
		if p.quality >= quality-1e-12 {
			least = min(least, p.cost)
		}
	}
	return least
}

// mixed is the least cost at which drawing between two of the points at random gives a quality;
// infinite where no mix does.
func mixed(ps []point, quality float64) float64 {
	least := cheapest(ps, quality)
	for _, a := range ps {
		for _, b := range ps {
			if a.quality < quality && b.quality > quality {
				share := (quality - a.quality) / (b.quality - a.quality)
				least = min(least, a.cost+share*(b.cost-a.cost))
			}
		}
	}
	return least
}
