package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/proxy"
	"signalbox/rules"
)

// guard checks the section of the guard, and gives its mode a value: observe where the section is
// there, off where it is not.
func (c *checker) guard(catalog *Catalog) {
	g := &c.cfg.Guard
	present := c.root != nil && child(c.root, "guard") != nil
	if g.Mode == "" && present {
		g.Mode = "observe"
	}
	if g.Mode == "" {
		g.Mode = "off"
	}
	c.word("guard.mode", "mode", g.Mode)
	for i, v := range g.ActOn {
		c.word(fmt.Sprintf("guard.act_on[%d]", i), "act_on", v)
	}
	c.word("guard.marker_as", "marker_as", g.MarkerAs)
	c.word("guard.on_unchecked", "on_unchecked", g.OnUnchecked)
	c.word("guard.structured", "structured", g.Structured)
	c.section("guard", g.Validate())
	at := c.guardedAt()
	c.cfg.Guarded = at != ""
	if !c.cfg.Guarded || rules.HasErrors(c.problems) {
		return
	}
	if !catalog.Grounding {
		c.warn(at, "no model judges claims, so the guard checks numbers, dates and units alone, and every other claim is unchecked")
	}
	c.idleGuardKeys(catalog)
}

// idleGuardKeys warns of keys of the section that nothing comes of.
func (c *checker) idleGuardKeys(catalog *Catalog) {
	g := &c.cfg.Guard
	if g.OnUnchecked == "block" && !catalog.Grounding {
		c.warn("guard.on_unchecked", "no model judges claims, so no check can be late: block ends only answers that cannot be read, and what numbers cannot tell passes")
	}
	if g.Failures > 0 && !countsFailures(g.Mode) && !slices.ContainsFunc(c.routeModes(), countsFailures) {
		c.warn("guard.failures", "only terminate and hold count failures, and no route uses either")
	}
}

// countsFailures reports whether a mode counts failed claims.
func countsFailures(mode string) bool { return mode == "terminate" || mode == "hold" }

// routeModes are the modes that routes and the default name.
func (c *checker) routeModes() []string {
	var out []string
	add := func(use *yaml.Node) {
		if n := child(use, "guard"); n != nil {
			out = append(out, n.Value)
		}
	}
	add(&c.cfg.Default)
	for _, route := range c.cfg.Routes.Content {
		if use := child(route, "use"); use != nil {
			add(use)
		}
	}
	return out
}

// word reports a word that a key of the section does not know, with the nearest one that it does.
func (c *checker) word(path, key, word string) {
	known := proxy.GuardWords(key)
	if slices.Contains(known, word) {
		return
	}
	if best := slip(word, slices.Values(known)); best != "" {
		c.at(path, "%q is none of %s; did you mean %q?", word, strings.Join(known, ", "), best)
	}
}

// guardedAt returns the place that turns the guard on, empty when none does.
func (c *checker) guardedAt() string {
	if c.cfg.Guard.Mode != "off" {
		return "guard"
	}
	if asksForGuard(&c.cfg.Default) {
		return "default.guard"
	}
	for i, route := range c.cfg.Routes.Content {
		if use := child(route, "use"); use != nil && asksForGuard(use) {
			return fmt.Sprintf("routes[%d].use.guard", i)
		}
	}
	return ""
}

// asksForGuard reports whether an action turns the guard on.
func asksForGuard(use *yaml.Node) bool {
	n := child(use, "guard")
	return n != nil && !isNull(n) && n.Value != "off"
}

// warn reports what is allowed and worth a thought.
func (c *checker) warn(path, format string, args ...any) {
	at := c.place(path)
	c.problems = append(c.problems, rules.Problem{Line: at.Line, Col: at.Column, Path: path, Msg: fmt.Sprintf(format, args...), Warning: true})
}
