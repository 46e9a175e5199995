package outcomes

import (
	"math"
	"slices"
)

// Reasoning efforts of one model are compared by the scores of similar responses at each of them.
// That is little data, and how much of such a difference is real depends on the traffic. It is
// therefore measured on the outcomes themselves. Each outcome is left out in turn, with all
// outcomes of the same request; the others predict by how much one effort is better there than the
// other, and two straight lines, one per effort, map this predicted difference to the actual score.
// The expectation for a request is the value of the lines at the difference that its own neighbours
// predict.
const (
	sameRequest = 0.9999 // similarity from which two requests count as the same
	leastOfLine = 200.0  // minimum total weight of the outcomes of each effort
	lineRows    = 1000   // maximum number of outcomes of each effort for fitting a line
	fewLineRows = 250    // the same while a file of many tenants is read
	looks       = 8      // number of outcomes examined when a new one arrives
	newShare    = 4      // lines are fitted again when a quarter of the outcomes is new
	doubtGap    = 1.0    // prior weight against similar responses, see difference
	// strangers is the share of known requests that are less similar to others than the lines apply
	// to.
	strangers = 0.05
)

// gap is the comparison of an effort of a model with its reference effort.
type gap struct {
	reference int     // the arm
	least     float64 // minimum scratch.high of requests to which the lines apply
	low, high float64 // range of differences to which the lines were fitted
	ref, own  line    // scores as a function of the difference
}

// line is a regression line of scores, with the variance of its height.
type line struct{ at, slope, mean, ofMean, ofSlope float64 }

func (l *line) of(x float64) float64 { return l.at + l.slope*(x-l.mean) }

func (l *line) variance(x float64) float64 {
	return l.ofMean + l.ofSlope*(x-l.mean)*(x-l.mean)
}

// points are sums over weighted points for a regression line.
type points struct{ w, x, xx, y, xy, yy float64 }

func (p *points) add(w, x, y float64) {
	p.w += w
	p.x += w * x
	p.xx += w * x * x
	p.y += w * y
	p.xy += w * x * y
	p.yy += w * y * y
}

// line returns the least-squares line; a horizontal one if all points have the same x.
func (p *points) line() line {
	out := line{at: p.y / p.w, mean: p.x / p.w}
	rest := p.yy - p.y*p.y/p.w
	if v := p.xx - p.x*p.x/p.w; v > 1e-9*p.w {
		out.slope = (p.xy - p.x*p.y/p.w) / v
		rest -= out.slope * out.slope * v
		out.ofSlope = max(rest/p.w, leastSpread) / v
	}
	out.ofMean = max(rest/p.w, leastSpread) / p.w
	return out
}

// difference returns by how much better similar requests rate one arm than another; ok is false if
// they have no data on one of them.
func (t *table) difference(i, j int, own []local) (d float64, ok bool) {
	of := func(arm int) float64 {
		return t.shift(arm) + own[arm].sharpRest/(doubtGap+own[arm].sharp)
	}
	return of(i) - of(j), own[i].sharp > 0 && own[j].sharp > 0
}

// reference returns the effort of a model with the most data; -1 unless there are two efforts with
// enough.
func (t *table) reference(m *ofModel) int {
	best, efforts := -1, 0
	for _, i := range m.arms {
		if t.arms[i].effort == "" {
			continue
		}
		if t.arms[i].weight >= leastOfLine {
			efforts++
		}
		if best < 0 || t.arms[i].weight > t.arms[best].weight {
			best = i
		}
	}
	if efforts < 2 {
		return -1
	}
	return best
}

// survey collects the points for the lines.
type survey struct {
	refs  []int         // by model: the reference, -1 without one
	order []int         // rows still to be examined
	pairs map[int]*pair // by arm that is not a reference
	high  []float64     // by row, the similarity of its nearest neighbours
	b     scratch
	v     []float32
}

// pair holds the points of a reference and of another arm, by the difference between the two.
type pair struct {
	ref, own  points
	low, high float64
}

// survey starts a survey of no more than most outcomes of each effort; nil if no model has enough
// outcomes at two efforts.
func (t *table) survey(most int) *survey {
	v := &survey{refs: make([]int, len(t.models)), pairs: map[int]*pair{}}
	for i := range t.models {
		v.refs[i] = t.reference(&t.models[i])
	}
	byArm := make([][]int, len(t.arms))
	for i := range t.rows {
		if a := t.rows[i].arm; t.arms[a].effort != "" && v.refs[t.arms[a].model] >= 0 {
			byArm[a] = append(byArm[a], i)
		}
	}
	for _, rows := range byArm {
		n := min(len(rows), most)
		for i := range n {
			v.order = append(v.order, rows[i*len(rows)/n])
		}
	}
	if len(v.order) == 0 {
		return nil
	}
	return v
}

// look examines one more row.
func (v *survey) look(t *table) {
	at := v.order[0]
	v.order = v.order[1:]
	r := &t.rows[at]
	model := t.arms[r.arm].model
	if model >= len(v.refs) || v.refs[model] < 0 || t.arms[r.arm].effort == "" {
		return // another outcome has taken its place
	}
	v.v = v.v[:0]
	for _, c := range t.codes[at*t.dims : (at+1)*t.dims] {
		v.v = append(v.v, float32(c))
	}
	t.look(v.v, &v.b, sameRequest)
	if len(v.b.near) == 0 {
		return
	}
	v.high = append(v.high, v.b.high)
	ref := v.refs[model]
	for _, arm := range t.models[model].arms {
		d, ok := t.difference(ref, arm, v.b.own)
		if !ok || arm == ref || r.arm != ref && r.arm != arm || t.arms[arm].effort == "" {
			continue
		}
		p := v.pairs[arm]
		if p == nil {
			p = &pair{low: d, high: d}
			v.pairs[arm] = p
		}
		p.low, p.high = min(p.low, d), max(p.high, d)
		to := &p.ref
		if r.arm == arm {
			to = &p.own
		}
		to.add(float64(r.weight), d, float64(r.score))
	}
}

// draw fits the lines. Previous lines stay if there are too few points this time, as long as there
// is enough data on both efforts and the reference is the same: an effort is either compared with
// another, or the reference for others.
func (v *survey) draw(t *table) {
	old := t.gaps
	t.gaps, t.references = map[int]gap{}, map[int]bool{}
	slices.Sort(v.high)
	for arm := range t.arms {
		model := t.arms[arm].model
		if model >= len(v.refs) {
			continue
		}
		ref := v.refs[model]
		g, ok := old[arm]
		ok = ok && arm != ref && g.reference == ref
		if p := v.pairs[arm]; p != nil && p.ref.w >= leastOfLine && p.own.w >= leastOfLine {
			g, ok = gap{
				reference: ref, least: v.high[int(strangers*float64(len(v.high)))],
				low: p.low, high: p.high, ref: p.ref.line(), own: p.own.line(),
			}, true
		}
		if ok && t.arms[arm].weight >= leastOfLine && t.arms[ref].weight >= leastOfLine {
			t.gaps[arm], t.references[ref] = g, true
		}
	}
}

// calibrate examines n more rows for the lines that are due.
func (t *table) calibrate(n int) {
	if t.measured == nil {
		if t.news < len(t.rows)/newShare || float64(len(t.rows)) < 2*leastOfLine {
			return
		}
		t.news = 0
		if t.measured = t.survey(lineRows); t.measured == nil {
			return
		}
	}
	for range n {
		if len(t.measured.order) == 0 {
			t.measured.draw(t)
			t.measured = nil
			return
		}
		t.measured.look(t)
	}
}

// bridge makes the predictions for the efforts of a model comparable, if lines were fitted and the
// request is as similar to known ones as those are to each other.
func (t *table) bridge(ps []Prediction, easy, alike float64, b *scratch) {
	if len(t.gaps) == 0 {
		return
	}
	for i := range ps {
		p := &ps[i]
		arm, known := t.index[armKey{p.Model, p.Effort}]
		if !known {
			continue
		}
		if t.references[arm] {
			p.Calibrated = true
			continue
		}
		g, ok := t.gaps[arm]
		if !ok || b.high < g.least {
			continue
		}
		d, ok := t.difference(g.reference, arm, b.own)
		if !ok {
			continue
		}
		d = min(max(d, g.low), g.high)
		ref := Prediction{Model: p.Model, Effort: t.arms[g.reference].effort, Prior: p.Prior}
		t.one(&ref, easy, alike, b.own)
		better := g.own.of(d) - g.ref.of(d)
		p.Mean, p.Sure = clamp(ref.Mean+better), ref.Sure+better
		p.Doubt = math.Sqrt(g.ref.variance(d) + g.own.variance(d))
		p.Calibrated = true
	}
}
