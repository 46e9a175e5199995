package outcomes

import (
	"math"
	"math/bits"
	"sync"
)

// The constants of a prediction. Those of nearness were chosen on the outcomes of MMLU-Pro,
// RouterBench and ZeroEval, see docs/adr/0037-outcomes-of-ones-own.md; those of doubt on MMLU-Pro
// and ZeroEval alone, see docs/adr/0046-exploring-by-what-is-not-known.md. They are not specific to
// any model.
const (
	nearest     = 0.2  // cosine similarity from which a request is similar
	similar     = 0.8  // from which it counts as the same
	leastWidth  = 0.02 // minimum range of similarities that are distinguished
	mostWeight  = 1.5  // of one row
	candidate   = 384  // minimum number of rows compared exactly, if there are as many
	doubtNear   = 5.0  // prior weight against similar requests
	doubtOwn    = 20.0 // the same for those of one model
	doubtEffort = 8.0  // the same for those at one effort of a model
	doubtLong   = 4.0  // the same for the length of a response
	// number of outcomes with the prior's score with which a share of good responses starts.
	doubtScore  = 4.0
	leastSpread = 0.02 // minimum variance of one score: no model is always right
	deviates    = 0.12 // standard deviation of a model's quality between subjects
	// standard deviations subtracted from what similar requests say about one model.
	sureBy = 1.0
	// standard deviations above the mean of the logarithm: 99 of 100 lengths are below.
	longTail = 2.33
)

// row is one outcome in the form used for comparisons.
type row struct {
	arm    int
	score  float32
	prior  float32 // of the model at the time of the request, in [0,1]
	weight float32 // weight of the score, in (0,1]
	tokens float32 // 0 if not known
	norm   float32 // of the quantised vector
}

// arm is a model at one reasoning effort.
type arm struct {
	model   int
	effort  string
	weight  float64
	left    float64 // weighted sum of scores minus the prior
	tokens  float64
	logs    float64 // sum of logarithms of tokens
	squares float64 // of these
	longs   float64 // number of rows with tokens
}

// ofModel is the data on a model at all efforts.
type ofModel struct {
	arms   []int
	weight float64
	score  float64 // weighted
	prior  float64 // weighted
	guess          // computed from these by refit
}

type armKey struct{ model, effort string }

// table holds the outcomes of one tenant. Its owner guards it.
type table struct {
	dims   int
	words  int // 64-bit words of signs per row
	limit  int
	next   int // the row to overwrite next, once there are limit rows
	rows   []row
	signs  []uint64 // [len(rows)][words]
	codes  []int8   // [len(rows)][dims]
	arms   []arm
	index  map[armKey]int
	models []ofModel
	names  map[string]int // of models
	fresh  guess          // for a model without outcomes
	hard   hardness
	// [len(rows)], ease of each request compared with others, as of the last refit
	easy []float32
	own  []float32  // [len(rows)], the same for its arm, additionally and unweighted
	kept []*Outcome // parallel to rows: the original outcomes
	byID map[string]int

	gaps       map[int]gap  // by arm; see calibrate
	references map[int]bool // the reference arms of gaps
	measured   *survey      // for the next gaps; nil if none are due
	news       int          // outcomes since the last survey began, including repeated ones
}

func newTable(dims, limit int) *table {
	t := &table{
		dims: dims, words: (dims + 63) / 64, limit: limit,
		index: map[armKey]int{}, names: map[string]int{}, byID: map[string]int{},
	}
	t.guesses()
	return t
}

// quantise appends v with 8 bits per component to codes, and its signs to signs, and returns both
// with the norm.
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

// dotCodes returns the inner product of two quantised vectors of equal length, of at most 2^17
// components.
func dotCodes(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]int8)(a), (*[8]int8)(b)
		s0 += int32(x[0])*int32(y[0]) + int32(x[4])*int32(y[4])
		s1 += int32(x[1])*int32(y[1]) + int32(x[5])*int32(y[5])
		s2 += int32(x[2])*int32(y[2]) + int32(x[6])*int32(y[6])
		s3 += int32(x[3])*int32(y[3]) + int32(x[7])*int32(y[7])
		a, b = a[8:], b[8:]
	}
	b = b[:len(a)]
	for i, x := range a {
		s0 += int32(x) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

// norm returns the length of a quantised vector.
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

// arm returns the index of a model at an effort, and adds it if it is new.
func (t *table) arm(model, effort string) int {
	k := armKey{model, effort}
	i, ok := t.index[k]
	if !ok {
		m, known := t.names[model]
		if !known {
			m = len(t.models)
			t.models = append(t.models, ofModel{})
			t.names[model] = m
		}
		i = len(t.arms)
		t.arms = append(t.arms, arm{model: m, effort: effort})
		t.models[m].arms = append(t.models[m].arms, i)
		t.index[k] = i
	}
	return i
}

// count adds a row to the sums, or removes it.
func (t *table) count(r *row, codes []int8, sign float64) {
	t.hard.count(r.arm, codes, r.norm, float64(r.weight), float64(r.score-r.prior), sign)
	a, w := &t.arms[r.arm], sign*float64(r.weight)
	m := &t.models[a.model]
	a.weight += w
	a.left += w * float64(r.score-r.prior)
	m.weight += w
	m.score += w * float64(r.score)
	m.prior += w * float64(r.prior)
	if r.tokens > 0 {
		l := math.Log(float64(r.tokens))
		a.tokens += sign * float64(r.tokens)
		a.logs += sign * l
		a.squares += sign * l * l
		a.longs += sign
	}
}

// put stores an outcome in place of an earlier one of the same request, or of the oldest. A refit
// must follow.
func (t *table) put(o *Outcome) {
	r := row{
		arm: t.arm(o.Model, o.Effort), score: float32(o.Score), prior: float32(o.Prior),
		weight: float32(o.Weight), tokens: float32(o.Tokens), norm: norm(o.codes),
	}
	at, again := t.byID[o.ID]
	switch {
	case again && o.ID != "":
	case len(t.rows) < t.limit:
		at = len(t.rows)
		t.rows, t.kept = append(t.rows, row{}), append(t.kept, nil)
		t.easy, t.own = append(t.easy, 0), append(t.own, 0)
		t.codes = append(t.codes, o.codes...)
		t.signs = signsOf(o.codes, t.signs)
	default:
		at = t.next
		t.next = (t.next + 1) % t.limit
	}
	if old := t.kept[at]; old != nil {
		t.count(&t.rows[at], old.codes, -1)
		delete(t.byID, old.ID)
	}
	t.rows[at], t.kept[at] = r, o
	t.easy[at], t.own[at] = float32(t.hard.ofAll(o.codes, r.norm)), float32(t.hard.ofArm(r.arm, o.codes, r.norm))
	if !again {
		t.hard.try(r.arm, float64(t.own[at]), t.left(at), float64(r.weight))
	}
	copy(t.codes[at*t.dims:(at+1)*t.dims], o.codes)
	signsOf(o.codes, t.signs[at*t.words:at*t.words:(at+1)*t.words])
	if o.ID != "" {
		t.byID[o.ID] = at
	}
	t.count(&r, o.codes, 1)
	t.news++
}

// scratch is the working memory of one prediction.
type scratch struct {
	codes []int8
	signs []uint64
	away  []uint16
	hist  []int32
	near  []near
	high  float64 // mean similarity of the nearest rows
	own   []local
}

// near is a similar row.
type near struct {
	at     int
	cos    float64 // similarity
	weight float64 // by its similarity relative to others, and its trust
	alike  float64 // the same, by its absolute similarity
}

// local is the data of similar requests on one arm; sharp and sharpRest are weight and rest with
// weights that favour the nearest, and without own: the residual that the arm's regression
// predicts.
type local struct{ weight, alike, rest, own, sharp, sharpRest, tokens, logs, squares, longs float64 }

func (l *local) add(x *local) {
	l.weight += x.weight
	l.alike += x.alike
	l.rest += x.rest
	l.tokens += x.tokens
	l.logs += x.logs
	l.squares += x.squares
	l.longs += x.longs
}

//nolint:gochecknoglobals // a pool
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// find fills b.near with the rows similar to a vector, except those with a similarity above most.
func (t *table) find(v []float32, b *scratch, most float64) {
	var length float32
	b.codes, b.signs, length = quantise(v, b.codes[:0], b.signs[:0])
	b.near, b.high = b.near[:0], 0
	if length == 0 {
		return
	}
	bound := t.farthest(b)
	for i, away := range b.away {
		if int(away) > bound {
			continue
		}
		codes := t.codes[i*t.dims : (i+1)*t.dims]
		norm := t.rows[i].norm
		if norm <= 0 {
			continue
		}
		if cos := float64(dotCodes(b.codes, codes)) / float64(length*norm); cos <= most {
			b.near = append(b.near, near{at: i, cos: cos})
		}
	}
	t.weigh(b)
}

// weigh computes the weights of b.near, and drops rows without weight. The weight of a row depends
// on where its similarity lies between that of the farthest candidates and that of the nearest: if
// all prompts share a template, all are similar, and only small differences are informative. If
// even the nearest are not similar, all weights are lower.
func (t *table) weigh(b *scratch) {
	const bins = 64
	var hist [bins]int32
	var top [5]float64
	for _, n := range b.near {
		hist[min(max(int(n.cos*bins), 0), bins-1)]++
		for i, c := range top {
			if n.cos > c {
				copy(top[i+1:], top[i:])
				top[i] = n.cos
				break
			}
		}
	}
	far, few := 0, int32(len(b.near)/20) // end of the farthest twentieth
	for few -= hist[0]; few > 0 && far < bins-1; few -= hist[far] {
		far++
	}
	low := max(float64(far)/bins, nearest)
	high := 0.0
	for _, c := range top[:min(len(top), len(b.near))] {
		high += c / float64(min(len(top), len(b.near)))
	}
	b.high = high
	width := max(high-low, leastWidth)
	sure := min(max((high-nearest)/(similar-nearest), 0), 1)
	kept := b.near[:0]
	for _, n := range b.near {
		trust := float64(t.rows[n.at].weight)
		if x := (n.cos - nearest) / (1 - nearest); x > 0 {
			n.alike = min(x, 1) * min(x, 1) * trust
		}
		if x := (n.cos - low) / width; x > 0 {
			n.weight = min(x, mostWeight) * sure * trust
		}
		if n.weight > 0 || n.alike > 0 {
			kept = append(kept, n)
		}
	}
	b.near = kept
}

// farthest counts the differing signs of each row, and returns the maximum number for rows to be
// compared exactly.
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

// predict computes the predictions for models whose priors are set.
func (t *table) predict(v []float32, ps []Prediction) {
	b, ok := scratches.Get().(*scratch)
	if !ok {
		b = new(scratch)
	}
	defer scratches.Put(b)
	rest, weight := t.look(v, b, math.Inf(1))
	alike := rest / (doubtNear + weight)
	length := norm(b.codes)
	easy := t.hard.ofAll(b.codes, length)
	for arm := range b.own {
		if trust := t.hard.trust(arm); trust > 0 {
			b.own[arm].own = trust * t.hard.ofArm(arm, b.codes, length)
		}
	}
	for i := range ps {
		t.one(&ps[i], easy, alike, b.own)
	}
	t.bridge(ps, easy, alike, b)
}

// left returns the residual of a row's score after what is expected of its arm in general, and of
// its request for any model.
func (t *table) left(at int) float64 {
	r := &t.rows[at]
	return float64(r.score-r.prior-t.easy[at]) - t.shift(r.arm)
}

// look fills b.own with the data on each arm from the requests similar to a vector, except those
// with a similarity above most, and returns their total residual and weight.
func (t *table) look(v []float32, b *scratch, most float64) (rest, weight float64) {
	t.find(v, b, most)
	if cap(b.own) < len(t.arms) {
		b.own = make([]local, len(t.arms))
	}
	b.own = b.own[:len(t.arms)]
	clear(b.own)
	for _, n := range b.near {
		r := &t.rows[n.at]
		left, own := t.left(n.at), t.hard.trust(r.arm)*float64(t.own[n.at])
		l := &b.own[r.arm]
		l.weight += n.weight
		l.alike += n.alike
		l.rest += n.weight * (left - own)
		sharp := n.weight * n.weight * n.weight * n.weight
		l.sharp += sharp
		l.sharpRest += sharp * left
		rest += n.weight * (left - own)
		weight += n.weight
		if r.tokens > 0 {
			x := math.Log(float64(r.tokens))
			l.tokens += n.weight * float64(r.tokens)
			l.logs += n.weight * x
			l.squares += n.weight * x * x
			l.longs += n.weight
		}
	}
	return rest, weight
}

// one computes the prediction for one model, at an effort or at all efforts with data. easy is by
// how much responses to the request are better than average, alike the residual for similar
// requests regardless of the model.
func (t *table) one(p *Prediction, easy, alike float64, own []local) {
	at, known := t.names[p.Model]
	if !known {
		p.Everywhere = p.Prior + t.fresh.mean
		p.Sure = p.Everywhere + easy + alike
		p.Mean = clamp(p.Sure)
		p.Deviation = math.Sqrt(t.fresh.variance + deviates*deviates)
		p.Overall = math.Sqrt(t.fresh.variance)
		return
	}
	m := &t.models[at]
	var l local
	var all arm // of the requested arms
	shift, variance := m.mean, m.variance
	if i, ok := t.index[armKey{p.Model, p.Effort}]; ok {
		l, all, shift = own[i], t.arms[i], t.shift(i)
		variance += t.effortDoubt(at, all.weight)
		p.AtEffort = l.alike
	} else {
		for _, i := range m.arms {
			l.add(&own[i])
			all.add(&t.arms[i])
			l.own += own[i].own * max(t.arms[i].weight, 0)
		}
		l.own /= max(all.weight, 1)
		if p.AtEffort = l.alike; p.Effort != "" { // no outcomes at this effort
			variance += t.effortDoubt(at, 0)
			p.AtEffort = 0
		}
	}
	p.Everywhere = p.Prior + shift
	base := p.Everywhere + easy + alike
	more := l.own + (l.rest-l.weight*alike)/(doubtOwn+l.weight)
	p.Mean = clamp(base + more)
	doubt := deviates * deviates * doubtOwn / (doubtOwn + l.weight) // the remaining variance
	p.Sure = base + soft(more, sureBy*math.Sqrt(doubt))
	p.Outcomes, p.Near = all.weight, l.alike
	p.Deviation, p.Overall = math.Sqrt(variance+doubt), math.Sqrt(variance)
	p.lengths(&all, &l)
}

// lengths predicts the length of the response.
func (p *Prediction) lengths(all *arm, l *local) {
	if all.longs <= 0 {
		return
	}
	n := doubtLong + l.longs
	p.Tokens = (doubtLong*all.tokens/all.longs + l.tokens) / n
	mean := (doubtLong*all.logs/all.longs + l.logs) / n
	square := (doubtLong*all.squares/all.longs + l.squares) / n
	p.Longest = math.Exp(mean + longTail*math.Sqrt(max(square-mean*mean, 0)))
}

func (a *arm) add(x *arm) {
	a.weight += x.weight
	a.left += x.left
	a.tokens += x.tokens
	a.logs += x.logs
	a.squares += x.squares
	a.longs += x.longs
}

// shift returns by how much the responses of an arm are better than the prior of its model.
func (t *table) shift(i int) float64 {
	a := &t.arms[i]
	m := &t.models[a.model]
	if len(m.arms) == 1 {
		return m.mean
	}
	return m.mean + (a.left-a.weight*m.mean)/(doubtEffort+max(a.weight, 0))
}

// effortDoubt returns the variance that a single effort of a model adds, given the weight of its
// outcomes; zero for a model with outcomes at one effort only.
func (t *table) effortDoubt(model int, weight float64) float64 {
	if len(t.models[model].arms) == 1 && weight > 0 {
		return 0
	}
	return deviates * deviates * doubtEffort / (doubtEffort + max(weight, 0))
}

func clamp(x float64) float64 { return min(max(x, 0), 1) }

// soft moves x towards 0 by by, at most to 0.
func soft(x, by float64) float64 { return math.Copysign(max(math.Abs(x)-by, 0), x) }
