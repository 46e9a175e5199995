package outcomes_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"signalbox/memory/outcomes"
)

// anywhere returns a vector of any direction, most of all along the first axis.
func anywhere(r *rand.Rand) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	v[0] *= 3
	return v
}

func TestNoModelIsPreferredByChance(t *testing.T) {
	t.Parallel()
	const n = 400
	r, s := source(), open(t, outcomes.Options{Limit: 1000})
	for i := range 1000 {
		add(t, s, outcomes.Outcome{
			ID: fmt.Sprint(i), Model: fmt.Sprint("m", i%2), Prior: 0.5, Score: float64(r.IntN(2)),
		}, anywhere(r))
	}
	gap := 0.0
	for range n {
		ps := predicted(s, "a", anywhere(r), "m0", "m1")
		gap += math.Abs(ps[0].Mean-ps[1].Mean) / n
	}
	if gap > 0.05 {
		t.Errorf("one of two models that are the same is better by %.3f on the mean", gap)
	}
}

// Vectors are drawn from all directions, so that none is near: which model is the better one is told
// by a half of the space. Models are replaced by others, of which more come than are told apart.
func TestAModelIsPreferredWhereAllItsOutcomesSaySo(t *testing.T) {
	t.Parallel()
	const perGeneration, generations, n = 600, 10, 400
	r, s := source(), open(t, outcomes.Options{Limit: perGeneration})
	side := func(v []float32) int {
		if v[0] < 0 {
			return 1
		}
		return 0
	}
	for g := range generations {
		for i := range perGeneration {
			v, score := anywhere(r), 0.0
			if side(v) == i%2 == (r.Float64() < 0.8) {
				score = 1
			}
			add(t, s, outcomes.Outcome{
				ID: fmt.Sprint(g, i), Model: fmt.Sprint("m", g, i%2), Prior: 0.5, Score: score,
			}, v)
		}
		if g != 0 && g != generations-1 {
			continue
		}
		right, gap := 0, 0.0
		for range n {
			v := anywhere(r)
			ps := predicted(s, "a", v, fmt.Sprint("m", g, 0), fmt.Sprint("m", g, 1))
			by := ps[side(v)].Mean - ps[1-side(v)].Mean
			if gap += by / n; by > 0 {
				right++
			}
		}
		if right < n*85/100 || gap < 0.25 {
			t.Errorf("generation %d: %d of %d right, by %.2f on the mean", g, right, n, gap)
		}
	}
}
