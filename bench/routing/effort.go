package main

import (
	"context"
	"fmt"
	"io"
)

// effortMix counts, for each label of the data, the effort selected by automatic reasoning.
type effortMix map[string]map[string]int

// efforts are the values that a backend receives, in ascending order.
var efforts = []string{"none", "low", "medium", "high"} //nolint:gochecknoglobals // constant

// decideEfforts sends prompts to a model that reasons, by a route with `reasoning: auto`.
func decideEfforts(ctx context.Context, c *classifier, prompts []labelled, log io.Writer) (effortMix, error) {
	s := &setting{}
	s.model(map[string]any{"name": "thinker", "reasoning": map[string]any{"dialect": "reasoning_effort"}})
	s.policy("auto", "auto", map[string]any{"models": []string{"thinker"}, "reasoning": "auto"})
	p, err := openProduct(ctx, s, c)
	if err != nil {
		return nil, err
	}
	defer p.close()
	mix := effortMix{}
	for _, q := range prompts {
		h, err := p.ask(ctx, q.Text, "auto")
		if err != nil {
			return nil, err
		}
		if mix[q.Label] == nil {
			mix[q.Label] = map[string]int{}
		}
		mix[q.Label][h.Get("X-Signalbox-Reasoning")]++
	}
	_, _ = fmt.Fprintf(log, "reasoning effort: %d prompts\n", len(prompts))
	return mix, nil
}

// tokenModel is the number of tokens of a response at each effort, as a multiple of those at high
// effort, including the answer.
type tokenModel struct {
	name  string
	share map[string]float64
}

// The token models are assumptions at both ends of the plausible range, not measurements: how much
// a model reasons at an effort depends on the model.
var tokenModels = []tokenModel{ //nolint:gochecknoglobals // constant
	{"effort matters much", map[string]float64{"none": 0.05, "low": 0.15, "medium": 0.40, "high": 1}},
	{"effort matters little", map[string]float64{"none": 0.20, "low": 0.50, "medium": 0.75, "high": 1}},
}

// share returns the share of prompts with a label that got an effort, in [0,1].
func (m effortMix) share(label, effort string) float64 {
	n := 0
	for _, k := range m[label] {
		n += k
	}
	if n == 0 {
		return 0
	}
	return float64(m[label][effort]) / float64(n)
}

// saved returns the share of tokens saved compared with always using high effort, for traffic of
// which the share low is labelled low and the rest high.
func (m effortMix) saved(t *tokenModel, low float64) float64 {
	used := 0.0
	for _, e := range efforts {
		used += t.share[e] * (low*m.share("low", e) + (1-low)*m.share("high", e))
	}
	return 1 - used
}
