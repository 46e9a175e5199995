package main

import (
	"math"
	"slices"
)

// quantile is the value that a share q of the values, in (0,1], does not exceed, by nearest rank. It sorts
// them. NaN without values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }
