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

// Grants are what a key may do: the fields of auth.KeyOptions, with their meaning and their bounds.
type Grants struct {
	// Tenant is whom the caller belongs to. Default: auth.default_tenant.
	Tenant string `json:"tenant,omitzero"`
	// Role is what rules may read as the caller's role. Default: auth.default_role.
	Role string `json:"role,omitzero"`
	// Models are the models that requests with the key may go to. Default: all.
	Models []string `json:"models,omitempty"`
	// Rate bounds what the key may be used for. Default: what the role says.
	Rate auth.RateOptions `json:"rate,omitzero"`
	// Budget bounds what requests with the key may cost.
	Budget auth.BudgetOptions `json:"budget,omitzero"`
}

// options are the grants as those of a key of the configuration.
func (g *Grants) options(name string) auth.KeyOptions {
	return auth.KeyOptions{
		Name: name, Tenant: g.Tenant, Role: g.Role, Models: g.Models, Rate: g.Rate, Budget: g.Budget,
	}
}

// Record is a key as it is kept. It is not changed once others see it.
type Record struct {
	Grants

	ID       string    `json:"id"`
	Name     string    `json:"name"`
	SHA256   string    `json:"sha256"` // of the key, in hexadecimal digits
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
	Expires  time.Time `json:"expires_at,omitzero"`      // it holds before; zero: always
	Rotated  time.Time `json:"rotated_at,omitzero"`      // zero: never
	Previous string    `json:"previous_sha256,omitzero"` // the hash before the last rotation
	Until    time.Time `json:"previous_until,omitzero"`  // Previous holds before
}

// The parts of a key.
const (
	prefix = "sk-sbv-"
	idLen  = 16 // of base 32: 80 bits
)

// newID makes the name of a record that nobody chose.
func newID() string { return strings.ToLower(rand.Text()[:idLen]) }

// newSecret makes a key: 260 random bits behind the ID. A hash without salt or stretching is enough
// for what nobody can guess.
func newSecret(id string) (secret, sum string) {
	secret = prefix + id + "-" + rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret))
	return secret, hex.EncodeToString(hash[:])
}

// idOf is the ID in a key that a caller shows.
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

// entry is a record, ready for requests.
type entry struct {
	Record

	text              string // of the record in the Store
	key               auth.KeyOptions
	current, previous [sha256.Size]byte // zero where there is none: no key has that hash
}

// text is the record as it is kept.
func (r *Record) text() (string, error) {
	b, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("write the record of a key: %w", err)
	}
	return string(b), nil
}

// parse reads a record that was kept under a name. What it says is checked as a key of the
// configuration is.
func parse(name, text string) (*entry, error) {
	e := &entry{text: text}
	if err := json.Unmarshal([]byte(text), &e.Record, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	switch {
	case e.Name != name:
		return nil, errors.New("name: it is kept under another one")
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

// expired reports whether the key holds no more.
func (r *Record) expired(now time.Time) bool { return !r.Expires.IsZero() && !now.Before(r.Expires) }
