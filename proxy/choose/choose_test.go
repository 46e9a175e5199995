package choose

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
	"signalbox/proxy/lengths"
	"signalbox/rules"
)

// rated is a model with its configured skills.
type rated struct {
	name   string
	skills map[string]float64
	from   string
	price  Price
	window int
}

// ranking returns a Chooser among models with observed latencies.
func ranking(seconds map[string]float64, models ...rated) *Chooser {
	c := &Chooser{Models: map[string]*Model{}, Speeds: NewSpeeds(time.Now), Lengths: lengths.New(), Intn: func(int) int { return 0 }}
	for _, m := range models {
		c.Models[m.name] = &Model{Name: m.name, Window: m.window, Price: m.price, Skills: NewSkills(m.skills, m.from)}
	}
	for name, s := range seconds {
		c.Speeds.Observe(name, Taken{Total: secondsOf(s), Tokens: assumedCompletion})
	}
	return c
}

// among returns a request that may go to several models, with a prompt of 1,000 tokens.
func among(by string, margin float64, domain signal.Value, models ...string) Request {
	a := &rules.Action{By: by, Margin: margin}
	for _, name := range models {
		a.Models = append(a.Models, rules.Choice{Name: name, Weight: 1})
	}
	r := Request{Action: a, Set: &signal.Set{Facts: signal.Facts{Tokens: 1000}}}
	r.Set.Put(signal.Domain, domain)
	return r
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
	solver := rated{name: "solver", skills: map[string]float64{"math": 0.9, "law": 0.2, "default": 0.5}, price: Price{Input: 4, Output: ten}}
	lawyer := rated{name: "lawyer", skills: map[string]float64{"math": 0.3, "law": 0.8, "default": 0.5}, price: Price{Input: 3, Output: ten}}
	frugal := rated{name: "frugal", skills: map[string]float64{"default": 0.47}, price: Price{Input: 0.1, Output: 0.2}}
	bare := rated{name: "bare", window: 700}
	scored := rated{name: "rated", skills: map[string]float64{"default": 0.48}}
	models := []rated{solver, lawyer, frugal, bare, scored}
	all := []string{"bare", "rated", "frugal", "lawyer", "solver"}
	var nothing signal.Value
	tests := []struct {
		name    string
		d       Request
		seconds map[string]float64
		want    []string // the order and, after a colon, the reason
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
		{
			"by quality, of equals a known price stands before none, wherever the file has them", among("quality", 1, nothing, "solver", "priceless", "lawyer", "cheapest"), nil,
			[]string{"cheapest", "lawyer", "solver", "priceless"},
		},
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
	one := Price{Input: 1, Output: 1}
	models = append(models, rated{name: "unrated"}, rated{name: "cheap", price: one}, rated{name: "twin", price: one},
		rated{name: "twin2", price: one}, rated{name: "priceless", skills: solver.skills},
		rated{name: "cheapest", skills: solver.skills, price: Price{Input: 1, Output: 1}}, rated{name: "cheaper", price: Price{Output: 1}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := ranking(tt.seconds, models...)
			var got []string
			for _, c := range st.Rank(tt.d) {
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
	st := ranking(map[string]float64{"m": 4}, rated{name: "m", from: "Meta-Llama-3_1-8B-Instruct", price: Price{Input: 2, Output: 8}}, rated{name: "n"})
	// stretched converts the time of a response of assumedCompletion tokens to another length.
	stretched := func(seconds, tokens float64) float64 {
		return seconds * (tokens + fixedTokens) / (assumedCompletion + fixedTokens)
	}
	tests := []struct {
		name   string
		length int64 // of all answers so far; 0 for none
		limit  int
		own    int64 // the client's limit
		over   bool  // the route overrides it
		domain signal.Value
		want   Candidate
	}{
		{
			"quality is that of the domain, cost that of the prompt and an assumed answer", 0, 0, 0, false, domainIs(1, 0),
			Candidate{Name: "m", Quality: 0.437, Cost: (1000*2 + assumedCompletion*8) / 1e6, Latency: 4},
		},
		{
			"an observed length replaces the assumed one", 512, 0, 0, false, domainIs(0, 1),
			Candidate{Name: "m", Quality: 0.272, Cost: (1000*2 + 512*8) / 1e6, Latency: stretched(4, 512)},
		},
		{
			"no answer is longer than the route allows", 512, 128, 0, false, domainIs(0.5, 0.5),
			Candidate{Name: "m", Quality: (0.437 + 0.272) / 2, Cost: (1000*2 + 128*8) / 1e6, Latency: stretched(4, 128)},
		},
		{
			"no answer is longer than the client allows", 512, 0, 64, false, domainIs(1, 0),
			Candidate{Name: "m", Quality: 0.437, Cost: (1000*2 + 64*8) / 1e6, Latency: stretched(4, 64)},
		},
		{
			"the client's limit counts before that of the route", 512, 128, 300, false, domainIs(1, 0),
			Candidate{Name: "m", Quality: 0.437, Cost: (1000*2 + 300*8) / 1e6, Latency: stretched(4, 300)},
		},
		{
			"a route that overrides the client's limit counts before it", 512, 128, 300, true, domainIs(1, 0),
			Candidate{Name: "m", Quality: 0.437, Cost: (1000*2 + 128*8) / 1e6, Latency: stretched(4, 128)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := among("quality", 0, tt.domain, "m", "n")
			d.Action.MaxTokens.Limit, d.Action.Override, d.Limit = tt.limit, tt.over, tt.own
			st.Lengths = lengths.New()
			for range 10 {
				if tt.length > 0 {
					st.Lengths.Observe(lengths.Kind{Model: "m"}, tt.length, lengths.Ended)
				}
			}
			got := st.Rank(d)
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-7 && b-a < 1e-7 })
			public := cmp.FilterPath(func(p cmp.Path) bool {
				return p.Last().String() == ".model" || p.Last().String() == ".weight" || p.Last().String() == ".class"
			}, cmp.Ignore())
			want := []Candidate{tt.want, {Name: "n", Quality: unknown, Cost: unknown, Latency: unknown, Left: leftSkills}}
			if diff := cmp.Diff(want, got, near, public, cmp.AllowUnexported(Candidate{})); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}

// drawn is a random ranking problem.
type drawn struct {
	st     *Chooser
	d      Request
	margin float64
}

func draw(t *rapid.T, by string) drawn {
	grid := func(label string, n int) float64 { return float64(rapid.IntRange(0, n).Draw(t, label)) / float64(n) }
	n := rapid.IntRange(1, 6).Draw(t, "models")
	var (
		models  []rated
		listed  []string
		seconds = map[string]float64{}
	)
	for i := range n {
		o := rated{name: string(rune('a' + i))}
		if rapid.IntRange(0, 4).Draw(t, "rated") > 0 {
			o.skills = map[string]float64{"math": grid("math", 10), "law": grid("law", 10), "default": grid("default", 10)}
		}
		if rapid.IntRange(0, 4).Draw(t, "priced") > 0 {
			o.price = Price{Input: grid("input", 4), Output: grid("output", 4)}
		}
		if rapid.IntRange(0, 5).Draw(t, "windowed") == 0 {
			o.window = 512
		}
		if rapid.IntRange(0, 4).Draw(t, "seen") > 0 {
			seconds[o.name] = float64(rapid.IntRange(1, 4).Draw(t, "seconds"))
		}
		models, listed = append(models, o), append(listed, o.name)
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

// dominates reports whether y is at least as good as x in both figures and better in one.
func dominates(y, x, byY, byX float64) bool {
	return y >= x && byY <= byX && (y > x || byY < byX)
}

func TestTheChosenOneIsNeverDominated(t *testing.T) {
	t.Parallel()
	figure := map[string]func(*Candidate) float64{
		"quality": func(c *Candidate) float64 { return c.Cost },
		"cost":    func(c *Candidate) float64 { return c.Cost },
		"latency": func(c *Candidate) float64 { return c.Latency },
	}
	for by, of := range figure {
		t.Run("by "+by, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := draw(t, by)
				cs := p.st.Rank(p.d)
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

func TestEveryPairStandsInTheOrderOfItsOwnFigures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, rapid.SampledFrom([]string{"quality", "cost", "latency"}).Draw(t, "by"))
		better := map[string]func(x, y *Candidate) bool{"quality": betterQuality, "cost": cheaper, "latency": faster}[p.d.Action.By]
		cs := p.st.Rank(p.d)
		for i := range cs {
			for j := range i {
				if better(&cs[i], &cs[j]) {
					t.Fatalf("%+v stands behind %+v", cs[i], cs[j])
				}
			}
		}
	})
}

func TestAModelThatOnlyKeptClientsWaitingStandsBehindOneThatAnswered(t *testing.T) {
	t.Parallel()
	c := ranking(map[string]float64{"answered": 60}, rated{name: "silent"}, rated{name: "answered"})
	c.Speeds.InVain("silent", time.Millisecond)
	got := c.Rank(among("latency", 1, signal.Value{}, "silent", "answered"))
	if got[0].Name != "answered" || got[1].Left != leftSpeed {
		t.Errorf("the order is %+v", got)
	}
}

func TestAWiderMarginNeverCostsMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, "cost")
		narrow := p.st.Rank(p.d)[0]
		p.d.Action.Margin += float64(rapid.IntRange(0, 10).Draw(t, "wider")) / 10
		wide := p.st.Rank(p.d)[0]
		if narrow.Cost >= 0 && (wide.Cost < 0 || wide.Cost > narrow.Cost) {
			t.Fatalf("margin %v chose %+v, a wider one %+v", p.margin, narrow, wide)
		}
	})
}

func TestTheSameRequestMeetsTheSameOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, rapid.SampledFrom([]string{"order", "weight", "quality", "cost", "latency"}).Draw(t, "by"))
		a, b := p.st.Rank(p.d), p.st.Rank(p.d)
		if diff := cmp.Diff(a, b, cmp.AllowUnexported(Candidate{}), cmp.Comparer(func(x, y *Model) bool { return x == y })); diff != "" {
			t.Fatalf("two looks at the same request differ:\n%s", diff)
		}
	})
}

func TestChoosingAllocatesTheResultOnly(t *testing.T) {
	a := rated{name: "a", from: "mathstral-7B", price: Price{Input: 1, Output: 2}}
	b := rated{name: "b", from: "gemma-7b", price: Price{Input: 2, Output: 1}}
	st := ranking(map[string]float64{"a": 1, "b": 2}, a, b)
	for _, by := range []string{"order", "weight", "quality", "cost", "latency"} {
		d := among(by, 0.05, domainIs(0.5, 0.5), "a", "b")
		if n := testing.AllocsPerRun(100, func() { st.Choose(d) }); n > 1 {
			t.Errorf("by %s: %v allocations", by, n)
		}
		if n := testing.AllocsPerRun(100, func() { st.Rank(d) }); n > 1 {
			t.Errorf("by %s, explained: %v allocations", by, n)
		}
	}
}

func BenchmarkChooseByCost(b *testing.B) {
	var models []rated
	var listed []string
	for i := range 5 {
		name := mmluPro[i].name
		models = append(models, rated{name: name, from: name, price: Price{Input: 1, Output: float64(i + 1)}})
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
		st.Choose(d)
	}
}

func TestWeightsDecideWhichModelComesFirst(t *testing.T) {
	t.Parallel()
	choices := []rules.Choice{{Name: "a", Weight: 1}, {Name: "b", Weight: 3}}
	first := map[string]int{}
	c := &Chooser{Intn: rand.New(rand.NewPCG(1, 2)).IntN}
	r := Request{Action: &rules.Action{Models: choices, By: "weight"}}
	for range 400 {
		cs := c.Choose(r)
		first[cs[0].Name]++
		if len(cs) != 2 || cs[0].Name == cs[1].Name {
			t.Fatalf("candidates are %v", cs)
		}
	}
	if first["b"] < 270 || first["b"] > 330 || first["a"]+first["b"] != 400 {
		t.Errorf("first were %v", first)
	}
	if diff := cmp.Diff([]rules.Choice{{Name: "a", Weight: 1}, {Name: "b", Weight: 3}}, choices); diff != "" {
		t.Errorf("the route's own list was changed:\n%s", diff)
	}
}

func TestAWindowIsTooSmallForWhatIsKnownOfThePrompt(t *testing.T) {
	t.Parallel()
	c := ranking(nil, rated{name: "small", window: 700}, rated{name: "middle", window: 800},
		rated{name: "big", window: 4000})
	for name, tt := range map[string]struct {
		models []string
		prompt Prompt
		want   string // the order of those that are tried
	}{
		"an estimate leaves out what another has room for": {[]string{"small", "big"}, Prompt{Estimate: 2000}, "big"},
		"an estimate alone refuses nothing": {
			[]string{"small", "middle"},
			Prompt{Estimate: 2000},
			"middle small",
		},
		"a bound does": {
			[]string{"small", "middle"},
			Prompt{Estimate: 2000, Least: 750},
			"middle",
		},
		"a count does": {
			[]string{"small", "big"},
			Prompt{Counted: map[string]int{"small": 701}},
			"big",
		},
		"a count tells what fits": {
			[]string{"small", "big"}, Prompt{Estimate: 2000, Counted: map[string]int{"small": 700}}, "small big",
		},
		"without an estimate, the tokens of the facts count": {[]string{"small", "big"}, Prompt{}, "big"},
	} {
		r := among("order", 0, domainIs(1, 0), tt.models...)
		r.Prompt = tt.prompt
		var got []string
		for _, x := range c.Choose(r) {
			if !x.Out {
				got = append(got, x.Name)
			}
		}
		if order := strings.Join(got, " "); order != tt.want {
			t.Errorf("%s: %q, want %q", name, order, tt.want)
		}
	}
}
