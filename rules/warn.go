package rules

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/syntax"
)

// warn reports what is legal but probably a mistake.
func (c *compiler) warn(drafts []draft) {
	c.warnUnreachable(drafts)
	c.warnExempt(drafts)
}

// warnFixed reports an operator whose members contradict or complement each other, and a test that
// passes, or fails, for every value. Members with a fixed value of their own have been reported
// before.
func (c *compiler) warnFixed(at syntax.Cursor, n condition.Node) {
	reach := func(n condition.Node) condition.Bounds { return condition.Reach(c.simplifier.Simplify(n), 0) }
	never := func(n condition.Node) bool { return reach(n).Hi < condition.True }
	always := func(n condition.Node) bool { return reach(n).Lo > condition.False }
	switch n.(type) {
	case *condition.All:
		both := func(x, y condition.Node) bool { return never(&condition.All{Xs: []condition.Node{x, y}}) }
		if who, own := culprits(n, never, both); own {
			at.Warnf("%s exclude each other, so this is never true", who)
		}
	case *condition.Any:
		either := func(x, y condition.Node) bool { return always(&condition.Any{Xs: []condition.Node{x, y}}) }
		if who, own := culprits(n, always, either); own {
			at.Warnf("one of %s always holds, so this is always true", who)
		}
	default:
		if never(n) {
			at.Warnf("no value passes this test, so this is never true")
		} else if always(n) {
			at.Warnf("every value passes this test, so this is always true")
		}
	}
}

// culprits returns the two members of n that fix its value together. own is false if n is not
// fixed, or if a single member fixes it.
func culprits(n condition.Node, fixed func(condition.Node) bool, together func(x, y condition.Node) bool) (who string, own bool) {
	xs := condition.Members(n)
	if !fixed(n) || slices.ContainsFunc(xs, fixed) {
		return "", false
	}
	for j, y := range xs {
		for _, x := range xs[:j] {
			if together(x, y) {
				return brief(x) + " and " + brief(y), true
			}
		}
	}
	return "its members", true
}

// brief returns a condition as shown in messages.
func brief(n condition.Node) string { return "`" + syntax.Shorten(n.String()) + "`" }

// warnUnreachable reports routes that cannot match: their condition is never true, or routes above
// them take all requests that they would match. Conditions that end unknown are included: a route
// with on_unknown: match takes requests that a route above with skip does not.
func (c *compiler) warnUnreachable(drafts []draft) {
	absent := allKinds &^ c.env.Signals
	var above union
	for i := range drafts {
		d := &drafts[i]
		if d.broken {
			continue
		}
		b := condition.Reach(d.When, 0)
		switch {
		case b.Hi == condition.False, b.Hi == condition.Unknown && d.OnUnknown == Skip:
			d.neverMatches("its condition is always false")
			continue
		case b.Hi == condition.Unknown:
			d.at.Warnf("route %q matches only when a signal failed: its condition is never true", d.name)
		case c.warnAbsent(d, absent):
		default:
			warnCovered(d, drafts[:i], &above)
		}
		above.add(c.simplifier, d)
	}
}

// signalName returns the name of a signal in the configuration.
func (c *compiler) signalName(k signal.Kind) string {
	if i := int(k) - int(signal.Own); i >= 0 && i < len(c.env.Classifiers) {
		return c.env.Classifiers[i].Name
	}
	return k.String()
}

// warnAbsent reports a route whose result is the same for every request because of signals that
// nothing provides.
func (c *compiler) warnAbsent(d *draft, absent signal.Mask) bool {
	raw := condition.Reach(d.When, absent)
	missing := d.Kinds & absent
	if missing == 0 || raw.Lo == condition.True || raw.Hi == condition.False {
		return false
	}
	names := make([]string, 0, missing.Len())
	for _, k := range missing.Kinds() {
		names = append(names, c.signalName(k))
	}
	switch b := d.OnUnknown.Resolve(raw); {
	case !b.Settled():
		return false
	case b.Lo == condition.True:
		d.at.Warnf("route %q takes every request that reaches it: no model provides %s, and what is unknown matches", d.name, strings.Join(names, ", "))
	case b.Lo == condition.False:
		d.neverMatches("no model provides %s", strings.Join(names, ", "))
	default:
		d.dead = true
		d.at.Warnf("route %q refuses every request that reaches it: no model provides %s, and on_unknown is error", d.name, strings.Join(names, ", "))
	}
	return true
}

// warnCovered reports a route all of whose requests are taken by one route above it, or by several
// together.
func warnCovered(d *draft, drafts []draft, above *union) {
	for j := range drafts {
		a := &drafts[j]
		if a.broken || !condition.Implies(d.When, a.When) {
			continue
		}
		switch {
		case !takesUnknown(d, a):
			d.at.Warnf("route %q matches only when a signal failed: %q above it takes every request for which its condition is true", d.name, a.name)
		case condition.Same(d.When, a.When) && d.OnUnknown == a.OnUnknown && reflect.DeepEqual(d.action, a.action):
			d.neverMatches("it is %q above it under another name", a.name)
		case condition.Same(d.When, a.When):
			d.neverMatches("%q above it has the same condition", a.name)
		default:
			d.neverMatches("%q above it always does", a.name)
		}
		return
	}
	if above.when != nil && (d.OnUnknown == Skip || !above.skips || d.Kinds == 0) && condition.Implies(d.When, above.when) {
		d.neverMatches("the routes above it together take all of its requests")
	}
}

// takesUnknown reports whether above takes the requests that d would take because its condition is
// unknown. It relies on condition.Implies, which also covers unknown: above is then at least
// unknown.
func takesUnknown(d, above *draft) bool {
	return d.OnUnknown == Skip || above.OnUnknown != Skip || d.Kinds == 0 || above.Kinds == 0
}

// maxUnion limits the number of members of a union, because joining them takes quadratic time.
const maxUnion = 32

// union is the disjunction of the conditions of several routes.
type union struct {
	when  condition.Node // nil without routes
	skips bool           // one of the routes skips unknown
}

// add extends u by the condition of d, unless u is full.
func (u *union) add(s *condition.Simplifier, d *draft) {
	switch {
	case len(condition.Members(d.When)) > maxUnion:
		return
	case u.when == nil:
		u.when = d.When
	case len(condition.Members(u.when)) < maxUnion:
		u.when = s.Simplify(&condition.Any{Xs: []condition.Node{u.when, d.When}})
	default:
		return
	}
	u.skips = u.skips || d.OnUnknown == Skip && d.Kinds != 0
}

// use records that the rules use a name that another section defines.
func (c *compiler) use(what, name string) { c.used[usedKey(what, name)] = true }

func usedKey(what, name string) string { return what + " " + name }

// unusedConditions returns the conditions that no route uses, by name.
func (c *compiler) unusedConditions() []*named {
	var out []*named
	for _, name := range slices.Sorted(maps.Keys(c.conditions)) {
		if cond := c.conditions[name]; !cond.used {
			out = append(out, cond)
		}
	}
	return out
}

// warnUnused reports names that other sections define without a use. It is only called for rules
// without errors: a misspelt name would leave the correct one unused. Clients can name a model
// themselves, so a model without a route is usable, but it may have been forgotten.
func (c *compiler) warnUnused() {
	for _, d := range c.env.Defined {
		if c.used[usedKey(d.What, d.Name)] {
			continue
		}
		at := syntax.At(&c.problems, nil, d.Path)
		if d.What == "model" {
			at.Warnf("no route and no default uses model %q; only clients that name it reach it", syntax.Shorten(d.Name))
			continue
		}
		at.Warnf("no rule uses %s %q", d.What, syntax.Shorten(d.Name))
	}
}

// warnExempt reports routes above a safety route that forward requests to a model without its
// check.
func (*compiler) warnExempt(drafts []draft) {
	safety := -1
	for i := range drafts {
		if isSafety(&drafts[i]) {
			safety = i
		}
	}
	for i := 0; i < safety; i++ {
		d := &drafts[i]
		if d.broken || d.dead || d.action.Verb != Use || condition.LimitsCaller(d.When) {
			continue
		}
		for j := i + 1; j <= safety; j++ {
			if isSafety(&drafts[j]) {
				d.at.Warnf("requests that route %q takes are never checked by %q below it; move it down, or limit it to a role or tenant",
					d.name, drafts[j].name)
				break
			}
		}
	}
}

func isSafety(d *draft) bool {
	return d.action.Verb == Block && d.Kinds&signal.MaskOf(signal.Jailbreak, signal.Injection,
		signal.PII) != 0
}
