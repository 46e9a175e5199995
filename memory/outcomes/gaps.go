package outcomes

import (
	"math"
	"slices"
)

// Efforts of reasoning of one model are told apart by what near answers at each of them scored.
// That is little to go by, and how much of such a difference is to be believed depends on the
// traffic. So it is measured on the outcomes themselves. Each is left out in turn, with all
// outcomes of the same request; the others say by how much one effort is better there than the
// other, and two straight lines, one of each effort, say what was scored where that was said.
// What is expected of a request is what the lines say at the difference that its own neighbours
// make.
const (
	sameRequest = 0.9999 // similarity from which on two requests are the same
	leastOfLine = 200.0  // weight of the outcomes of each effort
	lineRows    = 1000   // outcomes of each effort that a line is drawn through at most
	fewLineRows = 250    // the same while a file of many tenants is read
	looks       = 8      // outcomes that are looked at when a new one comes
	newShare    = 4      // lines are drawn again when a quarter of the outcomes is new
	doubtGap    = 1.0    // weight of near answers that stands against them, see difference
	strangers   = 0.05   // share of known requests that are farther from others than lines hold for
)

// gap is how an effort of a model compares with its reference effort.
type gap struct {
	reference int     // the arm
	least     float64 // least scratch.high of the requests that the lines hold for
	low, high float64 // the differences that the lines are drawn through
	ref, own  line    // what was scored at a difference
}

// line is a straight line through scores, with the variance of its height.
type line struct{ at, slope, mean, ofMean, ofSlope float64 }

func (l *line) of(x float64) float64 { return l.at + l.slope*(x-l.mean) }

func (l *line) variance(x float64) float64 {
	return l.ofMean + l.ofSlope*(x-l.mean)*(x-l.mean)
}

// points are sums over weighted points, through which a line is drawn.
type points struct{ w, x, xx, y, xy, yy float64 }

func (p *points) add(w, x, y float64) {
	p.w += w
	p.x += w * x
	p.xx += w * x * x
	p.y += w * y
	p.xy += w * x * y
	p.yy += w * y * y
}

// line is the one with the least squares; a level one where all points have one x.
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

// difference is by how much what near requests say of one arm is better than what they say of
// another; ok is false where they say nothing of one of them.
func (t *table) difference(i, j int, own []local) (d float64, ok bool) {
	of := func(arm int) float64 {
		return t.shift(arm) + own[arm].sharpRest/(doubtGap+own[arm].sharp)
	}
	return of(i) - of(j), own[i].sharp > 0 && own[j].sharp > 0
}

// reference is the effort of a model of which most is known; -1 where there are not two efforts of
// which enough is.
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

// survey is what lines are drawn from.
type survey struct {
	refs  []int         // by model: the reference, -1 without one
	order []int         // rows that are still to be looked at
	pairs map[int]*pair // by arm that is not a reference
	high  []float64     // by row, how near its nearest ones are
	b     scratch
	v     []float32
}

// pair are the points of a reference and of another arm, by the difference between the two.
type pair struct {
	ref, own  points
	low, high float64
}

// survey begins one, of at most so many outcomes of each effort; nil where no model was asked often
// enough at two efforts.
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

// look looks at one row more.
func (v *survey) look(t *table) {
	at := v.order[0]
	v.order = v.order[1:]
	r := &t.rows[at]
	model := t.arms[r.arm].model
	if model >= len(v.refs) || v.refs[model] < 0 || t.arms[r.arm].effort == "" {
		return // another outcome is in its place by now
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

// draw draws the lines. Those of before stay where points are too few this time, as long as enough
// is known of both efforts and the reference is the same: an effort is compared, or is what others
// are compared with.
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

// calibrate looks at n rows more for the lines that are due.
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

// bridge makes what is expected of the efforts of a model comparable, where lines were drawn and
// the request is as near to known ones as those are to each other.
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
