package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

func TestThresholdsDecide(t *testing.T) {
	t.Parallel()
	x := index("The Eiffel Tower is 329.6 m tall.", "The Brixa plant made 300 t in May.", "The Tullis plant made 450 t in May.")
	for name, tt := range map[string]struct {
		claim  string
		change func(t *numeric.Thresholds)
		before numeric.Verdict
		after  numeric.Verdict
	}{
		"what contradicts": {
			// less than every word
			"The Eiffel Tower is 350 m tall.", func(t *numeric.Thresholds) { t.SameSubject = 1 },
			numeric.Contradicted, numeric.Contradicted,
		},
		"what is only not there": {
			"The Eiffel Tower in Paris is said to have 350 m and plants in May.", func(t *numeric.Thresholds) { t.SameSubject = 1 },
			numeric.Contradicted, numeric.Unsupported,
		},
		"what is of another subject": {
			"The Brixa plant made 450 t in May.", func(t *numeric.Thresholds) { t.SwapMargin = 1 }, numeric.Contradicted, numeric.Supported,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := numeric.DefaultThresholds()
			if got, _ := x.CheckWith(nil, tt.claim, "", &limits); got != tt.before {
				t.Errorf("by default %v, want %v", got, tt.before)
			}
			tt.change(&limits)
			if got, _ := x.CheckWith(nil, tt.claim, "", &limits); got != tt.after {
				t.Errorf("changed %v, want %v", got, tt.after)
			}
		})
	}
}
