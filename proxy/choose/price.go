package choose

import (
	"math"

	"signalbox/internal/option"
)

// Price is a price in USD per million tokens. If both are 0, the price is unknown. For a free model
// that should win by cost, set a price slightly above 0.
type Price struct {
	// Input is the price of one million prompt tokens, in US dollars. Default 0.
	Input float64 `yaml:"input"`
	// Output is the price of one million completion tokens, in US dollars. Default 0.
	Output float64 `yaml:"output"`
}

// Check reports an invalid price to p, as a problem of field at.
func (p Price) Check(problems *option.Problems, at string) {
	for field, usd := range map[string]float64{"input": p.Input, "output": p.Output} {
		if !isPrice(usd) {
			problems.Addf(at+"."+field, "found %v, expected a price of 0 or more", usd)
		}
	}
}

func isPrice(usd float64) bool { return usd >= 0 && usd <= math.MaxFloat32 }

// Known reports whether a price is set.
func (p Price) Known() bool { return p.Input+p.Output > 0 }

// Of returns the price in USD for the given numbers of tokens.
func (p Price) Of(prompt, completion float64) float64 {
	return (prompt*p.Input + completion*p.Output) / 1e6
}
