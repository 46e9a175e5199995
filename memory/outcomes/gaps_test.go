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
	if ps[0].Calibrated || ps[1].Calibrated != ps[2].Calibrated {
		tb.Errorf("what is calibrated: %+v", ps)
	}
	return ps[2].Mean - ps[1].Mean, ps[1].Doubt + ps[2].Doubt, ps[1].Calibrated
}

func TestWhatReasoningIsWorthIsMeasured(t *testing.T) {
	t.Parallel()
	r, path := source(), filepath.Join(t.TempDir(), "outcomes.jsonl")
	s := open(t, outcomes.Options{Limit: 10_000, Path: path})
	efforts(t, s, r, 32, subjectGain) // 192 of each effort: too few
	if _, _, calibrated := gains(t, s, around(r, 0)); calibrated {
		t.Error("a line through so few outcomes")
	}
	efforts(t, s, r, 68, subjectGain)
	check := func(when string) {
		t.Helper()
		var of, measured [2]float64
		const n = 100 // requests of even and of odd subjects
		for i := range 2 * n {
			gain, doubt, calibrated := gains(t, s, around(r, i%subjects))
			if !calibrated {
				continue
			}
			if doubt <= 0 || doubt > 0.1 {
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
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, outcomes.Options{Limit: 10_000, Path: path})
	check("read again")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What reasoning is worth changes, and what was learnt goes with it although no more is kept.
func TestWhatReasoningIsWorthIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	r, s := source(), open(t, outcomes.Options{Limit: 50 * subjects})
	efforts(t, s, r, 60, subjectGain)
	efforts(t, s, r, 100, 0)
	measured := 0
	for i := range 10 * subjects {
		gain, _, calibrated := gains(t, s, around(r, i%subjects))
		if !calibrated {
			continue
		}
		if measured++; gain < -0.2 || gain > 0.2 {
			t.Errorf("subject %d: a gain of %v", i%subjects, gain)
		}
	}
	if measured < 8*subjects {
		t.Errorf("of %d requests %d were measured", 10*subjects, measured)
	}
}
