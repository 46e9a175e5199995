package affinity

import "math"

// MaxEndpoints is the maximum number of endpoints of a Placer.
const MaxEndpoints = 64

// ranking lists endpoints in the order of a key.
type ranking [MaxEndpoints]uint8

// rank sorts endpoints in the order in which a key prefers them, its home first. Adding or removing
// an endpoint moves only the keys that this endpoint gains or had, and weights hold on average
// (Schindelhauer and Schomaker, Weighted Distributed Hash Tables, 2005: the score of an endpoint is
// -w/ln(u), with u uniform in (0,1)). Weights must be positive.
func rank(order *ranking, key uint64, endpoints []endpoint) {
	var scores [MaxEndpoints]float64
	for i := range endpoints {
		u := (float64(mix(endpoints[i].hash^mix(key))>>11) + 0.5) / (1 << 53)
		score := -endpoints[i].Weight / math.Log(u)
		at := i
		for ; at > 0 && scores[at-1] < score; at-- {
			scores[at], order[at] = scores[at-1], order[at-1]
		}
		scores[at], order[at] = score, uint8(i)
	}
}
