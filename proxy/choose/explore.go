package choose

import (
	"math/rand/v2"
	"slices"

	"signalbox/rules"
)

// Exploration limits what may be given up to learn.
type Exploration struct {
	Share          float64 // maximum share of requests that do not go to the first candidate
	MaxQualityLoss float64 // maximum mean loss of expected quality per request
	Credited       bool    // this request was already credited to the account
}

// draws is the number of samples of qualities per request.
const draws = 128

// Explore draws the candidate of a request by Thompson sampling: each one's chance is the
// probability that it ranks first by the route's criterion, given the uncertainty of its overall
// quality.
//
// At most o.Share of the requests go to others than the first candidate, and fewer when their
// expected loss would exceed the balance of the key's account. The account starts empty. Each
// request is credited half of o.MaxQualityLoss, plus what the first candidate is expected to gain
// over the model that would have been chosen without outcomes; the expected loss of the draw is
// deducted. If that model proves worse overall than its skills, the account is lent more. The
// balance is at most o.MaxQualityLoss of 100 requests.
//
// cs is in the order to try them; the drawn one is moved to the front. Candidates that are not
// tried are not drawn. Explore returns the chance with which the first one was drawn and sets
// Candidate.Chance of all. normal returns numbers from the standard normal distribution, uniform
// from [0,1).
func (a *Accounts) Explore(
	key string, cs []Candidate, act *rules.Action, o Exploration, normal, uniform func() float64,
) float64 {
	for i := range cs {
		cs[i].Chance = 0
	}
	if len(cs) == 0 {
		return 1
	}
	cs[0].Chance = 1
	if o.Share <= 0 || len(cs) < 2 || cs[0].Out || cs[0].guess == nil {
		return 1
	}
	var room [8]float64
	chance := append(room[:0], make([]float64, len(cs))...)
	sampled(cs, act, chance, normal)
	first, base := cs[0].guess, cs[configured(cs, act)].guess
	s := stake{
		gains: max(first.Quality-base.Quality, 0),
		share: 1,
		short: max(base.Prior-base.Everywhere-shortBy*base.Overall, 0),
	}
	for i, p := range chance {
		if p > 0 {
			s.loses += p * (first.Quality - cs[i].guess.Quality)
		}
	}
	if others := 1 - chance[0]; others > o.Share {
		s.share = o.Share / others
	}
	share := a.pay(key, o, s)
	for i := range cs {
		cs[i].Chance = share * chance[i]
	}
	cs[0].Chance += 1 - share
	u := uniform()
	for i := range cs {
		if u -= cs[i].Chance; u < 0 && cs[i].Chance > 0 {
			chosen := cs[i]
			copy(cs[1:i+1], cs[:i])
			cs[0] = chosen
			break
		}
	}
	return cs[0].Chance
}

// ExploreEffort draws the effort of a request like Explore draws its model: each one's chance is
// the probability that it is the lowest effort that loses at most o.MaxQualityLoss. at is the index
// of the effort that the request would otherwise have. The result is the index of the drawn effort
// and its chance.
func (a *Accounts) ExploreEffort(
	key string, es []AtEffort, at int, o Exploration, normal, uniform func() float64,
) (drawn int, chance float64) {
	if o.Share <= 0 || len(es) < 2 || at < 0 {
		return at, 1
	}
	chances := leastGood(es, o.MaxQualityLoss, normal)
	loses := 0.0
	for i, p := range chances {
		loses += p * (es[at].Quality - es[i].Quality)
	}
	share := 1.0
	if others := 1 - chances[at]; others > o.Share {
		share = o.Share / others
	}
	share = a.pay(key, o, stake{loses: loses, share: share})
	u := uniform()
	drawn = at
	for i := range chances {
		chances[i] *= share
		if i == at {
			chances[i] += 1 - share
		}
	}
	for i, p := range chances {
		if u -= p; u < 0 && p > 0 {
			drawn = i
			break
		}
	}
	return drawn, chances[drawn]
}

// leastGood samples the quality of each effort and returns how often each one was the first that is
// at most loss worse than the best.
func leastGood(es []AtEffort, loss float64, normal func() float64) []float64 {
	chances, quality := make([]float64, len(es)), make([]float64, len(es))
	for range draws {
		best := 0
		for i := range es {
			quality[i] = es[i].Quality + es[i].Deviation*normal()
			if quality[i] > quality[best] {
				best = i
			}
		}
		first := slices.IndexFunc(quality, func(q float64) bool { return q >= quality[best]-loss })
		if first >= 0 { // otherwise a quality is NaN
			chances[first] += 1. / draws
		}
	}
	return chances
}

// Weighted sets the chances of candidates drawn by weight and returns that of the first one.
func Weighted(cs []Candidate) float64 {
	total := 0
	for i := range cs {
		if !cs[i].Out {
			total += max(cs[i].weight, 1)
		}
	}
	for i := range cs {
		if cs[i].Chance = 0; !cs[i].Out {
			cs[i].Chance = float64(max(cs[i].weight, 1)) / float64(total)
		}
	}
	return cs[0].Chance
}

// sampled adds to chance how often each candidate ranks first when qualities are sampled.
func sampled(cs []Candidate, act *rules.Action, chance []float64, normal func() float64) {
	var room [8]float64
	drawn := append(room[:0], make([]float64, len(cs))...)
	for range draws {
		for i := range cs {
			if g := cs[i].guess; g != nil {
				drawn[i] = g.Quality + g.Overall*normal()
			}
		}
		chance[foremost(cs, act, drawn)] += 1. / draws
	}
}

// configured returns the candidate that ranks first by the qualities of the configuration.
func configured(cs []Candidate, act *rules.Action) int {
	var room [8]float64
	prior := append(room[:0], make([]float64, len(cs))...)
	for i := range cs {
		if g := cs[i].guess; g != nil {
			prior[i] = g.Prior
		}
	}
	return foremost(cs, act, prior)
}

// foremost returns the candidate that would rank first with the given qualities, among the drawable
// ones: the best, or the cheapest or fastest within the margin.
func foremost(cs []Candidate, act *rules.Action, quality []float64) int {
	best := -1
	for i := range cs {
		if cs[i].drawable() && (best < 0 || quality[i] > quality[best]) {
			best = i
		}
	}
	figure := func(c *Candidate) float64 { return c.Cost }
	switch act.By {
	case "cost":
	case "latency":
		figure = func(c *Candidate) float64 { return c.Latency }
	default:
		return best
	}
	least := best
	for i := range cs {
		c := &cs[i]
		if !c.drawable() || quality[i] < quality[best]-act.Margin-closeEnough || figure(c) < 0 {
			continue
		}
		if x := figure(&cs[least]); x < 0 || figure(c) < x {
			least = i
		}
	}
	return least
}

// drawable reports whether a candidate may be drawn.
func (c *Candidate) drawable() bool { return !c.Out && c.guess != nil }

// stake is the effect of a request on an account. Gains and losses are expected values.
type stake struct {
	gains float64 // of the first candidate over the choice without outcomes
	loses float64 // of a draw, compared with the first candidate; negative if the draw is better
	share float64 // maximum share of requests that may follow the draw
	short float64 // how much worse than its skills the choice without outcomes has proved
}

// pay credits a request to an account and returns the share that may explore.
func (a *Accounts) pay(key string, o Exploration, s stake) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	x, most := a.of(key), kept*o.MaxQualityLoss
	if !o.Credited {
		x.left += credited * o.MaxQualityLoss
		more := max(0, min(lends*s.short*o.MaxQualityLoss, lent*o.MaxQualityLoss-x.lent, most-x.left))
		x.lent += more
		x.left += more
	}
	x.left += s.gains
	share := s.share
	if s.loses > 0 {
		share = max(0, min(share, x.left/s.loses))
	}
	x.left = min(x.left-share*s.loses, most)
	return share
}

// Normal returns a number from the standard normal distribution.
func Normal() float64 { return rand.NormFloat64() } //nolint:gosec // no secret

// Uniform returns a number in [0,1).
func Uniform() float64 { return rand.Float64() } //nolint:gosec // no secret
