package pool

import (
	"slices"
	"time"
)

// Pick returns the less loaded of two endpoints drawn at random by weight (Mitzenmacher, The Power
// of Two Choices in Randomized Load Balancing, 2001). This spreads load almost as well as comparing
// all endpoints, without all proxies choosing the same one. If both are equally loaded, it returns
// the first one drawn.
//
// Resting endpoints are drawn only when no healthy one is left, ejected ones only when no resting
// one is left. Endpoints that are asleep, down, full or in tried are never drawn. When none is
// left, Pick returns nil, and full reports whether one would be usable if it were not at its cap.
// intn returns a number in [0,n). Pick does not enter the endpoint.
func (g *Group) Pick(tried []*Endpoint, intn func(n int) int, now time.Time) (e *Endpoint, full bool) {
	var space [16]*Endpoint
	for _, want := range [...]Fitness{Fit, Resting, Ejected} {
		open := space[:0]
		for _, e := range g.Endpoints {
			switch {
			case slices.Contains(tried, e) || e.Fitness(now) != want:
			case e.Full():
				full = true
			default:
				open = append(open, e)
			}
		}
		switch len(open) {
		case 0:
			continue
		case 1:
			return open[0], false
		}
		i := draw(open, intn)
		first := open[i]
		open[i] = open[len(open)-1]
		open = open[:len(open)-1]
		if second := open[draw(open, intn)]; second.load() < first.load() {
			return second, false
		}
		return first, false
	}
	return nil, full
}

// draw returns the index of an endpoint drawn by weight.
func draw(list []*Endpoint, intn func(n int) int) int {
	sum := 0
	for _, e := range list {
		sum += int(e.weight)
	}
	at := intn(sum)
	for i, e := range list {
		if at -= int(e.weight); at < 0 {
			return i
		}
	}
	return len(list) - 1
}
