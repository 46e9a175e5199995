package outcomes

import (
	"math"
	"slices"
)

// Efforts of reasoning of one model are told apart by what near answers at each of them scored. That
// is little to go by, and how much of such a difference is to be believed depends on the traffic:
// where tasks are alike and repeat, all of it, and where nothing near tells anything, none. So it is
// measured on the outcomes themselves. Each is taken out in turn, with all outcomes of the same
// request; what is left says by how much one effort is better there than the other, and two straight
// lines, one of each effort, say what was scored where that was said. What is expected of a request
// is what the lines say at the difference that its own neighbours make.
const (
	sameRequest = 0.9999 // similarity from which on two requests are the same
	firstGaps   = 400    // outcomes of a tenant with which lines are drawn first
	gapsAgain   = 4      // they are drawn again when a quarter of the outcomes is new
	gapRows     = 2000   // outcomes that they are drawn through at most
	leastOfLine = 200.0  // weight of the outcomes of each effort
	doubtGap    = 1.0    // weight of near answers that stands against them, see difference
	strangers   = 0.05   // share of known requests that are farther from others than lines hold for
)

// gap is how an effort of a model compares with another one.
type gap struct {
	reference int     // the arm that is compared with
	nearest   float64 // how near known requests a request has to be, see scratch.high
	ref, own  line    // what was scored, by the difference of what near requests say
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
// another.
func (t *table) difference(i, j int, own []local) float64 {
	of := func(arm int) float64 {
		return t.shift(arm) + own[arm].sharpRest/(doubtGap+own[arm].sharp)
	}
	return of(i) - of(j)
}

// reference is the effort of a model of which most is known; -1 where only one effort is known.
func (t *table) reference(m *ofModel) int {
	best, efforts := -1, 0
	for _, i := range m.arms {
		if t.arms[i].effort == "" {
			continue
		}
		if efforts++; best < 0 || t.arms[i].weight > t.arms[best].weight {
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
	refs   []int             // by model
	points map[int][2]points // by arm: of the reference, and of the arm itself
	high   []float64         // by outcome, how near its nearest ones are
	b      scratch
	v      []float32
}

// survey begins one; nil where no model was asked at two efforts.
func (t *table) survey() *survey {
	v := &survey{refs: make([]int, len(t.models)), points: map[int][2]points{}}
	some := false
	for i := range t.models {
		v.refs[i] = t.reference(&t.models[i])
		some = some || v.refs[i] >= 0
	}
	if !some {
		return nil
	}
	return v
}

// take takes in one row.
func (v *survey) take(t *table, at int) {
	r := &t.rows[at]
	model := t.arms[r.arm].model
	if model >= len(v.refs) || v.refs[model] < 0 {
		return
	}
	ref := v.refs[model]
	v.v = v.v[:0]
	for _, c := range t.codes[at*t.dims : (at+1)*t.dims] {
		v.v = append(v.v, float32(c))
	}
	t.look(v.v, &v.b, sameRequest)
	v.high = append(v.high, v.b.high)
	for _, arm := range t.models[model].arms {
		own := v.b.own
		if arm == ref || r.arm != ref && r.arm != arm || own[arm].sharp == 0 || own[ref].sharp == 0 {
			continue
		}
		p := v.points[arm]
		which := 0
		if r.arm == arm {
			which = 1
		}
		p[which].add(float64(r.weight), t.difference(ref, arm, own), float64(r.score))
		v.points[arm] = p
	}
}

// gaps draws the lines.
func (v *survey) gaps(t *table) map[int]gap {
	slices.Sort(v.high)
	out := map[int]gap{}
	for arm, p := range v.points {
		if p[0].w < leastOfLine || p[1].w < leastOfLine {
			continue
		}
		out[arm] = gap{
			reference: v.refs[t.arms[arm].model], nearest: v.high[int(strangers*float64(len(v.high)))],
			ref: p[0].line(), own: p[1].line(),
		}
	}
	return out
}

// bridge makes what is expected of the efforts of a model comparable, where lines were drawn and the
// request is as near to known ones as those are to each other.
func (t *table) bridge(ps []Prediction, b *scratch) {
	if len(t.gaps) == 0 {
		return
	}
	for i := range ps {
		p := &ps[i]
		arm, known := t.index[armKey{p.Model, p.Effort}]
		g, ok := t.gaps[arm]
		if !known || !ok || b.high < g.nearest {
			continue
		}
		for j := range ps {
			ref := &ps[j]
			if ref.Model != p.Model || ref.Effort != t.arms[g.reference].effort {
				continue
			}
			d := t.difference(g.reference, arm, b.own)
			p.Mean = clamp(ref.Mean - g.ref.of(d) + g.own.of(d))
			p.Doubt = math.Sqrt(g.ref.variance(d) + g.own.variance(d))
			p.Calibrated, ref.Calibrated = true, true
			break
		}
	}
}

// calibrate draws the lines of a tenant anew when they are due, through rows outcomes at most: some
// 0.2 ms each, for none of which others wait longer than for that. The caller does not hold mu.
func (s *Store) calibrate(tenant string, rows int) {
	s.mu.Lock()
	t := s.tenants[tenant]
	if t == nil || len(t.rows) < firstGaps || t.news < len(t.rows)/gapsAgain {
		s.mu.Unlock()
		return
	}
	n, v := len(t.rows), t.survey()
	t.news = 0
	s.mu.Unlock()
	if v == nil {
		return
	}
	rows = min(n, rows)
	for i := range rows {
		s.mu.RLock()
		v.take(t, i*n/rows)
		s.mu.RUnlock()
	}
	s.mu.Lock()
	t.gaps = v.gaps(t)
	s.mu.Unlock()
}
