package head

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/viterin/vek/vek32"
	"golang.org/x/sync/errgroup"
)

// Row is a labelled text with its embedding, Vector.
type Row struct {
	Text   string
	Labels []string // exactly one, except with Tags
	Vector []float32
}

// Options tunes Train.
type Options struct {
	Name      string
	Embedding string // fingerprint of the model that computed the vectors
	Mode      Mode
	Labels    []string // all labels; for Binary the positive one is the second
	// FalsePositives is the permitted share of texts without a label that reach the label's
	// threshold, in (0,1). Default 0.01. Classes have no thresholds.
	FalsePositives float64
	// Balanced weights labels so that rare ones count as much as frequent ones.
	Balanced bool
	// Folds is the number of folds of the cross-validation, at least 2. 0 (default): 5, and 3 from
	// 5,000 rows on, because two thirds of these train nearly as well as four fifths.
	Folds int
	// Strengths are the candidates for the inverse regularisation, like C of scikit-learn's
	// logistic regression. Default 1, 10 and 100.
	Strengths []float64
	Seed      uint64
	Workers   int // goroutines, at least 1
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		FalsePositives: 0.01, Balanced: true, Strengths: []float64{1, 10, 100}, Workers: 2,
		Mode: Classes,
	}
}

const (
	// maxSteps is the maximum number of training steps. The objective is convex; with 77 classes
	// about 60 are enough.
	maxSteps = 100
	// minRows is the minimum number of rows for folds.
	minRows = 10
	// manyRows is the number of rows from which one fold is enough to choose the strength.
	manyRows = 2000
	// The numbers of folds for fewer rows than amplyRows, and for at least as many.
	folds, fewerFolds, amplyRows = 5, 3, 5000
)

// Train makes a head from rows, and evaluates it by cross-validation: every row is scored by a head
// that did not see it. The strength, the calibration and the thresholds are derived from these
// scores, the head itself from all rows. Errors are about the options and rows, and ctx's.
func Train(ctx context.Context, rows []Row, o Options) (*Head, *Trial, error) {
	t, err := newTrainer(rows, o)
	if err != nil {
		return nil, nil, err
	}
	held, best, err := t.validate(ctx)
	if err != nil {
		return nil, nil, err
	}
	vocab, p := t.problem(all(len(rows)))
	w := t.start(&vocab, p.size())
	p.decay = 1 / (o.Strengths[best] * float64(len(rows)))
	if err := p.solve(ctx, w, maxSteps); err != nil {
		return nil, nil, err
	}
	h := &Head{vocab: vocab, weights: w, outputs: t.outputs, info: Info{
		Format: format, Name: o.Name, Mode: o.Mode, Labels: o.Labels, Embedding: o.Embedding,
		Dims: t.dims, Grams: len(vocab.hashes),
	}}
	t.calibrate(&h.info, held[best])
	h.info.Report = t.report(&h.info, held[best])
	h.info.Report.Strength = o.Strengths[best]
	return h, t.trial(&h.info, held[best]), nil
}

// validate trains without each fold in turn. It returns the index of the best strength, and, by
// strength, the logits of rows by heads that did not see them; for the best strength those of all
// rows. If the first fold is enough to choose the strength, the others are trained in parallel.
func (t *trainer) validate(ctx context.Context) (held [][]float32, best int, err error) {
	held = make([][]float32, len(t.Strengths))
	for i := range held {
		held[i] = make([]float32, len(t.rows)*t.outputs)
	}
	if len(t.rows) < manyRows {
		for f := range t.Folds {
			if _, err := t.fold(ctx, f, held, -1, t.Workers); err != nil {
				return nil, 0, err
			}
		}
		return held, t.strongest(held, all(len(t.rows))), nil
	}
	if _, err := t.fold(ctx, 0, held, -1, t.Workers); err != nil {
		return nil, 0, err
	}
	best = t.strongest(held, t.in(0))
	t.solved = make([]solved, t.Folds-1)
	sideBySide := min(t.Workers, t.Folds-1)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(sideBySide)
	for i := range t.solved {
		work.Go(func() (err error) {
			t.solved[i], err = t.fold(ctx, i+1, held, best, t.Workers/sideBySide)
			return err
		})
	}
	return held, best, work.Wait()
}

// Trial is the result of the cross-validation, row by row.
type Trial struct {
	Folds []int    // the fold that a row is in
	Told  []string // the most probable label of a row, from a head that did not see it
}

func (t *trainer) trial(in *Info, held []float32) *Trial {
	out := &Trial{Folds: t.folds, Told: make([]string, len(t.rows))}
	for i := range t.rows {
		probs := in.probabilities(held[i*t.outputs : (i+1)*t.outputs])
		out.Told[i] = in.Labels[slices.Index(probs, slices.Max(probs))]
	}
	return out
}

// all returns the indices of n rows.
func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// in returns the rows of a fold.
func (t *trainer) in(fold int) []int {
	var out []int
	for i, f := range t.folds {
		if f == fold {
			out = append(out, i)
		}
	}
	return out
}

// trainer is the state of one Train.
type trainer struct {
	Options

	rows    []Row
	dims    int
	outputs int
	grams   [][]gram
	target  []float32 // [rows, outputs]
	folds   []int     // by row
	solved  []solved  // the folds that were only trained at the best strength
}

// solved holds the weights of a fold.
type solved struct {
	vocab   vocabulary
	weights []float32
}

func newTrainer(rows []Row, o Options) (*trainer, error) {
	t := &trainer{Options: o, rows: rows}
	if t.Folds == 0 {
		t.Folds = folds
		if len(rows) >= amplyRows {
			t.Folds = fewerFolds
		}
	}
	switch {
	case len(rows) < minRows:
		return nil, fmt.Errorf("%d rows are too few, want at least %d", len(rows), minRows)
	case t.Folds < 2 || o.Workers < 1 || len(o.Strengths) == 0:
		return nil, errors.New("at least two folds, a worker and a strength are required")
	case !(o.FalsePositives > 0 && o.FalsePositives < 1):
		return nil, fmt.Errorf("a share of %v false positives is not above 0 and below 1",
			o.FalsePositives)
	}
	for _, s := range o.Strengths {
		if !(s > 0 && s < 1e9) {
			return nil, fmt.Errorf("a strength of %v is not a positive number", s)
		}
	}
	t.dims = len(rows[0].Vector)
	shape := Info{
		Format: format, Mode: o.Mode, Labels: o.Labels, Dims: t.dims,
		Thresholds: make([]float64, len(o.Labels)),
	}
	t.outputs = shape.outputs()
	shape.Scale, shape.Shift = ones(t.outputs), make([]float64, t.outputs)
	if err := shape.check(); err != nil {
		return nil, err
	}
	if err := t.read(); err != nil {
		return nil, err
	}
	t.deal()
	return t, nil
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// read computes targets and n-grams of the rows.
func (t *trainer) read() error {
	t.target = make([]float32, len(t.rows)*t.outputs)
	counts := make([]int, len(t.Labels))
	var s scratch
	for i := range t.rows {
		r := &t.rows[i]
		if len(r.Vector) != t.dims {
			return fmt.Errorf("row %d: %w: %d, want %d", i, ErrDims, len(r.Vector), t.dims)
		}
		if t.Mode != Tags && len(r.Labels) != 1 {
			return fmt.Errorf("row %d has %d labels, want one", i, len(r.Labels))
		}
		for _, l := range r.Labels {
			at := slices.Index(t.Labels, l)
			if at < 0 {
				return fmt.Errorf("row %d has the unknown label %q", i, l)
			}
			counts[at]++
			switch {
			case t.Mode != Binary:
				t.target[i*t.outputs+at] = 1
			case at == 1:
				t.target[i] = 1
			}
		}
		s.scan(r.Text)
		t.grams = append(t.grams, slices.Clone(s.grams))
	}
	for i, n := range counts {
		if n < 2 || t.Mode != Classes && len(t.rows)-n < 2 {
			return fmt.Errorf("label %q: %d of %d rows have it, want at least 2 that do and, unless "+
				"labels exclude each other, 2 that do not", t.Labels[i], n, len(t.rows))
		}
	}
	return nil
}

// deal assigns the rows of every set of labels to folds in turn, in random order.
func (t *trainer) deal() {
	random := rand.New(rand.NewPCG(t.Seed, 1)) //nolint:gosec // folds, no secrets
	groups := make(map[string][]int)
	var names []string
	for i := range t.rows {
		name := fmt.Sprint(t.rows[i].Labels)
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], i)
	}
	t.folds = make([]int, len(t.rows))
	next := 0
	for _, name := range names {
		rows := groups[name]
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		for _, r := range rows {
			t.folds[r] = next % t.Folds
			next++
		}
	}
}

// problem sets up the training on some rows, and its vocabulary.
func (t *trainer) problem(rows []int) (vocabulary, *problem) {
	grams := make([][]gram, len(rows))
	for i, r := range rows {
		grams[i] = t.grams[r]
	}
	vocab := learn(grams)
	p := t.features(&vocab, rows)
	t.weigh(p)
	return vocab, p
}

// features prepares the features of rows.
func (t *trainer) features(vocab *vocabulary, rows []int) *problem {
	p := &problem{
		dims: t.dims, sparse: len(vocab.hashes), outputs: t.outputs, softmax: t.Mode == Classes,
		workers: t.Workers, dense: make([]float32, 0, len(rows)*t.dims),
		target: make([]float32, 0, len(rows)*t.outputs),
	}
	for _, r := range rows {
		p.dense = append(p.dense, t.rows[r].Vector...)
		p.target = append(p.target, t.target[r*t.outputs:(r+1)*t.outputs]...)
	}
	ends := make([]int, len(vocab.hashes)+1)
	for part := range slices.Chunk(rows, chunk) {
		p.blocks = append(p.blocks, t.block(vocab, part, ends))
	}
	return p
}

// block sorts the features of a chunk's rows by feature. ends is scratch space, one number per
// feature and one more.
func (t *trainer) block(vocab *vocabulary, rows, ends []int) []entry {
	clear(ends)
	var byRow []entry
	var cells []cell
	for i, r := range rows {
		cells = vocab.weigh(cells[:0], t.grams[r])
		for _, c := range cells {
			byRow = append(byRow, entry{c, int32(i)})
			ends[c.at+1]++
		}
	}
	for i := range ends[1:] { // start of each feature's entries; after the next loop, their end
		ends[i+1] += ends[i]
	}
	out := make([]entry, len(byRow))
	for _, e := range byRow {
		out[ends[e.at]] = e
		ends[e.at]++
	}
	return out
}

// weigh sets the weights of rows: all equal or, balanced, n / (classes x rows of the class), as in
// scikit-learn.
func (t *trainer) weigh(p *problem) {
	n, k := p.rows(), p.outputs
	held := make([]float64, k)
	for r := range n {
		for j, y := range p.target[r*k : (r+1)*k] {
			held[j] += float64(y)
		}
	}
	width := k
	if p.softmax {
		width = 1
	}
	p.weight = make([]float32, n*width)
	for i := range p.weight {
		p.weight[i] = 1
		if !t.Balanced {
			continue
		}
		if p.softmax {
			class := slices.Index(p.target[i*k:(i+1)*k], 1)
			p.weight[i] = float32(float64(n) / (float64(k) * held[class]))
			continue
		}
		yes := held[i%k]
		if yes == 0 || yes == float64(n) {
			continue // a fold may lack a rare label
		}
		if p.target[i] == 1 {
			p.weight[i] = float32(float64(n) / (2 * yes))
		} else {
			p.weight[i] = float32(float64(n) / (2 * (float64(n) - yes)))
		}
	}
}

// fold trains on all folds except one, from the smallest strength to the greatest, each starting
// from the previous result, and stores the scores of the rows of that fold in held. If only is not
// negative, it trains only at the strength of that index. It returns the last weights.
func (t *trainer) fold(
	ctx context.Context, f int, held [][]float32, only, workers int,
) (out solved, err error) {
	unseen := t.in(f)
	var seen []int
	for i, g := range t.folds {
		if g != f {
			seen = append(seen, i)
		}
	}
	vocab, p := t.problem(seen)
	p.workers = workers
	test := t.features(&vocab, unseen)
	w, s := make([]float32, p.size()), test.part()
	for i, c := range t.Strengths {
		if only >= 0 && i != only {
			continue
		}
		p.decay = 1 / (c * float64(len(seen)))
		if err := p.solve(ctx, w, maxSteps); err != nil {
			return out, err
		}
		for from := 0; from < len(unseen); from += chunk {
			to := min(from+chunk, len(unseen))
			scores := test.score(w, from, to, s)
			for j, r := range unseen[from:to] {
				copy(held[i][r*t.outputs:], scores[j*t.outputs:(j+1)*t.outputs])
			}
		}
	}
	return solved{vocab, w}, nil
}

// start returns the initial weights for the training on all rows: the mean of the folds' weights,
// which is near the result, or 0 without any.
func (t *trainer) start(vocab *vocabulary, size int) []float32 {
	w, k := make([]float32, size), t.outputs
	share := 1 / float32(len(t.solved))
	for _, s := range t.solved {
		add := func(to, from, n int) {
			axpy(w[to*k:(to+n)*k], share, s.weights[from*k:(from+n)*k])
		}
		add(0, 0, t.dims)
		at := 0
		for i, h := range s.vocab.hashes {
			j, ok := slices.BinarySearch(vocab.hashes[at:], h)
			if at += j; ok {
				add(t.dims+at, t.dims+i, 1)
			}
		}
		add(t.dims+len(vocab.hashes), t.dims+len(s.vocab.hashes), 1)
	}
	return w
}

// strongest returns the index of the strength with the lowest mean log loss on held-out rows, after
// calibration.
func (t *trainer) strongest(held [][]float32, rows []int) int {
	best, least := 0, math.Inf(1)
	for i := range held {
		in := Info{Mode: t.Mode, Labels: t.Labels}
		if loss := t.fit(&in, held[i], rows); loss < least {
			best, least = i, loss
		}
	}
	return best
}

// calibrate sets scale, shift and thresholds from the logits of held-out rows.
func (t *trainer) calibrate(in *Info, held []float32) {
	t.fit(in, held, all(len(t.rows)))
	in.Thresholds = make([]float64, len(in.Labels))
	if t.Mode == Classes {
		return
	}
	for j := range t.outputs {
		var clean []float64 // probabilities of rows without the label
		for r := range t.rows {
			if t.target[r*t.outputs+j] == 0 {
				x := float64(held[r*t.outputs+j])
				clean = append(clean, sigmoid(in.Scale[j]*x+in.Shift[j]))
			}
		}
		at := j
		if t.Mode == Binary {
			at = 1
		}
		in.Thresholds[at] = threshold(clean, t.FalsePositives)
	}
}

// If there are fewer clean rows than tells divided by the permitted share, zero false positives
// among them are little evidence about the share (the rule of three: Hanley and Lippman-Hand, JAMA
// 1983). The threshold is then at least likely, from which a text more likely has the label than
// not.
const tells, likely = 3, 0.5

// threshold returns the lowest probability that at most a share of clean reaches, and at least
// likely if there are few.
func threshold(clean []float64, share float64) float64 {
	least := reached(clean, share)
	if share*float64(len(clean)) < tells {
		return max(least, likely)
	}
	return least
}

// reached returns the lowest probability that at most a share of clean reaches.
func reached(clean []float64, share float64) float64 {
	slices.Sort(clean)
	allowed := int(share * float64(len(clean)))
	over := clean[len(clean)-1-allowed] // must not be reached
	least := min(float64(math.Nextafter32(float32(over), 2)), 1)
	const places = 1e6 // thresholds are read by people
	if rounded := math.Ceil(least*places) / places; rounded < 1 {
		return rounded
	}
	return least
}

// fit sets scale and shift to minimise the log loss, and returns it: a scale for all classes, or
// scale and shift of each yes-or-no output (Platt scaling).
func (t *trainer) fit(in *Info, held []float32, rows []int) float64 {
	k, n := t.outputs, float64(len(rows))
	in.Scale, in.Shift = ones(k), make([]float64, k)
	if t.Mode == Classes {
		loss := func(scale float64) float64 {
			sum := 0.0
			for _, r := range rows {
				sum += classLoss(held[r*k:(r+1)*k], t.target[r*k:(r+1)*k], scale)
			}
			return sum / n
		}
		scale := minimum(loss)
		for j := range in.Scale {
			in.Scale[j] = scale
		}
		return loss(scale)
	}
	sum := 0.0
	for j := range k {
		x, y := make([]float64, len(rows)), make([]float64, len(rows))
		for i, r := range rows {
			x[i], y[i] = float64(held[r*k+j]), float64(t.target[r*k+j])
		}
		var loss float64
		in.Scale[j], in.Shift[j], loss = platt(x, y)
		sum += loss / float64(k)
	}
	return sum
}

func classLoss(logits, target []float32, scale float64) float64 {
	top := float64(vek32.Max(logits))
	sum, truth := 0.0, 0.0
	for j, z := range logits {
		d := scale * (float64(z) - top)
		sum += math.Exp(d)
		truth += float64(target[j]) * d
	}
	return math.Log(sum) - truth
}

// minimum finds the least value of f over e^-4..e^4 by golden section; f is convex.
func minimum(f func(float64) float64) float64 {
	lo, hi := -4.0, 4.0
	ratio := (math.Sqrt(5) - 1) / 2
	for range 24 {
		a, b := hi-ratio*(hi-lo), lo+ratio*(hi-lo)
		if f(math.Exp(a)) < f(math.Exp(b)) {
			hi = b
		} else {
			lo = a
		}
	}
	return math.Exp((lo + hi) / 2)
}

// platt fits sigmoid(a*x+b) to y by Newton's method with the smoothed targets of Platt,
// "Probabilistic Outputs for Support Vector Machines", section 2.1.1, and returns the mean log
// loss. a is positive.
func platt(x, y []float64) (a, b, loss float64) {
	yes := 0.0
	for _, t := range y {
		yes += t
	}
	no := float64(len(y)) - yes
	high, low := (yes+1)/(yes+2), 1/(no+2)
	a, b = 1, 0
	for range 50 {
		var ga, gb, haa, hab, hbb float64
		for i, t := range y {
			target := low
			if t == 1 {
				target = high
			}
			p := sigmoid(a*x[i] + b)
			d, h := p-target, p*(1-p)+1e-12
			ga += d * x[i]
			gb += d
			haa += h * x[i] * x[i]
			hab += h * x[i]
			hbb += h
		}
		haa += 1e-9
		det := haa*hbb - hab*hab
		if !(math.Abs(det) > 1e-12) {
			break
		}
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		step := min(1, 2/max(math.Abs(da), math.Abs(db), 1e-9))
		a, b = max(a-step*da, 1e-3), b-step*db
		if math.Abs(da)+math.Abs(db) < 1e-6 {
			break
		}
	}
	for i, t := range y {
		z := a*x[i] + b
		loss += max(z, 0) - z*t + math.Log1p(math.Exp(-math.Abs(z)))
	}
	return a, b, loss / float64(len(y))
}
