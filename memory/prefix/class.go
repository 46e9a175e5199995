package prefix

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"signalbox/memory/blob"
)

// Class names requests whose prompts begin alike on one model: whatever a server has computed for
// one of them serves the others.
type Class [16]byte

// String is the class in hexadecimal digits.
func (c Class) String() string { return hex.EncodeToString(c[:]) }

// Identity is what a class depends on.
type Identity struct {
	Model string // as it is served
	LoRA  string
	Salt  string // of the cache, from Salt
	Role  Role
	// Contexts are the sums of the versions, in order.
	Contexts []blob.Sum
	// Leading is what the model's template renders in front of the system text, by the model's
	// configuration: tools, reasoning effort, chat_template_kwargs. nil where it renders them
	// later.
	Leading [][]byte
}

// Class is the first half of a SHA-256 of all fields, each with its length in front.
func (i Identity) Class() Class {
	h := sha256.New()
	put(h, []byte("signalbox prefix 1"))
	for _, s := range []string{i.Model, i.LoRA, i.Salt, i.Role.String()} {
		put(h, []byte(s))
	}
	count(h, len(i.Contexts))
	for _, c := range i.Contexts {
		put(h, c[:])
	}
	count(h, len(i.Leading))
	for _, l := range i.Leading {
		put(h, l)
	}
	return Class(h.Sum(nil)[:len(Class{})])
}

// Salt is the cache_salt of a tenant's requests: the base64url form of HMAC-SHA256(secret, tenant
// and scope, each with its length in front). Requests with different salts share nothing in a
// server's prefix cache, so that no tenant can find out by timing what another has sent
// (CVE-2025-46570).
func Salt(secret []byte, tenant, scope string) string {
	h := hmac.New(sha256.New, secret)
	put(h, []byte(tenant))
	put(h, []byte(scope))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// put writes b with its length in front, so that no two lists of values look alike.
func put(h hash.Hash, b []byte) {
	count(h, len(b))
	h.Write(b)
}

func count(h hash.Hash, n int) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
}
