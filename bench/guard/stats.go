package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// quantile returns the value that a share q of the values, in (0,1], does not exceed, by nearest
// rank. It sorts them. NaN without values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// draws is the number of resamplings for an interval.
const draws = 400

// bootstrap returns the interval that contains 95 % of the figures computed from n resampled rows.
// It is deterministic.
func bootstrap(n int, figure func(draw []int) float64) (lo, hi float64) {
	r := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // nothing here is a secret
	all, draw := make([]float64, draws), make([]int, n)
	for i := range all {
		for k := range draw {
			draw[k] = r.IntN(n)
		}
		all[i] = figure(draw)
	}
	return quantile(all, 0.025), quantile(all, 0.975)
}

// every returns each index below n once.
func every(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func mean(values []float64, at []int) float64 {
	sum := 0.0
	for _, i := range at {
		sum += values[i]
	}
	return sum / float64(max(1, len(at)))
}
