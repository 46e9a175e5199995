package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
	"signalbox/rules"
)

// ranking is a State that can rank, with latencies that were observed before.
func ranking(seconds map[string]float64, models ...ModelOptions) *State {
	st := &State{byName: map[string]*model{}, speeds: newSpeeds(), lengths: newLengths(), intn: func(int) int { return 0 }}
	for _, o := range models {
		st.byName[o.Name] = &model{name: o.Name, window: o.ContextWindow, price: o.Price, skills: newSkills(o)}
	}
	for name, s := range seconds {
		st.speeds.observe(name, taken{total: secondsOf(s), tokens: assumedCompletion})
	}
	return st
}

// among is a decision among models for a prompt of 1,000 tokens.
func among(by string, margin float64, domain signal.Value, models ...string) *decision {
	a := &rules.Action{By: by, Margin: margin}
	for _, name := range models {
		a.Models = append(a.Models, rules.Choice{Name: name, Weight: 1})
	}
	d := &decision{Decision: rules.Decision{Action: a}, set: &signal.Set{Facts: signal.Facts{Tokens: 1000}}}
	d.set.Values[signal.Domain] = domain
	return d
}

func domainIs(math, law float32) signal.Value {
	v := signal.Value{State: signal.Known, Label: "math", Labels: []string{"math", "law"}, Probs: []float32{math, law}}
	if law > math {
		v.Label = "law"
	}
	return v
}

func TestCandidatesAreRankedByWhatTheRouteAsksFor(t *testing.T) {
	t.Parallel()
	const ten = 10.0
	solver := ModelOptions{Name: "solver", Skills: map[string]float64{"math": 0.9, "law": 0.2, "default": 0.5}, Price: PriceOptions{Input: 4, Output: ten}}
	lawyer := ModelOptions{Name: "lawyer", Skills: map[string]float64{"math": 0.3, "law": 0.8, "default": 0.5}, Price: PriceOptions{Input: 3, Output: ten}}
	frugal := ModelOptions{Name: "frugal", Skills: map[string]float64{"default": 0.47}, Price: PriceOptions{Input: 0.1, Output: 0.2}}
	bare := ModelOptions{Name: "bare", ContextWindow: 700}
	rated := ModelOptions{Name: "rated", Skills: map[string]float64{"default": 0.48}}
	models := []ModelOptions{solver, lawyer, frugal, bare, rated}
	all := []string{"bare", "rated", "frugal", "lawyer", "solver"}
	var nothing signal.Value
	tests := []struct {
		name    string
		d       *decision
		seconds map[string]float64
		want    []string // the order; behind a colon, why it stands there
	}{
		{"by order, the file decides", among("order", 0, domainIs(1, 0), "frugal", "solver"), nil, []string{"frugal", "solver"}},
		{
			"by quality, a question of mathematics goes to who is good at it", among("quality", 0, domainIs(1, 0), all...), nil,
			[]string{"solver", "rated", "frugal", "lawyer", "bare:" + leftWindow},
		},
		{"by quality, a doubtful domain is weighted", among("quality", 0, domainIs(0.45, 0.55), "frugal", "solver", "lawyer"), nil, []string{"lawyer", "solver", "frugal"}},
		{
			"by quality, without a domain the default counts and the price decides between equals", among("quality", 0, nothing, "solver", "lawyer", "frugal"), nil,
			[]string{"lawyer", "solver", "frugal"},
		},
		{"by quality, a model without skills comes last", among("quality", 0, domainIs(0, 1), "unrated", "frugal"), nil, []string{"frugal", "unrated:" + leftSkills}},
		{"by cost, the cheapest within the margin", among("cost", 0.05, nothing, "solver", "lawyer", "frugal"), nil, []string{"frugal", "lawyer", "solver"}},
		{
			"by cost, a smaller margin keeps the cheapest out", among("cost", 0.02, nothing, "solver", "frugal", "lawyer"), nil,
			[]string{"lawyer", "solver", "frugal:" + leftQuality},
		},
		{
			"by cost, the best of a domain has no rival", among("cost", 0.05, domainIs(1, 0), "frugal", "lawyer", "solver"), nil,
			[]string{"solver", "frugal:" + leftQuality, "lawyer:" + leftQuality},
		},
		{
			"by cost, no price is no low price", among("cost", 0.05, nothing, "rated", "solver", "unrated"), nil,
			[]string{"solver", "rated:" + leftPrice, "unrated:" + leftSkills},
		},
		{
			"by cost, with a margin of one quality plays no part", among("cost", 1, domainIs(1, 0), "solver", "frugal", "unrated"), nil,
			[]string{"frugal", "solver", "unrated:" + leftPrice},
		},
		{"by cost, without any skills the price alone", among("cost", 0.05, nothing, "cheap", "cheaper"), nil, []string{"cheaper", "cheap"}},
		{
			"by latency, the fastest within the margin", among("latency", 0.05, nothing, "solver", "lawyer", "frugal"),
			map[string]float64{"solver": 2, "lawyer": 1, "frugal": 3},
			[]string{"lawyer", "solver", "frugal"},
		},
		{
			"by latency, who was never observed stands behind", among("latency", 0.05, nothing, "solver", "lawyer"),
			map[string]float64{"lawyer": 9},
			[]string{"lawyer", "solver:" + leftSpeed},
		},
		{
			"by latency, fast does not make up for bad", among("latency", 0.05, domainIs(1, 0), "lawyer", "solver"),
			map[string]float64{"solver": 9, "lawyer": 1},
			[]string{"solver", "lawyer:" + leftQuality},
		},
		{"equals keep the order of the file", among("cost", 1, nothing, "twin", "cheap", "twin2"), nil, []string{"twin", "cheap", "twin2"}},
		{"a name that is not configured is said", among("order", 0, nothing, "ghost", "solver"), nil, []string{"solver", "ghost:" + leftAbsent}},
	}
	one := PriceOptions{Input: 1, Output: 1}
	models = append(models, ModelOptions{Name: "unrated"}, ModelOptions{Name: "cheap", Price: one}, ModelOptions{Name: "twin", Price: one},
		ModelOptions{Name: "twin2", Price: one}, ModelOptions{Name: "cheaper", Price: PriceOptions{Output: 1}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := ranking(tt.seconds, models...)
			var got []string
			for _, c := range st.rank(tt.d) {
				s := c.Name
				if c.Left != "" {
					s += ":" + c.Left
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheFiguresOfACandidate(t *testing.T) {
	st := ranking(map[string]float64{"m": 4}, ModelOptions{Name: "m", SkillsFrom: "Meta-Llama-3_1-8B-Instruct", Price: PriceOptions{Input: 2, Output: 8}}, ModelOptions{Name: "n"})
	tests := []struct {
		name   string
		length int64 // of all answers so far; 0 for none
		limit  int
		domain signal.Value
		want   candidate
	}{
		{
			"quality is that of the domain, cost that of the prompt and an assumed answer", 0, 0, domainIs(1, 0),
			candidate{Name: "m", Quality: 0.437, Cost: (1000*2 + assumedCompletion*8) / 1e6, Latency: 4},
		},
		{
			"an observed length replaces the assumed one", 512, 0, domainIs(0, 1),
			candidate{Name: "m", Quality: 0.272, Cost: (1000*2 + 512*8) / 1e6, Latency: 8},
		},
		{
			"no answer is longer than the route allows", 512, 128, domainIs(0.5, 0.5),
			candidate{Name: "m", Quality: (0.437 + 0.272) / 2, Cost: (1000*2 + 128*8) / 1e6, Latency: 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := among("quality", 0, tt.domain, "m", "n")
			d.Action.MaxTokens.Limit = tt.limit
			st.lengths = newLengths()
			for range enoughForMean {
				if tt.length > 0 {
					st.lengths.observe(kind{model: "m"}, tt.length, ended)
				}
			}
			got := st.rank(d)
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-7 && b-a < 1e-7 })
			public := cmp.FilterPath(func(p cmp.Path) bool {
				return p.Last().String() == ".model" || p.Last().String() == ".weight" || p.Last().String() == ".class"
			}, cmp.Ignore())
			want := []candidate{tt.want, {Name: "n", Quality: unknown, Cost: unknown, Latency: unknown, Left: leftSkills}}
			if diff := cmp.Diff(want, got, near, public, cmp.AllowUnexported(candidate{})); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}

// drawn is a random ranking problem.
type drawn struct {
	st     *State
	d      *decision
	margin float64
}

func draw(t *rapid.T, by string) drawn {
	grid := func(label string, n int) float64 { return float64(rapid.IntRange(0, n).Draw(t, label)) / float64(n) }
	n := rapid.IntRange(1, 6).Draw(t, "models")
	var (
		models  []ModelOptions
		listed  []string
		seconds = map[string]float64{}
	)
	for i := range n {
		o := ModelOptions{Name: string(rune('a' + i))}
		if rapid.IntRange(0, 4).Draw(t, "rated") > 0 {
			o.Skills = map[string]float64{"math": grid("math", 10), "law": grid("law", 10), "default": grid("default", 10)}
		}
		if rapid.IntRange(0, 4).Draw(t, "priced") > 0 {
			o.Price = PriceOptions{Input: grid("input", 4), Output: grid("output", 4)}
		}
		if rapid.IntRange(0, 5).Draw(t, "windowed") == 0 {
			o.ContextWindow = 512
		}
		if rapid.IntRange(0, 4).Draw(t, "seen") > 0 {
			seconds[o.Name] = float64(rapid.IntRange(1, 4).Draw(t, "seconds"))
		}
		models, listed = append(models, o), append(listed, o.Name)
	}
	p := float32(grid("p", 4))
	domain := domainIs(p, 1-p)
	if rapid.IntRange(0, 3).Draw(t, "unknown") == 0 {
		domain = signal.Value{State: signal.Unknown}
	}
	out := drawn{st: ranking(seconds, models...), margin: grid("margin", 10)}
	out.d = among(by, out.margin, domain, listed...)
	return out
}

// dominates reports that y is at least as good as x in both figures and better in one.
func dominates(y, x, byY, byX float64) bool {
	return y >= x && byY <= byX && (y > x || byY < byX)
}

func TestTheChosenOneIsNeverDominated(t *testing.T) {
	t.Parallel()
	figure := map[string]func(*candidate) float64{
		"quality": func(c *candidate) float64 { return c.Cost },
		"cost":    func(c *candidate) float64 { return c.Cost },
		"latency": func(c *candidate) float64 { return c.Latency },
	}
	for by, of := range figure {
		t.Run("by "+by, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := draw(t, by)
				cs := p.st.rank(p.d)
				first := &cs[0]
				best := -1.0
				for i := range cs {
					if c := &cs[i]; !c.Out {
						best = max(best, c.Quality)
					}
				}
				for i := range cs {
					c := &cs[i]
					both := !c.Out && !first.Out && c.Quality >= 0 && first.Quality >= 0 && of(c) >= 0 && of(first) >= 0
					if both && dominates(c.Quality, first.Quality, of(c), of(first)) {
						t.Fatalf("%+v is chosen before %+v", *first, *c)
					}
					if i > 0 && cs[i-1].Out && !c.Out {
						t.Fatalf("%q is not tried and stands before %q", cs[i-1].Name, c.Name)
					}
				}
				switch {
				case first.Out:
				case by == "quality" && first.Quality != best:
					t.Fatalf("quality %v is chosen, %v is there", first.Quality, best)
				case by != "quality" && best >= 0 && p.margin < 1 && first.Quality < best-p.margin-closeEnough:
					t.Fatalf("quality %v is chosen, more than %v below %v", first.Quality, p.margin, best)
				}
			})
		})
	}
}

func TestAWiderMarginNeverCostsMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, "cost")
		narrow := p.st.rank(p.d)[0]
		p.d.Action.Margin += float64(rapid.IntRange(0, 10).Draw(t, "wider")) / 10
		wide := p.st.rank(p.d)[0]
		if narrow.Cost >= 0 && (wide.Cost < 0 || wide.Cost > narrow.Cost) {
			t.Fatalf("margin %v chose %+v, a wider one %+v", p.margin, narrow, wide)
		}
	})
}

func TestTheSameRequestMeetsTheSameOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, rapid.SampledFrom([]string{"order", "weight", "quality", "cost", "latency"}).Draw(t, "by"))
		a, b := p.st.rank(p.d), p.st.rank(p.d)
		if diff := cmp.Diff(a, b, cmp.AllowUnexported(candidate{}), cmp.Comparer(func(x, y *model) bool { return x == y })); diff != "" {
			t.Fatalf("two looks at the same request differ:\n%s", diff)
		}
	})
}

func TestChoosingAllocatesTheResultOnly(t *testing.T) {
	a := ModelOptions{Name: "a", SkillsFrom: "mathstral-7B", Price: PriceOptions{Input: 1, Output: 2}}
	b := ModelOptions{Name: "b", SkillsFrom: "gemma-7b", Price: PriceOptions{Input: 2, Output: 1}}
	st := ranking(map[string]float64{"a": 1, "b": 2}, a, b)
	for _, by := range []string{"order", "weight", "quality", "cost", "latency"} {
		d := among(by, 0.05, domainIs(0.5, 0.5), "a", "b")
		if n := testing.AllocsPerRun(100, func() { st.choose(d) }); n > 1 {
			t.Errorf("by %s: %v allocations", by, n)
		}
		if n := testing.AllocsPerRun(100, func() { st.rank(d) }); n > 1 {
			t.Errorf("by %s, explained: %v allocations", by, n)
		}
	}
}

func BenchmarkChooseByCost(b *testing.B) {
	var models []ModelOptions
	var listed []string
	for i := range 5 {
		name := mmluPro[i].name
		models = append(models, ModelOptions{Name: name, SkillsFrom: name, Price: PriceOptions{Input: 1, Output: float64(i + 1)}})
		listed = append(listed, name)
	}
	st := ranking(nil, models...)
	v := signal.Value{State: signal.Known, Label: "math", Labels: mmluProDomains[:], Probs: make([]float32, len(mmluProDomains))}
	for i := range v.Probs {
		v.Probs[i] = 1 / float32(len(v.Probs))
	}
	d := among("cost", 0.05, v, listed...)
	b.ReportAllocs()
	for b.Loop() {
		st.choose(d)
	}
}
