package response

import "testing"

func TestWhatAnAnswerTookIsToldOrEstimated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   Tally
		want Usage
	}{
		"told":               {Tally{Usage: Usage{Input: 3, Output: 2, Cached: 1}, text: 400}, Usage{Input: 3, Output: 2, Cached: 1}},
		"told of the prompt": {Tally{Usage: Usage{Input: 3}, text: 40}, Usage{Input: 3, Output: 10}},
		"a message that was cut": {
			Tally{Messages: true, Usage: Usage{Input: 3, Output: 1}, text: 40}, Usage{Input: 3, Output: 10},
		},
		"a message": {
			Tally{Messages: true, Finish: FinishStop, Usage: Usage{Input: 3, Output: 1}, text: 40}, Usage{Input: 3, Output: 1},
		},
		"untold": {Tally{text: 40}, Usage{Input: 70, Output: 10}},
		"none":   {Tally{}, Usage{Input: 70}},
	} {
		if got := tt.in.Taken(70); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
