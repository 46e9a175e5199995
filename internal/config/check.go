package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/guardrail"
	"signalbox/rules"
)

// checker looks at what no single type can see: ranges with a place, names used across sections.
type checker struct {
	*decoder
	root    *yaml.Node
	cfg     *Config
	catalog func(*Classify) (Catalog, error)
}

func (c *checker) check() {
	c.engineParams()
	c.section("server", c.cfg.Server.Validate())
	if c.cfg.Server.Listen == c.cfg.Server.AdminListen {
		c.at("server.admin_listen", "must differ from server.listen: clients must not be able to reach it")
	}
	c.tls()
	c.section("limits", c.cfg.Limits.Validate(c.cfg.Server.MaxBodyBytes))
	c.word("auth.mode", c.cfg.Auth.Mode, []string{auth.ModeNone, auth.ModeKeys, auth.ModeJWT})
	c.section("auth", c.cfg.Auth.Validate())
	c.access()
	c.section("stick", c.cfg.Stick.Validate())
	c.section("outcomes", c.cfg.Outcomes.Validate())
	c.section("telemetry", c.cfg.Telemetry.Validate())
	for i := range c.cfg.Models {
		c.section(fmt.Sprintf("models[%d]", i), c.cfg.Models[i].Validate())
	}
	c.versions()
	c.untold()
	if len(c.cfg.Models) == 0 {
		c.at("models", "there must be at least one model")
	}
	c.names("models", len(c.cfg.Models), func(i int) string { return c.cfg.Models[i].Name })
	for i := range c.cfg.Models {
		if slices.Contains(c.cfg.Server.AutoModels, c.cfg.Models[i].Name) {
			c.at(fmt.Sprintf("models[%d].name", i), "%q selects routing (server.auto_models) and cannot be the name of a model", c.cfg.Models[i].Name)
		}
	}
	c.prompts()
	c.keywords()
	catalog := c.classify()
	c.intents(&catalog)
	c.skills(&catalog)
	c.cache(&catalog)
	c.rules(catalog)
	c.named()
	c.uncached()
	c.outcomes()
	c.guard(&catalog)
	c.memory()
}

// tls reads the files of the main listener. Where secrets may be missing they may be elsewhere, too.
func (c *checker) tls() {
	o := &c.cfg.Server.TLS
	if o.CertFile == "" || o.KeyFile == "" {
		return
	}
	_, err := o.Config()
	if err == nil {
		return
	}
	if c.unset && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		field, msg, _ := strings.Cut(err.Error(), ": ")
		c.warn(join("server.tls", field), "%s", msg)
		return
	}
	c.section("server.tls", err)
}

// versions warns of endpoints whose URL names no version of the API: /v1 is what most servers want,
// and it is easily forgotten.
func (c *checker) versions() {
	for i := range c.cfg.Models {
		for j := range c.cfg.Models[i].Endpoints {
			if s := c.cfg.Models[i].Endpoints[j].URL; !backend.Versioned(s) {
				base := strings.TrimSuffix(s, "/")
				c.warn(fmt.Sprintf("models[%d].endpoints[%d].url", i, j),
					"requests go to %s/chat/completions; most servers need %s/v1", base, base)
			}
		}
	}
}

// unpriced is said of budgets that bound nothing.
const unpriced = "no model has a price, so no spending is counted: set models[].price"

// untold warns of budgets that nothing counts in, and of models whose streams are settled in budgets
// by an estimate, since their servers are never asked how many tokens one took.
func (c *checker) untold() {
	a := &c.cfg.Auth
	priced := c.broken("models") ||
		slices.ContainsFunc(c.cfg.Models, func(m backend.ModelOptions) bool { return m.Price.Known() })
	for i := range a.Keys {
		if a.Keys[i].Budget.USD > 0 && !priced {
			c.warn(fmt.Sprintf("auth.keys[%d].budget", i), unpriced)
		}
	}
	for i := range a.Tenants {
		if a.Tenants[i].Budget.USD > 0 && !priced {
			c.warn(fmt.Sprintf("auth.tenants[%d].budget", i), unpriced)
		}
	}
	bounded := slices.ContainsFunc(a.Keys, func(k auth.KeyOptions) bool { return k.Budget.USD > 0 }) ||
		slices.ContainsFunc(a.Tenants, func(t auth.TenantOptions) bool { return t.Budget.USD > 0 })
	for i := range c.cfg.Models {
		if m := &c.cfg.Models[i]; m.StreamUsage == backend.UsageNever && (bounded && m.Price.Known() || m.Budget.USD > 0) {
			c.warn(fmt.Sprintf("models[%d].stream_usage", i),
				"budgets use an estimate for streams of this model; with auto, its servers report the tokens")
		}
	}
}

// hasRedis reports whether the file names a Redis, also where its URL could not be read.
func (c *checker) hasRedis() bool {
	return c.cfg.Memory.Redis.URL != "" || slices.Contains(c.missing, "memory.redis.url")
}

// access looks at who may call from where, and at the models that callers are limited to.
func (c *checker) access() {
	a := &c.cfg.Auth
	if err := Open(c.cfg); err != nil {
		c.at("server.listen", "%v", err)
	}
	known := func(path string, models []string) {
		for i, m := range models {
			if problem := c.cfg.NoModel(m); problem != "" {
				c.at(fmt.Sprintf("%s.models[%d]", path, i), "%s", problem)
			}
		}
	}
	c.openKeys()
	c.unusedNames()
	c.slips()
	if a.Virtual.On() && a.Mode == auth.ModeNone && !c.broken("auth") {
		c.warn("auth.virtual", "with auth.mode none no key is required, so virtual keys have no effect")
	}
	if a.Virtual.Redis && !c.hasRedis() {
		c.at("auth.virtual.redis", "requires Redis: memory.redis.url is not set")
	}
	for i := range a.Keys {
		known(fmt.Sprintf("auth.keys[%d]", i), a.Keys[i].Models)
	}
	for i := range a.Roles {
		known(fmt.Sprintf("auth.roles[%d]", i), a.Roles[i].Models)
	}
	for i := range a.Tenants {
		known(fmt.Sprintf("auth.tenants[%d]", i), a.Tenants[i].Models)
	}
}

// openKeys reports keys that nobody is asked for: an error where the file does not say so itself.
func (c *checker) openKeys() {
	a := &c.cfg.Auth
	switch {
	case a.Mode == auth.ModeKeys || a.Mode == auth.ModeJWT:
	case len(a.Keys) == 0:
	case c.holds("auth.mode"):
		c.warn("auth.keys", "with auth.mode none no key is required: every caller is admitted")
	default:
		c.at("auth.keys", "keys have no effect without auth.mode: "+
			"set auth.mode to keys, or to none if this is intended")
	}
	if a.Mode != auth.ModeJWT && c.holds("auth.jwt") && !c.broken("auth") {
		c.warn("auth.jwt", "tokens are not verified: auth.mode is %s", a.Mode)
	}
}

// holds reports whether the file has something at a path of keys.
func (c *checker) holds(path string) bool {
	n := c.root
	for step := range strings.SplitSeq(path, ".") {
		if n == nil {
			return false
		}
		n = child(n, step)
	}
	return n != nil
}

// unusedNames warns of roles and tenants that no key has, where the file has all keys: a slip
// there leaves callers without the bounds that are meant for them.
func (c *checker) unusedNames() {
	a := &c.cfg.Auth
	roles, tenants := c.callers()
	if roles == nil {
		return
	}
	look := func(path, kind, name string, known []string) {
		if name == "" || slices.Contains(known, name) {
			return
		}
		c.warn(path, "no key has %s %q%s", kind, name, meant(", ", name, known))
	}
	for i := range a.Roles {
		look(fmt.Sprintf("auth.roles[%d].name", i), "role", a.Roles[i].Name, roles)
	}
	for i := range a.Tenants {
		look(fmt.Sprintf("auth.tenants[%d].name", i), "tenant", a.Tenants[i].Name, tenants)
	}
	if c.holds("auth.admin_roles") {
		for i, name := range a.AdminRoles {
			look(fmt.Sprintf("auth.admin_roles[%d]", i), "role", name, roles)
		}
	}
}

// ModelNames are the names that requests may use.
func (c *Config) ModelNames() []string {
	names := make([]string, len(c.Models))
	for i := range c.Models {
		names[i] = c.Models[i].Name
	}
	return names
}

// NoModel says that there is no model of a name, and which one may be meant; it is empty where there
// is one.
func (c *Config) NoModel(name string) string {
	names := c.ModelNames()
	if slices.Contains(names, name) {
		return ""
	}
	return fmt.Sprintf("there is no model %q%s", name, meant(", ", name, names))
}

// Open reports a configuration that would let anybody in from other machines without having said so
// twice.
func Open(cfg *Config) error {
	host, _, err := net.SplitHostPort(cfg.Server.Listen)
	if err == nil && !option.Loopback(host) && cfg.Auth.Mode == auth.ModeNone && !cfg.Auth.AllowAnonymous {
		return errors.New("other machines can reach this address, and auth.mode none admits every caller: set auth.mode, or auth.allow_anonymous if this is intended")
	}
	return nil
}

// at reports a problem at a path, or at the nearest place that exists. A value that could not be
// read already has its problem; what follows from that is not reported again.
func (c *checker) at(path, format string, args ...any) {
	for _, p := range c.problems {
		if rest, below := strings.CutPrefix(path, p.Path); below && (p.Path == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			return
		}
	}
	if c.misspelt(path) {
		return
	}
	c.report(c.place(path), path, format, args...)
}

// misspelt reports whether an unknown key is said to mean the one at the end of a path: what is
// missing there is that one.
func (c *checker) misspelt(path string) bool {
	i := strings.LastIndexByte(path, '.')
	meant := fmt.Sprintf("did you mean %q?", path[i+1:])
	return slices.ContainsFunc(c.problems, func(p rules.Problem) bool {
		word, beside := strings.CutPrefix(p.Path, path[:i+1])
		return beside && !p.Warning && !strings.ContainsAny(word, ".[") && strings.HasPrefix(p.Msg, "unknown key") &&
			strings.Contains(p.Msg, meant)
	})
}

var pathStep = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)

// place finds the node of a path such as models[1].endpoints[0].url, or its nearest ancestor.
func (c *checker) place(path string) *yaml.Node {
	n := c.root
	if n == nil {
		return &yaml.Node{Line: 1, Column: 1}
	}
	for _, step := range pathStep.FindAllString(path, -1) {
		next := child(n, step)
		if next == nil {
			break
		}
		n = next
	}
	return n
}

func child(n *yaml.Node, step string) *yaml.Node {
	if index, ok := strings.CutPrefix(step, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
			return nil
		}
		return n.Content[i]
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == step {
			return n.Content[i+1]
		}
	}
	return nil
}

// section places the lines of a joined error, each "field: problem".
func (c *checker) section(path string, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		field, msg, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			field, msg = "", strings.TrimSpace(line)
		}
		c.at(join(path, field), "%s", msg)
	}
}

// names reports names used twice.
func (c *checker) names(list string, n int, name func(int) string) {
	seen := map[string]int{}
	for i := range n {
		path := fmt.Sprintf("%s[%d].name", list, i)
		switch first, dup := seen[name(i)]; {
		case name(i) == "": // the item's own Validate says so
		case dup:
			c.at(path, "the name %q is already taken by %s[%d]", name(i), list, first)
		default:
			seen[name(i)] = i
		}
	}
}

func (c *checker) prompts() {
	c.names("prompts", len(c.cfg.Prompts), func(i int) string { return c.cfg.Prompts[i].Name })
	for i, p := range c.cfg.Prompts {
		if p.Name == "" {
			c.at(fmt.Sprintf("prompts[%d].name", i), "a name is required")
		}
		if strings.TrimSpace(p.Text) == "" {
			c.at(fmt.Sprintf("prompts[%d].text", i), "the text of a prompt must not be empty")
		}
	}
}

func (c *checker) keywords() {
	sets := c.cfg.Signals.Keywords
	c.names("signals.keywords", len(sets), func(i int) string { return sets[i].Name })
	for i := range sets {
		path := fmt.Sprintf("signals.keywords[%d]", i)
		err := sets[i].Validate()
		c.section(path, err)
		if err == nil && matchesAll(sets[i].Regex) {
			c.warn(path+".regex", "this matches every text, because it matches the empty string, for example after a trailing |")
		}
	}
}

// matchesAll reports whether an expression finds an empty text wherever it looks.
func matchesAll(expression string) bool {
	re, err := regexp.Compile(expression)
	return err == nil && expression != "" && re.MatchString("") && re.MatchString(medley)
}

// medley is a long text with letters, signs and digits of every kind, so that what matches it and
// the empty text excludes none of them.
var medley = func() string { //nolint:gochecknoglobals // constant
	var b strings.Builder
	for b.Len() < 8<<10 {
		for r := range rune(unicode.MaxLatin1 + 1) {
			b.WriteRune(r)
		}
		b.WriteString("Ωя中😀\n")
	}
	return b.String()
}()

func (c *checker) rules(catalog Catalog) {
	env := rules.Env{
		AutoModels: c.cfg.Server.AutoModels, Signals: catalog.Signals, Thresholds: catalog.Thresholds,
		Classifiers: catalog.Own, Elsewhere: catalog.Elsewhere, Lexical: catalog.Lexical,
		Labels: maps.Clone(catalog.Labels), Priced: []string{}, Skilled: []string{}, Told: []string{},
	}
	if env.Labels == nil {
		env.Labels = make(map[signal.Kind][]string)
	}
	c.defined(&env)
	c.spare(&env)
	env.Roles, env.Tenants = c.callers()
	program, problems := rules.Compile(rules.Source{
		Routes: present(&c.cfg.Routes), Default: present(&c.cfg.Default), Conditions: present(&c.cfg.Conditions),
	}, env)
	for _, p := range problems {
		if p.Line == 0 {
			p.Line, p.Col = c.place(p.Path).Line, c.place(p.Path).Column
		}
		c.problems = append(c.problems, p)
	}
	c.cfg.Program = program
}

// named warns of the first action that looks as if it held for every request, where one that names
// its model takes no route and the file does not say so itself.
func (c *checker) named() {
	if c.cfg.Program == nil || c.cfg.Server.RouteNamedModels || c.holds("server.route_named_models") {
		return
	}
	actions := c.cfg.Program.Actions()
	for i, a := range actions {
		var key string
		switch {
		case a.Redact != nil:
			key = "redact"
		case a.Override:
			key = "override"
		default:
			continue
		}
		path := "default." + key
		if i < len(actions)-1 {
			path = fmt.Sprintf("routes[%d].use.%s", i, key)
		}
		c.warn(path, "%s does not apply to requests that name a model: "+
			"set server.route_named_models to true, or to false if this is intended", key)
		return
	}
}

// defined fills in the names that rules may use, and where each is defined. In a file with errors
// nothing is said of unused names: a name may well be used where the error is.
func (c *checker) defined(env *rules.Env) {
	broken := rules.HasErrors(c.problems)
	add := func(what, list string, i int, name string) bool {
		if name != "" && !broken {
			env.Defined = append(env.Defined, rules.Definition{What: what, Name: name, Path: fmt.Sprintf("%s[%d].name", list, i)})
		}
		return name != ""
	}
	for i := range c.cfg.Models {
		if m := &c.cfg.Models[i]; add("model", "models", i, m.Name) {
			defineModel(env, m)
		}
	}
	for i := range c.cfg.Prompts {
		add("prompt", "prompts", i, c.cfg.Prompts[i].Name)
		env.Prompts = append(env.Prompts, c.cfg.Prompts[i].Name)
	}
	for i := range c.cfg.Signals.Keywords {
		name := c.cfg.Signals.Keywords[i].Name
		if !c.readsAnswers(signal.Keyword.String(), name) {
			add("keyword set", "signals.keywords", i, name)
		}
		env.Labels[signal.Keyword] = append(env.Labels[signal.Keyword], name)
	}
	for i := range c.cfg.Signals.Intents {
		add("intent", "signals.intents", i, c.cfg.Signals.Intents[i].Name)
	}
	for i := range c.cfg.Classify.Classifiers {
		if name := c.cfg.Classify.Classifiers[i].Name; !c.readsAnswers(name, "") {
			add("classifier", "classify.classifiers", i, name)
		}
	}
	if len(c.cfg.Signals.Intents) > 0 { // without a model, too, so that their names are known
		env.Labels[signal.Intent] = names(c.cfg.Signals.Intents)
	}
}

// spare keeps the rules from being warned of what an error elsewhere may be the reason of: a price
// that could not be read is none.
func (c *checker) spare(env *rules.Env) {
	if c.broken("models") {
		env.Priced, env.Skilled, env.Told = nil, nil, nil
	}
	if c.broken("outcomes") {
		env.Skilled = nil
	}
}

// broken reports an error at a path or below it. What follows from it alone is no warning.
func (c *checker) broken(path string) bool {
	return slices.ContainsFunc(c.problems, func(p rules.Problem) bool {
		rest, below := strings.CutPrefix(p.Path, path)
		return below && !p.Warning && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// readsAnswers reports whether an output names a classifier, and its label where one is given.
func (c *checker) readsAnswers(classifier, label string) bool {
	return slices.ContainsFunc(c.cfg.Guard.Outputs, func(o guardrail.Output) bool {
		return o.Classifier == classifier && (label == "" || len(o.Labels) == 0 || slices.Contains(o.Labels, label))
	})
}

// defineModel tells rules of a model, and what they may choose it by.
func defineModel(env *rules.Env, m *backend.ModelOptions) {
	env.Models = append(env.Models, m.Name)
	if m.Price.Input > 0 || m.Price.Output > 0 {
		env.Priced = append(env.Priced, m.Name)
	}
	if len(m.Skills) > 0 || m.SkillsFrom != "" {
		env.Skilled = append(env.Skilled, m.Name)
	}
	if m.Told() {
		env.Told = append(env.Told, m.Name)
	}
}

// callers lists the roles and tenants that callers can be of, or nothing when one may be of any.
func (c *checker) callers() (roles, tenants []string) {
	a := &c.cfg.Auth
	if a.Mode != auth.ModeKeys || a.Virtual.On() || c.broken("auth") {
		return nil, nil // a token, or a virtual key, may name any, and so may a key that could not be read
	}
	roles, tenants = []string{a.DefaultRole}, []string{a.DefaultTenant}
	for _, k := range a.Keys {
		roles, tenants = append(roles, k.Role), append(tenants, k.Tenant)
	}
	empty := func(s string) bool { return s == "" }
	return slices.DeleteFunc(roles, empty), slices.DeleteFunc(tenants, empty)
}

func present(n *yaml.Node) *yaml.Node {
	if n.Kind == 0 {
		return nil
	}
	return n
}
