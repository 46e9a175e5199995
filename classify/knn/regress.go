package knn

import (
	"math"
	"slices"

	"github.com/viterin/vek"
	"github.com/viterin/vek/vek32"
)

const (
	ridge = 1.0 // added to the diagonal
	// regressDims is the maximum length of vectors for the regression: its cost grows with the
	// cube, half a second at this length.
	regressDims = 1024
	// sketchDims is the number of features of a bag of n-grams in the regression.
	sketchDims = 256
)

// features writes the features of the regression to b.features: the centred vector, which
// similarities has left in b.vector, then the n-grams as a signed count sketch (Weinberger et al.,
// "Feature Hashing for Large Scale Multitask Learning", ICML 2009, section 2), weighted as in
// similarities, so that the dot product of two texts approximates their similarity.
func (s *snapshot) features(grams []gram, b *scratch) []float32 {
	b.features = append(b.features[:0], b.vector...)
	b.features = append(b.features, make([]float32, sketchDims)...)
	sketch := b.features[s.dims:]
	scale := s.lexical.scale(grams) * float32(math.Sqrt(gramWeight))
	for _, g := range grams {
		w := scale * s.lexical.weight(g)
		h := g.hash * 0x9E3779B1 // 2^32 over the golden ratio: the upper bits are mixed
		if h>>23&1 == 1 {
			w = -w
		}
		sketch[h>>24] += w
	}
	return b.features
}

// regress returns one weight vector per intent, [intent, dims+sketchDims] row-major: the ridge
// regression, in closed form, of "is an example of this intent" on the features of all examples, of
// the names of intents, which count as one more example each, and of the background (Hastie,
// Tibshirani, Friedman, "The Elements of Statistical Learning", section 3.4.1, without intercept,
// since the vectors are centred). It favours directions in which intents differ over those in which
// texts of one intent differ. nil if vectors are longer than regressDims.
func (s *snapshot) regress() []float32 {
	if s.dims > regressDims {
		return nil
	}
	type text struct {
		*example
		intent int // all for a background text
	}
	var list []text
	for i := range s.intents {
		for _, e := range s.intents[i].examples {
			list = append(list, text{e, i})
		}
		if l := s.intents[i].label; l != nil {
			list = append(list, text{l, i})
		}
	}
	for _, e := range s.background {
		list = append(list, text{e, all})
	}
	d := s.dims + sketchDims
	n := len(list)
	// [feature, text], so that products of columns are products of slices
	columns := make([]float32, d*n)
	sums := make([]float64, len(s.intents)*d)
	var b scratch
	b.vector = make([]float32, s.dims)
	for i, e := range list {
		s.centre(e.seen(), &b)
		for j, f := range s.features(e.grams, &b) {
			columns[j*n+i] = f
			if e.intent != all {
				sums[e.intent*d+j] += float64(f)
			}
		}
	}
	sum := &normal{gram: covariance(columns, d, n), sums: sums, examples: s.first[len(s.first)-1]}
	if sum.examples > fullRebuild {
		s.normal = sum
		sum = sum.clone()
	}
	return sum.solved(d)
}

// normal holds the normal equations of the regression.
type normal struct {
	gram     []float64 // X'X + ridge I, the lower half of [d, d], row-major
	sums     []float64 // by intent, the sum of the features of its texts; [intent, d], row-major
	examples int       // number of examples of the index when all of them were summed
}

func (m *normal) clone() *normal {
	return &normal{gram: slices.Clone(m.gram), sums: slices.Clone(m.sums), examples: m.examples}
}

// add adds a text of an intent.
func (m *normal) add(features []float32, intent int) {
	d := len(features)
	for i, f := range features {
		m.sums[intent*d+i] += float64(f)
		row := m.gram[i*d : i*d+i+1]
		for j := range row {
			row[j] += float64(f) * float64(features[j])
		}
	}
}

// solved returns the weights and destroys m; nil if there are none.
func (m *normal) solved(d int) []float32 {
	if !cholesky(m.gram, d) {
		return nil
	}
	out := make([]float32, len(m.sums))
	for at := 0; at < len(out); at += d {
		w := m.sums[at : at+d]
		solve(m.gram, d, w)
		for j, f := range w {
			out[at+j] = float32(f)
		}
	}
	return out
}

// regressOn is regress for a snapshot with a few more examples: their features are added to the
// previous sums. Small changes of the mean and of the n-gram weights are ignored.
func (s *snapshot) regressOn(from *rebuild) []float32 {
	s.normal = from.prev.normal.clone()
	var b scratch
	b.vector = make([]float32, s.dims)
	examples := s.intents[from.changed].examples
	for _, e := range examples[len(examples)-from.added:] {
		s.centre(e.seen(), &b)
		s.normal.add(s.features(e.grams, &b), from.changed)
	}
	return s.normal.clone().solved(s.dims + sketchDims)
}

// covariance returns the lower half of X'X + ridge I, [d, d] row-major, of columns, X' [d, n].
func covariance(columns []float32, d, n int) []float64 {
	out := make([]float64, d*d)
	for i := range d {
		for j := range i + 1 {
			out[i*d+j] = float64(vek32.Dot(columns[i*n:(i+1)*n], columns[j*n:(j+1)*n]))
		}
		out[i*d+i] += ridge
	}
	return out
}

// cholesky replaces the lower half of a, [n, n] symmetric, by L with LL' = a, and reports whether a
// is positive definite (Golub, Van Loan, "Matrix Computations", section 4.2).
func cholesky(a []float64, n int) bool {
	for i := range n {
		row := a[i*n : i*n+i+1]
		for j := range i {
			other := a[j*n : j*n+j+1]
			row[j] = (row[j] - dot(row[:j], other[:j])) / other[j]
		}
		rest := row[i] - dot(row[:i], row[:i])
		if !(rest > 0) {
			return false
		}
		row[i] = math.Sqrt(rest)
	}
	return true
}

// solve replaces x by the solution y of LL'y = x.
func solve(l []float64, n int, x []float64) {
	for i := range n {
		x[i] = (x[i] - dot(l[i*n:i*n+i], x[:i])) / l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		x[i] /= l[i*n+i]
		for j, f := range l[i*n : i*n+i] {
			x[j] -= f * x[i]
		}
	}
}

// dot returns 0 for empty vectors, for which the library panics.
func dot(a, b []float64) float64 {
	if len(a) == 0 {
		return 0
	}
	return vek.Dot(a, b)
}
