package outcomes_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"signalbox/memory/outcomes"
)

// subjects are the directions that requests are near to. In odd ones reasoning makes answers better
// by what subjectGain says, in even ones it changes nothing.
const (
	subjects    = 12
	subjectGain = 0.5
)

// efforts adds n outcomes to requests of each subject, in turn with reasoning and without; gain is
// what reasoning is worth in the odd ones.
func efforts(tb testing.TB, s *outcomes.Store, r *rand.Rand, n int, gain float64) {
	tb.Helper()
	for i := range n * subjects {
		subject, effort, good := i%subjects, "none", 0.4
		if i/subjects%2 == 1 {
			if effort = "high"; subject%2 == 1 {
				good += gain
			}
		}
		score := 0.0
		if r.Float64() < good {
			score = 1
		}
		add(tb, s, outcomes.Outcome{
			ID: fmt.Sprint(r.Uint64()), Model: "m", Effort: effort, Prior: 0.5, Score: score,
		}, around(r, subject))
	}
}

// gains are what reasoning is expected to be worth at a request, and whether that was measured.
func gains(tb testing.TB, s *outcomes.Store, v []float32) (gain, doubt float64, calibrated bool) {
	tb.Helper()
	ps := []outcomes.Prediction{
		{Model: "m", Prior: 0.5}, {Model: "m", Effort: "none", Prior: 0.5}, {Model: "m", Effort: "high", Prior: 0.5},
	}
	if !s.Predict("a", v, ps) {
		tb.Fatal("nothing is known")
	}
	if ps[0].Calibrated {
		tb.Errorf("calibrated of all efforts: %+v", ps)
	}
	return ps[2].Mean - ps[1].Mean, ps[1].Doubt + ps[2].Doubt, ps[1].Calibrated && ps[2].Calibrated
}

func TestWhatReasoningIsWorthIsMeasured(t *testing.T) {
	t.Parallel()
	r, path := source(), filepath.Join(t.TempDir(), "outcomes.jsonl")
	s := open(t, outcomes.Options{Limit: 10_000, Tenants: 10, Path: path})
	efforts(t, s, r, 100, subjectGain)
	check := func(when string) {
		t.Helper()
		var of, measured [2]float64
		const n = 100 // requests of even and of odd subjects
		for i := range 2 * n {
			gain, doubt, calibrated := gains(t, s, around(r, i%subjects))
			if !calibrated {
				continue
			}
			if doubt <= 0 || doubt > 0.15 {
				t.Errorf("%s, subject %d: gain %v with a doubt of %v", when, i%subjects, gain, doubt)
			}
			of[i%2] += gain
			measured[i%2]++
		}
		for i := range of {
			if of[i] /= measured[i]; measured[i] < 0.8*n {
				t.Errorf("%s, of %d requests %v were measured", when, n, measured[i])
			}
		}
		// What is seen of one subject is drawn towards the mean, by as much as chance makes of it.
		if of[0] < -0.1 || of[0] > 0.15 || of[1] < subjectGain-0.15 || of[1] > subjectGain+0.1 {
			t.Errorf("%s reasoning is worth %v, want about 0 and %v", when, of, subjectGain)
		}
	}
	check("once learnt")
	if gain, _, calibrated := gains(t, s, around(r, subjects+3)); calibrated {
		t.Errorf("a request unlike all others is worth %v", gain)
	}
	for i := range 9 { // of other tenants, so that fewer rows of each are looked at
		add(t, s, outcomes.Outcome{Tenant: fmt.Sprint(i), ID: "1", Model: "m", Prior: 0.5}, around(r, 0))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, outcomes.Options{Limit: 10_000, Tenants: 10, Path: path})
	check("read again")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// An effort that is asked for seldom is measured as soon as enough of it is known, however much is
// known of others, and of models that were asked without one.
func TestARareEffortIsMeasured(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 10_000})
	one := func(i int, effort string) { // whatever is asked, an answer is as good as any
		add(t, s, outcomes.Outcome{
			ID: fmt.Sprint(i), Model: "m", Effort: effort, Prior: 0.5, Score: float64(r.IntN(2)),
		}, around(r, r.IntN(subjects)))
	}
	measured := func() (n int) {
		for i := range 5 * subjects {
			if _, _, calibrated := gains(t, s, around(r, i%subjects)); calibrated {
				n++
			}
		}
		return n
	}
	n := 0
	for ; n < 3000; n++ { // "default" is none of the efforts that a request is asked at, and the reference
		one(n, []string{"default", "default", "", "high"}[n%4])
	}
	for ; n < 3150; n++ {
		one(n, "none")
	}
	for ; n < 5000; n++ {
		one(n, "default")
	}
	if got := measured(); got > 0 {
		t.Errorf("of 150 outcomes at an effort %d of %d requests are measured", got, 5*subjects)
	}
	for ; n < 5100; n++ {
		one(n, "none")
	}
	for ; n < 8000; n++ {
		one(n, "default")
	}
	if got := measured(); got < 5*subjects/2 {
		t.Errorf("of 250 outcomes at an effort %d of %d requests are measured", got, 5*subjects)
	}
}

// The effort of which most is known becomes another one.
func TestTheReferenceChanges(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 10_000})
	efforts(t, s, r, 60, subjectGain)
	for i := range 3000 { // reasoning, and then twice as much without
		subject, effort, good := r.IntN(subjects), "high", 0.4
		if i >= 1000 {
			effort = "none"
		} else if subject%2 == 1 {
			good += subjectGain
		}
		score := 0.0
		if r.Float64() < good {
			score = 1
		}
		add(t, s, outcomes.Outcome{ID: fmt.Sprint("more ", i), Model: "m", Effort: effort, Prior: 0.5, Score: score}, around(r, subject))
		if i%500 != 499 {
			continue
		}
		measured := 0
		for subject := range subjects {
			_, doubt, calibrated := gains(t, s, around(r, subject))
			if calibrated && doubt <= 0 {
				t.Fatalf("after %d more: efforts are compared with each other, and none was measured", i+1)
			}
			if calibrated {
				measured++
			}
		}
		if measured < subjects/2 {
			t.Errorf("after %d more: of %d requests %d were measured", i+1, subjects, measured)
		}
	}
}

// What is told by near answers turns to nothing, and is believed no more.
func TestWhatReasoningIsWorthIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 50 * subjects})
	efforts(t, s, r, 60, subjectGain)
	spread := func() float64 {
		least, most, n := 1.0, -1.0, 0
		for i := range 10 * subjects {
			gain, _, calibrated := gains(t, s, around(r, i%subjects))
			if calibrated {
				least, most = min(least, gain), max(most, gain)
				n++
			}
		}
		if n < 8*subjects {
			t.Errorf("of %d requests %d were measured", 10*subjects, n)
		}
		return most - least
	}
	before := spread()
	efforts(t, s, r, 100, 0)
	if after := spread(); before < 0.35 || after > 0.2 {
		t.Errorf("requests differ by %v, and by %v where they do not", before, after)
	}
}
