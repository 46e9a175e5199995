package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/guard"
)

// unsure is a Checker that cannot decide on any claim.
type unsure struct {
	final bool  // it says so at once
	err   error // why no model has read the claim
}

func (u unsure) Quick(*evidenceOf, check.Claim) (check.Result, bool) {
	return check.Result{Verdict: check.Unchecked, Source: -1}, u.final
}

func (u unsure) Check(_ context.Context, _ *evidenceOf, _ string, list []check.Claim) []check.Result {
	out := make([]check.Result, len(list))
	for i := range out {
		out[i] = check.Result{Verdict: check.Unchecked, Source: -1, Err: u.err}
	}
	return out
}

// TestOnlyAClaimWhoseCheckGotLostIsBlocked checks that only a lost check blocks, and not a claim
// that was read without a decision.
func TestOnlyAClaimWhoseCheckGotLostIsBlocked(t *testing.T) {
	for name, tt := range map[string]struct {
		checker unsure
		cut     bool
	}{
		"no model is there":     {unsure{final: true}, false},
		"the model cannot tell": {unsure{}, false},
		"the model failed":      {unsure{err: errors.New("out of memory")}, true},
	} {
		for m := guard.Observe; m <= guard.Hold; m++ {
			g := guard.New(tt.checker, guard.Options{Workers: 1})
			job := jobOf(t, m)
			job.Policy.OnUnchecked = guard.Block
			_, streamed, err := pass(t, g, job, strings.Join(words(story), ""))
			_, whole, berr := g.Body(t.Context(), []byte(body("Ann lives in Rome.")), job)
			g.Close()
			cut := tt.cut && m > guard.Observe
			if err != nil || berr != nil || streamed.Cut != cut || whole.Cut != cut {
				t.Errorf("%s, %v: stream cut %v (%v), body cut %v (%v), want %v", name, m, streamed.Cut, err, whole.Cut, berr, cut)
			}
		}
	}
}
