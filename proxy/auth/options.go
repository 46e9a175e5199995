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
	// ModeNone lets everyone in.
	ModeNone = "none"
	// ModeKeys asks for one of the configured keys.
	ModeKeys = "keys"
	// ModeJWT asks for a signed token, or one of the configured keys.
	ModeJWT = "jwt"
)

// Options is the section `auth`.
type Options struct {
	// Mode is none, keys, or jwt. With jwt a caller shows a JSON Web Token or one of keys. Default
	// none, which is refused where server.listen is not on loopback, unless allow_anonymous says
	// that it is meant. Reloadable, as everything here but virtual.
	Mode string `yaml:"mode" words:"none keys jwt"`
	// AllowAnonymous says for a second time that everyone may call: mode none on an address that
	// others can reach. Default false.
	AllowAnonymous bool `yaml:"allow_anonymous"`
	// Keys are the keys that modes keys and jwt accept.
	Keys []KeyOptions `yaml:"keys"`
	// Virtual are keys that operators make, change and revoke while the proxy runs, by /-/keys of
	// the admin listener. Modes keys and jwt accept them.
	Virtual VirtualOptions `yaml:"virtual"`
	// JWT says which tokens mode jwt accepts, and who their callers are.
	JWT JWTOptions `yaml:"jwt"`
	// Roles says what callers of a role may do. A role needs no entry here to be read by rules.
	Roles []RoleOptions `yaml:"roles"`
	// Tenants says what the callers of a tenant may do, all of them together.
	Tenants []TenantOptions `yaml:"tenants"`
	// AdminRoles are the roles that may see explanations and call the classify endpoint when mode
	// is not none. Default [admin].
	AdminRoles []string `yaml:"admin_roles"`
	// DefaultRole is the role of a request without a role of its own. Default empty.
	DefaultRole string `yaml:"default_role"`
	// DefaultTenant is the tenant of a request without a tenant of its own. Default: default.
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
	// Models are the models that requests with the key may go to, by name or by routing. Default:
	// all. What the role and the tenant allow is cut by it.
	Models []string `yaml:"models"`
	// Rate bounds what the key may be used for. Default: what the role says.
	Rate RateOptions `yaml:"rate"`
	// Budget bounds what requests with the key may cost.
	Budget BudgetOptions `yaml:"budget"`
}

// VirtualOptions says where virtual keys are kept. See keys.md.
type VirtualOptions struct {
	// File keeps them on this machine: JSON, of hashes, written anew with every change. Several
	// processes of a machine may share one. Default: there are no virtual keys. Restart needed.
	File string `yaml:"file" path:"true"`
	// Redis keeps them in memory.redis, for all replicas, in place of a file. Default false.
	// Restart needed.
	Redis bool `yaml:"redis"`
	// Max is how many there may be, expired ones included. Default 10000, at most 100000. Restart
	// needed.
	Max int `yaml:"max"`
	// Refresh is how often a replica looks for changes that others made, 100ms to 1m: a revoked key
	// works elsewhere for so long, and for the time to read the keys. Default 2s. Restart needed.
	Refresh option.Duration `yaml:"refresh"`
}

// On reports whether there are virtual keys.
func (o VirtualOptions) On() bool { return o.File != "" || o.Redis }

// Bounds of the section `virtual`.
const (
	mostVirtual = 100_000
	soonestLook = 100 * time.Millisecond
	latestLook  = time.Minute
)

func (o VirtualOptions) check(p *option.Problems) {
	if o == (VirtualOptions{}) {
		return // nothing was said, not even the defaults
	}
	if o.File != "" && o.Redis {
		p.Addf("virtual.redis", "virtual keys are kept in a file or in redis, not in both")
	}
	option.Between(p, "virtual.max", o.Max, 1, mostVirtual)
	option.Between(p, "virtual.refresh", time.Duration(o.Refresh), soonestLook, latestLook)
}

// RoleOptions is what callers of one role may do.
type RoleOptions struct {
	// Name is the role. Required, unique.
	Name string `yaml:"name"`
	// Models are the models that their requests may go to. Default: all.
	Models []string `yaml:"models"`
	// Rate bounds each caller of the role that has no rate of its own.
	Rate RateOptions `yaml:"rate"`
}

// TenantOptions is what the callers of one tenant may do.
type TenantOptions struct {
	// Name is the tenant. Required, unique.
	Name string `yaml:"name"`
	// Models are the models that their requests may go to. Default: all.
	Models []string `yaml:"models"`
	// Rate bounds all callers of the tenant together.
	Rate RateOptions `yaml:"rate"`
	// Budget bounds what all callers of the tenant together may cost.
	Budget BudgetOptions `yaml:"budget"`
}

// BudgetOptions bounds what requests cost by models[].price in a period. A request whose estimated
// cost does not fit is answered with 429. Models without a price cost nothing.
type BudgetOptions struct {
	// Soft makes requests cheaper when the budget is nearly used up.
	Soft budget.SoftOptions `yaml:"soft" json:"soft,omitzero"`

	// USD is how many US dollars may be spent in a period, over all replicas with memory.redis,
	// else in each process. 0 is no bound.
	USD float64 `yaml:"usd" json:"usd,omitzero"`
	// Period is day or month, of the calendar in UTC. Default month.
	Period string `yaml:"period" json:"period,omitzero" words:"day month"`
}

func (o BudgetOptions) check(p *option.Problems, prefix string) {
	budget.Options{USD: o.USD, Period: o.Period}.Check(p, prefix+"budget")
	o.Soft.Check(p, prefix+"budget.soft")
}

// of returns the budget under a name.
func (o BudgetOptions) of(name string) budget.Budget {
	return budget.Budget{Name: name, USD: o.USD, Period: budget.Period(cmp.Or(o.Period, string(budget.Month))), Soft: o.Soft.Of()}
}

// RateOptions bounds requests. A request that is over one of the bounds is answered with 429.
// Minutes roll: an allowance comes back bit by bit, and can be used at once as far as it has.
type RateOptions struct {
	// RPM is how many requests a minute are allowed. 0 is no bound.
	RPM int `yaml:"rpm" json:"rpm,omitzero"`
	// TPM is how many tokens a minute are allowed, of prompts and answers. A request is let in by
	// an estimate, which is settled with what it used. 0 is no bound.
	TPM int `yaml:"tpm" json:"tpm,omitzero"`
	// Concurrency is how many requests may be under way at a time: over all replicas with
	// memory.redis, else in each process. 0 is no bound.
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

// DefaultOptions returns the options of an empty section.
func DefaultOptions() Options {
	return Options{Mode: ModeNone, JWT: defaultJWT(), AdminRoles: []string{"admin"}, DefaultTenant: "default", Virtual: VirtualOptions{Max: 10_000, Refresh: option.Duration(2 * time.Second)}}
}

// Validate reports every bad option, one "field: problem" a line.
func (o Options) Validate() error {
	var p option.Problems
	switch o.Mode {
	case ModeNone:
	case ModeKeys:
		if len(o.Keys) == 0 && !o.Virtual.On() {
			p.Addf("keys", "mode keys needs at least one, or virtual keys")
		}
	case ModeJWT:
		o.JWT.check(&p, "jwt")
	default:
		p.Addf("mode", "%q is none of %q, %q, %q", o.Mode, ModeNone, ModeKeys, ModeJWT)
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
			p.Addf(at+".sha256", "it is the hash of an empty text; the key was not set where it was made")
		}
		hashes.Check(&p, at+".sha256", strings.ToLower(k.SHA256))
	}
	o.Virtual.check(&p)
	o.checkGroups(&p)
	return p.Err()
}

// CheckGrants reports every problem of what a key is called and may do, one "field: problem" a
// line; its hash is not looked at.
func (k *KeyOptions) CheckGrants() error {
	var p option.Problems
	k.checkGrants(&p, "")
	return p.Err()
}

// checkGrants checks all but the hash; prefix stands before the names of fields.
func (k *KeyOptions) checkGrants(p *option.Problems, prefix string) {
	p.Name(prefix+"name", k.Name)
	for _, f := range [...]struct{ field, value string }{{"tenant", k.Tenant}, {"role", k.Role}} {
		if _, ok := word(f.value); !ok && f.value != "" {
			p.Addf(prefix+f.field, "it is longer than %d bytes, or holds control characters", maxWord)
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
