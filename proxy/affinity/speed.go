package affinity

import (
	"math"
	"sync"
	"sync/atomic"
)

// speed is the time that an endpoint takes per prompt token, in seconds. It is learned from the
// times to the first token: the slope of a line through (tokens computed, seconds), with decaying
// weights for older points.
type speed struct {
	seed    float64 // initial assumption
	current atomic.Uint64
	learnt  atomic.Bool // current was measured

	mu              sync.Mutex // guards the sums
	n, x, y, xx, xy float64    // decayed sums
	samples         int
}

const (
	// keep is the weight of the previous samples at each new one: about 20 samples count.
	keep = 0.95
	// minSamples is the number of samples needed before the estimate is used.
	minSamples = 4
	// minTokens is the minimum length of prompts, as a root mean square, for the times to depend on
	// the tokens rather than on the fixed part of a first token's time.
	minTokens = 256
	// speedRange is the maximum factor between the estimate and the configured value.
	speedRange = 20
)

func (s *speed) start(seed float64) {
	s.seed = seed
	s.current.Store(math.Float64bits(seed))
}

// perToken returns the estimate in seconds.
func (s *speed) perToken() float64 { return math.Float64frombits(s.current.Load()) }

// learn adds a request that found the endpoint idle: the prompt tokens that it computed, and the
// seconds to its first token.
func (s *speed) learn(tokens, seconds float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.x, s.y = keep*s.n+1, keep*s.x+tokens, keep*s.y+seconds
	s.xx, s.xy = keep*s.xx+tokens*tokens, keep*s.xy+tokens*seconds
	if s.samples++; s.samples < minSamples || s.xx < minTokens*minTokens*s.n {
		return
	}
	slope := s.y / s.x
	if spread := s.n*s.xx - s.x*s.x; spread > 0.01*s.n*s.xx {
		// otherwise all prompts have about the same length
		slope = (s.n*s.xy - s.x*s.y) / spread
	}
	slope = min(max(slope, s.seed/speedRange), s.seed*speedRange)
	s.current.Store(math.Float64bits(slope))
	s.learnt.Store(true)
}

// level sets endpoints without a measurement to the mean speed of the others. They are probably
// alike, and an endpoint that is assumed to be slow would never get a request to be measured with.
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
