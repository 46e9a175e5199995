package config

import (
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/signal"
)

// defaultSkill is the key of models[].skills that names no domain.
const defaultSkill = "default"

// skills looks for domains that the configured model never reports: a skill for one is a slip, and
// would count for nothing without a word.
func (c *checker) skills(catalog *Catalog) {
	labels := catalog.Labels[signal.Domain]
	if len(labels) == 0 {
		return // what the model reports is not known
	}
	known := map[string]field{defaultSkill: {}}
	for _, l := range labels {
		known[l] = field{}
	}
	for i := range c.cfg.Models {
		for _, domain := range slices.Sorted(maps.Keys(c.cfg.Models[i].Skills)) {
			if _, ok := known[domain]; !ok {
				c.at(fmt.Sprintf("models[%d].skills.%s", i, domain), "no domain is called %q%s", domain, nearest(domain, known))
			}
		}
	}
}
