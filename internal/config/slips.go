package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// slips warns of roles and tenants of keys that stand nowhere else in the file and are one letter
// away from one that does: such a key has none of the bounds and rights that were meant for it.
func (c *checker) slips() {
	a := &c.cfg.Auth
	ofKeys, tenantsOfKeys := c.callers()
	if ofKeys != nil && !c.holds("auth.admin_roles") {
		ofKeys = append(ofKeys, a.AdminRoles...)
	}
	roles, tenants := c.cfg.callersNamed()
	look := func(at int, kind, name string, known, ofKeys []string) {
		k := slipOf(name, known)
		if k == "" || c.occurrences(name) > 1 || ofKeys != nil && !slices.Contains(ofKeys, k) {
			return // where no key has k, unusedNames says it of k
		}
		c.warn(fmt.Sprintf("auth.keys[%d].%s", at, kind), "%s", slipText(kind, name, k))
	}
	for i := range a.Keys {
		look(i, "role", a.Keys[i].Role, roles, ofKeys)
		look(i, "tenant", a.Keys[i].Tenant, tenants, tenantsOfKeys)
	}
}

// Slip says what of the role and the tenant of a key is probably a slip of one that the
// configuration says something of; empty where nothing is.
func (c *Config) Slip(role, tenant string) string {
	roles, tenants := c.callersNamed()
	var out []string
	if k := slipOf(role, roles); k != "" {
		out = append(out, slipText("role", role, k))
	}
	if k := slipOf(tenant, tenants); k != "" {
		out = append(out, slipText("tenant", tenant, k))
	}
	return strings.Join(out, "; ")
}

func slipText(kind, name, meant string) string {
	return fmt.Sprintf("nothing is configured for %s %q, did you mean %q?", kind, name, meant)
}

// callersNamed lists the roles and the tenants that the configuration says something of.
func (c *Config) callersNamed() (roles, tenants []string) {
	roles = slices.Clone(c.Auth.AdminRoles)
	for i := range c.Auth.Roles {
		roles = append(roles, c.Auth.Roles[i].Name)
	}
	for i := range c.Auth.Tenants {
		tenants = append(tenants, c.Auth.Tenants[i].Name)
	}
	for i := range c.Memory.Tenants {
		tenants = append(tenants, c.Memory.Tenants[i].Name)
	}
	return roles, tenants
}

// slipOf is the known name that another name is a slip of; empty for one that is known itself, and
// where there is none.
func slipOf(name string, known []string) string {
	if name == "" || slices.Contains(known, name) {
		return ""
	}
	if at := slices.IndexFunc(known, func(k string) bool { return slip(name, k) }); at >= 0 {
		return known[at]
	}
	return ""
}

// slip reports whether a name is another one with a slip in one letter: another letter, one too many
// or too few, or two that changed places. Names that are counted, or that differ in their last letter,
// as team-a and team-b, are meant. It allocates nothing: each of many keys may be held against each
// of many tenants.
func slip(a, b string) bool {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	found := false
	switch x, y := a[i:], b[i:]; len(x) - len(y) {
	case 1:
		found = x[1:] == y
	case -1:
		found = x == y[1:]
	case 0:
		found = len(x) > 1 && (x[1:] == y[1:] || x[0] == y[1] && x[1] == y[0] && x[2:] == y[2:])
	}
	const digits = "0123456789"
	return found && min(len(a), len(b)) >= 4 && !strings.ContainsAny(a, digits) && !strings.ContainsAny(b, digits)
}

// occurrences counts the texts of the file that are a name.
func (c *checker) occurrences(name string) (n int) {
	var count func(at *yaml.Node)
	count = func(at *yaml.Node) {
		if at == nil {
			return
		}
		if at.Kind == yaml.ScalarNode && at.Value == name {
			n++
		}
		for _, child := range at.Content {
			count(child)
		}
	}
	count(c.root)
	return n
}
