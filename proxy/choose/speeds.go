package choose

import (
	"math"
	"sync"
	"time"
)

// Speeds stores how fast models respond. A response takes a fixed time, which is the time to its
// first token, plus a time per token. Both are measured from real responses, whose weight halves
// every speedHalfLife. When the first token cannot be observed separately, the two are estimated
// from responses of different lengths. The prompt length is not modelled: it is part of the fixed
// time, averaged over the prompts that the model received.
//
// Speeds is safe for concurrent use. It allocates only for a new model, so its size is the number
// of models ever configured. It is meant to outlive a configuration, so that a reload loses
// nothing.
type Speeds struct {
	now func() time.Time

	mu      sync.RWMutex // guards the map, not its values
	byModel map[string]*speed
}

// speed is what is known about one model.
type speed struct {
	mu sync.Mutex // guards the fields below; a leaf lock

	seen      time.Time // time of the last response
	firstTime float64   // decayed sum of times to the first token, in seconds
	firstSeen float64   // decayed number of those
	textTime  float64   // decayed sum of times after the first token, in seconds
	tokens    float64   // decayed number of tokens in that time
	whole     line      // responses without a separate first token

	heard  time.Time // time of the last response or vain wait
	wait   float64   // longest vain wait in seconds, as of waited
	waited time.Time

	explored time.Time // when a request was last sent only to measure
	passed   int       // requests that went elsewhere since heard or explored
}

const (
	// speedHalfLife is short enough to follow a pool that fills up and long enough to average over
	// the responses of a busy minute. It is a choice, not a measurement.
	speedHalfLife = time.Minute

	// fixedTokens is the number of tokens that take as long as the fixed time, assumed when all
	// responses of a model have the same length. It prevents extreme extrapolation, and weighs as
	// much as one response at that distance.
	fixedTokens = 32

	// faint is the weight of responses and first-token times below which they are dropped: what
	// remains of one after half an hour.
	faint = 1e-9

	// A model without measurements gets a request to measure it at most once per exploreEvery. A
	// model that was not heard of for that long, neither by a response nor by a vain wait, gets one
	// only after exploreShare requests went elsewhere. So choosing by latency sends no more than
	// that share of the traffic to a model that is known to be slower.
	exploreEvery = 30 * time.Second
	exploreShare = 50
)

// NewSpeeds returns an empty Speeds. now returns the time and must be safe for concurrent use.
func NewSpeeds(now func() time.Time) *Speeds {
	return &Speeds{now: now, byModel: make(map[string]*speed)}
}

// Now returns the time on the clock of s.
func (s *Speeds) Now() time.Time { return s.now() }

// of returns the entry of a model, creating it if needed.
func (s *Speeds) of(model string) *speed {
	s.mu.RLock()
	v := s.byModel[model]
	s.mu.RUnlock()
	if v != nil {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v = s.byModel[model]; v == nil {
		v = new(speed)
		s.byModel[model] = v
	}
	return v
}

// Taken is how long one response took.
type Taken struct {
	First  time.Duration // time to the first token; 0 if unknown, for example without streaming
	Total  time.Duration // time to the end
	Tokens int64         // of the completion; 0 if unknown
}

// Observe adds a complete response of a model.
func (s *Speeds) Observe(model string, t Taken) {
	v, now := s.of(model), s.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(t, now)
}

// InVain adds a request that was given up after waiting for waited. Its response would have taken
// longer by an unknown amount. So it is no measurement, and can only raise the expected time of a
// model that was measured.
func (s *Speeds) InVain(model string, waited time.Duration) {
	v, now := s.of(model), s.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wait = max(v.wait*decay(v.waited, now), waited.Seconds())
	v.waited, v.heard, v.passed = now, now, 0
}

// decay returns the weight at now of what had weight 1 at then.
func decay(then, now time.Time) float64 {
	old := now.Sub(then)
	if then.IsZero() || old <= 0 {
		return 1
	}
	return math.Exp2(-old.Seconds() / speedHalfLife.Seconds())
}

func (v *speed) add(t Taken, now time.Time) {
	share := decay(v.seen, now)
	v.firstTime, v.firstSeen, v.textTime, v.tokens = v.firstTime*share, v.firstSeen*share, v.textTime*share, v.tokens*share
	v.whole.fade(share)
	if v.whole.n < faint {
		v.whole = line{} // reset before the sums become too small to divide
	}
	if v.firstSeen < faint {
		v.firstTime, v.firstSeen, v.textTime, v.tokens = 0, 0, 0, 0
	}
	// A response is better evidence than a request that was not answered in time.
	v.wait, v.waited = v.wait*decay(v.waited, now)/2, now
	v.seen, v.heard, v.passed = now, now, 0
	n := float64(t.Tokens)
	if n <= 0 {
		n = assumedCompletion
	}
	if t.First <= 0 {
		v.whole.add(n, max(0, t.Total.Seconds()))
		return
	}
	v.firstTime += t.First.Seconds()
	v.firstSeen++
	v.textTime += max(0, (t.Total - t.First).Seconds())
	v.tokens += max(0, n-1)
}

// expect returns the time for that many tokens according to the measured responses, but at least
// the longest recent vain wait.
func (v *speed) expect(tokens float64) (seconds float64, ok bool) {
	if v.seen.IsZero() {
		return 0, false
	}
	if v.firstSeen == 0 {
		fixed, each := v.whole.fit()
		return max(fixed+tokens*each, v.wait), true
	}
	seconds = v.firstTime / v.firstSeen
	text, n := v.textTime, v.tokens
	if v.whole.n > 0 {
		text += max(0, v.whole.seconds-v.whole.n*seconds)
		n += v.whole.tokens
	}
	if n > 0 {
		seconds += tokens * text / n
	}
	return max(seconds, v.wait), true
}

// line is a least-squares line through responses, time over tokens. Sums are decayed.
type line struct {
	// squares of tokens; products of tokens and seconds
	n, tokens, seconds, squares, products float64
}

func (l *line) add(tokens, seconds float64) {
	l.n++
	l.tokens += tokens
	l.seconds += seconds
	l.squares += tokens * tokens
	l.products += tokens * seconds
}

func (l *line) fade(share float64) {
	l.n, l.tokens, l.seconds, l.squares, l.products = l.n*share, l.tokens*share, l.seconds*share, l.squares*share, l.products*share
}

// fit returns the fixed time and the time per token, in seconds; neither is negative. The less the
// lengths vary, the closer the fixed time is to that of fixedTokens tokens. At least one response
// is required.
func (l *line) fit() (fixed, each float64) {
	assumed := l.seconds / (l.tokens + fixedTokens*l.n)
	spread := max(0, l.squares-l.tokens*l.tokens/l.n)
	both := l.products - l.tokens*l.seconds/l.n
	const weight = fixedTokens * fixedTokens
	each = (both + weight*assumed) / (spread + weight)
	each = min(max(each, 0), l.seconds/l.tokens)
	return (l.seconds - each*l.tokens) / l.n, each
}

// Expect returns the expected time of a completion with that many tokens, in seconds. ok is false
// when the model has not been measured.
func (s *Speeds) Expect(model string, tokens float64) (seconds float64, ok bool) {
	s.mu.RLock()
	v := s.byModel[model]
	s.mu.RUnlock()
	if v == nil {
		return 0, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.expect(tokens)
}

// Explore reports whether the current request should go to a model that is not the fastest, to
// measure it. Each true is recorded, so that one request is sent rather than all that arrive at
// once.
func (s *Speeds) Explore(model string) bool {
	v, now := s.of(model), s.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.passed++
	switch {
	case !v.explored.IsZero() && now.Sub(v.explored) < exploreEvery:
		return false
	case !v.heard.IsZero() && (now.Sub(v.heard) < exploreEvery || v.passed < exploreShare):
		return false
	}
	v.explored, v.passed = now, 0
	return true
}
