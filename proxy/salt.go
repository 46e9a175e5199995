package proxy

import (
	"crypto/rand"
	"sync"

	"signalbox/proxy/affinity"
)

// fieldSalt keeps the prefix caches of tenants apart in vLLM. Only the proxy names one: a client that chose its own
// could find out by timing what others have sent (CVE-2025-46570).
const fieldSalt = "cache_salt"

// salts are the values of cache_salt. It is safe for concurrent use.
type salts struct {
	secret []byte
	known  sync.Map // tenant -> salt; tenants come from the configuration
}

// newSalts makes salts from a secret, of which all replicas must have the same to share what endpoints hold. Without
// one it is random.
func newSalts(secret []byte) *salts {
	if len(secret) == 0 {
		secret = []byte(rand.Text())
	}
	return &salts{secret: secret}
}

// of is the salt of a tenant.
func (s *salts) of(tenant string) string {
	if known, ok := s.known.Load(tenant); ok {
		return known.(string) //nolint:errcheck,forcetypeassert // only this method stores
	}
	salt := affinity.Salt(s.secret, tenant, "")
	s.known.Store(tenant, salt)
	return salt
}

// Salt sets the secret that cache salts are made from. Call it before the state is served from; without it, a state
// takes that of the one before, the first one a random secret.
func (st *State) Salt(secret []byte) { st.salts, st.salted = newSalts(secret), true }
