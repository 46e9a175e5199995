package config

import (
	"fmt"
	"slices"

	"signalbox/proxy/engine"
)

// engineParams looks at who may steer the model servers: a word that is nearly one gets that one,
// and a role is one that some caller can have. What else is wrong the section says itself.
func (c *checker) engineParams() {
	known := engine.Params()
	roles, _ := c.callers()
	for i, x := range c.cfg.Server.AllowEngineParams {
		at := fmt.Sprintf("server.allow_engine_params[%d]", i)
		if problem := x.Problem(); problem != "" {
			if best := Nearest(x.Name, known); best != "" {
				c.at(at+".name", "%q is not a known engine parameter; did you mean %q?", x.Name, best)
			}
		}
		for j, role := range x.Roles {
			if role == "" || roles == nil || slices.Contains(roles, role) {
				continue
			}
			c.at(fmt.Sprintf("%s.roles[%d]", at, j), "no key has role %q%s", role, meant(", ", role, roles))
		}
	}
}
