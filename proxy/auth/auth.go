// Package auth says who calls: it compares the bearer token of a request with the configured keys.
//
// It decides nothing about what a caller may do beyond seeing explanations; roles and tenants are words
// that rules read. It holds hashes of keys and never a key.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Principal is who makes a request. Its words come from the configuration.
type Principal struct {
	Name   string // of the key; empty without authentication
	Tenant string // whom the caller belongs to
	Role   string // what rules may read; may be empty
}

// Keys tells callers by their keys: the compiled section `auth`. It is immutable and safe for concurrent
// use.
type Keys struct {
	open     bool // mode none
	keys     []key
	admins   []string
	fallback Principal
}

type key struct {
	hash [sha256.Size]byte
	who  Principal
}

// New compiles options that are valid.
func New(o Options) *Keys {
	a := &Keys{open: o.Mode != ModeKeys, admins: o.AdminRoles, fallback: Principal{Tenant: o.DefaultTenant, Role: o.DefaultRole}}
	for _, k := range o.Keys {
		who := Principal{Name: k.Name, Tenant: k.Tenant, Role: k.Role}
		if who.Tenant == "" {
			who.Tenant = o.DefaultTenant
		}
		if who.Role == "" {
			who.Role = o.DefaultRole
		}
		var hash [sha256.Size]byte
		if _, err := hex.Decode(hash[:], []byte(k.SHA256)); err != nil {
			continue // refused by Validate
		}
		a.keys = append(a.keys, key{hash, who})
	}
	return a
}

// ErrBadKey reports a request without a key, or with one that is not configured.
var ErrBadKey = errors.New("no valid API key")

// Identify finds the caller of a request by its header Authorization, a bearer token. Every key is
// compared, in constant time, so that the time taken tells nothing about which one came close. Its only
// error is ErrBadKey.
func (a *Keys) Identify(h http.Header) (Principal, error) {
	if a.open {
		return a.fallback, nil
	}
	scheme, token, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return Principal{}, ErrBadKey
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := -1
	for i := range a.keys {
		if subtle.ConstantTimeCompare(sum[:], a.keys[i].hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Principal{}, ErrBadKey
	}
	return a.keys[found].who, nil
}

// MayExplain reports whether the caller may see thresholds and scores.
func (a *Keys) MayExplain(who Principal) bool { return a.open || slices.Contains(a.admins, who.Role) }
