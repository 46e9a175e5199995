package pool

import (
	"slices"
	"time"
)

// Pick takes the less loaded of two endpoints drawn at random by their weights (Mitzenmacher, The
// Power of Two Choices in Randomized Load Balancing, 2001), which spreads load almost as well as
// comparing all without sending every proxy to the same one; of two that are as loaded, the one
// drawn first. Endpoints that rest are drawn only when no other is left, ejected ones only when
// none of those are; those that are asleep, down, full, or were tried, never. It returns nil when
// none is left, and then whether one would be there but for its cap. intn draws from [0,n). The
// endpoint is not entered.
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

// draw takes an endpoint by weight.
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
