package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
)

// The simplified condition has the value of the original on every settled assignment, unknown
// included, and bounds at least as tight on every partial one.
func TestSimplifyKeepsTheMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawCondition(t, leafTexts(), 4)
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		c := &compiler{env: testEnv(), simplifier: newSimplifier(testEnv().Labels), headers: map[string]bool{}}
		raw := c.when(c.root(&doc, "when"), 0)
		if len(c.problems) > 0 {
			t.Fatal(c.problems)
		}
		simple := c.simplifier.simplify(raw)
		set := drawSet(t)
		if want, got := raw.eval(set), simple.eval(set); want != got {
			t.Fatalf("%s is %v, simplified to %s it is %v", raw, want, simple, got)
		}
		hide(set, signal.Mask(rapid.IntRange(0, 1<<signal.NumKinds-1).Draw(t, "hidden")))
		if want, got := raw.eval(set), simple.eval(set); got.lo < want.lo || got.hi > want.hi {
			t.Fatalf("%s is within %v, simplified to %s within %v", raw, want, simple, got)
		}
	})
}

// hide makes the signals of m not extracted.
func hide(set *signal.Set, m signal.Mask) {
	for _, k := range m.Kinds() {
		set.Values[k] = signal.Value{}
	}
}

// Extracting only what Step asks for leads to the decision that knowing everything leads to, in at
// most one neural pass, and stepping twice is stepping once.
func TestLazyDecidesAsEager(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := compileDrawn(t, drawConfig(t, leafTexts(), 6, 3))
		full := drawSet(t)
		for _, program := range []*Program{p, p.Named()} {
			want, need := program.Step(full)
			if need != 0 {
				t.Fatalf("wants %v though everything is known", need.Kinds())
			}
			got, passes := runLazily(t, program, full)
			if broken(got.Failed, full) != got.Failed {
				t.Fatalf("reports failures %v, some of which did not fail", got.Failed.Kinds())
			}
			if diff := cmp.Diff(effectOf(want), effectOf(got)); diff != "" {
				t.Fatalf("eager and lazy differ (-eager +lazy):\n%s", diff)
			}
			if passes > 1 {
				t.Fatalf("took %d neural passes", passes)
			}
		}
	})
}

// effect is the part of a decision that a request feels. Whether a route matched or failed closed is
// not: a failed signal may close it before another one could have made it true.
type effect struct {
	Route       string
	Index       int
	Unavailable bool
	Action      Action
}

func effectOf(d Decision) effect {
	return effect{d.Route, d.Index, d.Outcome == Unavailable, *d.Action}
}

// runLazily reveals the signals of full as the program asks for them.
func runLazily(t *rapid.T, p *Program, full *signal.Set) (d Decision, passes int) {
	set := &signal.Set{Facts: full.Facts}
	for {
		d, need := p.Step(set)
		again, needAgain := p.Step(set)
		if diff := cmp.Diff(d, again); diff != "" || need != needAgain {
			t.Fatalf("the second step differs: %v %v\n%s", need, needAgain, diff)
		}
		if need == 0 {
			return d, passes
		}
		if need&set.Have() != 0 || need.Tier(signal.TierLexical) != need && need.Tier(signal.TierNeural) != need {
			t.Fatalf("asks for %v", need.Kinds())
		}
		if need.Tier(signal.TierNeural) != 0 {
			passes++
		}
		for _, k := range need.Kinds() {
			set.Values[k] = full.Values[k]
		}
	}
}

// A pass is run only if the signals it extracts can change the decision, or the action that is
// already certain reads one of them. The oracle tries every combination of candidate values. Compile
// reasons about pairs of tests of one signal; an upper bound for the best of several labels can
// exclude what only three tests together say, so that leaf is left out.
func TestNeuralPassesAreMinimal(t *testing.T) {
	t.Parallel()
	pool := slices.DeleteFunc(leafTexts(), func(l string) bool { return strings.Contains(l, "domain") && strings.Contains(l, "max_score") })
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t, pool, 4, 2)
		p := compileDrawn(t, config)
		full := drawSet(t)
		set := &signal.Set{Facts: full.Facts}
		for {
			_, need := p.Step(set)
			if need == 0 {
				return
			}
			if need.Tier(signal.TierNeural) != 0 {
				checkPass(t, p, set, need, config)
				return
			}
			for _, k := range need.Kinds() {
				set.Values[k] = full.Values[k]
			}
		}
	})
}

func checkPass(t *rapid.T, p *Program, set *signal.Set, need signal.Mask, config string) {
	open := need.Kinds()
	if len(open) > 4 {
		return // too many combinations for one check; the next draw has fewer
	}
	seen := map[string]bool{}
	var last Decision
	work := *set
	var try func(i int)
	try = func(i int) {
		if len(seen) > 1 {
			return
		}
		if i == len(open) {
			d, more := p.Step(&work)
			if more != 0 {
				t.Fatalf("asks for %v after %v in\n%s", more.Kinds(), open, config)
			}
			seen[fmt.Sprint(d.Route, d.Outcome == Unavailable)] = true
			last = d
			return
		}
		for _, v := range candidates(open[i]) {
			work.Values[open[i]] = v
			try(i + 1)
		}
	}
	try(0)
	wants := p.wants
	if last.Index >= 0 {
		wants = p.Routes()[last.Index].Wants
	}
	if len(seen) == 1 && wants&need == 0 {
		t.Fatalf("asks for %v, which cannot change %v in\n%s", need.Kinds(), seen, config)
	}
}
