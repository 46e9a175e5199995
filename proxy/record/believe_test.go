package record

import (
	"math"
	"testing"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/exchange"
	"signalbox/rules"
)

// Limits and numbers of choices come from the client; their product need not fit into an int.
func TestTheMostOutputThatCanBeIsBounded(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]int{
		`"n":1`:                                    longestWindow,
		`"n":2`:                                    2 * longestWindow,
		`"max_tokens":2000000,"n":2`:               4_000_000,
		`"max_tokens":2147483647,"n":3`:            math.MaxInt32,
		`"max_tokens":4611686018427387904,"n":2`:   math.MaxInt32,
		`"max_tokens":9223372036854775807`:         math.MaxInt32,
		`"max_tokens":10,"n":2147483647`:           math.MaxInt32,
		`"max_completion_tokens":3000000000,"n":4`: math.MaxInt32,
	} {
		req, err := openai.ParseChat([]byte(`{"model":"m","messages":[{"role":"user",`+
			`"content":"x"}],`+members+`}`), openai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		o := &exchange.Exchange{
			Decision: &decide.Decision{Decision: rules.Decision{Action: &rules.Action{}}, Request: req},
			Req:      req, Model: &backend.Model{Model: &choose.Model{}},
		}
		if got := mostOutput(o); got != want {
			t.Errorf("%s: %d, want %d", members, got, want)
		}
	}
}
