package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The arms of a route with a canary, with their names in the log.
const (
	armControl = "control"
	armCanary  = "canary"
)

// Comparison compares the arms of one route.
type Comparison struct {
	Route  string `json:"route"`
	Canary string `json:"canary"` // the model and its latest share of the conversations
	Shares []Pair `json:"shares"`
	Means  []Pair `json:"means"`
}

// Pair is one figure of both arms. Difference is canary minus control.
type Pair struct {
	Name       string   `json:"name"`
	Control    Interval `json:"control"`
	Canary     Interval `json:"canary"`
	Difference Interval `json:"difference"`
}

// Interval is a value with its 95 % interval, from Of observations. Without observations, Value is
// 0 and the interval is the whole range.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Of    int64   `json:"of"`
}

// Texts returns the figures as table cells: the name, control, canary, and the difference, marked
// if its interval does not contain 0.
func (c *Comparison) Texts() [][4]string {
	out := make([][4]string, 0, len(c.Shares)+len(c.Means))
	for _, part := range []struct {
		pairs []Pair
		text  func(x float64) string
	}{
		{c.Shares, func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }},
		{c.Means, func(x float64) string { return fmt.Sprintf("%.4g", x) }},
	} {
		for i := range part.pairs {
			p := &part.pairs[i]
			show := func(x *Interval, known bool) string {
				if !known {
					return "-"
				}
				return fmt.Sprintf("%s (%s to %s)", part.text(x.Value), part.text(x.Low), part.text(x.High))
			}
			d := show(&p.Difference, p.Control.Of > 0 && p.Canary.Of > 0)
			if p.Difference.Low > 0 || p.Difference.High < 0 {
				d += " *"
			}
			out = append(out, [4]string{p.Name, show(&p.Control, p.Control.Of > 0), show(&p.Canary, p.Canary.Of > 0), d})
		}
	}
	return out
}

// ArmsNote explains the intervals.
const ArmsNote = "in brackets the 95 % interval; * marks a difference whose interval does not hold 0. Requests are taken " +
	"for independent; those of one conversation are not, so with long conversations intervals are too narrow. Of many " +
	"figures, one in twenty is marked by chance"

// z is the 97.5 % quantile of the normal distribution.
const z = 1.959964

// wilson returns a share with its score interval (Wilson, Probable inference, the law of
// succession, and statistical inference, JASA 1927).
func wilson(k, n int64) Interval {
	if n == 0 {
		return Interval{High: 1}
	}
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Interval{Value: p, Low: max(0, mid-half), High: min(1, mid+half), Of: n}
}

// newcombe returns the difference of two shares with its interval, derived from theirs (Newcombe,
// Interval estimation for the difference between independent proportions, Statistics in Medicine
// 1998, method 10).
func newcombe(control, canary Interval) Interval {
	d := canary.Value - control.Value
	if control.Of == 0 || canary.Of == 0 {
		return Interval{Low: -1, High: 1}
	}
	return Interval{
		Value: d,
		Low:   d - math.Hypot(canary.Value-canary.Low, control.High-control.Value),
		High:  d + math.Hypot(canary.High-canary.Value, control.Value-control.Low),
		Of:    min(control.Of, canary.Of),
	}
}

// moments are the sums for a mean and its interval.
type moments struct {
	n         int64
	mean, dev float64 // dev is the sum of squared deviations
}

// add adds a value (Welford, Note on a method for calculating corrected sums of squares and
// products, Technometrics 1962).
func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / float64(m.n)
	m.dev += d * (x - m.mean)
}

// merge adds the values of another one (Chan, Golub and LeVeque, 1979).
func (m *moments) merge(x *moments) {
	if x.n == 0 {
		return
	}
	n, d := m.n+x.n, x.mean-m.mean
	m.dev += x.dev + d*d*float64(m.n)*float64(x.n)/float64(n)
	m.mean += d * float64(x.n) / float64(n)
	m.n = n
}

// variance returns the variance of the mean; 0 if unknown.
func (m *moments) variance() float64 {
	if m.n < 2 {
		return 0
	}
	return m.dev / float64(m.n-1) / float64(m.n)
}

// interval returns the mean with the interval of the normal distribution, which is valid for many
// observations.
func (m *moments) interval() Interval {
	half := z * math.Sqrt(m.variance())
	return Interval{Value: m.mean, Low: m.mean - half, High: m.mean + half, Of: m.n}
}

func difference(control, canary *moments) Interval {
	d, half := canary.mean-control.mean, z*math.Sqrt(control.variance()+canary.variance())
	if control.n == 0 || canary.n == 0 {
		return Interval{}
	}
	return Interval{Value: d, Low: d - half, High: d + half, Of: min(control.n, canary.n)}
}

// armOf returns the group of a request in an arm; empty for other requests.
func armOf(e *entry) string {
	if e.Arm == "" {
		return ""
	}
	return name(e.Route) + " " + name(e.Arm)
}

// compare compares the arms of the routes that have both.
func (n *names) compare() []Comparison {
	var out []Comparison
	for _, g := range ranked(n.all) {
		route, ok := strings.CutSuffix(g.Name, " "+armCanary)
		control := n.all[route+" "+armControl]
		if !ok || control == nil {
			continue
		}
		c := Comparison{Route: route, Canary: g.canary}
		share := func(name string, k func(g *sums) (k, n int64)) {
			a, b := wilson(k(control)), wilson(k(g))
			c.Shares = append(c.Shares, Pair{name, a, b, newcombe(a, b)})
		}
		share("errors", func(g *sums) (k, n int64) { return g.Failed, g.Requests })
		share("client left", func(g *sums) (k, n int64) { return g.Gone, g.Requests })
		share("answered by another model", func(g *sums) (k, n int64) { return g.strayed, g.Answered })
		finishes := g.finishes(control)
		for _, word := range finishes {
			share("ended by "+word, func(g *sums) (k, n int64) { return g.finish[word], g.ended() })
		}
		share("guard: unsupported", func(g *sums) (k, n int64) { return g.Guard.Unsupported, g.Guard.checked() })
		share("guard: unchecked", func(g *sums) (k, n int64) { return g.Guard.Unchecked, g.Guard.checked() })
		for _, f := range means() {
			a, b := f.of(control), f.of(g)
			if a.n+b.n > 0 {
				c.Means = append(c.Means, Pair{f.name, a.interval(), b.interval(), difference(a, b)})
			}
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Comparison) int { return strings.Compare(a.Route, b.Route) })
	return out
}

type mean struct {
	name string
	of   func(g *sums) *moments
}

func means() []mean {
	return []mean{
		{"prompt tokens", func(g *sums) *moments { return &g.prompt }},
		{"completion tokens", func(g *sums) *moments { return &g.completion }},
		{"USD of 1,000 answers", func(g *sums) *moments { return &g.cost }},
		{"first token in ms", func(g *sums) *moments { return &g.firstMs }},
		{"whole answer in ms", func(g *sums) *moments { return &g.tookMs }},
		{"rating", func(g *sums) *moments { return &g.ratings }},
	}
}

// finishes returns the finish reasons of both arms, sorted by name.
func (g *sums) finishes(other *sums) []string {
	var out []string
	for _, m := range []map[string]int64{g.finish, other.finish} {
		for word := range m {
			if !slices.Contains(out, word) {
				out = append(out, word)
			}
		}
	}
	slices.Sort(out)
	return out
}

// ended returns the number of responses with a finish reason.
func (g *sums) ended() (n int64) {
	for _, x := range g.finish {
		n += x
	}
	return n
}

func (v *Guard) checked() int64 { return v.Supported + v.Unsupported + v.Unchecked }

// measure collects the values for the comparison of arms.
func (g *sums) measure(e *entry) {
	model, _, _ := strings.Cut(e.Action.Canary, " ")
	g.canary = name(e.Action.Canary)
	if e.ends() == endAnswered && (e.Arm == armCanary && e.Model != model || e.Arm == armControl && e.Model != e.Chosen) {
		g.strayed++
	}
	if e.Tokens != nil {
		g.prompt.add(float64(e.Tokens.Prompt))
		g.completion.add(float64(e.Tokens.Completion))
		g.cost.add(1000 * e.Cost)
	}
	if e.TTFTMs > 0 {
		g.firstMs.add(e.TTFTMs)
	}
	if e.whole() {
		g.tookMs.add(e.TookMs)
	}
}
