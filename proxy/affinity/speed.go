package affinity

import (
	"math"
	"sync"
	"sync/atomic"
)

// speed is the seconds that an endpoint takes for a token of a prompt, learnt from the times to the
// first token: the slope of a line through (tokens computed, seconds), older points counting less.
type speed struct {
	seed    float64 // what is assumed at first
	current atomic.Uint64
	learnt  atomic.Bool // current was

	mu              sync.Mutex // guards what follows
	n, x, y, xx, xy float64    // decayed sums
	samples         int
}

const (
	// keep is the weight of what was before at each new sample: some 20 samples count.
	keep = 0.95
	// minSamples is how many are needed before they count.
	minSamples = 4
	// minTokens is how long prompts have to be, in the root of the mean square, for times to say
	// something about their tokens rather than about everything else that a first token takes.
	minTokens = 256
	// speedRange bounds how far the estimate may go from what was configured.
	speedRange = 20
)

func (s *speed) start(seed float64) {
	s.seed = seed
	s.current.Store(math.Float64bits(seed))
}

// perToken is the estimate in seconds.
func (s *speed) perToken() float64 { return math.Float64frombits(s.current.Load()) }

// learn adds a request that found the endpoint idle: prompt tokens that it computed, seconds to its
// first token.
func (s *speed) learn(tokens, seconds float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.x, s.y = keep*s.n+1, keep*s.x+tokens, keep*s.y+seconds
	s.xx, s.xy = keep*s.xx+tokens*tokens, keep*s.xy+tokens*seconds
	if s.samples++; s.samples < minSamples || s.xx < minTokens*minTokens*s.n {
		return
	}
	slope := s.y / s.x
	if spread := s.n*s.xx - s.x*s.x; spread > 0.01*s.n*s.xx { // else all prompts are alike
		slope = (s.n*s.xy - s.x*s.y) / spread
	}
	slope = min(max(slope, s.seed/speedRange), s.seed*speedRange)
	s.current.Store(math.Float64bits(slope))
	s.learnt.Store(true)
}

// level gives endpoints of which nothing was learnt the mean speed of the others: they are likely
// alike, and one that is thought to be slow would never get a request to be measured by.
func (p *Placer) level() {
	n, sum := 0, 0.0
	for i := range p.endpoints {
		if s := &p.endpoints[i].speed; s.learnt.Load() {
			n, sum = n+1, sum+s.perToken()
		}
	}
	for i := range p.endpoints {
		if s := &p.endpoints[i].speed; n > 0 && !s.learnt.Load() {
			s.current.Store(math.Float64bits(sum / float64(n)))
		}
	}
}
