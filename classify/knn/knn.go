// Package knn recognises private intents: classes that an operator declares with a few example
// sentences each. A text is compared with the examples; a text that is similar to none of them has
// no intent. All fitting is in closed form and takes milliseconds.
//
// # How a text is scored
//
// The similarity of a text and an example is (cos(v) + 0.3 cos(g)) / 1.3, at least 0. v are the
// embeddings less the mean of all examples and of a background set of everyday sentences in many
// languages (background.txt), which no private intent is expected to be about. g are bags of hashed
// character n-grams (2 to 5, inside words) weighted 1+ln(tf) times ln((1+N)/(1+df))+1 over the same
// texts. The score of an intent is (s1 + 2 m) / 3, where s1 is the similarity of its nearest
// example and m is the mean similarity of its Options.Neighbours nearest ones. Scores are in [0,1].
//
// An intent also has a crowd level h: the mean of the best scores that other texts reach (one in a
// hundred, at least ten), that is, examples of other intents and the background. Intents are ranked
// by score - 0.5 h + 0.6 r + l/n. The second term keeps a broad intent from absorbing its
// neighbours, following cross-domain local scaling (Lample et al., "Word translation without
// parallel data", ICLR 2018, section 2.3). r is a ridge regression on the examples, in closed form
// (regress.go), which separates similar intents. l is the similarity of the text and the words of
// the intent's name; its weight decreases with the number of examples, n. Thresholds apply to the
// score, which does not depend on names.
//
// The automatic threshold of an intent is h + 0.4 (p - h). p is the score of its examples when each
// is left out in turn, shrunk towards the mean over all intents by three pseudo-examples, and that
// mean towards 0.5 by five, so that an intent with one example has a threshold too.
//
// The constants were chosen on CLINC150 and HWU64; EVALUATION.md has the figures, including those
// for SNIPS and BANKING77, on which nothing was chosen.
//
// # Limits
//
// Similarity is limited by the embedding: in languages that it was not trained for, intents rely on
// shared n-grams. If Options.Latin states that the embedding knows only the Latin script, a text or
// an example in another script is compared by n-grams alone, because an embedding that has never
// seen a script finds all texts in it alike. The scan is exact and reads every example.
//
// # Concurrency
//
// An Index is safe for concurrent use. Lookup reads an immutable snapshot behind an atomic pointer
// and takes no lock; Add builds a new snapshot and swaps it in. The package starts no goroutines.
package knn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// Embedder computes the vectors of texts, one per text in order, all of the same length, finite and
// not zero. New and Add call it with at most 64 texts at a time, from one goroutine; they retain
// the vectors and do not modify them.
type Embedder func(ctx context.Context, texts []string) ([][]float32, error)

// Options configures an Index.
type Options struct {
	// Margin is the lead that the best intent must have over the second in the ranking, which is on
	// about the scale of scores. With a smaller lead, no intent is recognised. In [0,1). Default 0.
	// Reloadable.
	Margin float64 `yaml:"margin"`
	// Neighbours is the number of an intent's nearest examples that vote, at least 1. Default 10.
	// Reloadable.
	Neighbours int `yaml:"neighbours"`
	// Model identifies the embedding in the cache, for example by the checksum of its graph.
	Model string `yaml:"-"`
	// Latin states that the embedding knows only words in the Latin script. Texts in other scripts
	// are then compared by their n-grams. Default false.
	Latin bool `yaml:"-"`
	// Cache keeps vectors across indexes and runs. Default none: every New embeds all texts.
	Cache *Cache `yaml:"-"`
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options { return Options{Neighbours: defaultNeighbours} }

// Validate reports every problem of o as "field: problem", joined, or nil.
func (o Options) Validate() error {
	var errs []error
	if !(o.Margin >= 0 && o.Margin < 1) {
		errs = append(errs, fmt.Errorf("margin: %v is not in [0,1)", o.Margin))
	}
	if o.Neighbours < 1 {
		errs = append(errs, fmt.Errorf("neighbours: %d is less than 1", o.Neighbours))
	}
	return errors.Join(errs...)
}

// example makes an example from a text.
func (o Options) example(text string, vector []float32) *example {
	e := newExample(text, vector)
	e.blind = o.Latin && abroad(text)
	return e
}

// abroad reports whether a text has at least as many letters of other scripts as Latin ones.
func abroad(text string) bool {
	latin, others := 0, 0
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && (r|0x20 < 'a' || r|0x20 > 'z'):
		case r < utf8.RuneSelf, unicode.Is(unicode.Latin, r):
			latin++
		case unicode.IsLetter(r):
			others++
		}
	}
	return others > 0 && others >= latin
}

// Result is the result of an Index for one text.
type Result struct {
	Intent string    // the recognised intent; empty when none is
	Best   string    // the nearest intent, recognised or not; empty if every score is 0
	Score  float64   // score of Best, in [0,1]
	Scores []float32 // scores of all intents, in the order of Names, in [0,1]; the caller owns it
}

// Counts is the result of an Add.
type Counts struct {
	Added    int // number of new examples
	Known    int // number of examples that the intent already had
	Examples int // number of the intent's examples now
}

// Summary describes the present state of an intent.
type Summary struct {
	Name      string
	Examples  int
	Live      int     // number of examples added by Add
	Negatives int     // number of negative examples
	Threshold float64 // effective threshold, on the scale of scores
	Auto      bool    // whether the threshold was derived from the examples
}

// Index recognises intents. Make it with New.
type Index struct {
	opts    Options
	embed   Embedder
	names   []string
	scratch sync.Pool // of *scratch

	mu      sync.Mutex // serialises changes: held while a snapshot is built
	current atomic.Pointer[snapshot]
}

// New returns an Index of intents. It embeds all examples and the background set, except texts in
// the cache. A problem of the intents is an error that names the field, see ValidateIntents; an
// error of embed is returned wrapped.
func New(ctx context.Context, intents []Intent, opts Options, embed Embedder) (*Index, error) {
	if err := errors.Join(opts.Validate(), ValidateIntents(intents)); err != nil {
		return nil, err
	}
	x := &Index{opts: opts, embed: embed}
	var texts []string
	for i := range intents {
		in := &intents[i]
		x.names = append(x.names, in.Name)
		texts = append(append(texts, in.Examples...), in.Negatives...)
		if l := label(in.Name); l != "" {
			texts = append(texts, l)
		}
	}
	background := backgroundTexts()
	vectors, err := x.vectors(ctx, append(texts, background...))
	if err != nil {
		return nil, err
	}
	s := &snapshot{opts: opts, intents: make([]intent, len(intents))}
	take := func(texts []string) []*example {
		out := make([]*example, len(texts))
		for i, t := range texts {
			out[i] = opts.example(t, vectors[i])
		}
		vectors = vectors[len(texts):]
		return out
	}
	for i := range intents {
		in := &intents[i]
		s.intents[i] = intent{name: in.Name, fixed: in.Threshold, examples: take(in.Examples), negatives: take(in.Negatives)}
		if l := label(in.Name); l != "" {
			s.intents[i].label = take([]string{l})[0]
		}
	}
	s.background = take(background)
	if opts.Latin {
		s.abroad = abroadExamples()
	}
	s.build(nil)
	x.current.Store(s)
	return x, nil
}

// vectors embeds texts and checks the result.
func (x *Index) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := x.opts.Cache.embed(ctx, x.opts.Model, texts, x.embed)
	if err != nil {
		return nil, fmt.Errorf("embed the examples of intents: %w", err)
	}
	for i, v := range vectors {
		sum := 0.0
		for _, f := range v {
			sum += float64(f) * float64(f)
		}
		if len(v) != len(vectors[0]) || !(sum > 0) || math.IsInf(sum, 1) {
			return nil, fmt.Errorf("embed the examples of intents: the vector of %q has length %d and squared norm %v, want length %d and a direction",
				clip(texts[i]), len(v), sum, len(vectors[0]))
		}
	}
	return vectors, nil
}

// Names returns the intents in the order of declaration. The result must not be modified.
func (x *Index) Names() []string { return x.names }

// Lookup scores text against every intent; vector is its embedding. A vector whose length differs
// from that of the examples is an error (ErrDims). Texts of any length are valid: n-grams of a long
// text are taken from its start and its end. Lookup retains neither argument and allocates only
// Scores.
func (x *Index) Lookup(text string, vector []float32) (Result, error) {
	s := x.current.Load()
	if len(vector) != s.dims {
		return Result{}, fmt.Errorf("%w: %d, want %d", ErrDims, len(vector), s.dims)
	}
	b, ok := x.scratch.Get().(*scratch)
	if !ok {
		b = new(scratch)
	}
	defer x.scratch.Put(b)
	scores := make([]float32, len(s.intents))
	b.grams = appendGrams(b.grams[:0], text, &b.text)
	if x.opts.Latin && abroad(text) {
		vector = nil
	}
	s.score(vector, b.grams, b, scores)
	return s.decide(scores, b), nil
}

// Errors of Lookup and Add.
var (
	// ErrDims reports a vector that is not from the model that embedded the examples.
	ErrDims = errors.New("wrong length of the embedding")
	// ErrUnknownIntent reports an unknown intent name.
	ErrUnknownIntent = errors.New("no such intent")
)

// Add adds examples to the named intent. They apply to every Lookup that starts after Add has
// returned. Examples that the intent already has are counted and have no effect. Errors are
// ErrUnknownIntent, *ExampleError for an invalid text, or the embedder's, wrapped; in these cases
// nothing is added. ctx limits the embedding.
//
// Up to 2,048 examples the result equals that of New with all of them. Beyond that, crowd levels
// and thresholds of the other intents are not updated. Those of an intent with at least 256
// examples, and the sums of the regression over all examples, are only updated after each growth by
// a sixteenth. That keeps Add fast.
func (x *Index) Add(ctx context.Context, name string, examples []string) (Counts, error) {
	at := slices.Index(x.names, name)
	if at < 0 {
		return Counts{}, fmt.Errorf("%w: %q", ErrUnknownIntent, name)
	}
	// The first check avoids embedding invalid examples; the second, under the lock, decides.
	fresh, err := x.current.Load().fresh(at, examples)
	if err != nil {
		return Counts{}, err
	}
	vectors, err := x.vectors(ctx, fresh)
	if err != nil {
		return Counts{}, err
	}
	added := make(map[string]*example, len(fresh))
	for i, t := range fresh {
		added[t] = x.opts.example(t, vectors[i])
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.current.Load()
	fresh, err = s.fresh(at, examples)
	if err != nil {
		return Counts{}, err
	}
	if len(fresh) > 0 {
		next := &snapshot{opts: s.opts, background: s.background, abroad: s.abroad, intents: slices.Clone(s.intents)}
		in := &next.intents[at]
		in.examples = slices.Clone(in.examples)
		for _, t := range fresh {
			in.examples = append(in.examples, added[t])
		}
		in.live += len(fresh)
		next.build(&rebuild{prev: s, changed: at, added: len(fresh)})
		s = next
		x.current.Store(s)
	}
	return Counts{Added: len(fresh), Known: len(examples) - len(fresh), Examples: len(s.intents[at].examples)}, nil
}

// Restore is Add for examples that were added to another Index: those that are invalid here are
// left out and returned, the others are added. Concurrent calls each add their own. Errors are
// those of Add except *ExampleError.
func (x *Index) Restore(ctx context.Context, name string, examples []string) (Counts, []ExampleError, error) {
	at := slices.Index(x.names, name)
	if at < 0 {
		return Counts{}, nil, fmt.Errorf("%w: %q", ErrUnknownIntent, name)
	}
	for {
		good, refused := x.current.Load().sift(at, examples)
		counts, err := x.Add(ctx, name, good)
		if _, refuses := errors.AsType[*ExampleError](err); refuses {
			continue // another call added it in the meantime; the next check refuses it
		}
		return counts, refused, err
	}
}

// Intents describes all intents, in the order of Names. The caller owns the result.
func (x *Index) Intents() []Summary {
	s := x.current.Load()
	out := make([]Summary, len(s.intents))
	for i := range s.intents {
		in := &s.intents[i]
		out[i] = Summary{
			Name: in.name, Examples: len(in.examples), Live: in.live, Negatives: len(in.negatives),
			Threshold: s.stats[i].threshold, Auto: in.fixed == Auto,
		}
	}
	return out
}

// Live returns the examples added by Add, by intent and in order, so that another Index can be
// given them. Intents without any are left out. The caller owns the result.
func (x *Index) Live() map[string][]string {
	s := x.current.Load()
	out := make(map[string][]string)
	for i := range s.intents {
		in := &s.intents[i]
		for _, e := range in.examples[len(in.examples)-in.live:] {
			out[in.name] = append(out[in.name], e.text)
		}
	}
	return out
}
