// Package lengths records how long the responses of models were, and derives from that the token
// limits for new requests and their expected length.
//
// The figures are not exact: quantiles come from sketches with a known relative error, and the
// weight of old responses decays. The package does not read responses; see stream/response.
//
// Invariants: memory is bounded, however many kinds of responses there are; an automatic limit is
// never below its floor; recording a response of a known kind, and asking for a limit, allocates
// nothing. A Sketches is safe for concurrent use; its one lock is a leaf.
package lengths

import (
	"math"
	"sync"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"

	"signalbox/proxy/reasoning"
)

// Sketches stores how long each model's responses were, by domain, complexity and effort, and
// computes token limits for new requests. It outlives a reload of the configuration. It is safe for
// concurrent use, holds at most maxSketches sketches, and does not allocate when it records a
// response of a known kind.
//
// A sketch is a DDSketch (Masson, Rim and Lee, DDSketch: a fast and fully-mergeable quantile sketch
// with relative-error guarantees, VLDB 2019). The relative error of its quantiles is at most
// sketchError, however long the tail is. The weight of old responses halves with every halfLife
// responses of the same kind.
type Sketches struct {
	buckets mapping.IndexMapping

	mu    sync.Mutex // guards the fields below; held for well under a microsecond
	kinds map[key]*sketch
	clock uint64 // counts uses, to find the least recently used sketch
}

// Kind identifies the responses that share a sketch. An empty Domain or Complexity is unknown. An
// empty Effort means that the model could have been told an effort and was not.
type Kind struct {
	Model      string // as named in the configuration
	Domain     string // a label of the signal
	Complexity string // a label of the signal
	Effort     string // none, low, medium or high; see package reasoning
}

// all returns the kind of all responses of the model at the same effort.
func (k Kind) all() Kind { return Kind{Model: k.Model, Effort: k.Effort} }

// key identifies a sketch. Without domain and complexity, it is for all responses of the model at
// an effort.
type key struct {
	Kind

	average bool // for an average by model and domain, without quantiles
}

// sketch holds what was observed of one kind of responses.
type sketch struct {
	quantiles *ddsketch.DDSketch // nil for averages
	fresh     int                // responses since the weights were last halved
	// limit required by recently truncated responses, in tokens; decays like the responses
	widened float64
	mean    float64 // average length in tokens, if key.average
	seen    float64 // responses in mean, at most halfLife
	used    uint64
}

const (
	maxSketches = 1024
	// sketchError is the relative error of a quantile. The headroom is many times larger.
	sketchError = 0.02
	// limitQuantile is the share of responses that a limit must not cut, before its headroom.
	limitQuantile = 0.99
	// halfLife is the number of responses after which older ones count half, so that a sketch
	// covers about twice as many: enough for the one in a hundred that matters, few enough to
	// follow a change.
	halfLife = 512
	// widening is the factor by which a truncated response is assumed to be longer than its limit.
	widening = 2
	// longestAnswer limits automatic limits and the lengths in sketches, in tokens, and thereby
	// their memory. It exceeds the longest responses that models are run with: DeepSeek-V4-Pro
	// requires a window of 384k at its highest effort
	// (recipes.vllm.ai/deepseek-ai/DeepSeek-V4-Pro).
	longestAnswer = 1 << 19
	// enoughForMean is the number of responses that an average needs.
	enoughForMean = 10
)

// Ending is how a response ended.
type Ending uint8

// The ways in which a response can end.
const (
	Ended   Ending = iota // the model finished
	Cut                   // an automatic limit cut it: it would have been longer
	Bounded               // another limit applied: its length says nothing about the model
)

// New returns an empty Sketches.
func New() *Sketches {
	buckets, err := mapping.NewLogarithmicMapping(sketchError)
	if err != nil {
		panic(err) // a constant is out of range
	}
	return &Sketches{buckets: buckets, kinds: make(map[key]*sketch)}
}

// Observe records the length of one response in tokens. A length that is not positive is ignored.
func (l *Sketches) Observe(k Kind, tokens int64, how Ending) {
	if tokens <= 0 {
		return
	}
	n := min(float64(tokens), longestAnswer)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sketch(key{Kind{Model: k.Model}, true}).addMean(n)
	if k.Domain != "" {
		l.sketch(key{Kind{Model: k.Model, Domain: k.Domain}, true}).addMean(n)
	}
	if how == Bounded {
		return
	}
	own := l.sketch(key{Kind: k})
	if how == Cut {
		n = min(n*widening, longestAnswer)
		own.widened = max(own.widened, n)
	}
	own.add(n)
	if all := k.all(); all != k {
		l.sketch(key{Kind: all}).add(n)
	}
}

// Limit returns the automatic max_tokens for responses of kind k, in tokens and at least o.Floor,
// before it is fitted into a window. It is the limitQuantile times the headroom. With too few
// responses of this kind, the model's other responses are used; with too few of any, the table in
// o.
func (l *Sketches) Limit(k Kind, o *Options) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := float64(o.ColdStart.of(k.Effort))
	own := l.kinds[key{Kind: k}]
	for _, s := range [...]*sketch{own, l.kinds[key{Kind: k.all()}]} {
		if s != nil && s.quantiles.GetCount() >= float64(o.MinAnswers) {
			n = s.quantile() * o.Headroom
			l.touch(s)
			break
		}
	}
	if own != nil {
		n = max(n, own.widened)
	}
	return int(math.Ceil(min(max(n, float64(o.Floor)), longestAnswer)))
}

// Above returns the automatic max_tokens for responses of kind k when nearly all are known to be
// shorter than longest tokens. Headroom, floor and upper limit are those of Limit, and so is the
// minimum required by truncated responses.
func (l *Sketches) Above(k Kind, longest float64, o *Options) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := longest * o.Headroom
	if own := l.kinds[key{Kind: k}]; own != nil {
		n = max(n, own.widened)
	}
	return int(math.Ceil(min(max(n, float64(o.Floor)), longestAnswer)))
}

// Mean returns the average length of a model's responses in a domain, in tokens, or of all its
// responses if there are too few in the domain. known is false if there are too few of any. An
// empty domain means all.
func (l *Sketches) Mean(model, domain string) (tokens float64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range [...]key{{Kind{Model: model, Domain: domain}, true}, {Kind{Model: model}, true}} {
		if s := l.kinds[k]; s != nil && s.seen >= enoughForMean {
			return s.mean, true
		}
	}
	return 0, false
}

// sketch returns the sketch of a kind, creating it if needed. The caller holds l.mu.
func (l *Sketches) sketch(k key) *sketch {
	s := l.kinds[k]
	if s == nil {
		if len(l.kinds) >= maxSketches {
			l.forget()
		}
		s = new(sketch)
		if !k.average {
			s.quantiles = l.empty()
		}
		l.kinds[k] = s
	}
	l.touch(s)
	return s
}

func (l *Sketches) touch(s *sketch) {
	l.clock++
	s.used = l.clock
}

// forget removes the least recently used sketch.
func (l *Sketches) forget() {
	var oldest key
	used := uint64(math.MaxUint64)
	for k, s := range l.kinds {
		if s.used < used {
			oldest, used = k, s.used
		}
	}
	delete(l.kinds, oldest)
}

// empty returns a sketch with preallocated buckets for every length.
func (l *Sketches) empty() *ddsketch.DDSketch {
	bins := l.buckets.Index(longestAnswer) - l.buckets.Index(1) + 1
	s := ddsketch.NewDDSketch(l.buckets, store.NewCollapsingLowestDenseStore(bins), store.NewCollapsingLowestDenseStore(1))
	for _, n := range [...]float64{1, longestAnswer} {
		if err := s.Add(n); err != nil {
			panic(err) // both are in the range of the mapping
		}
	}
	s.Clear() // keeps the memory
	return s
}

// add records a response of n tokens, 1 to longestAnswer.
func (s *sketch) add(n float64) {
	if err := s.quantiles.Add(n); err != nil {
		return // only for infinite values, which token counts are not
	}
	if s.fresh++; s.fresh < halfLife {
		return
	}
	s.fresh = 0
	s.widened /= 2
	_ = s.quantiles.Reweight(0.5) // fails only for factors that are not positive
}

// addMean adds a response to an average, in which the weight of earlier responses decays.
func (s *sketch) addMean(n float64) {
	s.seen = min(s.seen+1, halfLife)
	s.mean += (n - s.mean) / s.seen
}

// quantile returns the limitQuantile of a sketch that is not empty.
func (s *sketch) quantile() float64 {
	n, err := s.quantiles.GetValueAtQuantile(limitQuantile)
	if err != nil {
		return 0 // empty; the floor applies
	}
	return n
}

// of returns the limit before any responses were observed.
func (o *ColdStart) of(effort string) int {
	switch effort {
	case reasoning.Low:
		return o.Low
	case reasoning.Medium, "": // the model decides; most that can reason do so to some degree
		return o.Medium
	case reasoning.High:
		return o.High
	}
	return o.None
}
