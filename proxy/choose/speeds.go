package choose

import (
	"math"
	"sync"
	"time"
)

// Speeds remembers how fast models answered. An answer takes the time to its first token plus a time
// for every further one; both are means over real answers, each of which counts half as much after
// every speedHalfLife. The length of the prompt is not part of the model: it is in the time to the
// first token, as the mean over the prompts that the model was sent. It is safe for concurrent use
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

	seen      time.Time // of the last observation
	firstTime float64   // decayed sum of times to the first token, in seconds
	firstSeen float64   // decayed number of them
	textTime  float64   // decayed sum of times behind the first token, in seconds
	tokens    float64   // decayed number of tokens in that time

	explored time.Time // when a request was last sent only to learn
	passed   int       // requests that went elsewhere since the model was last observed or explored
}

const (
	// speedHalfLife is short enough to follow a pool that fills up and long enough to average over
	// the answers of a busy minute. It is a choice, not a measurement.
	speedHalfLife = time.Minute

	// A model of which nothing is known gets a request to learn from at most once in exploreEvery,
	// one that was not seen for so long only after exploreShare requests went elsewhere: choosing by
	// latency sends no more than that share of the traffic to a model that is known to be slower.
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

// InVain adds a request that was given up for want of an answer after waited: the answer would have
// taken longer, so it counts only when it is more than was expected.
func (s *Speeds) InVain(model string, waited time.Duration) {
	v, now := s.of(model), s.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if expected, ok := v.expect(assumedCompletion); !ok || waited.Seconds() > expected {
		v.add(Taken{Total: waited}, now)
	}
}

func (v *speed) add(t Taken, now time.Time) {
	if old := now.Sub(v.seen); !v.seen.IsZero() && old > 0 {
		keep := math.Exp2(-old.Seconds() / speedHalfLife.Seconds())
		v.firstTime, v.firstSeen, v.textTime, v.tokens = v.firstTime*keep, v.firstSeen*keep, v.textTime*keep, v.tokens*keep
	}
	v.seen, v.passed = now, 0
	n := float64(t.Tokens)
	if n <= 0 {
		n = assumedCompletion
	}
	if t.First > 0 {
		v.firstTime += t.First.Seconds()
		v.firstSeen++
		v.textTime += max(0, (t.Total - t.First).Seconds())
		v.tokens += max(0, n-1)
		return
	}
	v.textTime += max(0, t.Total.Seconds()-v.first())
	v.tokens += n
}

// first is the mean time to the first token in seconds; 0 when none was seen.
func (v *speed) first() float64 {
	if !(v.firstSeen > 0) {
		return 0
	}
	return v.firstTime / v.firstSeen
}

func (v *speed) expect(tokens float64) (seconds float64, ok bool) {
	seconds = v.first()
	if v.tokens > 0 {
		seconds += tokens * v.textTime / v.tokens
	}
	return seconds, !v.seen.IsZero()
}

// Expect returns how long a completion of so many tokens is expected to take, in seconds. ok is false
// when the model was not observed.
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

// Explore reports whether the request at hand should go to a model that is not the fastest, to learn
// how fast it is now. Every true is noted, so that one request is sent and not all that come at once.
func (s *Speeds) Explore(model string) bool {
	v, now := s.of(model), s.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.passed++
	switch {
	case !v.explored.IsZero() && now.Sub(v.explored) < exploreEvery:
		return false
	case !v.seen.IsZero() && (now.Sub(v.seen) < exploreEvery || v.passed < exploreShare):
		return false
	}
	v.explored, v.passed = now, 0
	return true
}
