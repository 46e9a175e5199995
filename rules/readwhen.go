package rules

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
)

// conditionWords are the keys of a condition.
func conditionWords() []string {
	return []string{
		"all", "any", "not", "condition", "domain", "intent", "keyword", "jailbreak", "pii", "complexity", "factcheck",
		"language", "cache", "role", "tenant", "tokens", "context_tokens", "model", "has", "header", "session",
	}
}

// never stands in for what could not be read; a problem was reported.
const never = constant(false)

// when reads a condition.
func (c *compiler) when(at cursor, depth int) node {
	if depth > maxDepth {
		at.errorf("found more than %d levels of nesting", maxDepth)
		return never
	}
	if at.scalar("!!bool") {
		b, _ := at.bool()
		return constant(b)
	}
	before := len(c.problems)
	entries, ok := at.mapping("a condition such as {domain: math}, or true", conditionWords()...)
	switch {
	case !ok || len(entries) != 1 && len(c.problems) > before:
		return never
	case len(entries) == 0:
		at.errorf("found an empty condition, expected %s", oneOf(conditionWords()))
		return never
	case len(entries) > 1:
		keys := make([]string, len(entries))
		for i, e := range entries {
			keys[i] = e.key
		}
		at.errorf("found several conditions (%s), expected one; join them with all or any", join(keys))
		return never
	}
	return c.operator(entries[0], depth)
}

func (c *compiler) operator(e entry, depth int) node {
	before := c.errors()
	switch e.key {
	case "all":
		return c.checked(e.at, before, &all{c.members(e.at, depth)})
	case "any":
		return c.checked(e.at, before, &anyOf{c.members(e.at, depth)})
	case "not":
		return &not{c.when(e.at, depth+1)}
	case "condition":
		return c.reference(e.at)
	}
	c.leaves++
	if c.tooLarge(e.at, 1) {
		return never
	}
	if n := c.leaf(e); n != nil {
		return c.checked(e.at, before, n)
	}
	return never
}

// checked warns of what n is for every request, unless it could not be read.
func (c *compiler) checked(at cursor, before int, n node) node {
	if c.errors() == before {
		c.warnFixed(at, n)
	}
	return n
}

// tooLarge reports, once, that the leaf count has just crossed the limit by the last added leaves.
func (c *compiler) tooLarge(at cursor, added int) bool {
	if c.leaves > maxLeaves && c.leaves-added <= maxLeaves {
		at.errorf("found more than %d leaves in one condition, named conditions included", maxLeaves)
	}
	return c.leaves > maxLeaves
}

func (c *compiler) members(at cursor, depth int) []node {
	items, _ := at.list("a list of at least one condition")
	out := make([]node, 0, len(items))
	for _, i := range items {
		out = append(out, c.when(i, depth+1))
	}
	if len(out) == 0 {
		return []node{never}
	}
	return out
}

func (c *compiler) reference(at cursor) node {
	name, ok := at.word("the name of a condition")
	if !ok {
		return never
	}
	cond := c.conditions[name]
	if cond == nil {
		known := make([]string, 0, len(c.conditions))
		for k := range c.conditions {
			known = append(known, k)
		}
		slices.Sort(known)
		at.known("condition", name, known)
		return never
	}
	cond.used = true
	if cond.open {
		at.errorf("condition %q uses itself", name)
		return never
	}
	n := c.resolve(cond)
	c.leaves += cond.leaves
	if c.tooLarge(at, cond.leaves) {
		return never
	}
	return n
}

// leaf reads a test of one signal or fact; nil when it cannot be read.
func (c *compiler) leaf(e entry) node {
	if slices.Contains(c.env.Absent, e.key) {
		e.at.errorf("%s is not in this version", e.key)
		return nil
	}
	switch e.key {
	case "role", "tenant", "model":
		return c.readFact(e)
	case "tokens":
		return readTokens(e.at, ofTokens)
	case "context_tokens":
		return readTokens(e.at, ofContextTokens)
	case "has":
		return c.readFeatures(e.at)
	case "header":
		return c.readHeaderTest(e.at)
	case "session":
		return c.readSession(e.at)
	case "keyword":
		return c.readKeyword(e.at)
	}
	k, _ := signal.ParseKind(e.key)
	if !c.env.Signals.Has(k) && (k != signal.Intent || len(c.env.Labels[k]) > 0) {
		e.at.warnf("no model provides signal %s, so this is unknown for every request", k)
	}
	switch k {
	case signal.Jailbreak, signal.FactCheck:
		return c.readBinary(e.at, k)
	case signal.PII:
		return c.readEntities(e.at)
	case signal.Cache:
		return readSimilarity(e.at)
	case signal.Domain, signal.Intent, signal.Complexity, signal.Language, signal.Keyword,
		signal.Embedding, signal.NumKinds:
	}
	return c.readLabels(e.at, k)
}

// boundWords are the keys that bound the score of a label.
func boundWords() []string { return []string{"min_score", "max_score", "margin"} }

// lists holds the names of {in, not_in}.
type lists struct {
	in, out  []string
	given    bool // in was given
	excluded bool // not_in was given
}

// names returns the list as one: in without not_in, or everything but not_in. none reports that
// nothing is left.
func (l lists) names() (names []string, out, none bool) {
	if !l.given {
		return distinct(slices.Clone(l.out)), true, false
	}
	names = distinct(minus(l.in, l.out))
	return names, false, len(names) == 0
}

// wordsOf reads NAME or [NAME, ...] and checks each with check.
func wordsOf(at cursor, what string, check func(at cursor, name string)) []string {
	names, places, _ := at.words(what)
	for i, n := range names {
		check(places[i], n)
	}
	return names
}

// readLists reads NAME, [NAME, ...], or the keys in and not_in of a mapping. It returns the other
// entries, whose keys must be among extra.
func readLists(at cursor, what string, check func(cursor, string), extra ...string) (l lists, rest []entry, ok bool) {
	if at.n.Kind != yaml.MappingNode {
		l.in, l.given = wordsOf(at, what, check), true
		return l, nil, len(l.in) > 0
	}
	mark := at.mark()
	entries, _ := at.mapping("a "+what, append([]string{"in", "not_in"}, extra...)...)
	for _, e := range entries {
		switch e.key {
		case "in":
			l.in, l.given = wordsOf(e.at, what, check), true
		case "not_in":
			l.out, l.excluded = wordsOf(e.at, what, check), true
		default:
			rest = append(rest, e)
		}
	}
	if len(entries) == 0 {
		at.lacking(mark, "found an empty mapping, expected a %s, a list of them, or %s", what, oneOf(append([]string{"in", "not_in"}, extra...)))
		return l, nil, false
	}
	if _, _, none := l.names(); none && len(l.in) > 0 {
		at.errorf("not_in excludes everything that in lists")
		return l, rest, false
	}
	return l, rest, !l.given || len(l.in) > 0
}

// readFact reads role, tenant and model.
func (c *compiler) readFact(e entry) node {
	subjects := map[string]subject{"role": ofRole, "tenant": ofTenant, "model": ofModel}
	check := func(at cursor, name string) {
		switch {
		case e.key == "model":
			at.known("model", name, append(slices.Clone(c.env.AutoModels), c.env.Models...))
			c.use("model", name)
		case e.key == "role" && c.env.Roles != nil && !slices.Contains(c.env.Roles, name):
			at.warnf("no key has role %q%s", shorten(name), suggestion(name, c.env.Roles))
		}
	}
	l, _, ok := readLists(e.at, e.key, check)
	if !ok {
		return nil
	}
	names, out, _ := l.names()
	return newLeaf(signal.NumKinds, &member{subject: subjects[e.key], names: names, out: out})
}

func (c *compiler) checkLabel(k signal.Kind, what string) func(cursor, string) {
	return func(at cursor, name string) {
		c.use(what, name)
		known, listed := c.env.Labels[k]
		if k == signal.Complexity && !listed {
			known, listed = []string{"low", "medium", "high"}, true // the words of the signal, whichever model provides it
		}
		if listed || k == signal.Keyword || k == signal.Intent {
			at.known(what, name, known)
		}
	}
}

func (c *compiler) readKeyword(at cursor) node {
	l, _, ok := readLists(at, "keyword set", c.checkLabel(signal.Keyword, "keyword set"))
	if !ok {
		return nil
	}
	// A text can match several sets, so in and not_in are two tests.
	var both []node
	if l.given {
		both = append(both, newLeaf(signal.Keyword, &keywords{names: distinct(slices.Clone(l.in))}))
	}
	if l.excluded {
		both = append(both, newLeaf(signal.Keyword, &keywords{names: distinct(slices.Clone(l.out)), out: true}))
	}
	if len(both) == 1 {
		return both[0]
	}
	return &all{both}
}

// readLabels reads domain, intent, complexity and language.
func (c *compiler) readLabels(at cursor, k signal.Kind) node {
	s := &scored{kind: k, max: 1, margin: -1}
	l, rest, ok := readLists(at, k.String(), c.checkLabel(k, k.String()), boundWords()...)
	bounded := false
	for _, e := range rest {
		x, isShare := e.at.share()
		if !isShare {
			ok = false
			continue
		}
		bounded = true
		switch e.key {
		case "min_score":
			s.min = x
		case "max_score":
			s.max = x
		case "margin":
			s.margin = x
		}
	}
	if !ok {
		return nil
	}
	if s.min > s.max {
		at.errorf("min_score %s is above max_score %s, so this is never true", number(s.min), number(s.max))
		return nil
	}
	names, out, _ := l.names()
	if !bounded {
		return newLeaf(k, &member{subject: ofLabel, kind: k, names: names, out: out})
	}
	s.names, s.out = names, out
	s.index(c.env.Labels[k])
	return newLeaf(k, s)
}
