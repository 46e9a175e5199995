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

// Principal is who makes a request. Name, tenant and role of a caller with a token come from the
// token, bounded and printable; all else comes from the configuration.
type Principal struct {
	Name   string   // of the key, or who the token is about; empty without authentication
	Tenant string   // whom the caller belongs to
	Role   string   // what rules may read; may be empty
	Models []string // that requests may go to, sorted; nil for all
	Limits []Limit  // that hold for the request; none where nothing is bounded

	Budgets []budget.Budget // that its cost is taken from
}

// Limit bounds the requests of one scope, which is a caller or a tenant.
type Limit struct {
	Scope string // the same for all requests that count together, and for no others
	Rate  RateOptions
}

// May reports whether requests of the caller may go to a model.
func (p *Principal) May(model string) bool {
	return p.Models == nil || slices.Contains(p.Models, model)
}

// Keys tells callers by what they show: the compiled section `auth`.
type Keys struct {
	open     bool // mode none
	keys     []key
	tokens   *tokens         // nil: none are accepted
	virtual  Virtual         // nil: none are accepted
	taken    map[string]bool // names of keys
	admins   []string
	fallback Principal
	roles    map[string]RoleOptions
	tenants  map[string]TenantOptions

	defaultTenant, defaultRole string
}

// Virtual finds keys that were made while the process runs. Implementations are safe for concurrent
// use, and quick: every request asks.
type Virtual interface {
	// Find returns the key that a caller shows, of which sum is the SHA-256; nil when there is none
	// or it does not hold now. The error is that keys are not known yet. The key is not changed by
	// either side.
	Find(shown string, sum *[sha256.Size]byte) (*KeyOptions, error)
	// Taken reports whether a key has a name, whether it holds now or not. The error is that keys
	// are not known yet.
	Taken(name string) (bool, error)
	// Lacking says what is wrong with the keys, in words for /readyz; empty when nothing is. blind:
	// none are known.
	Lacking() (what string, blind bool)
}

// Accept has Identify accept virtual keys too. A key of the configuration keeps its name from them.
// Call it before the first Identify.
func (a *Keys) Accept(v Virtual) { a.virtual = v }

type key struct {
	hash [sha256.Size]byte
	who  Principal
}

// New compiles options that are valid. The error is about files that they name.
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
			continue // refused by Validate
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

// caller is who shows a key.
func (a *Keys) caller(k *KeyOptions) Principal {
	who := Principal{
		Name: k.Name, Tenant: cmp.Or(k.Tenant, a.defaultTenant), Role: cmp.Or(k.Role, a.defaultRole),
	}
	return withBudget(a.allow("key", who, k.Models, k.Rate), k.Budget)
}

// Caller is who shows a virtual key.
func (a *Keys) Caller(k *KeyOptions) Principal { return a.caller(k) }

// allow adds what a caller may do: what its own entry says, cut by its role and its tenant. kind
// keeps callers apart that show different things and have the same name.
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

// withBudget adds the budget of a key to what the key may do.
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

// cut returns what is in both lists; nil holds everything.
func cut(a, b []string) []string {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	both := []string{} // not nil: nothing is left, which is not everything
	for _, name := range a {
		if slices.Contains(b, name) {
			both = append(both, name)
		}
	}
	return both
}

// What Identify finds wrong with a request.
var (
	// ErrBadKey reports a request without credentials, or with some that are not valid.
	ErrBadKey = errors.New("no valid API key")
	// ErrNoKey is ErrBadKey of a request without credentials.
	ErrNoKey = fmt.Errorf("%w: none was sent", ErrBadKey)
	// ErrNoKeySet reports a token or a key that cannot be verified now, because the key set, or the
	// virtual keys, were never read.
	ErrNoKeySet = errors.New("what tokens and keys are verified with is not known yet")
)

// Identify finds the caller of a request by its header Authorization, a bearer token. Every key is
// compared, in constant time, so that the time taken tells nothing about which one came close. A
// token whose key is not known yet waits for the key set, at most for patience. Errors are
// ErrBadKey and ErrNoKeySet, and may say more.
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
		return Principal{}, ErrBadKey // also where the hash of nothing is in the file
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

// apart refuses who is called as a key is: what belongs to the key would be its own.
func (a *Keys) apart(name string) error {
	taken := a.taken[name]
	if !taken && a.virtual != nil {
		var err error
		if taken, err = a.virtual.Taken(name); err != nil {
			return fmt.Errorf("%w: %w", ErrNoKeySet, err)
		}
	}
	if taken {
		return bad("the token names a caller that is a key")
	}
	return nil
}

// Logged returns what the caller of a logged request may do now: one of whom name, tenant and role
// are known. known is false where it may be less, since the caller may have shown a virtual key.
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

// Watch keeps the key set fresh until ctx ends or idle is closed. It returns at once where there is
// none to keep.
func (a *Keys) Watch(ctx context.Context, idle <-chan struct{}) {
	if a.tokens != nil {
		a.tokens.set.watch(ctx, idle, time.Duration(a.tokens.o.Refresh))
	}
}

// Lacking says what is missing to let callers in, in words for /readyz; empty when nothing is.
// blind: no token can be verified.
func (a *Keys) Lacking() (what string, blind bool) {
	if a.tokens != nil {
		what, blind = a.tokens.set.lacking()
	}
	if a.virtual == nil || what != "" {
		return what, blind
	}
	return a.virtual.Lacking()
}

// Adopt takes over what an older Keys has read from the same URL. What comes from a file was read
// anew with a.
func (a *Keys) Adopt(old *Keys) {
	if a.tokens != nil && old.tokens != nil && a.tokens.set.url != "" && a.tokens.set.url == old.tokens.set.url {
		a.tokens.set = old.tokens.set
	}
}
