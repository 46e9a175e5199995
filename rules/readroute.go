package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/syntax"
)

// named is an entry of the conditions section.
type named struct {
	name   syntax.Cursor
	when   syntax.Cursor
	node   condition.Node // nil before it is read
	open   bool           // is being read
	used   bool
	broken bool // it has errors, or one that it uses has
	leaves int
}

func (c *compiler) readConditions(n *yaml.Node) {
	all := syntax.At(&c.problems, n, "conditions")
	if all.Empty() {
		return
	}
	items, _ := all.List("a list of {name, when}")
	for _, at := range items {
		name, when := nameAndWhen(at)
		if name.Node == nil {
			continue
		}
		s, ok := c.name(name)
		if !ok {
			continue
		}
		if other, ok := c.conditions[s]; ok {
			name.Errorf("condition %q is already defined on line %d", s, other.name.Node.Line)
			continue
		}
		c.conditions[s] = &named{name: name, when: when}
		if when.Node == nil {
			c.conditions[s].node, c.conditions[s].broken = never, true
		}
	}
}

// nameAndWhen reads an entry of conditions. Missing values are reported and have no node.
func nameAndWhen(at syntax.Cursor) (name, when syntax.Cursor) {
	mark := at.Mark()
	entries, ok := at.Mapping("{name, when}", "name", "when")
	for _, e := range entries {
		if e.Key == "name" {
			name = e.At
		} else {
			when = e.At
		}
	}
	if ok && (name.Node == nil || when.Node == nil) {
		at.Lacking(mark, "a condition needs a name and a when")
	}
	return name, when
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name reads the name of a route or condition. Names appear in response headers and as metric
// labels, hence the narrow alphabet.
func (*compiler) name(at syntax.Cursor) (string, bool) {
	s, ok := at.Word("a name")
	if ok && !namePattern.MatchString(s) {
		at.Errorf("found %q, expected a name of letters, digits, '.', '_' and '-', at most 64 long", syntax.Shorten(s))
		return "", false
	}
	return s, ok
}

// resolve reads the condition once. All its uses share the simplified form.
func (c *compiler) resolve(cond *named) condition.Node {
	if cond.node != nil {
		return cond.node
	}
	outer, spoilt := c.leaves, c.spoilt
	cond.open = true
	n, broken := c.root(cond.when)
	cond.node, cond.open, cond.broken, cond.leaves = c.simplifier.Simplify(n), false, broken, c.leaves
	c.leaves, c.spoilt = outer, spoilt
	return cond.node
}

// root reads a whole condition. broken: it has errors, or one that it uses has.
func (c *compiler) root(at syntax.Cursor) (n condition.Node, broken bool) {
	before := syntax.Errors(c.problems)
	c.leaves, c.spoilt = 0, false
	n = c.when(at, 0)
	return n, c.spoilt || syntax.Errors(c.problems) > before
}

// draft is a route as read, with the places that warnings refer to.
type draft struct {
	route

	at     syntax.Cursor  // the name, or the route if it has none
	raw    condition.Node // the condition before simplification
	broken bool           // condition, on_unknown or verb has errors, so the route is not analysed
	dead   bool           // it never matches a request
}

// neverMatches warns that the route has no effect.
func (d *draft) neverMatches(why string, args ...any) {
	d.dead = true
	d.at.Warnf("route %q can never match: %s", d.name, fmt.Sprintf(why, args...))
}

func (c *compiler) readRoutes(n *yaml.Node) []draft {
	at := syntax.At(&c.problems, n, "routes")
	if at.Empty() {
		return nil
	}
	items, _ := at.List("a list of routes")
	if len(items) > maxRoutes {
		at.Errorf("found %d routes, expected at most %d", len(items), maxRoutes)
		return nil
	}
	var out []draft
	lines := map[string]int{}
	for i, item := range items {
		d, ok := c.readRoute(item)
		if !ok {
			continue
		}
		d.index = i
		if line, ok := lines[d.name]; ok {
			d.at.Errorf("route %q is already defined on line %d", d.name, line)
		} else if d.name != "" {
			lines[d.name] = d.at.Node.Line
		}
		out = append(out, d)
	}
	return out
}

func (c *compiler) readRoute(at syntax.Cursor) (draft, bool) {
	mark := at.Mark()
	entries, ok := at.Mapping("a route: {name, when, use|block|answer}", syntax.RouteKeys()...)
	if !ok {
		return draft{}, false
	}
	misspelt := at.Mark() > mark
	d := draft{at: at, raw: condition.Constant(false)}
	var seen, verbs []string
	var policyAt syntax.Cursor
	policy := ""
	for _, e := range entries {
		seen = append(seen, e.Key)
		switch e.Key {
		case "name":
			d.name, _ = c.name(e.At)
			d.at = e.At
		case "when":
			d.raw, d.broken = c.root(e.At)
		case "on_unknown":
			policyAt, policy = e.At, e.At.Choice("skip", "match", "error")
		default:
			verbs = append(verbs, e.Key)
			d.action = c.readVerb(e)
		}
	}
	unread := misspelt || policyAt.Node != nil && policy == ""
	d.broken = d.broken || unread || !slices.Contains(seen, "when")
	if !misspelt { // else a missing key is usually present under a misspelt name
		checkRoute(at, seen, verbs)
	}
	if d.name == RouteDefault || d.name == RouteNamed {
		d.at.Errorf("the name %q is reserved for requests that no route matches", d.name)
	}
	d.Matcher = c.simplifier.Matcher(d.raw, policyOf(policy, d.action.Verb))
	if policy != "" && !d.broken && d.Kinds == 0 {
		policyAt.Warnf("on_unknown has no effect: the condition reads no signal that could fail")
	}
	return d, true
}

func checkRoute(at syntax.Cursor, seen, verbs []string) {
	if !slices.Contains(seen, "name") {
		at.Errorf("a route needs a name")
	}
	if !slices.Contains(seen, "when") {
		at.Errorf("a route needs a condition; write `when: true` for one that always matches")
	}
	if len(verbs) != 1 {
		was := "none"
		if len(verbs) > 1 {
			was = strings.Join(verbs, ", ")
		}
		at.Errorf("found %s, expected exactly one of use, block, answer", was)
	}
}

// policyOf applies the default: a route that blocks fails closed.
func policyOf(word string, v Verb) OnUnknown {
	switch {
	case word == "match", word == "" && v == Block:
		return Match
	case word == "error":
		return Error
	}
	return Skip
}

func (c *compiler) readDefault(n *yaml.Node) Action {
	at := syntax.At(&c.problems, n, "default")
	if at.Empty() {
		at.Errorf("nothing says where a request goes that no route matches; add `default: {models: [NAME]}`")
		return Action{}
	}
	return c.readUse(at)
}
