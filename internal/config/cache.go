package config

import (
	"fmt"
	"slices"
	"strings"

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
	if known := recall.CacheModes(); !slices.Contains(known, o.Mode) {
		if best := slip(o.Mode, slices.Values(known)); best != "" {
			c.at("cache.mode", "%q is none of %s; did you mean %q?", o.Mode, strings.Join(known, ", "), best)
		}
	}
	c.section("cache", o.Validate())
	if o.Shared && c.cfg.Memory.Redis.URL == "" {
		c.at("cache.shared", "answers are shared over memory.redis, which has no url")
	}
	modes := c.cacheModes()
	embeds := catalog.Signals.Has(signal.Embedding)
	if o.Mode == cacheSemantic && !embeds {
		c.at("cache.mode", "no model provides signal embedding, which semantic needs")
	}
	if o.Mode == cacheSemantic || slices.Contains(modes, cacheSemantic) {
		if embeds {
			catalog.Signals |= signal.MaskOf(signal.Cache)
			c.cfg.Catalog.Signals |= signal.MaskOf(signal.Cache)
		}
	} else {
		c.similarityWithoutCache(&c.cfg.Routes, "routes")
		c.similarityWithoutCache(&c.cfg.Conditions, "conditions")
		catalog.Signals |= signal.MaskOf(signal.Cache) // what is wrong was said
	}
	if c.root == nil || child(c.root, "cache") == nil || rules.HasErrors(c.problems) {
		return
	}
	if o.Mode == cacheOff && !slices.ContainsFunc(modes, func(m string) bool { return m != cacheOff }) {
		c.warn("cache", "mode is off and no route turns the cache on, so the section has no effect")
	}
}

// cacheModes are the modes that routes and the default name.
func (c *checker) cacheModes() []string {
	var out []string
	add := func(use *yaml.Node) {
		if n := child(use, "cache"); n != nil {
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
func (c *checker) similarityWithoutCache(n *yaml.Node, path string) {
	switch n.Kind { //nolint:exhaustive // what conditions are made of
	case yaml.SequenceNode:
		for i, item := range n.Content {
			c.similarityWithoutCache(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, val := n.Content[i], n.Content[i+1]
			switch below := join(path, key.Value); key.Value {
			case "use", "block", "answer", "name":
			case "cache":
				c.report(key, below, "no answer is found by its question: set cache.mode, or the cache of a route, to semantic")
			default:
				c.similarityWithoutCache(val, below)
			}
		}
	}
}
