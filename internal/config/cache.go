package config

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
	"signalbox/proxy/recall"
	"signalbox/rules"
)

// The mode of the cache that compares questions, and the one that keeps nothing.
const (
	cacheOff      = "off"
	cacheSemantic = "semantic"
)

// cache checks the section of the cache. Where some answer may be found by its question, rules may
// ask for it.
func (c *checker) cache(catalog *Catalog) {
	o := &c.cfg.Cache
	c.word("cache.mode", o.Mode, recall.CacheModes())
	c.section("cache", o.Validate())
	if o.Shared && !c.hasRedis() {
		c.at("cache.shared", "sharing responses requires memory.redis.url, which is not set")
	}
	modes := c.modesOf("cache")
	embeds := catalog.Signals.Has(signal.Embedding)
	if o.Mode == cacheSemantic && !embeds {
		c.at("cache.mode", "no model provides the signal embedding, which semantic requires")
	}
	if o.Mode == cacheSemantic || slices.Contains(modes, cacheSemantic) {
		if embeds {
			catalog.Signals |= signal.MaskOf(signal.Cache)
			c.cfg.Catalog.Signals |= signal.MaskOf(signal.Cache)
		}
	} else {
		c.eachCondition(c.similarityWithoutCache)
		catalog.Signals |= signal.MaskOf(signal.Cache) // what is wrong was said
	}
	if c.root == nil || child(c.root, "cache") == nil || rules.HasErrors(c.problems) {
		return
	}
	if o.Mode == cacheOff && !slices.ContainsFunc(modes, func(m string) bool { return m != cacheOff }) {
		c.warn("cache", "mode is off and no route enables the cache, so this section has no effect")
	}
}

// uncached warns of a cache that keeps nothing, as every route that would use it redacts: of any
// request, or of those that are routed.
func (c *checker) uncached() {
	if c.cfg.Program == nil || rules.HasErrors(c.problems) {
		return
	}
	mode, first := c.cfg.Cache.Mode, ""
	actions := c.cfg.Program.Actions()
	for i, a := range actions {
		switch {
		case a.Verb != rules.Use || cmp.Or(a.Cache, mode) == cacheOff:
		case a.Redact == nil:
			return
		case first != "":
		case i == len(actions)-1:
			first = "default"
		default:
			first = fmt.Sprintf("routes[%d].use", i)
		}
	}
	switch {
	case first == "":
	case mode == cacheOff:
		c.warn(first+".cache", "%s", keepsNothing)
	case c.cfg.Server.RouteNamedModels:
		c.warn("cache.mode", "%s", keepsNothing)
	default:
		c.warn("cache.mode", "only answers to requests that name a model are kept: "+eachHides)
	}
}

// keepsNothing is the warning of a cache that can never have an answer, eachHides the reason.
const (
	keepsNothing = "no answer is ever kept: " + eachHides
	eachHides    = "each route that uses the cache has redact, and what is hidden differs from " +
		"request to request"
)

// modesOf are the values that routes and the default give a key of use.
func (c *checker) modesOf(key string) []string {
	var out []string
	add := func(use *yaml.Node) {
		if n := child(use, key); n != nil {
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

// similarityWithoutCache reports conditions that ask for a similar question where none is ever
// kept.
func (c *checker) similarityWithoutCache(key, _ *yaml.Node, path string) bool {
	if key.Value != "cache" {
		return false
	}
	c.report(key, path, "no answer is found by its question: set cache.mode, or the cache of a route, to semantic")
	return true
}

// visitor is called with a key of a condition, its value and their path. It reports whether it is
// done with them; else the value is read on.
type visitor func(key, val *yaml.Node, path string) bool

// eachCondition visits the conditions of the routes, and those that have names.
func (c *checker) eachCondition(visit visitor) {
	walkConditions(&c.cfg.Routes, "routes", visit)
	walkConditions(&c.cfg.Conditions, "conditions", visit)
}

func walkConditions(n *yaml.Node, path string, visit visitor) {
	switch n.Kind { //nolint:exhaustive // what conditions are made of
	case yaml.SequenceNode:
		for i, item := range n.Content {
			walkConditions(item, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, val := n.Content[i], n.Content[i+1]
			switch below := join(path, key.Value); key.Value {
			case "use", "block", "answer", "name":
			default:
				if !visit(key, val, below) {
					walkConditions(val, below, visit)
				}
			}
		}
	}
}
