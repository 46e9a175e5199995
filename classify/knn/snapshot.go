package knn

import (
	"math"
	"slices"

	"github.com/viterin/vek/vek32"
)

// The constants of the package comment.
const (
	defaultNeighbours = 10
	gramWeight        = 0.3 // of the n-grams beside the embedding
	nearestWeight     = 1.0 // of the nearest example in a score
	meanWeight        = 2.0 // of the mean of the neighbours
	crowdWeight       = 0.5 // of the crowd level in the ranking
	regressWeight     = 0.6 // of the regression in the ranking
	labelWeight       = 1.0 // of the name in the ranking, divided by the number of examples
)

// example is a text with what is computed from it once. It is immutable.
type example struct {
	text   string
	vector []float32 // as embedded, of length one
	blind  bool      // the vector carries no information
	grams  []gram
}

func newExample(text string, vector []float32) *example {
	unit := make([]float32, len(vector))
	normalise(unit, vector, nil)
	var buf []rune
	return &example{text: text, vector: unit, grams: appendGrams(nil, text, &buf)}
}

// intent is a declared intent with its examples: those of the configuration, then live ones.
type intent struct {
	name      string
	fixed     Threshold
	examples  []*example
	live      int
	negatives []*example
	label     *example // the words of the name; nil when it has none
}

// stats is what an intent's scores are compared with.
type stats struct {
	crowd     float64 // mean of the best scores of texts that do not belong to the intent
	own       float64 // sum of its examples' scores, each left out in turn
	ownCount  int     // how many of them were scored
	levelled  int     // how many examples it had then
	threshold float64
}

// snapshot is an immutable state of an Index. Rows are the examples of all intents, intent by
// intent, then the negatives and the labels in the same order.
type snapshot struct {
	opts       Options
	intents    []intent
	background []*example
	// further background in other scripts, without vectors; with Options.Latin
	abroad []*example

	dims      int
	mean      []float32 // subtracted from every vector; [dims]
	blind     []bool    // by row, whether its vector carries no information
	rows      []float32 // L2-normalised; [row, dims], row-major
	lexical   inverted
	first     []int // by intent, its first row; one more at the end
	negatives []int // by intent, the row of its first negative; one more at the end
	labels    []int // by intent, the row of its label; that of the next one when it has none; one more at the end
	stats     []stats
	weights   []float32 // of the regression, [intent, dims+sketchDims], row-major; nil for none
	normal    *normal   // what they are made of; nil up to fullRebuild examples, which are summed anew
}

// scratch is working memory of one Lookup.
type scratch struct {
	text     []rune
	grams    []gram
	vector   []float32 // centred, of length one
	blind    bool      // the text has no vector
	features []float32 // of the regression

	sims    []float32 // by row
	lexical []float32 // by row, the cosine of the n-grams
	best    []float32 // the neighbours of one intent, best first
	ruled   []bool    // by intent, whether a negative example rules it out
	ranks   []float64 // by intent, the value by which intents are ranked
}

// fresh returns the texts that intent at does not have yet, without duplicates, or the reason why
// one is not accepted.
func (s *snapshot) fresh(at int, texts []string) ([]string, error) {
	d := s.door(at)
	var out []string
	for i, text := range texts {
		isNew, msg := d.admit(text)
		if msg != "" {
			return nil, &ExampleError{i, msg}
		}
		if isNew {
			out = append(out, text)
		}
	}
	return out, nil
}

// sift divides texts into those accepted by intent at and the others.
func (s *snapshot) sift(at int, texts []string) (good []string, refused []ExampleError) {
	d := s.door(at)
	for i, text := range texts {
		if _, msg := d.admit(text); msg != "" {
			refused = append(refused, ExampleError{i, msg})
			continue
		}
		good = append(good, text)
	}
	return good, refused
}

// door decides which texts become examples of one intent.
type door struct {
	s         *snapshot
	at        int
	owners    map[string]int // by key, the intent with the example
	negatives map[string]bool
	total     int // number of examples and negatives of all intents
}

func (s *snapshot) door(at int) *door {
	d := &door{s: s, at: at, owners: make(map[string]int), negatives: make(map[string]bool)}
	for i := range s.intents {
		in := &s.intents[i]
		d.total += len(in.examples) + len(in.negatives)
		for _, e := range in.examples {
			d.owners[key(e.text)] = i
		}
	}
	for _, e := range s.intents[at].negatives {
		d.negatives[key(e.text)] = true
	}
	return d
}

// admit accepts a text, unless msg is not empty. isNew is false for one that the intent already
// has.
func (d *door) admit(text string) (isNew bool, msg string) {
	if msg := textProblem(text); msg != "" {
		return false, msg
	}
	k := key(text)
	other, taken := d.owners[k]
	switch {
	case d.negatives[k]:
		return false, "a negative example of the same intent"
	case taken && other != d.at:
		return false, "an example of intent " + d.s.intents[other].name + " already"
	case taken:
		return false, ""
	case d.total >= MaxExamples:
		return false, "too many: all intents together may have 100000"
	}
	d.owners[k] = d.at
	d.total++
	return true, ""
}

// normalise writes v - mean (v without a mean) to dst, scaled to length one; all zero if it has no
// direction.
func normalise(dst, v, mean []float32) {
	copy(dst, v)
	if mean != nil {
		vek32.Sub_Inplace(dst, mean)
	}
	sum := 0.0
	for _, f := range dst {
		sum += float64(f) * float64(f)
	}
	if sum == 0 {
		return
	}
	vek32.MulNumber_Inplace(dst, float32(1/math.Sqrt(sum)))
}

// lay computes mean, rows and the inverted lists from the examples.
func (s *snapshot) lay() {
	var all []*example
	s.first, s.negatives = s.first[:0], s.negatives[:0]
	for i := range s.intents {
		s.first = append(s.first, len(all))
		all = append(all, s.intents[i].examples...)
	}
	positives := len(all)
	s.first = append(s.first, positives)
	for i := range s.intents {
		s.negatives = append(s.negatives, len(all))
		all = append(all, s.intents[i].negatives...)
	}
	s.negatives = append(s.negatives, len(all))
	s.labels = s.labels[:0]
	for i := range s.intents {
		s.labels = append(s.labels, len(all))
		if l := s.intents[i].label; l != nil {
			all = append(all, l)
		}
	}
	s.labels = append(s.labels, len(all))

	s.dims = len(s.background[0].vector)
	sum := make([]float64, s.dims)
	for _, list := range [][]*example{all[:positives], s.background} {
		for _, e := range list {
			for j, f := range e.vector {
				sum[j] += float64(f)
			}
		}
	}
	s.mean = make([]float32, s.dims)
	for j := range sum {
		s.mean[j] = float32(sum[j] / float64(positives+len(s.background)))
	}
	s.rows = make([]float32, len(all)*s.dims)
	s.blind = make([]bool, len(all))
	for i, e := range all {
		normalise(s.row(i), e.vector, s.mean)
		s.blind[i] = e.blind
	}
	s.lexical = newInverted(all, s.labels[0], s.background, s.abroad)
}

// similarities sets b.sims to the similarity of a text and every row, in [0,1]. A text without a
// vector is blind.
func (s *snapshot) similarities(vector []float32, grams []gram, b *scratch) {
	n := s.labels[len(s.labels)-1]
	b.sims = slices.Grow(b.sims[:0], n)[:n]
	s.centre(vector, b)
	b.lexical = slices.Grow(b.lexical[:0], n)[:n]
	clear(b.lexical)
	s.lexical.addTo(b.lexical, grams)
	for i := range b.sims {
		b.sims[i] = s.similarity(i, b, b.lexical[i])
	}
}

// centre sets b.vector, or b.blind if there is no vector.
func (s *snapshot) centre(vector []float32, b *scratch) {
	b.vector = slices.Grow(b.vector[:0], s.dims)[:s.dims]
	clear(b.vector)
	if b.blind = vector == nil; !b.blind {
		normalise(b.vector, vector, s.mean)
	}
}

// similarity returns the similarity of a row and the text for which b was centred, given the cosine
// of their n-grams. If one of them is blind, only the n-grams count.
func (s *snapshot) similarity(row int, b *scratch, lexical float32) float32 {
	if b.blind || s.blind[row] {
		return min(max(lexical, 0), 1)
	}
	return similarity(vek32.Dot(b.vector, s.row(row)), lexical)
}

func (s *snapshot) row(i int) []float32 { return s.rows[i*s.dims : (i+1)*s.dims] }

// similarity combines the cosines of the embeddings and of the n-grams into one value in [0,1].
func similarity(cosine, lexical float32) float32 {
	return min(max((cosine+gramWeight*lexical)/(1+gramWeight), 0), 1)
}

// seen returns the vector of an example if it carries information, else nil.
func (e *example) seen() []float32 {
	if e.blind {
		return nil
	}
	return e.vector
}

// score sets scores, one per intent, and b.ruled.
func (s *snapshot) score(vector []float32, grams []gram, b *scratch, scores []float32) {
	s.similarities(vector, grams, b)
	b.ruled = slices.Grow(b.ruled[:0], len(s.intents))[:len(s.intents)]
	for i := range s.intents {
		scores[i] = s.vote(b.sims[s.first[i]:s.first[i+1]], -1, b)
		b.ruled[i] = false
		for _, f := range b.sims[s.negatives[i]:s.negatives[i+1]] {
			b.ruled[i] = b.ruled[i] || f > b.best[0]
		}
	}
}

// vote returns the score of an intent whose examples have the similarities sims, without the
// example skip (-1 for none). It leaves the neighbours in b.best. At least one example must remain.
func (s *snapshot) vote(sims []float32, skip int, b *scratch) float32 {
	k := s.opts.Neighbours
	b.best = b.best[:0]
	for i, f := range sims {
		if i == skip || len(b.best) == k && f <= b.best[k-1] {
			continue
		}
		if len(b.best) < k {
			b.best = append(b.best, f)
		}
		j := len(b.best) - 1
		for ; j > 0 && b.best[j-1] < f; j-- {
			b.best[j] = b.best[j-1]
		}
		b.best[j] = f
	}
	mean := float32(0)
	for _, f := range b.best {
		mean += f
	}
	mean /= float32(len(b.best))
	return (nearestWeight*b.best[0] + meanWeight*mean) / (nearestWeight + meanWeight)
}

// decide selects the intent for the text for which score was called. Ties go to the intent declared
// first.
func (s *snapshot) decide(scores []float32, b *scratch) Result {
	b.ranks = slices.Grow(b.ranks[:0], len(scores))[:len(scores)]
	if s.weights != nil {
		s.features(b.grams, b)
	}
	d := s.dims + sketchDims
	best, second := -1, -1
	for i, f := range scores {
		if b.ruled[i] || f == 0 {
			continue
		}
		b.ranks[i] = float64(f) - crowdWeight*s.stats[i].crowd
		if s.labels[i] < s.labels[i+1] {
			b.ranks[i] += labelWeight / float64(len(s.intents[i].examples)) * float64(b.sims[s.labels[i]])
		}
		if s.weights != nil {
			b.ranks[i] += regressWeight * float64(vek32.Dot(b.features, s.weights[i*d:(i+1)*d]))
		}
		switch {
		case best < 0 || b.ranks[i] > b.ranks[best]:
			best, second = i, best
		case second < 0 || b.ranks[i] > b.ranks[second]:
			second = i
		}
	}
	out := Result{Scores: scores}
	if best < 0 {
		return out
	}
	out.Best, out.Score = s.intents[best].name, float64(scores[best])
	ahead := second < 0 || b.ranks[best]-b.ranks[second] >= s.opts.Margin
	if ahead && out.Score >= s.stats[best].threshold {
		out.Intent = out.Best
	}
	return out
}
