package rules

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/syntax"
)

// Env is what the rules may refer to: the relevant parts of the rest of the configuration.
type Env struct {
	Models     []string // of the models section
	AutoModels []string // the names that clients use for routed requests
	Prompts    []string // of the prompts section
	Roles      []string // of the auth section; nil if they are not known, as with JWT
	Tenants    []string // like Roles
	// models with a known price; nil if that is not known, which disables warnings about it
	Priced  []string
	Skilled []string // models with a known quality, likewise
	Told    []string // models that can be told how much to reason, likewise

	// Signals holds every kind that some component extracts. A test of another kind is unknown for
	// every request. This is only a warning: the model may be added later, and on_unknown applies
	// until then. An action that needs another kind is an error, because it has no such fallback.
	Signals signal.Mask
	// Absent holds the leaves that no configuration of this build can evaluate, as written in
	// rules: cache, context_tokens, or a word of has such as facts. Using one is an error.
	Absent []string
	// Labels holds the names that a kind can have, in the order of signal.Value.Labels: the keyword
	// sets, the intents, the labels of a model. A kind without an entry is not checked, except
	// keyword and intent, for which no entry means that none are defined.
	Labels map[signal.Kind][]string
	// Thresholds holds the probability from which jailbreak, injection, factcheck and pii count as
	// true if the rule sets none. The default for a kind without an entry is 0.5.
	Thresholds map[signal.Kind]float64
	// Classifiers are the configuration's own: index i provides signal.Own+i.
	Classifiers []signal.OwnClassifier
	// Elsewhere holds the kinds that remote models provide. They are requested last, only if the
	// kinds computed locally do not settle a decision.
	Elsewhere signal.Mask
	// Lexical holds those of Classifiers that count words and need no model. They are requested
	// together with the other scans of the text.
	Lexical signal.Mask
	// Defined holds the names that other sections define for the rules. Each one that no rule uses
	// causes a warning.
	Defined []Definition
}

// Definition is a name defined for rules by another section of the configuration.
type Definition struct {
	What string // "model", "prompt", "keyword set", "intent" or "classifier"
	Name string
	// where it is defined, such as prompts[1].name; used in warnings without line and column
	Path string
}

// Source is the part of the configuration that Compile reads: the values of the keys of these
// names. A nil node means that the key is absent.
type Source struct {
	Routes, Default, Conditions *yaml.Node
}

// Limits on what Compile accepts, far above hand-written files, so that no file can make it slow.
const (
	maxLeaves = 256 // leaves of one route, named conditions included
	maxRoutes = 2000
)

// allKinds is every signal.
const allKinds = signal.Mask(1)<<signal.NumKinds - 1

type compiler struct {
	env        Env
	problems   []Problem
	conditions map[string]*named
	simplifier *condition.Simplifier
	headers    map[string]bool
	session    bool
	leaves     int             // of the current route or condition
	spoilt     bool            // it uses a condition with errors
	used       map[string]bool // names that the rules use, keyed by usedKey
}

func newCompiler(env Env) *compiler {
	return &compiler{
		env: env, conditions: map[string]*named{}, simplifier: condition.NewSimplifier(env.Labels),
		headers: map[string]bool{}, used: map[string]bool{},
	}
}

// Compile reads the rules and returns all problems, in the order of the file. The program is nil if
// one of them is an error.
func Compile(src Source, env Env) (*Program, []Problem) {
	env.Labels = maps.Clone(env.Labels) // the program retains it
	c := newCompiler(env)
	c.readConditions(src.Conditions)
	routes := c.readRoutes(src.Routes)
	fallback := c.readDefault(src.Default)
	unused := c.unusedConditions()
	for _, cond := range unused {
		c.resolve(cond)
	}
	c.warn(routes)
	if !HasErrors(c.problems) {
		for _, cond := range unused {
			cond.name.Warnf("no rule uses condition %q", syntax.Shorten(cond.name.Node.Value))
		}
		c.warnUnused()
	}
	syntax.Sort(c.problems)
	if HasErrors(c.problems) {
		return nil, c.problems
	}
	return c.link(routes, fallback), c.problems
}

func (c *compiler) link(drafts []draft, fallback Action) *Program {
	p := &Program{
		fallback: fallback, name: RouteDefault, wants: c.wants(&fallback),
		headers: slices.Sorted(maps.Keys(c.headers)), session: c.session,
	}
	p.absent, p.elsewhere, p.lexical = allKinds&^c.env.Signals, c.env.Elsewhere, c.env.Lexical
	p.named = &Program{
		name: RouteNamed, headers: p.headers, session: p.session, absent: p.absent,
		elsewhere: p.elsewhere, lexical: p.lexical,
	}
	p.named.named = p.named
	for i := range drafts {
		r := drafts[i].route
		r.wants = c.wants(&r.action)
		p.routes = append(p.routes, r)
		if r.action.Verb == Block {
			p.named.routes = append(p.named.routes, r)
		}
	}
	return p
}

// wants returns the signals that an action reads, as far as they are provided.
func (c *compiler) wants(a *Action) signal.Mask {
	var m signal.Mask
	if a.Reasoning == "auto" {
		m |= signal.MaskOf(signal.Complexity)
	}
	if a.Redact != nil {
		m |= signal.MaskOf(signal.PII)
	}
	if a.ranksQuality() {
		m |= signal.MaskOf(signal.Domain) // qualities are per domain
	}
	return m & c.env.Signals
}
