package rules

import (
	"maps"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/syntax"
)

// never stands in for a condition that could not be read; the problem has been reported.
const never = condition.Constant(false)

func (c *compiler) when(at syntax.Cursor, depth int) condition.Node {
	if depth > syntax.MaxDepth {
		at.Errorf("found more than %d levels of nesting", syntax.MaxDepth)
		return never
	}
	if at.IsScalar("!!bool") {
		b, _ := at.Bool()
		return condition.Constant(b)
	}
	before := len(c.problems)
	entries, ok := at.Mapping("a condition such as {domain: math}, or true", syntax.ConditionKeys()...)
	switch {
	case !ok || len(entries) != 1 && len(c.problems) > before:
		return never
	case len(entries) == 0:
		at.Errorf("found an empty condition, expected %s", syntax.OneOf(syntax.ConditionKeys()))
		return never
	case len(entries) > 1:
		keys := make([]string, len(entries))
		for i, e := range entries {
			keys[i] = e.Key
		}
		at.Errorf("found several conditions (%s), expected one; join them with all or any", strings.Join(keys, ", "))
		return never
	}
	return c.operator(entries[0], depth)
}

func (c *compiler) operator(e syntax.Entry, depth int) condition.Node {
	before := syntax.Errors(c.problems)
	switch e.Key {
	case "all":
		return c.checked(e.At, before, &condition.All{Xs: c.members(e.At, depth)})
	case "any":
		return c.checked(e.At, before, &condition.Any{Xs: c.members(e.At, depth)})
	case "not":
		return &condition.Not{X: c.when(e.At, depth+1)}
	case "condition":
		return c.reference(e.At)
	}
	c.leaves++
	if c.tooLarge(e.At, 1) {
		return never
	}
	if n := c.leaf(e); n != nil {
		return c.checked(e.At, before, n)
	}
	return never
}

// checked warns if n has the same value for every request, unless it could not be read.
func (c *compiler) checked(at syntax.Cursor, before int, n condition.Node) condition.Node {
	if syntax.Errors(c.problems) == before {
		c.warnFixed(at, n)
	}
	return n
}

// tooLarge reports, once, that the last added leaves exceeded the limit.
func (c *compiler) tooLarge(at syntax.Cursor, added int) bool {
	if c.leaves > maxLeaves && c.leaves-added <= maxLeaves {
		at.Errorf("found more than %d leaves in one condition, named conditions included", maxLeaves)
	}
	return c.leaves > maxLeaves
}

func (c *compiler) members(at syntax.Cursor, depth int) []condition.Node {
	items, _ := at.List("a list of at least one condition")
	out := make([]condition.Node, 0, len(items))
	for _, i := range items {
		out = append(out, c.when(i, depth+1))
	}
	if len(out) == 0 {
		return []condition.Node{never}
	}
	return out
}

func (c *compiler) reference(at syntax.Cursor) condition.Node {
	name, ok := at.Word("the name of a condition")
	if !ok {
		return never
	}
	cond := c.conditions[name]
	if cond == nil {
		at.Known("condition", name, slices.Sorted(maps.Keys(c.conditions)))
		return never
	}
	cond.used = true
	if cond.open {
		at.Errorf("condition %q uses itself", name)
		return never
	}
	n := c.resolve(cond)
	c.spoilt = c.spoilt || cond.broken
	c.leaves += cond.leaves
	if c.tooLarge(at, cond.leaves) {
		return never
	}
	return n
}

// leaf reads a test of one signal or fact; nil if it cannot be read.
func (c *compiler) leaf(e syntax.Entry) condition.Node {
	if slices.Contains(c.env.Absent, e.Key) {
		e.At.Errorf("%s is not in this version", e.Key)
		return nil
	}
	switch e.Key {
	case "role":
		return c.readFact(e, condition.Role)
	case "tenant":
		return c.readFact(e, condition.Tenant)
	case "model":
		return c.readFact(e, condition.Model)
	case "tokens":
		return readTokens(e.At, condition.Tokens)
	case "context_tokens":
		return readTokens(e.At, condition.ContextTokens)
	case "conversation":
		return readConversation(e.At)
	case "has":
		return c.readFeatures(e.At)
	case "header":
		return c.readHeaderTest(e.At)
	case "session":
		return c.readSession(e.At)
	case "keyword":
		return c.readKeyword(e.At)
	case "classifier":
		return c.readClassifier(e.At)
	}
	k, _ := signal.ParseKind(e.Key)
	if !c.env.Signals.Has(k) && (k != signal.Intent || len(c.env.Labels[k]) > 0) {
		e.At.Warnf("no model provides signal %s, so this is unknown for every request", k)
	}
	switch k { //nolint:exhaustive // Own and NumKinds are no keys
	case signal.Jailbreak, signal.Injection, signal.FactCheck:
		return c.readBinary(e.At, k)
	case signal.PII:
		return c.readEntities(e.At)
	case signal.Cache:
		return readSimilarity(e.At)
	case signal.Domain, signal.Intent, signal.Complexity, signal.Language, signal.Keyword,
		signal.Embedding:
	}
	return c.readLabels(e.At, k)
}
