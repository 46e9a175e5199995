package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
)

// Env is what the rules may name: the rest of the configuration as far as it concerns them.
type Env struct {
	Models     []string // of the models section
	AutoModels []string // the names that clients use for routed requests
	Prompts    []string // of the prompts section
	Roles      []string // of the auth section; nil when they are not known, as with JWT
	Priced     []string // models whose price is known; nil when that is not known, so that nothing is said of it
	Skilled    []string // models whose quality is known, in the same way

	// Signals holds every kind that some component extracts. A test of another kind is unknown for
	// every request, which is a warning: the model may come later, and on_unknown says what happens
	// until then. An action that needs another kind is an error, for it has no such way out.
	Signals signal.Mask
	// Absent holds the leaves that no configuration of this build can answer, as the rules write
	// them: cache, context_tokens, or a word of has such as facts. Using one is an error.
	Absent []string
	// Labels holds the names that a kind can report, in the order of signal.Value.Labels: the
	// keyword sets, the intents, the labels of a model. A kind without an entry is not checked,
	// except keyword and intent, of which none is then defined.
	Labels map[signal.Kind][]string
	// Thresholds holds the probability from which jailbreak, factcheck and pii count as true when
	// the rule gives none. A kind without an entry has 0.5.
	Thresholds map[signal.Kind]float64
	// Defined holds what other sections define for the rules to use. A warning names each that no
	// rule uses.
	Defined []Definition
}

// Definition is a name that the rest of the configuration defines for rules.
type Definition struct {
	What string // "model", "prompt", "keyword set" or "intent"
	Name string
	Path string // where it is defined, such as prompts[1].name; warnings carry it without line and column
}

// Source is the part of the configuration that Compile reads: the values of the keys of these
// names. A nil node is an absent key.
type Source struct {
	Routes, Default, Conditions *yaml.Node
}

// The bounds of what Compile accepts, far above what a person writes, so that no file can make it
// slow.
const (
	maxDepth  = 64  // operators in operators
	maxLeaves = 256 // leaves of one route, named conditions included
	maxRoutes = 2000
)

// allKinds is every signal.
const allKinds = signal.Mask(1)<<signal.NumKinds - 1

type compiler struct {
	env        Env
	problems   []Problem
	conditions map[string]*condition
	simplifier *simplifier
	headers    map[string]bool
	session    bool
	leaves     int             // of the route or condition being read
	used       map[string]bool // names that the rules use, by usedKey
}

// condition is an entry of the conditions section.
type condition struct {
	name   cursor
	when   cursor
	node   node // nil until read
	open   bool // being read
	used   bool
	leaves int
}

func newCompiler(env Env) *compiler {
	return &compiler{
		env: env, conditions: map[string]*condition{}, simplifier: newSimplifier(env.Labels),
		headers: map[string]bool{}, used: map[string]bool{},
	}
}

// Compile reads the rules and returns every problem of them, in the order of the file. The program
// is nil when one of the problems is an error.
func Compile(src Source, env Env) (*Program, []Problem) {
	env.Labels = maps.Clone(env.Labels) // the program keeps it
	c := newCompiler(env)
	c.readConditions(src.Conditions)
	routes := c.readRoutes(src.Routes)
	fallback := c.readDefault(src.Default)
	for _, name := range slices.Sorted(maps.Keys(c.conditions)) {
		cond := c.conditions[name]
		if !cond.used {
			cond.name.warnf("no rule uses condition %q", shorten(name))
		}
		c.resolve(cond)
	}
	c.warn(routes)
	if !HasErrors(c.problems) {
		c.warnUnused()
	}
	sortProblems(c.problems)
	if HasErrors(c.problems) {
		return nil, c.problems
	}
	return c.link(routes, fallback), c.problems
}

// draft is a route as read, with what warnings point at.
type draft struct {
	route

	at     cursor // the name, or the route when it has none
	raw    node   // the condition before simplification
	broken bool   // the condition has errors, so nothing can be said about it
	dead   bool   // it never sends a request anywhere
}

// neverMatches warns that the route does nothing.
func (d *draft) neverMatches(why string, args ...any) {
	d.dead = true
	d.at.warnf("route %q can never match: %s", d.name, fmt.Sprintf(why, args...))
}

func (c *compiler) link(drafts []draft, fallback Action) *Program {
	p := &Program{
		fallback: fallback, name: RouteDefault, wants: c.wants(&fallback),
		headers: slices.Sorted(maps.Keys(c.headers)), session: c.session,
	}
	p.absent = allKinds &^ c.env.Signals
	p.named = &Program{name: RouteNamed, headers: p.headers, session: p.session, absent: p.absent}
	p.named.named = p.named
	for i := range drafts {
		r := drafts[i].route
		r.kinds, r.wants, r.tangled, r.labels = kindsOf(r.when), c.wants(&r.action), isTangled(r.when), c.env.Labels
		p.routes = append(p.routes, r)
		if r.action.Verb == Block {
			p.named.routes = append(p.named.routes, r)
		}
	}
	return p
}

// wants returns the signals that an action reads, as far as something provides them.
func (c *compiler) wants(a *Action) signal.Mask {
	var m signal.Mask
	if a.Reasoning == "auto" {
		m |= signal.MaskOf(signal.Complexity)
	}
	if a.Cache == "semantic" {
		m |= signal.MaskOf(signal.Embedding)
	}
	if a.Redact {
		m |= signal.MaskOf(signal.PII)
	}
	if a.ranksQuality() {
		m |= signal.MaskOf(signal.Domain) // skills are told apart by domain
	}
	return m & c.env.Signals
}

func (c *compiler) root(n *yaml.Node, path string) cursor {
	if n != nil && n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	return cursor{&c.problems, n, path}
}

func absent(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" ||
		n.Kind == yaml.SequenceNode && len(n.Content) == 0
}

func (c *compiler) readConditions(n *yaml.Node) {
	if absent(n) {
		return
	}
	items, _ := c.root(n, "conditions").list("a list of {name, when}")
	for _, at := range items {
		mark := at.mark()
		entries, ok := at.mapping("{name, when}", "name", "when")
		if !ok {
			continue
		}
		var name, when cursor
		for _, e := range entries {
			switch e.key {
			case "name":
				name = e.at
			case "when":
				when = e.at
			}
		}
		if name.n == nil || when.n == nil {
			at.lacking(mark, "a condition needs a name and a when")
			continue
		}
		s, ok := c.name(name)
		if !ok {
			continue
		}
		if other, ok := c.conditions[s]; ok {
			name.errorf("condition %q is already defined on line %d", s, other.name.n.Line)
			continue
		}
		c.conditions[s] = &condition{name: name, when: when}
	}
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name reads what identifies a route or condition. Names appear in response headers and as metric
// labels, hence the narrow alphabet.
func (*compiler) name(at cursor) (string, bool) {
	s, ok := at.word("a name")
	if ok && !namePattern.MatchString(s) {
		at.errorf("found %q, expected a name of letters, digits, '.', '_' and '-', at most 64 long", shorten(s))
		return "", false
	}
	return s, ok
}

// resolve reads the condition once. Its simplified form is shared by all its uses.
func (c *compiler) resolve(cond *condition) node {
	if cond.node != nil {
		return cond.node
	}
	outer := c.leaves
	c.leaves, cond.open = 0, true
	n := c.when(cond.when, 0)
	cond.node, cond.open, cond.leaves = c.simplifier.simplify(n), false, c.leaves
	c.leaves = outer
	return cond.node
}

func (c *compiler) readRoutes(n *yaml.Node) []draft {
	if absent(n) {
		return nil
	}
	at := c.root(n, "routes")
	items, _ := at.list("a list of routes")
	if len(items) > maxRoutes {
		at.errorf("found %d routes, expected at most %d", len(items), maxRoutes)
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
			d.at.errorf("route %q is already defined on line %d", d.name, line)
		} else if d.name != "" {
			lines[d.name] = d.at.n.Line
		}
		out = append(out, d)
	}
	return out
}

// routeWords are the keys of a route.
func routeWords() []string { return []string{"name", "when", "on_unknown", "use", "block", "answer"} }

func (c *compiler) readRoute(at cursor) (draft, bool) {
	mark := at.mark()
	entries, ok := at.mapping("a route: {name, when, use|block|answer}", routeWords()...)
	if !ok {
		return draft{}, false
	}
	misspelt := at.mark() > mark
	d := draft{at: at, raw: constant(false)}
	var seen, verbs []string
	var policyAt cursor
	policy := ""
	for _, e := range entries {
		seen = append(seen, e.key)
		switch e.key {
		case "name":
			d.name, _ = c.name(e.at)
			d.at = e.at
		case "when":
			before := c.errors()
			c.leaves = 0
			d.raw = c.when(e.at, 0)
			d.broken = c.errors() > before
		case "on_unknown":
			policyAt, policy = e.at, e.at.choice("skip", "match", "error")
		default:
			verbs = append(verbs, e.key)
			d.action = c.readVerb(e)
		}
	}
	d.broken = d.broken || !slices.Contains(seen, "when")
	if !misspelt { // else what looks missing is most often there under another word
		checkRoute(at, seen, verbs)
	}
	if d.name == RouteDefault || d.name == RouteNamed {
		d.at.errorf("the name %q is reserved for requests that no route matches", d.name)
	}
	d.onUnknown = policyOf(policy, d.action.Verb)
	d.when = c.simplifier.simplify(d.raw)
	if policy != "" && !d.broken && kindsOf(d.when) == 0 {
		policyAt.warnf("on_unknown has no effect: the condition reads no signal that could fail")
	}
	return d, true
}

func (c *compiler) errors() int {
	n := 0
	for _, p := range c.problems {
		if !p.Warning {
			n++
		}
	}
	return n
}

// checkRoute reports what a route lacks.
func checkRoute(at cursor, seen, verbs []string) {
	if !slices.Contains(seen, "name") {
		at.errorf("a route needs a name")
	}
	if !slices.Contains(seen, "when") {
		at.errorf("a route needs a condition; write `when: true` for one that always matches")
	}
	if len(verbs) != 1 {
		was := "none"
		if len(verbs) > 1 {
			was = join(verbs)
		}
		at.errorf("found %s, expected exactly one of use, block, answer", was)
	}
}

// policyOf fills in the default: a route that blocks fails closed.
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
	at := c.root(n, "default")
	if absent(n) {
		at.errorf("nothing says where a request goes that no route matches; add `default: {models: [NAME]}`")
		return Action{}
	}
	return c.readUse(at)
}
