package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/signal"
	"signalbox/rules/internal/signaltest"
)

// Extracting only what Step asks for leads to the decision that knowing everything leads to, in at
// most one neural pass, and stepping twice is stepping once.
func TestLazyDecidesAsEager(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := compileDrawn(t, drawConfig(t, leafTexts(), 6, 3))
		full := signaltest.Draw(t)
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

// effect is the part of a decision that a request feels. Whether a route matched or failed closed
// is not: a failed signal may close it before another one could have made it true.
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
			set.Put(k, *full.Value(k))
		}
	}
}
