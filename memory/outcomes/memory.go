package outcomes

import (
	"math"
	"math/bits"
	"sync"
)

// The constants of a prediction. They were chosen on the outcomes of MMLU-Pro, RouterBench and
// ZeroEval with outcomes that came one by one, see docs/adr/0037-outcomes-of-ones-own.md, and hold
// for no model in particular.
const (
	nearest   = 0.2  // cosine similarity from which on a request is near
	sharpness = 2.0  // exponent of the weight of what is near
	candidate = 384  // rows that are compared exactly, at least as far as there are as many
	doubtBase = 8.0  // outcomes of one half that a share of good answers is begun with
	evident   = 1.6  // standard errors that scores differ from the prior by before that counts
	doubtNear = 8.0  // weight of near requests that stands against them
	doubtOwn  = 20.0 // the same for those of one model
	doubtLong = 4.0  // the same for the length of an answer
)

// row is one outcome as it is compared.
type row struct {
	model  int
	score  float32
	prior  float32 // of the model when it was asked, in [0,1]
	weight float32 // how far the score is to be trusted, in (0,1]
	tokens float32 // 0 when not known
	norm   float32 // of the quantised vector
}

// sums are those of one model.
type sums struct {
	weight float64
	off    float64 // weighted, by how much scores are above the prior
	score  float64 // weighted
	tokens float64
	longs  float64 // how many rows have tokens
}

// table holds the outcomes of one tenant. Its owner guards it.
type table struct {
	dims   int
	words  int // of 64 signs, in a row
	limit  int
	next   int // that is overwritten, once there are limit rows
	rows   []row
	signs  []uint64 // [len(rows)][words]
	codes  []int8   // [len(rows)][dims]
	models []string
	index  map[string]int
	by     []sums     // parallel to models
	common float64    // by how much answers are better than priors, whichever model gives them
	kept   []*Outcome // parallel to rows: what they were made of
	byID   map[string]int
}

func newTable(dims, limit int) *table {
	return &table{
		dims: dims, words: (dims + 63) / 64, limit: limit,
		index: map[string]int{}, byID: map[string]int{},
	}
}

// quantise returns v in 8 bits a component, appended to codes, with its signs and its norm.
func quantise(v []float32, codes []int8, signs []uint64) ([]int8, []uint64, float32) {
	top := float32(0)
	for _, x := range v {
		top = max(top, x, -x)
	}
	scale := float32(0)
	if top > 0 {
		scale = 127 / top
	}
	var sum int64
	var word uint64
	for i, x := range v {
		c := int8(math.RoundToEven(float64(x * scale)))
		codes = append(codes, c)
		sum += int64(c) * int64(c)
		if c > 0 {
			word |= 1 << (i & 63)
		}
		if i&63 == 63 || i == len(v)-1 {
			signs = append(signs, word)
			word = 0
		}
	}
	return codes, signs, float32(math.Sqrt(float64(sum)))
}

// norm is the length of a quantised vector.
func norm(codes []int8) float32 {
	var sum int64
	for _, c := range codes {
		sum += int64(c) * int64(c)
	}
	return float32(math.Sqrt(float64(sum)))
}

func signsOf(codes []int8, signs []uint64) []uint64 {
	var word uint64
	for i, c := range codes {
		if c > 0 {
			word |= 1 << (i & 63)
		}
		if i&63 == 63 || i == len(codes)-1 {
			signs = append(signs, word)
			word = 0
		}
	}
	return signs
}

func (t *table) model(name string) int {
	i, ok := t.index[name]
	if !ok {
		i = len(t.models)
		t.models, t.by = append(t.models, name), append(t.by, sums{})
		t.index[name] = i
	}
	return i
}

// count adds a row to the sums, or takes it out again.
func (t *table) count(r *row, sign float64) {
	s, w := &t.by[r.model], sign*float64(r.weight)
	s.weight += w
	s.off += w * float64(r.score-r.prior)
	s.score += w * float64(r.score)
	if r.tokens > 0 {
		s.tokens += sign * float64(r.tokens)
		s.longs += sign
	}
	// What one model alone shows is half expected of the others: it may be the traffic.
	sum, models := 0.0, 0.0
	for i := range t.by {
		if s := &t.by[i]; s.weight > 0 {
			sum += s.beyond(0)
			models += s.weight / (doubtBase + s.weight)
		}
	}
	t.common = sum / (1 + models)
}

// beyond is by how much the scores of a model are above the prior and what is expected of all,
// as far as that is more than chance: the positive-part estimate of James and Stein with evident
// standard errors.
func (s *sums) beyond(common float64) float64 {
	if s.weight <= 0 {
		return 0
	}
	off := s.off/s.weight - common
	p := (doubtBase/2 + s.score) / (doubtBase + s.weight)
	chance := evident * evident * p * (1 - p) / s.weight
	if off*off <= chance {
		return 0
	}
	return off * (1 - chance/(off*off))
}

// put keeps an outcome: in place of the one of the same request, or of the oldest.
func (t *table) put(o *Outcome) {
	r := row{
		model: t.model(o.Model), score: float32(o.Score), prior: float32(o.Prior),
		weight: float32(o.Weight), tokens: float32(o.Tokens), norm: norm(o.codes),
	}
	at, again := t.byID[o.ID]
	switch {
	case again && o.ID != "":
	case len(t.rows) < t.limit:
		at = len(t.rows)
		t.rows, t.kept = append(t.rows, row{}), append(t.kept, nil)
		t.codes = append(t.codes, o.codes...)
		t.signs = signsOf(o.codes, t.signs)
	default:
		at = t.next
		t.next = (t.next + 1) % t.limit
	}
	if old := t.kept[at]; old != nil {
		t.count(&t.rows[at], -1)
		delete(t.byID, old.ID)
	}
	t.rows[at], t.kept[at] = r, o
	copy(t.codes[at*t.dims:(at+1)*t.dims], o.codes)
	signsOf(o.codes, t.signs[at*t.words:at*t.words:(at+1)*t.words])
	if o.ID != "" {
		t.byID[o.ID] = at
	}
	t.count(&r, 1)
}

// scratch is the memory of one prediction.
type scratch struct {
	codes []int8
	signs []uint64
	away  []uint16
	hist  []int32
	near  []near
	own   []local
}

// near is a row that counts.
type near struct {
	at     int
	weight float64
}

// local is what near requests say of one model.
type local struct{ weight, rest, tokens, longs float64 }

//nolint:gochecknoglobals // a pool
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// find fills b.near with the rows that are near a vector.
func (t *table) find(v []float32, b *scratch) {
	var length float32
	b.codes, b.signs, length = quantise(v, b.codes[:0], b.signs[:0])
	b.near = b.near[:0]
	if length == 0 {
		return
	}
	bound := t.farthest(b)
	for i, away := range b.away {
		if int(away) > bound {
			continue
		}
		codes := t.codes[i*t.dims : (i+1)*t.dims]
		var dot int32
		for j, c := range b.codes {
			dot += int32(c) * int32(codes[j])
		}
		cos := float64(dot) / float64(length*t.rows[i].norm)
		if x := (cos - nearest) / (1 - nearest); x > 0 {
			b.near = append(b.near, near{i, math.Pow(min(x, 1), sharpness) * float64(t.rows[i].weight)})
		}
	}
}

// farthest counts the signs that each row differs in, and returns the number of them up to which
// rows are compared exactly.
func (t *table) farthest(b *scratch) int {
	if cap(b.away) < len(t.rows) {
		b.away = make([]uint16, t.limit)
	}
	b.away = b.away[:len(t.rows)]
	if len(b.hist) < t.dims+1 {
		b.hist = make([]int32, t.dims+1)
	}
	clear(b.hist)
	for i := range b.away {
		n := 0
		for j, w := range t.signs[i*t.words : (i+1)*t.words] {
			n += bits.OnesCount64(w ^ b.signs[j])
		}
		b.away[i] = uint16(n)
		b.hist[n]++
	}
	bound, seen := 0, int32(0)
	for n, c := range b.hist[:t.dims+1] {
		if seen += c; seen >= candidate {
			return n
		}
		bound = n
	}
	return bound
}

// predict fills in the predictions of models, whose priors they hold.
func (t *table) predict(v []float32, ps []Prediction) {
	b, ok := scratches.Get().(*scratch)
	if !ok {
		b = new(scratch)
	}
	defer scratches.Put(b)
	t.find(v, b)
	if cap(b.own) < len(t.models) {
		b.own = make([]local, len(t.models))
	}
	b.own = b.own[:len(t.models)]
	clear(b.own)
	var rest, weight float64 // what is left over at near requests
	for _, n := range b.near {
		r := &t.rows[n.at]
		left := float64(r.score-r.prior) - t.shift(r.model)
		l := &b.own[r.model]
		l.weight += n.weight
		l.rest += n.weight * left
		rest += n.weight * left
		weight += n.weight
		if r.tokens > 0 {
			l.tokens += n.weight * float64(r.tokens)
			l.longs += n.weight
		}
	}
	common := rest / (doubtNear + weight)
	for i := range ps {
		t.one(&ps[i], common, b.own)
	}
}

// one fills in the prediction of one model.
func (t *table) one(p *Prediction, common float64, own []local) {
	m, known := t.index[p.Model]
	if !known {
		p.Mean = clamp(p.Prior + t.common + common)
		p.Deviation = math.Sqrt(p.Mean * (1 - p.Mean) / (doubtBase + 1))
		return
	}
	l, s := &own[m], &t.by[m]
	p.Mean = clamp(p.Prior + t.shift(m) + common + (l.rest-l.weight*common)/(doubtOwn+l.weight))
	p.Outcomes, p.Near = s.weight, l.weight
	p.Deviation = math.Sqrt(max(p.Mean*(1-p.Mean), 0.01) / (1 + doubtOwn*s.weight/(doubtBase+s.weight) + l.weight))
	if s.longs > 0 {
		mean := s.tokens / s.longs
		p.Tokens = (doubtLong*mean + l.tokens) / (doubtLong + l.longs)
	}
}

// shift is by how much the answers of a model are better than its prior.
func (t *table) shift(m int) float64 { return t.common + t.by[m].beyond(t.common) }

func clamp(x float64) float64 { return min(max(x, 0), 1) }
