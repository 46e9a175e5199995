package rules

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/signaltest"
	"signalbox/rules/internal/syntax"
)

// The number of cases of TestEveryPassIsNeeded.
const (
	minimalCases     = 10_000
	minimalCasesRace = 500
)

// lazyCase is a random configuration with a request, some of whose signals failed and some of which
// nothing provides.
type lazyCase struct {
	config string
	env    Env
	full   *signal.Set
}

// lazyCases draws them. pool draws the leaves of one configuration.
func lazyCases(pool func(*rapid.T) []string) *rapid.Generator[lazyCase] {
	return rapid.Custom(func(t *rapid.T) lazyCase {
		c := lazyCase{drawConfig(t, pool(t), 5, 3), testEnv(), signaltest.Draw(t)}
		for _, k := range []signal.Kind{signal.Domain, signal.PII, signal.Complexity, signal.FactCheck} {
			if rapid.IntRange(0, 9).Draw(t, "absent") == 0 {
				c.env.Signals &^= signal.MaskOf(k)
				c.full.Put(k, signal.Value{State: signal.Unknown, Reason: signal.ReasonNoModel})
			}
		}
		return c
	})
}

// anyLeaves are all leaves or, so that tests of one signal meet often, a few of them.
func anyLeaves(t *rapid.T) []string {
	pool := leafTexts()
	if rapid.Bool().Draw(t, "few leaves") {
		pool = rapid.SliceOfN(rapid.SampledFrom(pool[:len(pool)-2]), 4, 8).Draw(t, "pool")
	}
	return pool
}

// domainLeaves are tests of one signal alone, and of the caller.
func domainLeaves(*rapid.T) []string {
	return slices.DeleteFunc(leafTexts(), func(l string) bool {
		return !strings.Contains(l, "domain") && !strings.Contains(l, "role") && !strings.Contains(l, "tenant")
	})
}

// For random rule sets and requests, the engine decides as the evaluator that knows everything
// does, and runs a neural pass exactly when no engine could do without: an oracle tries every value
// of the neural signals, failures included, with what is free and lexical as it is. A pass can be
// saved when they all lead to one decision whose action reads no neural signal.
func TestEveryPassIsNeeded(t *testing.T) {
	t.Parallel()
	cases := minimalCases
	if raceDetector || testing.Short() {
		cases = minimalCasesRace
	}
	passes, least := comparePasses(t, lazyCases(anyLeaves), cases, func(seed, ran, least int, config string) {
		t.Errorf("case %d: %d neural passes, the minimum is %d in\n%s", seed, ran, least, config)
	})
	t.Logf("%d rule sets and requests, each routed and by name: %d passes run, %d is the minimum", cases, passes, least)
}

// The engine compares tests of one signal two by two. Three bounds of the probability of sets of
// labels can contradict each other only together, and a pass may then be run in vain; how rarely is
// held here, on rule sets made of little else. The decision is the same.
func TestFewPassesAreInVainWhereTestsOfOneSignalAreEntangled(t *testing.T) {
	t.Parallel()
	cases := minimalCases / 5
	if raceDetector || testing.Short() {
		cases = minimalCasesRace
	}
	inVain := 0
	passes, least := comparePasses(t, lazyCases(domainLeaves), cases, func(_, ran, least int, _ string) { inVain += ran - least })
	if inVain*1000 > passes {
		t.Errorf("%d of %d passes were run in vain", inVain, passes)
	}
	t.Logf("%d rule sets and requests, each routed and by name: %d passes run, %d is the minimum", cases, passes, least)
}

// comparePasses counts the passes that the engine runs and the fewest possible, and compares its
// decisions with the reference's.
func comparePasses(t *testing.T, generator *rapid.Generator[lazyCase], cases int, differ func(seed, ran, least int, config string)) (passes, fewest int) {
	t.Helper()
	for seed := range cases {
		c := generator.Example(seed)
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(c.config), &doc); err != nil {
			t.Fatal(err)
		}
		program, problems := Compile(sections(&doc), c.env)
		if program == nil {
			t.Fatalf("case %d: %v in\n%s", seed, problems, c.config)
		}
		reference := newEager(t, &doc, c.env)
		for range 2 {
			got, ran := lazily(t, program, c.full)
			if want := reference.decide(c.full); got != want {
				t.Fatalf("case %d: lazy decides %+v, eager %+v in\n%s", seed, got, want, c.config)
			}
			least := fewestPasses(reference, c)
			if ran != least {
				differ(seed, ran, least, c.config)
			}
			passes += ran
			fewest += least
			program, reference = program.Named(), reference.named()
		}
	}
	return passes, fewest
}

// lazily reveals the signals of full as the program asks for them. What nothing provides is learnt
// without a pass.
func lazily(t *testing.T, p *Program, full *signal.Set) (v verdict, passes int) {
	t.Helper()
	set := &signal.Set{Facts: full.Facts}
	for {
		d, need := p.Step(set)
		if need == 0 {
			v = verdict{d.Route, d.Outcome == Unavailable, p.wants}
			switch {
			case d.Index < 0:
				v.Route = ""
			case v.Unavailable:
				v.wants = 0
			default:
				v.wants = p.wantsOf(d.Action)
			}
			return v, passes
		}
		if need&set.Have() != 0 {
			t.Fatalf("asks again for %v", (need & set.Have()).Kinds())
		}
		if need.Tier(signal.TierNeural)&^p.absent != 0 {
			passes++
		}
		for _, k := range need.Kinds() {
			set.Put(k, *full.Value(k))
		}
	}
}

// wantsOf finds the signals that an action of the program reads.
func (p *Program) wantsOf(a *Action) signal.Mask {
	for i := range p.routes {
		if &p.routes[i].action == a {
			return p.routes[i].wants
		}
	}
	return p.wants
}

// fewestPasses is the oracle.
func fewestPasses(e *eager, c lazyCase) int {
	set := *c.full
	var kinds []signal.Kind
	options := make(map[signal.Kind][]signal.Value)
	for _, k := range (allKinds & c.env.Signals).Tier(signal.TierNeural).Kinds() {
		if values := cellsOf(k, e.leaves[k], set.Facts); len(values) > 1 {
			kinds, options[k] = append(kinds, k), values
		}
	}
	first := e.decide(&set)
	var differs func(i int) bool
	differs = func(i int) bool {
		if i == len(kinds) {
			return e.decide(&set) != first
		}
		for _, v := range options[kinds[i]] {
			set.Put(kinds[i], v)
			if differs(i + 1) {
				return true
			}
		}
		return false
	}
	if differs(0) || first.wants.Tier(signal.TierNeural) != 0 {
		return 1
	}
	return 0
}

// cellsOf returns one value of a kind for each combination of results that the tests can have, and
// the failure.
func cellsOf(k signal.Kind, tests []*condition.Leaf, facts signal.Facts) []signal.Value {
	if len(tests) == 0 {
		return nil
	}
	return distinctCells(k, tests, everyValue()[k], facts)
}

// everyValue holds values of each kind that reach, as far as tens of thousands of random ones can
// tell, every combination of results that the tests of the pool can have.
var everyValue = sync.OnceValue(func() [signal.NumKinds][]signal.Value {
	var out [signal.NumKinds][]signal.Value
	tests := make(map[signal.Kind][]*condition.Leaf)
	c := newCompiler(testEnv())
	for _, text := range leafTexts() {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			panic(err)
		}
		condition.EachLeaf(c.when(syntax.At(&c.problems, &doc, "when"), 0), func(l *condition.Leaf) { tests[l.Kind] = append(tests[l.Kind], l) })
	}
	random := rand.New(rand.NewPCG(1, 2))
	for k := range signal.NumKinds {
		values := signaltest.Values(k)
		if k == signal.Domain {
			for range 20_000 {
				values = append(values, randomLabels(random, testEnv().Labels[k]))
			}
		}
		out[k] = values
	}
	for k, tests := range tests {
		if k < signal.NumKinds {
			out[k] = distinctCells(k, tests, out[k], signal.Facts{})
		}
	}
	return out
})

// distinctCells keeps the first of the values that give the tests the same results.
func distinctCells(k signal.Kind, tests []*condition.Leaf, values []signal.Value, facts signal.Facts) []signal.Value {
	seen := map[string]bool{}
	var out []signal.Value
	set := signal.Set{Facts: facts}
	for _, v := range values {
		set.Put(k, v)
		cell := make([]byte, len(tests))
		for i, l := range tests {
			cell[i] = byte(value(l, &set))
		}
		if !seen[string(cell)] {
			seen[string(cell)] = true
			out = append(out, v)
		}
	}
	return out
}

// randomLabels makes probabilities that sum to 1, most of them on few labels.
func randomLabels(random *rand.Rand, labels []string) signal.Value {
	sharpness := []float64{0.5, 1, 3, 8}[random.IntN(4)]
	weights := make([]float64, len(labels))
	sum := 0.0
	for i := range weights {
		weights[i] = math.Pow(random.Float64(), sharpness)
		sum += weights[i]
	}
	scores := map[string]float64{}
	for i, l := range labels {
		scores[l] = weights[i] / sum
	}
	return signaltest.Labelled(labels, scores)
}
