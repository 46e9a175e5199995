package proxy

import (
	"crypto/rand"

	"signalbox/proxy/affinity"
)

// fieldSalt keeps the prefix caches of tenants apart in vLLM. Only the proxy names one: a client
// that chose its own could find out by timing what others have sent (CVE-2025-46570).
const fieldSalt = "cache_salt"

// salts derives what stands for a tenant, or for a credential, where others may see it. It is
// immutable and safe for concurrent use, and keeps nothing of whom it was asked about: tenants of
// tokens are as many as the issuer likes.
type salts struct{ secret []byte }

// newSalts makes salts from a secret, of which all replicas must have the same to share what
// endpoints hold. Without one it is random.
func newSalts(secret []byte) *salts {
	if len(secret) == 0 {
		secret = []byte(rand.Text())
	}
	return &salts{secret: secret}
}

// of is the salt of a tenant, which is the value of cache_salt.
func (s *salts) of(tenant string) string { return affinity.Salt(s.secret, tenant, "") }

// credential stands for what a caller shows, in keys of answers: without the secret nobody finds
// out which credential it is by trying some. No tenant has it for its salt, for no scope of one is
// the use.
func (s *salts) credential(shown string) string {
	return affinity.Salt(s.secret, shown, "cached answers")
}
