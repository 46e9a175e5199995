package pool

import (
	"slices"
	"time"
)

// Pick takes the less loaded of two endpoints drawn at random (Mitzenmacher, The Power of Two
// Choices in Randomized Load Balancing, 2001), which spreads load almost as well as comparing all
// without sending every proxy to the same one. Ejected endpoints are drawn only when no other is
// left; those that are down, never, nor those
// that were tried. It returns nil when none is left. intn draws from [0,n).
func (g *Group) Pick(tried []*Endpoint, intn func(n int) int, now time.Time) *Endpoint {
	var space [16]*Endpoint
	for _, want := range []Fitness{Fit, Ejected} {
		open := space[:0]
		for _, e := range g.Endpoints {
			if !slices.Contains(tried, e) && e.Fitness(now) == want {
				open = append(open, e)
			}
		}
		switch len(open) {
		case 0:
			continue
		case 1:
			return open[0]
		}
		i := intn(len(open))
		j := intn(len(open) - 1)
		if j >= i {
			j++
		}
		if open[j].load() < open[i].load() {
			i = j
		}
		return open[i]
	}
	return nil
}
