package auth

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/option"
	"signalbox/proxy/budget"
)

// The modes of authentication.
const (
	// ModeNone accepts every request.
	ModeNone = "none"
	// ModeKeys requires one of the configured keys.
	ModeKeys = "keys"
	// ModeJWT requires a signed token or one of the configured keys.
	ModeJWT = "jwt"
)

// Options is the section `auth`.
type Options struct {
	// Mode selects how callers authenticate: none, keys or jwt. With jwt, a caller presents a JSON
	// Web Token or one of keys. Default none. If server.listen is not on loopback, none is refused
	// unless allow_anonymous is set. Reloadable, as is everything in this section except virtual.
	Mode string `yaml:"mode" words:"none keys jwt"`
	// AllowAnonymous confirms that everyone may call: it permits mode none on an address that is
	// not loopback. Default false.
	AllowAnonymous bool `yaml:"allow_anonymous"`
	// Keys lists the API keys accepted in modes keys and jwt.
	Keys []KeyOptions `yaml:"keys"`
	// Virtual enables virtual keys, which operators create, change and revoke at /-/keys of the
	// admin listener while the proxy runs. Modes keys and jwt accept them.
	Virtual VirtualOptions `yaml:"virtual"`
	// JWT configures which tokens mode jwt accepts and how their callers are identified.
	JWT JWTOptions `yaml:"jwt"`
	// Roles configures what the callers of a role may do. Rules can read a role that has no entry
	// here.
	Roles []RoleOptions `yaml:"roles"`
	// Tenants configures what all callers of a tenant together may do.
	Tenants []TenantOptions `yaml:"tenants"`
	// AdminRoles lists the roles that may see explanations and call the classify endpoint, unless
	// mode is none. Default [admin].
	AdminRoles []string `yaml:"admin_roles"`
	// DefaultRole is the role of a request that has none of its own. Default empty.
	DefaultRole string `yaml:"default_role"`
	// DefaultTenant is the tenant of a request that has none of its own. Default: default.
	DefaultTenant string `yaml:"default_tenant"`
}

// KeyOptions is one API key. The configuration holds its hash, never the key.
type KeyOptions struct {
	// Name identifies the key in logs. Required, unique.
	Name string `yaml:"name"`
	// SHA256 is the SHA-256 hash of the key, as 64 hexadecimal digits: printf %s KEY | sha256sum.
	SHA256 string `yaml:"sha256"`
	// Tenant is the tenant that the caller belongs to. Default: default_tenant.
	Tenant string `yaml:"tenant"`
	// Role is the caller's role, as rules read it. Default: default_role.
	Role string `yaml:"role"`
	// Models lists the models that requests with the key may be sent to, whether by name or by
	// routing. It narrows what the role and the tenant allow. Default: all.
	Models []string `yaml:"models"`
	// Rate limits the requests made with the key. Default: the rate of the role.
	Rate RateOptions `yaml:"rate"`
	// Budget limits the cost of requests made with the key.
	Budget BudgetOptions `yaml:"budget"`
}

// VirtualOptions configures where virtual keys are stored. See keys.md.
type VirtualOptions struct {
	// File is the file that stores virtual keys on this machine: JSON with hashes of the keys,
	// rewritten at every change. Several processes on one machine may share it. Default: none, so
	// there are no virtual keys unless redis is set. Restart needed.
	File string `yaml:"file" path:"true"`
	// Redis stores virtual keys in memory.redis instead of a file, for all replicas. Default false.
	// Restart needed.
	Redis bool `yaml:"redis"`
	// Max is the maximum number of virtual keys, including expired ones. At most 100000. Default
	// 10000. Restart needed.
	Max int `yaml:"max"`
	// Refresh is the interval at which a replica checks for changes made by others. A revoked key
	// continues to work on other replicas for up to this time, plus the time to read the keys.
	// 100ms to 1m. Default 2s. Restart needed.
	Refresh option.Duration `yaml:"refresh"`
}

// On reports whether there are virtual keys.
func (o VirtualOptions) On() bool { return o.File != "" || o.Redis }

// Limits of the section `virtual`.
const (
	mostVirtual = 100_000
	soonestLook = 100 * time.Millisecond
	latestLook  = time.Minute
)

func (o VirtualOptions) check(p *option.Problems) {
	if o == (VirtualOptions{}) {
		return // the section is empty, even of defaults
	}
	if o.File != "" && o.Redis {
		p.Addf("virtual.redis", "file and redis are mutually exclusive")
	}
	option.Between(p, "virtual.max", o.Max, 1, mostVirtual)
	option.Between(p, "virtual.refresh", time.Duration(o.Refresh), soonestLook, latestLook)
}

// RoleOptions configures what the callers of one role may do.
type RoleOptions struct {
	// Name is the name of the role. Required, unique.
	Name string `yaml:"name"`
	// Models lists the models that requests of these callers may be sent to. Default: all.
	Models []string `yaml:"models"`
	// Rate limits each caller of the role that has no rate of its own.
	Rate RateOptions `yaml:"rate"`
}

// TenantOptions configures what the callers of one tenant may do.
type TenantOptions struct {
	// Name is the name of the tenant. Required, unique.
	Name string `yaml:"name"`
	// Models lists the models that requests of these callers may be sent to. Default: all.
	Models []string `yaml:"models"`
	// Rate limits all callers of the tenant together.
	Rate RateOptions `yaml:"rate"`
	// Budget limits the total cost of all callers of the tenant.
	Budget BudgetOptions `yaml:"budget"`
}

// BudgetOptions limits the cost of requests in a period, computed from models[].price. A request
// whose estimated cost exceeds what is left gets a 429. Requests to models without a price cost
// nothing.
type BudgetOptions struct {
	// Soft makes requests cheaper when the budget is nearly used up.
	Soft budget.SoftOptions `yaml:"soft" json:"soft,omitzero"`

	// USD is the budget for one period, in US dollars. It applies to all replicas together with
	// memory.redis, else to each process. 0 is unlimited.
	USD float64 `yaml:"usd" json:"usd,omitzero"`
	// Period is the calendar period of the budget, in UTC: day or month. Default month.
	Period string `yaml:"period" json:"period,omitzero" words:"day month"`
}

func (o BudgetOptions) check(p *option.Problems, prefix string) {
	budget.Options{USD: o.USD, Period: o.Period}.Check(p, prefix+"budget")
	o.Soft.Check(p, prefix+"budget.soft")
}

// of returns the budget with a name.
func (o BudgetOptions) of(name string) budget.Budget {
	return budget.Budget{Name: name, USD: o.USD, Period: budget.Period(cmp.Or(o.Period, string(budget.Month))), Soft: o.Soft.Of()}
}

// RateOptions limits requests. A request that exceeds one of the limits gets a 429. The limits per
// minute roll: an allowance is refilled continuously, and whatever has been refilled can be used at
// once.
type RateOptions struct {
	// RPM is the maximum number of requests per minute. 0 is unlimited.
	RPM int `yaml:"rpm" json:"rpm,omitzero"`
	// TPM is the maximum number of tokens per minute, prompts and responses together. A request is
	// admitted by an estimate, which is later corrected to the actual usage. 0 is unlimited.
	TPM int `yaml:"tpm" json:"tpm,omitzero"`
	// Concurrency is the maximum number of requests in flight. It applies to all replicas together
	// with memory.redis, else to each process. 0 is unlimited.
	Concurrency int `yaml:"concurrency" json:"concurrency,omitzero"`
}

// maxRate keeps the arithmetic of limits far from overflow.
const maxRate = 1_000_000_000

func (o RateOptions) check(p *option.Problems, prefix string) {
	for _, x := range []struct {
		field string
		n     int
	}{{"rpm", o.RPM}, {"tpm", o.TPM}, {"concurrency", o.Concurrency}} {
		option.Between(p, prefix+"rate."+x.field, x.n, 0, maxRate)
	}
}

// DefaultOptions returns the defaults, those of an empty section.
func DefaultOptions() Options {
	return Options{Mode: ModeNone, JWT: defaultJWT(), AdminRoles: []string{"admin"}, DefaultTenant: "default", Virtual: VirtualOptions{Max: 10_000, Refresh: option.Duration(2 * time.Second)}}
}

// Validate reports every bad option, one "field: problem" per line.
func (o Options) Validate() error {
	var p option.Problems
	switch o.Mode {
	case ModeNone:
	case ModeKeys:
		if len(o.Keys) == 0 && !o.Virtual.On() {
			p.Addf("keys", "mode keys requires at least one key, or auth.virtual")
		}
	case ModeJWT:
		o.JWT.check(&p, "jwt")
	default:
		p.Addf("mode", "%q is not one of %q, %q, %q", o.Mode, ModeNone, ModeKeys, ModeJWT)
	}
	seen := option.Unique{}
	hashes := option.Unique{}
	for i, k := range o.Keys {
		at := fmt.Sprintf("keys[%d]", i)
		k.checkGrants(&p, at+".")
		seen.Check(&p, at+".name", k.Name)
		b, err := hex.DecodeString(k.SHA256)
		if err != nil || len(b) != sha256.Size {
			p.Addf(at+".sha256", "expected the 64 hexadecimal digits of a SHA-256 hash")
			continue
		}
		if sum := [sha256.Size]byte(b); sum == sha256.Sum256(nil) || sum == sha256.Sum256([]byte("\n")) {
			p.Addf(at+".sha256", "this is the hash of an empty string: the key was not set when the hash was computed")
		}
		hashes.Check(&p, at+".sha256", strings.ToLower(k.SHA256))
	}
	o.Virtual.check(&p)
	o.checkGroups(&p)
	return p.Err()
}

// CheckGrants reports every problem with the name and permissions of a key, one "field: problem"
// per line. It does not check the hash.
func (k *KeyOptions) CheckGrants() error {
	var p option.Problems
	k.checkGrants(&p, "")
	return p.Err()
}

// checkGrants checks everything but the hash; prefix precedes the names of fields.
func (k *KeyOptions) checkGrants(p *option.Problems, prefix string) {
	p.Name(prefix+"name", k.Name)
	for _, f := range [...]struct{ field, value string }{{"tenant", k.Tenant}, {"role", k.Role}} {
		if _, ok := word(f.value); !ok && f.value != "" {
			p.Addf(prefix+f.field, "must have at most %d bytes and no control characters", maxWord)
		}
	}
	k.Rate.check(p, prefix)
	k.Budget.check(p, prefix)
}

func (o Options) checkGroups(p *option.Problems) {
	roles, tenants := option.Unique{}, option.Unique{}
	for i, r := range o.Roles {
		at := fmt.Sprintf("roles[%d]", i)
		p.Name(at+".name", r.Name)
		roles.Check(p, at+".name", r.Name)
		r.Rate.check(p, at+".")
	}
	for i, t := range o.Tenants {
		at := fmt.Sprintf("tenants[%d]", i)
		p.Name(at+".name", t.Name)
		tenants.Check(p, at+".name", t.Name)
		t.Rate.check(p, at+".")
		t.Budget.check(p, at+".")
	}
}
