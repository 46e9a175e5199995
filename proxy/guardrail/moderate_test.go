package guardrail

import (
	"testing"

	"signalbox/internal/signal"
)

func TestWhatAnOutputFinds(t *testing.T) {
	t.Parallel()
	personal := signal.Value{State: signal.Known, Labels: []string{"PERSON", "CREDIT_CARD"}, Probs: []float32{0.9, 0.5}}
	topic := signal.Value{State: signal.Known, Label: "law", Score: 0.6, Labels: []string{"law", "math"}, Probs: []float32{0.6, 0.4}}
	for name, c := range map[string]struct {
		o     Output
		v     signal.Value
		label string
	}{
		"any personal data, the surest":  {Output{Kind: signal.PII, Threshold: 0.5}, personal, "PERSON"},
		"a type at the threshold":        {Output{Kind: signal.PII, Threshold: 0.5, Labels: []string{"CREDIT_CARD"}}, personal, "CREDIT_CARD"},
		"a type below the threshold":     {Output{Kind: signal.PII, Threshold: 0.51, Labels: []string{"CREDIT_CARD"}}, personal, ""},
		"min_score above the threshold":  {Output{Kind: signal.PII, Threshold: 0.5, MinScore: 0.95}, personal, ""},
		"another type":                   {Output{Kind: signal.PII, Threshold: 0.5, Labels: []string{"US_SSN"}}, personal, ""},
		"a keyword has no probability":   {Output{Kind: signal.Keyword, Labels: []string{"b"}}, signal.Value{Labels: []string{"a", "b"}}, "b"},
		"no keyword":                     {Output{Kind: signal.Keyword}, signal.Value{}, ""},
		"an attack at the threshold":     {Output{Kind: signal.Injection, Threshold: 0.7}, signal.Value{Score: 0.7}, "attack"},
		"no attack":                      {Output{Kind: signal.Jailbreak, Threshold: 0.7}, signal.Value{Score: 0.69}, ""},
		"the most probable domain":       {Output{Kind: signal.Domain, Labels: []string{"law"}}, topic, "law"},
		"a domain that is less probable": {Output{Kind: signal.Domain, Labels: []string{"math"}}, topic, ""},
		"a domain from a score on":       {Output{Kind: signal.Domain, Labels: []string{"math"}, MinScore: 0.3}, topic, "math"},
		"a label of one's own":           {Output{Kind: signal.Own, Labels: []string{"math"}, Least: map[string]float64{"math": 0.4}}, topic, "math"},
	} {
		if got, _ := c.o.found(&c.v); got != c.label {
			t.Errorf("%s: found %q, want %q", name, got, c.label)
		}
	}
}
