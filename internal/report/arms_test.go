package report

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

// The examples of the papers: Newcombe 1998, tables I and II of the paper on differences.
func TestIntervalsAreThoseOfTheirAuthors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		k, n      int64
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {29, 29, 0.8830, 1},
	} {
		if got := wilson(tt.k, tt.n); !near(got.Low, tt.low, 5e-5) || !near(got.High, tt.high, 5e-5) {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", tt.k, tt.n, got.Low, got.High, tt.low, tt.high)
		}
	}
	for _, tt := range []struct {
		k1, n1, k2, n2 int64
		low, high      float64
	}{
		{56, 70, 48, 80, 0.0524, 0.3339}, {9, 10, 3, 10, 0.1705, 0.8090}, {5, 56, 0, 29, -0.0381, 0.1926}, {10, 10, 0, 10, 0.6075, 1},
	} {
		if got := newcombe(wilson(tt.k2, tt.n2), wilson(tt.k1, tt.n1)); !near(got.Low, tt.low, 5e-5) || !near(got.High, tt.high, 5e-5) {
			t.Errorf("%d/%d - %d/%d: %.4f to %.4f, want %.4f to %.4f", tt.k1, tt.n1, tt.k2, tt.n2, got.Low, got.High, tt.low, tt.high)
		}
	}
	if got := newcombe(wilson(0, 0), wilson(1, 2)); got.Low != -1 || got.High != 1 {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestMeansAreThoseOfAllValues(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var all, a, b moments
	sum, squares := 0.0, 0.0
	const n = 1000
	for i := range n {
		x := r.NormFloat64()*3 + 50
		all.add(x)
		if i%3 == 0 {
			a.add(x)
		} else {
			b.add(x)
		}
		sum, squares = sum+x, squares+x*x
	}
	a.merge(&b)
	a.merge(&moments{})
	mean := sum / n
	half := 1.959964 * math.Sqrt((squares-n*mean*mean)/(n-1)/n)
	for name, m := range map[string]*moments{"at once": &all, "in parts": &a} {
		if got := m.interval(); !near(got.Value, mean, 1e-9) || !near(got.High-got.Value, half, 1e-9) || got.Of != n {
			t.Errorf("%s: %+v, want %v and %v about it", name, got, mean, half)
		}
	}
}

func TestArmsAreSetSideBySide(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	add := func(n int, arm, model, more string) {
		for i := range n {
			log.WriteString(line(fmt.Sprintf(`"arm":%q,"model":%q,"action":{"verb":"use","canary":"new 0.2"},%s`, arm, model, strings.ReplaceAll(more, "$", fmt.Sprint(i%10)))))
		}
	}
	const good = `"chosen":"old","finish":"stop","took_ms":10$,"ttft_ms":5,"tokens":{"prompt":10,"completion":1$},"cost_usd":0.001,"guard":{"verdict":"supported","claims":1}`
	add(790, "control", "old", good)
	add(10, "control", "old", `"status":502,"error":"upstream_error"`)
	add(150, "canary", "new", strings.Replace(good, "0.001", "0.01", 1))
	add(20, "canary", "new", `"finish":"length","took_ms":900,"tokens":{"prompt":10,"completion":99},"cost_usd":0.05,"guard":{"verdict":"unsupported","claims":2,"failed":1}`)
	add(10, "canary", "old", `"finish":"stop"`)
	add(20, "canary", "new", `"status":502,"error":"upstream_error"`)
	log.WriteString(line(`"model":"old"`)) // in no arm
	log.WriteString(line(`"model":"old","route":"lonely","arm":"control"`))
	r := sum(t, Options{By: []string{ByArm}}, log.String())
	s := r.By[0]
	if r.Decisions != 1002 || len(s.Groups) != 3 || len(s.Comparisons) != 1 {
		t.Fatalf("%d decisions, %d groups, %d comparisons", r.Decisions, len(s.Groups), len(s.Comparisons))
	}
	c := s.Comparisons[0]
	if c.Route != "r" || c.Canary != "new 0.2" {
		t.Errorf("%s, %s", c.Route, c.Canary)
	}
	got := map[string]Pair{}
	for _, p := range append(c.Shares, c.Means...) {
		got[p.Name] = p
	}
	for name, want := range map[string][2]Interval{
		"errors":                    {{Value: 10. / 800, Of: 800}, {Value: 20. / 200, Of: 200}},
		"answered by another model": {{Value: 0, Of: 790}, {Value: 10. / 180, Of: 180}},
		"ended by length":           {{Value: 0, Of: 790}, {Value: 20. / 180, Of: 180}},
		"guard: unsupported":        {{Value: 0, Of: 790}, {Value: 20. / 170, Of: 170}},
		"USD of 1,000 answers":      {{Value: 1, Of: 790}, {Value: (150*10. + 20*50) / 170, Of: 170}},
		"first token in ms":         {{Value: 5, Of: 790}, {Value: 5, Of: 150}},
	} {
		p := got[name]
		if !near(p.Control.Value, want[0].Value, 1e-9) || p.Control.Of != want[0].Of || !near(p.Canary.Value, want[1].Value, 1e-9) || p.Canary.Of != want[1].Of {
			t.Errorf("%s: %+v, want %+v", name, p, want)
		}
		if d := p.Difference; !near(d.Value, p.Canary.Value-p.Control.Value, 1e-12) || d.Low > d.Value || d.High < d.Value {
			t.Errorf("%s: the difference is %+v", name, d)
		}
	}
	marked := map[string]bool{}
	for _, row := range c.Texts() {
		marked[row[0]] = strings.HasSuffix(row[3], "*")
	}
	if !marked["errors"] || marked["prompt tokens"] || marked["first token in ms"] || marked["guard: unchecked"] {
		t.Errorf("marked are %v", marked)
	}
	var b bytes.Buffer
	if err := r.WriteHTML(&b, "v"); err != nil || !strings.Contains(b.String(), "without and with the canary (new 0.2 of the conversations)") {
		t.Errorf("the page does not tell of the arms: %v", err)
	}
}

// Of true shares, about 95 % lie in their intervals.
func TestIntervalsHoldWhatTheySay(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	draw := func(p float64, n int64) (k int64) {
		for range n {
			if r.Float64() < p {
				k++
			}
		}
		return k
	}
	const rounds = 3000
	share, diff := 0, 0
	for range rounds {
		a, b := wilson(draw(.08, 300), 300), wilson(draw(.1, 60), 60)
		if a.Low <= .08 && .08 <= a.High {
			share++
		}
		if d := newcombe(a, b); d.Low <= .02 && .02 <= d.High {
			diff++
		}
	}
	for name, held := range map[string]int{"shares": share, "differences": diff} {
		if x := float64(held) / rounds; x < .93 || x > .975 {
			t.Errorf("%.3f of %s lie in their intervals", x, name)
		}
	}
}
