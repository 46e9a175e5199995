package config

import (
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/signal"
)

// defaultSkill is the key of models[].skills that applies to all other domains.
const defaultSkill = "default"

// skills reports skills for domains that the configured model never returns: they are likely typing
// errors and would silently have no effect.
func (c *checker) skills(catalog *Catalog) {
	labels := catalog.Labels[signal.Domain]
	if len(labels) == 0 {
		return // the domains of the model are unknown
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
