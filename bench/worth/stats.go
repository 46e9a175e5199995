package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// judged is a prediction beside what came of it.
type judged struct{ p, y float64 }

// auc is the probability that a good answer was predicted above a bad one; scores from one half on
// are good. NaN without both.
func auc(js []judged) float64 {
	js = slices.Clone(js)
	slices.SortFunc(js, func(a, b judged) int { return cmp.Compare(a.p, b.p) })
	var good, rank float64
	for i := 0; i < len(js); {
		j := i
		for j < len(js) && js[j].p == js[i].p {
			j++
		}
		mid := float64(i+j+1) / 2 // mean rank of equals, from 1
		for ; i < j; i++ {
			if js[i].y >= 0.5 {
				good++
				rank += mid
			}
		}
	}
	bad := float64(len(js)) - good
	return (rank - good*(good+1)/2) / (good * bad)
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
