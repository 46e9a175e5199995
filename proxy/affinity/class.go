package affinity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Class identifies what two requests must have in common to share cached blocks of equal text.
type Class uint64

// Traits are the properties that make up a class.
type Traits struct {
	Model string // name as served
	LoRA  string // name of the adapter
	Salt  string // the cache_salt sent with the request; see Salt
	// parameters that the chat template places before the messages, such as tools and effort, in a
	// canonical spelling
	Template string
}

// Class returns the class of requests with these traits.
func (t *Traits) Class() Class {
	return Class(sum(0, t.Model, t.LoRA, t.Salt, t.Template))
}

// block returns the key of a block of text in the class.
func (c Class) block(text uint64) uint64 { return mix(text ^ uint64(c)) }

// sum hashes fields, separated by their lengths.
func sum(seed uint64, fields ...string) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	for _, f := range fields {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(f)))
		_, _ = d.Write(size[:])
		_, _ = d.WriteString(f)
	}
	return d.Sum64()
}

// mix spreads the bits of x: the finalizer of SplitMix64 (Steele, Lea, Flood, Fast Splittable
// Pseudorandom Number Generators, 2014, with the constants of Stafford's variant 13).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Salt returns the cache_salt for the requests of a tenant in a scope, such as the whole tenant or
// one session: 43 characters that cannot be guessed without the secret. Requests of different
// tenants or scopes never share cached blocks, so response times reveal nothing about the prompts
// of others (CVE-2025-46570). A salt that a client sends itself must not reach the server.
func Salt(secret []byte, tenant, scope string) string {
	mac := hmac.New(sha256.New, secret)
	for _, f := range [...]string{tenant, scope} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(f)))
		_, _ = mac.Write(size[:])
		_, _ = mac.Write([]byte(f))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
