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

// Sketches remembers how long the answers of each model were, by the subject and the difficulty of
// what was asked and by the effort of reasoning, and says which token limit the coming ones need.
// It outlives a reload of the configuration. It is safe for concurrent use, holds at most
// maxSketches sketches, and noting an answer allocates nothing once a sketch for its kind exists.
//
// A sketch is a DDSketch (Masson, Rim and Lee, DDSketch: a fast and fully-mergeable quantile sketch
// with relative-error guarantees, VLDB 2019): its quantiles are off by sketchError at most,
// relative to the true one, however long the tail is. Old answers fade: their weight halves with
// every halfLife answers of the same kind.
type Sketches struct {
	buckets mapping.IndexMapping

	mu    sync.Mutex // guards what follows; held for well under a microsecond
	kinds map[key]*sketch
	clock uint64 // counts uses, to tell which sketch was used last
}

// Kind names the answers that share a sketch. An empty Domain or Complexity is one that was not
// known. An empty Effort is that of a model that could be told and was not.
type Kind struct {
	Model      string // as the configuration names it
	Domain     string // a label of the signal
	Complexity string // a label of the signal
	Effort     string // none, low, medium or high, see package reasoning
}

// all is the kind that holds every answer of the model at the same effort.
func (k Kind) all() Kind { return Kind{Model: k.Model, Effort: k.Effort} }

// key names a sketch. With neither domain nor complexity, it holds every answer of the model at an
// effort.
type key struct {
	Kind

	average bool // holds an average of model and domain, and no quantiles
}

// sketch is what was seen of one kind of answers.
type sketch struct {
	quantiles *ddsketch.DDSketch // nil for averages
	fresh     int                // answers since the weights were last halved
	widened   float64            // the limit that the last truncated answers ask for, in tokens; fades like the answers
	mean      float64            // of the lengths in tokens, of an average
	seen      float64            // answers in mean, at most halfLife
	used      uint64
}

const (
	maxSketches = 1024
	// sketchError is the relative error of a quantile. The headroom is many times larger.
	sketchError = 0.02
	// limitQuantile is the share of answers that a limit has to let through before its headroom.
	limitQuantile = 0.99
	// halfLife is after how many answers older ones count half, so that a sketch speaks for about
	// twice as many: enough for the one in a hundred that decides, few enough to follow a change.
	halfLife = 512
	// widening is by how much an answer that was cut short is taken to be longer than its limit.
	widening = 2
	// longestAnswer bounds automatic limits and what sketches hold, in tokens, and with it their
	// memory. It is above the longest answers that models are run with: for its greatest effort,
	// DeepSeek-V4-Pro wants a window of 384k (recipes.vllm.ai/deepseek-ai/DeepSeek-V4-Pro).
	longestAnswer = 1 << 19
	// enoughForMean is how many answers an average needs.
	enoughForMean = 10
)

// Ending tells what the length of an answer says.
type Ending uint8

// What ended an answer.
const (
	Ended   Ending = iota // the model said all it had to say
	Cut                   // an automatic limit cut it: it would have been longer
	Bounded               // somebody else's limit stood above it: no measure of what the model would say
)

// New makes an empty memory.
func New() *Sketches {
	buckets, err := mapping.NewLogarithmicMapping(sketchError)
	if err != nil {
		panic(err) // a constant out of range
	}
	return &Sketches{buckets: buckets, kinds: make(map[key]*sketch)}
}

// Observe notes the length of one answer in tokens. A length that is not positive says nothing.
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

// Limit is the automatic max_tokens for answers of kind k, before it is fitted into a window: the
// limitQuantile of what was seen times the headroom, from the model's other answers while there are
// too few of this kind, from the table of o while there are too few of any.
// It is in tokens, at least o.Floor.
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

// Above is the automatic max_tokens for answers of kind k of which it is known that nearly all stay
// below longest tokens: with the same headroom, floor and bound as Limit, and no less than answers
// that were cut ask for.
func (l *Sketches) Above(k Kind, longest float64, o *Options) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := longest * o.Headroom
	if own := l.kinds[key{Kind: k}]; own != nil {
		n = max(n, own.widened)
	}
	return int(math.Ceil(min(max(n, float64(o.Floor)), longestAnswer)))
}

// Mean is the average length of a model's answers in a domain, in tokens, or of all its answers
// while there are too few in the domain. known is false when there are too few of any. An empty
// domain asks for all.
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

// sketch finds or makes the sketch of a kind. l.mu is held.
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

// forget drops the sketch that was not used for the longest time.
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

// empty makes a sketch whose buckets for every length are allocated already.
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

// add notes an answer of n tokens, 1 to longestAnswer.
func (s *sketch) add(n float64) {
	if err := s.quantiles.Add(n); err != nil {
		return // not finite, which a token count is not
	}
	if s.fresh++; s.fresh < halfLife {
		return
	}
	s.fresh = 0
	s.widened /= 2
	_ = s.quantiles.Reweight(0.5) // fails for a factor that is not positive only
}

// addMean notes an answer in an average, in which an answer counts for less with each later one.
func (s *sketch) addMean(n float64) {
	s.seen = min(s.seen+1, halfLife)
	s.mean += (n - s.mean) / s.seen
}

// quantile is the limitQuantile of a sketch that is not empty.
func (s *sketch) quantile() float64 {
	n, err := s.quantiles.GetValueAtQuantile(limitQuantile)
	if err != nil {
		return 0 // empty; the floor holds
	}
	return n
}

// of is the limit before answers were seen.
func (o *ColdStart) of(effort string) int {
	switch effort {
	case reasoning.Low:
		return o.Low
	case reasoning.Medium, "": // reasoning or not is up to the model: most that can do reason in some measure
		return o.Medium
	case reasoning.High:
		return o.High
	}
	return o.None
}
