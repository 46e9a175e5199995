package config

import (
	"slices"

	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/rules"
)

// outcomes warns of settings of outcomes that change nothing.
func (c *checker) outcomes() {
	o := &c.cfg.Outcomes
	if c.cfg.Program == nil || rules.HasErrors(c.problems) {
		return
	}
	if !o.On() {
		for _, key := range []string{"explore", "signs", "min_neighbours", "max_quality_loss"} {
			if path := "outcomes." + key; c.holds(path) {
				c.warn(path, "outcomes.learn is off, so it has no effect")
			}
		}
		return
	}
	learns := func(a *rules.Action) bool { return decide.LearnsFrom(a, c.hasEfforts) }
	if !slices.ContainsFunc(c.cfg.Program.Actions(), learns) {
		c.warn("outcomes.learn", "nothing is learnt: no route and no default chooses among several models "+
			"(by quality, cost, latency or weight), or by `reasoning: auto` among efforts of a model, or tries one "+
			"out (canary)")
	}
	if o.Learn != decide.LearnAll && c.holds("outcomes.signs") {
		c.warn("outcomes.signs", "signs are only used with outcomes.learn: all, so they have no effect")
	}
}

// hasEfforts reports whether a model can be told how much to reason, in more than one way.
func (c *checker) hasEfforts(model string) bool {
	return slices.ContainsFunc(c.cfg.Models, func(m backend.ModelOptions) bool {
		return m.Name == model && m.HasEfforts()
	})
}
