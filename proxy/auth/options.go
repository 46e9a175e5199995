package auth

import (
	"encoding/hex"
	"fmt"
	"strings"

	"signalbox/internal/option"
)

// The modes of authentication.
const (
	// ModeNone lets everyone in.
	ModeNone = "none"
	// ModeKeys asks for one of the configured keys.
	ModeKeys = "keys"
)

// Options is the section `auth`.
type Options struct {
	// Mode is none or keys. Default none. Reloadable, as everything here.
	Mode string `yaml:"mode"`
	// Keys are the keys that mode keys accepts.
	Keys []KeyOptions `yaml:"keys"`
	// AdminRoles are the roles that may see explanations and call the classify endpoint when mode is not none. Default [admin].
	AdminRoles []string `yaml:"admin_roles"`
	// DefaultRole is the role of a request without a key's role. Default empty.
	DefaultRole string `yaml:"default_role"`
	// DefaultTenant is the tenant of a request without a key's tenant. Default: default.
	DefaultTenant string `yaml:"default_tenant"`
}

// KeyOptions is one API key. The key itself is nowhere in the configuration.
type KeyOptions struct {
	// Name appears in logs. Required, unique.
	Name string `yaml:"name"`
	// SHA256 is the hash of the key as 64 hexadecimal digits: printf %s KEY | sha256sum.
	SHA256 string `yaml:"sha256"`
	// Tenant is whom the caller belongs to. Default: default_tenant.
	Tenant string `yaml:"tenant"`
	// Role is what rules may read as the caller's role. Default: default_role.
	Role string `yaml:"role"`
}

// DefaultOptions returns the options of an empty section.
func DefaultOptions() Options {
	return Options{Mode: ModeNone, AdminRoles: []string{"admin"}, DefaultTenant: "default"}
}

// Validate reports every bad option, one "field: problem" a line.
func (o Options) Validate() error {
	var p option.Problems
	if o.Mode != ModeNone && o.Mode != ModeKeys {
		p.Addf("mode", "%q is neither %s nor %s", o.Mode, ModeNone, ModeKeys)
	}
	if o.Mode == ModeKeys && len(o.Keys) == 0 {
		p.Addf("keys", "mode keys needs at least one")
	}
	seen := option.Unique{}
	hashes := option.Unique{}
	for i, k := range o.Keys {
		at := fmt.Sprintf("keys[%d]", i)
		p.Name(at+".name", k.Name)
		seen.Check(&p, at+".name", k.Name)
		if b, err := hex.DecodeString(k.SHA256); err != nil || len(b) != 32 {
			p.Addf(at+".sha256", "expected the 64 hexadecimal digits of a SHA-256 hash")
			continue
		}
		hashes.Check(&p, at+".sha256", strings.ToLower(k.SHA256))
	}
	return p.Err()
}
