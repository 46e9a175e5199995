package choose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"signalbox/rules"
)

func dice() (r *rand.Rand, normal, uniform func() float64) {
	r = rand.New(rand.NewPCG(1, 2))
	return r, r.NormFloat64, r.Float64
}

// known returns a candidate with predictions from outcomes.
func known(name string, prior, quality, deviation, cost float64) Candidate {
	return Candidate{
		Name: name, Quality: quality, Cost: cost, Latency: unknown,
		guess: &Expected{
			Model: name, Prior: prior, Everywhere: quality, Quality: quality, Deviation: deviation, Overall: deviation,
		},
	}
}

// pool returns candidates sorted by quality, and two that must not be drawn.
func pool() []Candidate {
	out := known("out", 0.9, 0.9, 0.2, 1)
	out.Out = true
	return []Candidate{
		known("best", 0.8, 0.8, 0.1, 9), known("near", 0.7, 0.75, 0.1, 3), known("far", 0.3, 0.3, 0.1, 1),
		out,
		{Name: "unknown", Quality: -1},
	}
}

func TestEachCandidateIsDrawnWithTheChanceThatIsTold(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	a, act := NewAccounts(), &rules.Action{By: "quality"}
	const n = 20_000
	want, got := map[string]float64{}, map[string]float64{}
	for range n {
		cs := pool()
		p := a.Explore("t", cs, act, Exploration{Share: 0.5, MaxQualityLoss: 1}, normal, uniform)
		if p != cs[0].Chance || p <= 0 || len(cs) != 5 {
			t.Fatalf("%s in front with chance %v of %v", cs[0].Name, p, cs[0].Chance)
		}
		sum := 0.0
		for i := range cs {
			want[cs[i].Name] += cs[i].Chance / n
			sum += cs[i].Chance
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("the chances add up to %v", sum)
		}
		got[cs[0].Name] += 1. / n
	}
	for name, p := range want {
		if math.Abs(got[name]-p) > 0.01 {
			t.Errorf("%s was drawn %.3f of the times, its chances are %.3f", name, got[name], p)
		}
	}
	// the difference of two draws has a deviation of 0.14: the one that is 0.05 worse wins in 36 of
	// 100
	if p := want["near"]; math.Abs(p-0.36) > 0.02 {
		t.Errorf("the chance of near is %.3f", p)
	}
	if want["out"] != 0 || want["unknown"] != 0 || want["far"] > 0.01 {
		t.Errorf("chances: %v", want)
	}
}

func TestOthersThanTheFirstGetNoMoreThanTheirShare(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	a, act := NewAccounts(), &rules.Action{By: "quality"}
	for range 500 {
		cs := pool()
		a.Explore("t", cs, act, Exploration{Share: 0.1, MaxQualityLoss: 1}, normal, uniform)
		for i := range cs {
			if cs[i].Name == "best" && cs[i].Chance < 0.9-1e-9 {
				t.Fatalf("the first one has a chance of %v", cs[i].Chance)
			}
		}
	}
	cs := pool()
	if p := a.Explore("t", cs, act, Exploration{MaxQualityLoss: 1}, normal, uniform); p != 1 || cs[0].Name != "best" {
		t.Errorf("with exploring off %s has a chance of %v", cs[0].Name, p)
	}
}

func TestExploringCostsNoMoreThanItIsAllowed(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	const loss = 0.002
	for name, deviation := range map[string]float64{"certain": 0.05, "uncertain": 0.5} {
		a, act := NewAccounts(), &rules.Action{By: "quality"}
		lost := 0.0
		for n := 1; n <= 3000; n++ {
			cs := pool()
			for i := range cs {
				if g := cs[i].guess; g != nil {
					g.Deviation, g.Overall = deviation, deviation
				}
			}
			a.Explore("t", cs, act, Exploration{Share: 1, MaxQualityLoss: loss}, normal, uniform)
			for i := range cs {
				lost += cs[i].Chance * (0.8 - max(cs[i].Quality, 0))
			}
			if lost > credited*loss*float64(n)+1e-9 {
				t.Fatalf("%s: %v lost after %d requests", name, lost, n)
			}
		}
		if lost < 0.9*credited*loss*3000 {
			t.Errorf("%s: only %v was spent", name, lost)
		}
	}
}

// The account is lent more when skills prove wrong, but not for a model that falls short by less
// than a standard deviation, nor for a request that is hard for every model, and only up to a
// limit.
func TestExploringIsLentForAsSkillsProveWrong(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	const loss, n = 0.002, 2000
	for name, c := range map[string]struct{ prior, hard, least, most float64 }{
		"as praised":    {0.8, 0, 0, credited * n},
		"within doubt":  {0.88, 0, 0, credited * n},
		"far too much":  {1, 0, credited*n + 0.9*lent, credited*n + lent},
		"little enough": {0.6, 0, 0, credited * n},
		"a hard prompt": {0.8, 0.5, 0, credited * n},
	} {
		a, act := NewAccounts(), &rules.Action{By: "quality"}
		lost := 0.0
		for range n {
			cs := []Candidate{known("praised", c.prior, 0.8, 0.1, 1), known("other", 0.5, 0.7, 0.1, 1)}
			for i := range cs {
				cs[i].guess.Quality -= c.hard
			}
			a.Explore("t", cs, act, Exploration{Share: 1, MaxQualityLoss: loss}, normal, uniform)
			for i := range cs {
				lost += cs[i].Chance * (0.8 - cs[i].Quality)
			}
		}
		if lost < c.least*loss || lost > c.most*loss+1e-9 {
			t.Errorf("%s: %.1f requests' cost spent, of %v to %v", name, lost/loss, c.least, c.most)
		}
	}
}

// What was not spent is kept, up to the cost of a number of requests, and so is the loan: a full
// account is lent nothing, so that the loan remains available.
func TestAnAccountHoldsNoMoreThanIsKept(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	const loss = 0.002
	for name, c := range map[string]struct{ prior, least, most float64 }{
		"credit": {0.8, 0.9 * kept, kept},
		"loans":  {1, kept + lent/2, kept + lent}, // some of lent are in what was kept
	} {
		a, act := NewAccounts(), &rules.Action{By: "quality"}
		spend := func(requests int, deviation float64) (lost float64) {
			for range requests {
				cs := []Candidate{known("praised", c.prior, 0.8, deviation, 1), known("other", 0.5, 0.5, deviation, 1)}
				a.Explore("t", cs, act, Exploration{Share: 1, MaxQualityLoss: loss}, normal, uniform)
				for i := range cs {
					lost += cs[i].Chance * (0.8 - cs[i].Quality) / loss
				}
			}
			return lost
		}
		if lost := spend(3000, 0.001); lost > 0 {
			t.Fatalf("%s: %.1f requests' cost spent where nothing is uncertain", name, lost)
		}
		const n = 200
		if lost := spend(n, 0.15) - credited*n; lost > c.most+1e-9 || lost < c.least {
			t.Errorf("%s: %.1f requests' cost spent besides the credit, want %v to %v", name, lost, c.least, c.most)
		}
	}
}

// With choice by cost, exploring does not pay for what the first candidate loses within the margin.
func TestExploringGoesOnWhereTheFirstCandidateLosesOnEveryRequest(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	const loss, n = 0.005, 2000
	a, act := NewAccounts(), &rules.Action{By: "cost", Margin: 0.1}
	others, lost := 0.0, 0.0
	for range n {
		cs := []Candidate{
			known("cheap", 0.6, 0.75, 0.001, 1), known("dear", 0.8, 0.8, 0.001, 9), known("free", 0.3, 0.6, 0.1, 0),
		}
		a.Explore("t", cs, act, Exploration{Share: 1, MaxQualityLoss: loss}, normal, uniform)
		for i := range cs {
			if cs[i].Name != "cheap" {
				others += cs[i].Chance
			}
			lost += cs[i].Chance * (0.75 - cs[i].Quality)
		}
	}
	if others < 0.01*n || lost > credited*loss*n+1e-9 {
		t.Errorf("others were drawn %.1f times of %d, %.1f requests' cost was lost", others, n, lost/loss)
	}
}

// If outcomes show that the model with the best skills is the worst, exploring costs nothing
// compared with that model.
func TestExploringIsPaidForByWhatOutcomesGained(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	a, act := NewAccounts(), &rules.Action{By: "quality"}
	first := 0.0
	for range 1000 {
		cs := []Candidate{
			known("better", 0.5, 0.5, 0.2, 1), known("new", 0.4, 0.45, 0.2, 1), known("praised", 0.9, 0.2, 0.05, 1),
		}
		a.Explore("t", cs, act, Exploration{Share: 1, MaxQualityLoss: 0}, normal, uniform)
		for i := range cs {
			if cs[i].Name == "better" {
				first += cs[i].Chance / 1000
			}
		}
	}
	if math.Abs(first-0.53) > 0.05 { // the chance that it is the best of the three
		t.Errorf("the first one has a chance of %.3f", first)
	}
}

func TestByCostTheCheapestIsDrawnAsFarAsItMayBeGoodEnough(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	a, act := NewAccounts(), &rules.Action{By: "cost", Margin: 0.1}
	cheap := 0.0
	for range 1000 {
		cs := []Candidate{known("dear", 0.8, 0.8, 0.001, 9), known("cheap", 0.7, 0.65, 0.05, 1), known("free", 0.1, 0.1, 0.01, 0)}
		a.Explore("t", cs, act, Exploration{Share: 1, MaxQualityLoss: 1}, normal, uniform)
		for i := range cs {
			switch {
			case cs[i].Name == "cheap":
				cheap += cs[i].Chance / 1000
			case cs[i].Name == "free" && cs[i].Chance > 0:
				t.Fatal("what is certainly too bad was drawn")
			}
		}
	}
	if math.Abs(cheap-0.16) > 0.02 { // one standard deviation above what is expected
		t.Errorf("the cheap one has a chance of %.3f", cheap)
	}
}

func TestChancesByWeightAreTheShares(t *testing.T) {
	t.Parallel()
	cs := []Candidate{{Name: "a", weight: 3}, {Name: "b", weight: 1}, {Name: "c", weight: 6, Out: true}}
	if p := Weighted(cs); p != 0.75 || cs[1].Chance != 0.25 || cs[2].Chance != 0 {
		t.Errorf("%v, %v", p, cs)
	}
}

// twoEfforts returns predictions for a model without and with reasoning.
func twoEfforts(without, with, near float64) []AtEffort {
	return []AtEffort{
		{Effort: "none", Quality: without, Deviation: 0.05, Near: near},
		{Effort: "high", Quality: with, Deviation: 0.05, Near: near},
	}
}

const many = 1e6 // outcomes: there is no doubt

func TestTheLeastEffortThatLosesLittleIsChosen(t *testing.T) {
	t.Parallel()
	few := twoEfforts(0.9, 0.9, many)
	few[1].Near = 1
	measured := func(without, doubt float64) []AtEffort {
		es := twoEfforts(without, 0.7, 6)
		es[0].Calibrated, es[1].Calibrated, es[0].Doubt = true, true, doubt
		return es
	}
	three := append(twoEfforts(0.5, 0.8, many), AtEffort{Effort: "max", Quality: 0.802, Near: many})
	for name, c := range map[string]struct {
		es   []AtEffort
		want int
	}{
		"no difference":            {twoEfforts(0.7, 0.7, many), 0},
		"a difference":             {twoEfforts(0.7, 0.8, many), 1},
		"no difference, but doubt": {twoEfforts(0.7, 0.7, 6), 1},
		"better without":           {twoEfforts(0.8, 0.7, 6), 0},
		"measured to be equal":     {measured(0.7, 0.004), 0},
		"measured, with doubt":     {measured(0.7, 0.006), 1},
		"measured to be worse":     {measured(0.696, 0.004), 1},
		"too few outcomes of one":  {few, -1},
		"one effort":               {few[:1], -1},
		"the middle one will do":   {three, 1},
	} {
		if got := NewAccounts().Least("t", c.es, 5, 0.005); got != c.want {
			t.Errorf("%s: effort %d, want %d", name, got, c.want)
		}
	}
}

// Requests differ in the expected loss through less reasoning: those that lose least go without,
// and the mean loss is the allowed one.
func TestLessReasoningLosesOnTheMeanNoMoreThanIsAllowed(t *testing.T) {
	t.Parallel()
	r, _, _ := dice()
	a := NewAccounts()
	const loss, n = 0.01, 4000
	lost, without, most := 0.0, 0.0, 0.0
	for i := range n {
		gain := 0.2 * r.Float64()
		es := twoEfforts(0.8-gain, 0.8, many)
		at := a.Least("t", es, 5, loss)
		a.Count("t", es, 5)
		if at == 0 && i >= window {
			lost += gain / (n - window)
			without += 1. / (n - window)
			most = max(most, gain)
		}
	}
	// of gains even in [0, 0.2], the 32 of 100 below 0.063 lose 0.01 on the mean of all
	if lost > loss*1.05 || without < 0.25 || without > 0.34 || most > 0.08 {
		t.Errorf("%.4f lost, %.2f without reasoning, at most %.3f", lost, without, most)
	}
	if at := a.Least("other", twoEfforts(0.75, 0.8, many), 5, loss); at != 1 {
		t.Error("an account spends what another one saved")
	}
}

func TestAnEffortThatNobodyKnowsIsExplored(t *testing.T) {
	t.Parallel()
	_, normal, uniform := dice()
	a := NewAccounts()
	es := twoEfforts(0.7, 0.7, 20)
	es[0].Near, es[0].Deviation = 0, 0.2
	drawn := [2]float64{}
	for range 2000 {
		at, p := a.ExploreEffort("t", es, 1, Exploration{Share: 0.25, MaxQualityLoss: 0.005}, normal, uniform)
		if want := []float64{0.25, 0.75}[at]; math.Abs(p-want) > 1e-9 {
			t.Fatalf("effort %d with chance %v", at, p)
		}
		drawn[at] += 1. / 2000
	}
	if math.Abs(drawn[0]-0.25) > 0.03 {
		t.Errorf("drawn: %v", drawn)
	}
	if at, p := a.ExploreEffort("t", es, 1, Exploration{}, normal, uniform); at != 1 || p != 1 {
		t.Errorf("with exploring off: effort %d with chance %v", at, p)
	}
}

func TestAccountsAreBounded(t *testing.T) {
	t.Parallel()
	a := NewAccounts()
	es := twoEfforts(0.8, 0.8, many)
	for i := range maxAccounts + 100 {
		a.Count("busy", es, 5)
		a.Count(fmt.Sprint(i), es, 5)
	}
	if n := len(a.byKey); n > maxAccounts || a.byKey["busy"] == nil {
		t.Errorf("%d accounts; the busy one is among them: %v", n, a.byKey["busy"] != nil)
	}
}

func BenchmarkExplore(b *testing.B) {
	a, act := NewAccounts(), &rules.Action{By: "quality"}
	b.ReportAllocs()
	for b.Loop() {
		cs := pool()
		a.Explore("t", cs, act, Exploration{Share: 0.5, MaxQualityLoss: 0.005}, Normal, Uniform)
	}
}
