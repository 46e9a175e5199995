package keyring

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"signalbox/proxy/auth"
)

// Grants are the permissions and limits of a key: the fields of auth.KeyOptions, with the same
// meaning and limits.
type Grants struct {
	// Tenant is the tenant that the caller belongs to. Default: auth.default_tenant.
	Tenant string `json:"tenant,omitzero"`
	// Role is the caller's role, which rules can read. Default: auth.default_role.
	Role string `json:"role,omitzero"`
	// Models lists the models that requests with the key may use. Default: all.
	Models []string `json:"models,omitempty"`
	// Rate limits requests with the key. Default: the limits of the role.
	Rate auth.RateOptions `json:"rate,omitzero"`
	// Budget limits the cost of requests with the key.
	Budget auth.BudgetOptions `json:"budget,omitzero"`
}

// options converts the grants to those of a configured key.
func (g *Grants) options(name string) auth.KeyOptions {
	return auth.KeyOptions{
		Name: name, Tenant: g.Tenant, Role: g.Role, Models: g.Models, Rate: g.Rate, Budget: g.Budget,
	}
}

// Record is a stored key. It is immutable once shared.
type Record struct {
	Grants

	ID       string    `json:"id"`
	Name     string    `json:"name"`
	SHA256   string    `json:"sha256"` // of the key, in hexadecimal
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
	Expires  time.Time `json:"expires_at,omitzero"`      // valid before that time; zero: always
	Rotated  time.Time `json:"rotated_at,omitzero"`      // zero if never
	Previous string    `json:"previous_sha256,omitzero"` // hash before the last rotation
	Until    time.Time `json:"previous_until,omitzero"`  // Previous is valid before that time
}

// The parts of a key.
const (
	prefix = "sk-sbv-"
	idLen  = 16 // base32 characters: 80 bits
)

// newID generates a random id.
func newID() string { return strings.ToLower(rand.Text()[:idLen]) }

// newSecret generates a key: 260 random bits after the ID. A hash without salt or stretching
// suffices for what cannot be guessed.
func newSecret(id string) (secret, sum string) {
	secret = prefix + id + "-" + rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret))
	return secret, hex.EncodeToString(hash[:])
}

// idOf returns the ID in a key that a caller sent.
func idOf(shown string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(shown, prefix)
	if !ok || len(rest) <= idLen || rest[idLen] != '-' {
		return "", false
	}
	return rest[:idLen], true
}

func isID(s string) bool {
	return len(s) == idLen && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// entry is a record prepared for requests.
type entry struct {
	Record

	text              string // of the record in the Store
	key               auth.KeyOptions
	current, previous [sha256.Size]byte // zero if there is none: no key has that hash
}

// text returns the stored form of the record.
func (r *Record) text() (string, error) {
	b, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("write the record of a key: %w", err)
	}
	return string(b), nil
}

// parse parses the record stored under a name. Its values are checked like those of a configured
// key.
func parse(name, text string) (*entry, error) {
	e := &entry{text: text}
	if err := json.Unmarshal([]byte(text), &e.Record, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	switch {
	case e.Name != name:
		return nil, errors.New("name: stored under a different name")
	case !isID(e.ID):
		return nil, errors.New("id: expected 16 characters of base 32")
	case !digest(&e.current, e.SHA256), e.Previous != "" && !digest(&e.previous, e.Previous):
		return nil, errors.New("sha256: expected the 64 hexadecimal digits of a SHA-256 hash")
	}
	e.key = e.options(e.Name)
	return e, e.key.CheckGrants()
}

func digest(sum *[sha256.Size]byte, digits string) bool {
	if len(digits) != hex.EncodedLen(len(sum)) {
		return false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return err == nil
}

// expired reports whether the key is no longer valid.
func (r *Record) expired(now time.Time) bool { return !r.Expires.IsZero() && !now.Before(r.Expires) }
