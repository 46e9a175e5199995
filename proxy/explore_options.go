package proxy

import "signalbox/proxy/choose"

// ExploreOptions is how much is given up to learn. Of a route's requests, a share goes to one of
// the candidates behind the first, drawn evenly among those whose expected quality is so near the
// best that the share, times the difference, is at most the loss that is allowed. So the expected
// quality of the route falls by no more than that, as far as expectations are right.
type ExploreOptions struct {
	// Share is how many of the requests explore, in [0,0.5]. 0 turns it off. Default 0. Reloadable.
	Share float64 `yaml:"share"`
	// MaxQualityLoss bounds what a route loses of its expected quality, in [0,1]. Default 0.005.
	// Reloadable.
	MaxQualityLoss float64 `yaml:"max_quality_loss"`
}

// explore moves another candidate than the first to the front of cs, for a share of the requests,
// and returns the chance that the one which is in front now had; 1 where nothing is explored. cs is
// in the order to try them. intn draws from [0,n).
func (o *ExploreOptions) explore(cs []choose.Candidate, intn func(n int) int) float64 {
	if o.Share <= 0 || len(cs) < 2 || cs[0].Out || cs[0].Quality < 0 {
		return 1
	}
	fit := func(c *choose.Candidate) bool {
		return !c.Out && c.Quality >= 0 && o.Share*(cs[0].Quality-c.Quality) <= o.MaxQualityLoss
	}
	n := 0
	for i := 1; i < len(cs); i++ {
		if fit(&cs[i]) {
			n++
		}
	}
	if n == 0 {
		return 1
	}
	if float64(intn(explored)) >= o.Share*explored {
		return 1 - o.Share
	}
	k := intn(n)
	for i := 1; i < len(cs); i++ {
		if !fit(&cs[i]) {
			continue
		}
		if k == 0 {
			chosen := cs[i]
			copy(cs[1:i+1], cs[:i])
			cs[0] = chosen
			break
		}
		k--
	}
	return o.Share / float64(n)
}

// explored are how finely chances are drawn.
const explored = 1 << 20
