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
	keyRoles, keyTenants := c.callers()
	if keyRoles != nil && !c.holds("auth.admin_roles") {
		keyRoles = append(keyRoles, a.AdminRoles...)
	}
	var roles, tenants []string
	for i := range a.Roles {
		roles = append(roles, a.Roles[i].Name)
	}
	for i := range a.Tenants {
		tenants = append(tenants, a.Tenants[i].Name)
	}
	for i := range c.cfg.Memory.Tenants {
		tenants = append(tenants, c.cfg.Memory.Tenants[i].Name)
	}
	look := func(at int, kind, name string, known, ofKeys []string) {
		if name == "" || slices.Contains(known, name) || c.occurrences(name) > 1 {
			return
		}
		for _, k := range known {
			if slip(name, k) && (ofKeys == nil || slices.Contains(ofKeys, k)) { // else unusedNames says it of the other one
				c.warn(fmt.Sprintf("auth.keys[%d].%s", at, kind), "nothing is said of %s %q, did you mean %q?", kind, name, k)
				return
			}
		}
	}
	for i := range a.Keys {
		look(i, "role", a.Keys[i].Role, append(roles, a.AdminRoles...), keyRoles)
		look(i, "tenant", a.Keys[i].Tenant, tenants, keyTenants)
	}
}

// slip reports whether a name is another one with a slip in one letter. Names that are counted, or
// that differ in their last letter, as team-a and team-b, are meant.
func slip(a, b string) bool {
	if len(a) < 4 || len(b) < 4 || strings.ContainsAny(a+b, "0123456789") || edits(a, b) != 1 {
		return false
	}
	return len(a) != len(b) || a[len(a)-1] == b[len(b)-1] || a[:len(a)-1] != b[:len(b)-1]
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
