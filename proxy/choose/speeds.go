package choose

import (
	"math"
	"sync"
	"time"
)

// Speeds remembers how fast models answered. An answer takes a fixed time, which is that to its
// first token, plus a time for every token; both come from real answers, each of which counts half
// as much after every speedHalfLife. Answers whose first token was not seen by itself tell the two
// times apart by their lengths. The length of the prompt is not part of the model: it is in the
// fixed time, as the mean over the prompts that the model was sent. It is safe for concurrent use
// and allocates only when it meets a model for the first time, so its size is the number of models
// ever configured. It is meant to outlive a configuration, so that a reload forgets nothing.
type Speeds struct {
	now func() time.Time

	mu      sync.RWMutex // guards the map, not what it points to
	byModel map[string]*speed
}

// speed is what is known of one model.
type speed struct {
	mu sync.Mutex // guards what follows; a leaf: nothing is called under it

	seen      time.Time // of the last answer
	firstTime float64   // decayed sum of times to the first token, in seconds
	firstSeen float64   // decayed number of them
	textTime  float64   // decayed sum of times behind the first token, in seconds
	tokens    float64   // decayed number of tokens in that time
	whole     line      // answers whose first token was not seen by itself

	heard  time.Time // of the last answer or wait in vain
	wait   float64   // the longest wait in vain, in seconds, as it was at waited
	waited time.Time

	explored time.Time // when a request was last sent only to learn
	passed   int       // requests that went elsewhere since the model was last heard of or explored
}

const (
	// speedHalfLife is short enough to follow a pool that fills up and long enough to average over
	// the answers of a busy minute. It is a choice, not a measurement.
	speedHalfLife = time.Minute

	// fixedTokens is how many tokens take as long as the fixed time, for a model whose answers are
	// all of one length and do not tell. An assumption: it keeps a short answer from being
	// stretched to a very long time, and counts as one answer that lies so far from the others.
	fixedTokens = 32

	// faint is the number of answers, and of times to the first token, below which they are
	// forgotten: what is left of one after half an hour.
	faint = 1e-9

	// A model of which nothing is known gets a request to learn from at most once in exploreEvery,
	// one that was not heard of for so long, be it an answer or a wait in vain, only after
	// exploreShare requests went elsewhere: choosing by latency sends no more than that share of
	// the traffic to a model that is known to be slower.
	exploreEvery = 30 * time.Second
	exploreShare = 50
)

// NewSpeeds makes an empty memory that reads the time from now, which is safe for concurrent use.
func NewSpeeds(now func() time.Time) *Speeds {
	return &Speeds{now: now, byModel: make(map[string]*speed)}
}

// Now is the time by which answers are to be taken.
func (s *Speeds) Now() time.Time { return s.now() }

// of returns the entry of a model.
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

// Taken is how long one answer took.
type Taken struct {
	First  time.Duration // from sending to the first token; 0 when it was not seen by itself, as in an answer that is no stream
	Total  time.Duration // from sending to the end
	Tokens int64         // of the completion; 0 when not known
}

// Observe adds a complete answer of a model.
func (s *Speeds) Observe(model string, t Taken) {
	v, now := s.of(model), s.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(t, now)
}

// InVain adds a request that was given up for want of an answer after waited: its answer would have
// taken longer, nobody knows how much. So it is no observation, and can only raise what is expected
// of a model that was observed.
func (s *Speeds) InVain(model string, waited time.Duration) {
	v, now := s.of(model), s.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wait = max(v.wait*decay(v.waited, now), waited.Seconds())
	v.waited, v.heard, v.passed = now, now, 0
}

// decay is the share that is left at now of what counted in full at then.
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
		v.whole = line{} // before its sums are too small to be divided by each other
	}
	if v.firstSeen < faint {
		v.firstTime, v.firstSeen, v.textTime, v.tokens = 0, 0, 0, 0
	}
	// That the model answers is a better witness than a request that it did not answer in time.
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

// expect is the time for so many tokens by the answers that were observed, and at least as long as
// somebody waited in vain of late.
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

// line is a straight line through answers, time over tokens, by least squares. Sums are decayed.
type line struct {
	n, tokens, seconds, squares, products float64 // squares are of the tokens, products tokens times seconds
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

// fit returns the fixed time and the time for each token, in seconds; neither is negative. The less
// the lengths differ, the nearer the fixed time is to that of fixedTokens tokens. It needs an
// answer.
func (l *line) fit() (fixed, each float64) {
	assumed := l.seconds / (l.tokens + fixedTokens*l.n)
	spread := max(0, l.squares-l.tokens*l.tokens/l.n)
	both := l.products - l.tokens*l.seconds/l.n
	const weight = fixedTokens * fixedTokens
	each = (both + weight*assumed) / (spread + weight)
	each = min(max(each, 0), l.seconds/l.tokens)
	return (l.seconds - each*l.tokens) / l.n, each
}

// Expect returns how long a completion of so many tokens is expected to take, in seconds. ok is
// false when the model was not observed.
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

// Explore reports whether the request at hand should go to a model that is not the fastest, to
// learn how fast it is now. Every true is noted, so that one request is sent and not all that come
// at once.
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
