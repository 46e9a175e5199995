// Package auth authenticates callers and determines what they may do. It compares the bearer token
// of a request with the configured keys, or verifies it as a signed token. Roles and tenants are
// names that rules can read; this package maps them to the models that a caller may use and to the
// limits that apply, which other packages enforce.
//
// The package holds hashes of keys and never a key. A Keys is immutable except for the key set that
// it verifies tokens with, and is safe for concurrent use. Watch runs on the caller's goroutine;
// nothing else runs in the background.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/proxy/budget"
)

// Principal is the caller of a request. With a token, name, tenant and role come from the token,
// limited in length and printable; everything else comes from the configuration.
type Principal struct {
	Name   string   // name of the key, or subject of the token; empty without authentication
	Tenant string   // tenant that the caller belongs to
	Role   string   // role that rules read; may be empty
	Models []string // models that the caller may use, sorted; nil for all
	Limits []Limit  // limits that apply to its requests; empty if there are none

	Budgets []budget.Budget // budgets that its requests are charged to
}

// Limit limits the requests of one scope, which is a caller or a tenant.
type Limit struct {
	Scope string // identifies the requests that count together
	Rate  RateOptions
}

// May reports whether the caller may use a model.
func (p *Principal) May(model string) bool {
	return p.Models == nil || slices.Contains(p.Models, model)
}

// Keys identifies callers by their credentials: the compiled section `auth`.
type Keys struct {
	open     bool // mode none
	keys     []key
	tokens   *tokens         // nil if tokens are not accepted
	virtual  Virtual         // nil if virtual keys are not accepted
	taken    map[string]bool // names of the configured keys
	admins   []string
	fallback Principal
	roles    map[string]RoleOptions
	tenants  map[string]TenantOptions

	defaultTenant, defaultRole string
}

// Virtual finds keys that are created while the process runs. Implementations must be safe for
// concurrent use and fast, since every request asks.
type Virtual interface {
	// Find returns the key that a caller sent, whose SHA-256 is sum; nil when there is none or it
	// is not valid now. An error means that the keys are not loaded yet. Neither side may change
	// the returned key.
	Find(shown string, sum *[sha256.Size]byte) (*KeyOptions, error)
	// Taken reports whether a key with the name exists, valid or not. An error means that the keys
	// are not loaded yet.
	Taken(name string) (bool, error)
	// Lacking describes what is wrong with the keys, for /readyz; empty when nothing is. blind
	// means that no keys are loaded.
	Lacking() (what string, blind bool)
}

// Accept makes Identify accept virtual keys as well. A virtual key with the name of a configured
// key is not accepted. Call Accept before the first Identify.
func (a *Keys) Accept(v Virtual) { a.virtual = v }

type key struct {
	hash [sha256.Size]byte
	who  Principal
}

// New compiles valid options. An error is about files that they name.
func New(o Options) (*Keys, error) {
	a := &Keys{
		open: o.Mode != ModeKeys && o.Mode != ModeJWT, admins: o.AdminRoles,
		roles: make(map[string]RoleOptions, len(o.Roles)), tenants: make(map[string]TenantOptions, len(o.Tenants)),
		defaultTenant: o.DefaultTenant, defaultRole: o.DefaultRole, taken: make(map[string]bool, len(o.Keys)),
	}
	for _, r := range o.Roles {
		a.roles[r.Name] = r
	}
	for _, t := range o.Tenants {
		a.tenants[t.Name] = t
	}
	a.fallback = a.allow("anyone", Principal{Tenant: o.DefaultTenant, Role: o.DefaultRole}, nil, RateOptions{})
	for i := range o.Keys {
		k := &o.Keys[i]
		a.taken[k.Name] = true
		var hash [sha256.Size]byte
		if _, err := hex.Decode(hash[:], []byte(k.SHA256)); err != nil {
			continue // reported by Validate
		}
		a.keys = append(a.keys, key{hash, a.caller(k)})
	}
	if o.Mode == ModeJWT {
		var err error
		if a.tokens, err = newTokens(&o); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// caller returns the Principal of a key.
func (a *Keys) caller(k *KeyOptions) Principal {
	who := Principal{
		Name: k.Name, Tenant: cmp.Or(k.Tenant, a.defaultTenant), Role: cmp.Or(k.Role, a.defaultRole),
	}
	return withBudget(a.allow("key", who, k.Models, k.Rate), k.Budget)
}

// Caller returns the Principal of a virtual key.
func (a *Keys) Caller(k *KeyOptions) Principal { return a.caller(k) }

// allow adds a caller's permissions and limits: those of its own entry, restricted by its role and
// tenant. kind distinguishes callers with the same name and different kinds of credentials.
func (a *Keys) allow(kind string, who Principal, models []string, rate RateOptions) Principal {
	role, tenant := a.roles[who.Role], a.tenants[who.Tenant]
	who.Models = cut(cut(sorted(models), sorted(role.Models)), sorted(tenant.Models))
	if rate == (RateOptions{}) {
		rate = role.Rate
	}
	if rate != (RateOptions{}) {
		who.Limits = append(who.Limits, Limit{Scope: kind + ":" + who.Tenant + "\x00" + who.Name, Rate: rate})
	}
	if tenant.Rate != (RateOptions{}) {
		who.Limits = append(who.Limits, Limit{Scope: "tenant:" + who.Tenant, Rate: tenant.Rate})
	}
	if tenant.Budget.USD > 0 {
		who.Budgets = append(who.Budgets, tenant.Budget.of("tenant:"+who.Tenant))
	}
	return who
}

// withBudget adds the budget of a key.
func withBudget(who Principal, o BudgetOptions) Principal {
	if o.USD > 0 {
		who.Budgets = append(who.Budgets, o.of("key:"+who.Name))
	}
	return who
}

func sorted(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return slices.Sorted(slices.Values(names))
}

// cut returns the intersection of two lists; nil stands for everything.
func cut(a, b []string) []string {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	both := []string{} // not nil, which would mean everything
	for _, name := range a {
		if slices.Contains(b, name) {
			both = append(both, name)
		}
	}
	return both
}

// The errors of Identify.
var (
	// ErrBadKey means that a request has no credentials or invalid ones.
	ErrBadKey = errors.New("no valid API key")
	// ErrNoKey is an ErrBadKey for a request without credentials.
	ErrNoKey = fmt.Errorf("%w: none was sent", ErrBadKey)
	// ErrNoKeySet means that a token or key cannot be verified yet, because the key set or the
	// virtual keys have not been read.
	ErrNoKeySet = errors.New("the keys to verify tokens and API keys with are not loaded yet")
)

// Identify returns the caller of a request by the bearer token in its Authorization header. It
// compares every configured key in constant time, so that the time reveals nothing about partial
// matches. A token signed with an unknown key waits for the key set, for at most patience. Errors
// wrap ErrBadKey or ErrNoKeySet.
func (a *Keys) Identify(ctx context.Context, h http.Header) (Principal, error) {
	if a.open {
		return a.fallback, nil
	}
	if h.Get("Authorization") == "" {
		return Principal{}, ErrNoKey
	}
	scheme, token, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return Principal{}, ErrBadKey
	}
	if token = strings.TrimSpace(token); token == "" {
		return Principal{}, ErrBadKey // even if the hash of the empty string is configured
	}
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range a.keys {
		if subtle.ConstantTimeCompare(sum[:], a.keys[i].hash[:]) == 1 {
			found = i
		}
	}
	if found >= 0 {
		return a.keys[found].who, nil
	}
	if a.virtual != nil {
		k, err := a.virtual.Find(token, &sum)
		switch {
		case err != nil:
			return Principal{}, fmt.Errorf("%w: %w", ErrNoKeySet, err)
		case k != nil && !a.taken[k.Name]:
			return a.caller(k), nil
		}
	}
	if a.tokens == nil {
		return Principal{}, ErrBadKey
	}
	who, err := a.tokens.caller(ctx, token)
	if err == nil {
		err = a.apart(who.Name)
	}
	if err != nil {
		return Principal{}, err
	}
	return a.allow("token", who, nil, RateOptions{}), nil
}

// apart refuses a token whose subject has the name of a key, since it would share what belongs to
// the key.
func (a *Keys) apart(name string) error {
	taken := a.taken[name]
	if !taken && a.virtual != nil {
		var err error
		if taken, err = a.virtual.Taken(name); err != nil {
			return fmt.Errorf("%w: %w", ErrNoKeySet, err)
		}
	}
	if taken {
		return bad("the caller in the token has the name of an API key")
	}
	return nil
}

// Logged returns the current permissions of the caller of a logged request, given its name, tenant
// and role. known is false if they may be more restricted, since the caller may have used a virtual
// key.
func (a *Keys) Logged(who Principal) (now Principal, known bool) {
	if a.open {
		return a.fallback, true
	}
	for i := range a.keys {
		if a.keys[i].who.Name == who.Name {
			return a.keys[i].who, true
		}
	}
	return a.allow("token", who, nil, RateOptions{}), a.virtual == nil
}

// MayExplain reports whether the caller may see thresholds and scores.
func (a *Keys) MayExplain(who Principal) bool { return a.open || slices.Contains(a.admins, who.Role) }

// Watch keeps the key set up to date until ctx ends or idle is closed. It returns immediately when
// there is none to update.
func (a *Keys) Watch(ctx context.Context, idle <-chan struct{}) {
	if a.tokens != nil {
		a.tokens.set.watch(ctx, idle, time.Duration(a.tokens.o.Refresh))
	}
}

// Lacking describes what prevents callers from being authenticated, for /readyz; empty when nothing
// does. blind means that no token can be verified.
func (a *Keys) Lacking() (what string, blind bool) {
	if a.tokens != nil {
		what, blind = a.tokens.set.lacking()
	}
	if a.virtual == nil || what != "" {
		return what, blind
	}
	return a.virtual.Lacking()
}

// Adopt takes over the key set that an older Keys has read from the same URL. Keys from files were
// read again for a.
func (a *Keys) Adopt(old *Keys) {
	if a.tokens != nil && old.tokens != nil && a.tokens.set.url != "" && a.tokens.set.url == old.tokens.set.url {
		a.tokens.set = old.tokens.set
	}
}
