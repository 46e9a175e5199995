package rules

import (
	"reflect"
	"slices"

	"signalbox/internal/signal"
)

// warn reports what is legal and probably not meant.
func (c *compiler) warn(drafts []draft) {
	c.warnUnreachable(drafts)
	c.warnExempt(drafts)
}

// reach returns the values that a condition can take over all requests, where signals of absent are
// always unknown and every other signal may become anything or fail.
func reach(n node, absent signal.Mask) bounds {
	switch n := n.(type) {
	case constant:
		return of(bool(n))
	case *not:
		return reach(n.x, absent).flip()
	case *all:
		out := exactly(yes)
		for _, x := range n.xs {
			b := reach(x, absent)
			out.lo, out.hi = min(out.lo, b.lo), min(out.hi, b.hi)
		}
		return out
	case *anyOf:
		out := exactly(no)
		for _, x := range n.xs {
			b := reach(x, absent)
			out.lo, out.hi = max(out.lo, b.lo), max(out.hi, b.hi)
		}
		return out
	case *leaf:
		if n.kind < signal.NumKinds && absent.Has(n.kind) {
			return exactly(unknown)
		}
		if t, ok := n.test.(tautology); ok {
			return t.pending()
		}
	}
	return bounds{no, yes}
}

// warnFixed reports an operator whose members contradict or complete each other, and a test that
// passes, or fails, whatever it reads. A member that is fixed on its own was reported already.
func (c *compiler) warnFixed(at cursor, n node) {
	b := reach(c.simplifier.simplify(n), 0)
	_, isAll := n.(*all)
	_, isAny := n.(*anyOf)
	switch {
	case b.hi < yes && !isAny:
		if who, own := c.culprits(n, true); own {
			at.warnf("%s, so this is never true", choose(isAll, who+" exclude each other", "no value passes this test"))
		}
	case b.lo > no && !isAll:
		if who, own := c.culprits(n, false); own {
			at.warnf("%s, so this is always true", choose(isAny, "one of "+who+" always holds", "every value passes this test"))
		}
	}
}

// culprits names the two members of n that fix it together. own is false when a single member does.
func (c *compiler) culprits(n node, never bool) (who string, own bool) { //nolint:revive // never or always
	xs := slices.Clone(membersOf(n))
	fixed := func(n node) bool {
		b := reach(c.simplifier.simplify(n), 0)
		return never && b.hi < yes || !never && b.lo > no
	}
	if slices.ContainsFunc(xs, fixed) {
		return "", false
	}
	for j, y := range xs {
		for _, x := range xs[:j] {
			if both := []node{x, y}; never && fixed(&all{both}) || !never && fixed(&anyOf{both}) {
				return brief(x) + " and " + brief(y), true
			}
		}
	}
	return "its members", true
}

// brief is a condition as a message shows it.
func brief(n node) string { return "`" + shorten(n.String()) + "`" }

// warnUnreachable reports routes that cannot match: their condition is never true, or routes above
// them take every request that they would. A condition that ends unknown counts, too, for a route
// that says on_unknown: match takes what a route above with skip lets pass.
func (c *compiler) warnUnreachable(drafts []draft) {
	absent := allKinds &^ c.env.Signals
	var above union
	for i := range drafts {
		d := &drafts[i]
		if d.broken {
			continue
		}
		b := reach(d.when, 0)
		switch {
		case b.hi == no, b.hi == unknown && d.onUnknown == Skip:
			d.neverMatches("its condition is always false")
			continue
		case b.hi == unknown:
			d.at.warnf("route %q matches only when a signal failed: its condition is never true", d.name)
		case warnAbsent(d, absent):
		default:
			warnCovered(d, drafts[:i], &above)
		}
		above.add(c.simplifier, d)
	}
}

// warnAbsent reports a route that signals which nothing provides decide for every request.
func warnAbsent(d *draft, absent signal.Mask) bool {
	raw := reach(d.when, absent)
	missing := kindsOf(d.when) & absent
	if missing == 0 || raw.lo == yes || raw.hi == no {
		return false
	}
	names := make([]string, 0, missing.Len())
	for _, k := range missing.Kinds() {
		names = append(names, k.String())
	}
	switch b := d.onUnknown.resolve(raw); {
	case !b.settled():
		return false
	case b.lo == yes:
		d.at.warnf("route %q takes every request that reaches it: no model provides %s, and what is unknown matches", d.name, join(names))
	case b.lo == no:
		d.neverMatches("no model provides %s", join(names))
	default:
		d.dead = true
		d.at.warnf("route %q refuses every request that reaches it: no model provides %s, and on_unknown is error", d.name, join(names))
	}
	return true
}

// warnCovered reports a route whose requests all go to one above it, or to several together.
func warnCovered(d *draft, drafts []draft, above *union) {
	for j := range drafts {
		a := &drafts[j]
		if a.broken || !implies(d.when, a.when) {
			continue
		}
		switch {
		case !takesUnknown(d, a):
			d.at.warnf("route %q matches only when a signal failed: %q above it takes every request for which its condition is true", d.name, a.name)
		case same(d.when, a.when) && d.onUnknown == a.onUnknown && reflect.DeepEqual(d.action, a.action):
			d.neverMatches("it is %q above it under another name", a.name)
		case same(d.when, a.when):
			d.neverMatches("%q above it has the same condition", a.name)
		default:
			d.neverMatches("%q above it always does", a.name)
		}
		return
	}
	if above.when != nil && (d.onUnknown == Skip || !above.skips || kindsOf(d.when) == 0) && implies(d.when, above.when) {
		d.neverMatches("the routes above it together take all of its requests")
	}
}

// takesUnknown reports that above takes what d would take because its condition is unknown. It
// relies on implies, which holds for unknown as well: above is then at least unknown.
func takesUnknown(d, above *draft) bool {
	return d.onUnknown == Skip || above.onUnknown != Skip || kindsOf(d.when) == 0 || kindsOf(above.when) == 0
}

// maxUnion bounds the members of a union: joining them is quadratic.
const maxUnion = 32

// union is what one of several routes is true for.
type union struct {
	when  node // nil without routes
	skips bool // one of them lets pass what is unknown
}

// add makes u hold for the condition of d, too, unless it is full.
func (u *union) add(s *simplifier, d *draft) {
	switch {
	case len(membersOf(d.when)) > maxUnion:
		return
	case u.when == nil:
		u.when = d.when
	case len(membersOf(u.when)) < maxUnion:
		u.when = s.simplify(&anyOf{[]node{u.when, d.when}})
	default:
		return
	}
	u.skips = u.skips || d.onUnknown == Skip && kindsOf(d.when) != 0
}

// use notes that the rules name something that another section defines.
func (c *compiler) use(what, name string) { c.used[usedKey(what, name)] = true }

func usedKey(what, name string) string { return what + " " + name }

// warnUnused reports names that other sections define in vain. It is asked only of rules without
// errors: a misspelt name would leave the right one unused. Clients can name a model themselves,
// so one without a route is not lost, but it may have been forgotten.
func (c *compiler) warnUnused() {
	for _, d := range c.env.Defined {
		if c.used[usedKey(d.What, d.Name)] {
			continue
		}
		at := cursor{report: &c.problems, path: d.Path}
		if d.What == "model" {
			at.warnf("no route and no default uses model %q; only clients that name it reach it", shorten(d.Name))
			continue
		}
		at.warnf("no rule uses %s %q", d.What, shorten(d.Name))
	}
}

// warnExempt reports routes above a safety route that send requests to a model without its check.
func (*compiler) warnExempt(drafts []draft) {
	safety := -1
	for i := range drafts {
		if isSafety(&drafts[i]) {
			safety = i
		}
	}
	for i := 0; i < safety; i++ {
		d := &drafts[i]
		if d.broken || d.dead || d.action.Verb != Use || trusted(d.when) {
			continue
		}
		for j := i + 1; j <= safety; j++ {
			if isSafety(&drafts[j]) {
				d.at.warnf("requests that route %q takes are never checked by %q below it; move it down, or limit it to a role or tenant",
					d.name, drafts[j].name)
				break
			}
		}
	}
}

func isSafety(d *draft) bool {
	return d.action.Verb == Block && kindsOf(d.when)&signal.MaskOf(signal.Jailbreak, signal.PII) != 0
}

// trusted reports that a condition holds for listed roles or tenants only.
func trusted(n node) bool {
	switch n := n.(type) {
	case *leaf:
		m, ok := n.test.(*member)
		return ok && !m.out && (m.subject == ofRole || m.subject == ofTenant)
	case *all:
		return slices.ContainsFunc(n.xs, trusted)
	case *anyOf:
		return every(n.xs, trusted)
	}
	return false
}
