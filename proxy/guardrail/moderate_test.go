package guardrail

import (
	"testing"

	"signalbox/internal/signal"
)

func TestWhatAnOutputFinds(t *testing.T) {
	t.Parallel()
	personal := signal.Value{Labels: []string{"PERSON", "CREDIT_CARD"}, Probs: []float32{0.9, 0.5}}
	words := signal.Value{Labels: []string{"a", "b"}}
	topic := signal.Value{
		Label: "law", Score: 0.6, Labels: []string{"law", "math"}, Probs: []float32{0.6, 0.4},
	}
	card, maths := []string{"CREDIT_CARD"}, []string{"math"}
	pii := func(threshold, least float64, labels ...string) Output {
		return Output{Kind: signal.PII, Threshold: threshold, MinScore: least, Labels: labels}
	}
	attack := Output{Kind: signal.Injection, Threshold: 0.7}
	for name, c := range map[string]struct {
		o     Output
		v     signal.Value
		label string
	}{
		"any personal data, the surest": {pii(0.5, 0), personal, "PERSON"},
		"a type at the threshold":       {pii(0.5, 0, card...), personal, "CREDIT_CARD"},
		"a type below the threshold":    {pii(0.51, 0, card...), personal, ""},
		"min_score above the threshold": {pii(0.5, 0.95), personal, ""},
		"another type":                  {pii(0.5, 0, "US_SSN"), personal, ""},
		"a keyword, without a score":    {Output{Kind: signal.Keyword, Labels: []string{"b"}}, words, "b"},
		"no keyword":                    {Output{Kind: signal.Keyword}, signal.Value{}, ""},
		"an attack at the threshold":    {attack, signal.Value{Score: 0.7}, "attack"},
		"no attack":                     {attack, signal.Value{Score: 0.69}, ""},
		"the most probable domain":      {Output{Kind: signal.Domain, Labels: []string{"law"}}, topic, "law"},
		"a less probable domain":        {Output{Kind: signal.Domain, Labels: maths}, topic, ""},
		"a domain from a score on":      {Output{Kind: signal.Domain, Labels: maths, MinScore: 0.3}, topic, "math"},
		"a label of one's own": {
			Output{Kind: signal.Own, Labels: maths, Least: map[string]float64{"math": 0.4}}, topic, "math",
		},
	} {
		if got, _ := c.o.found(&c.v); got != c.label {
			t.Errorf("%s: found %q, want %q", name, got, c.label)
		}
	}
}
