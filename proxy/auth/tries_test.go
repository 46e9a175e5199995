package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// curveSet returns a set with n keys of a curve, whose ids begin with name, and their private keys.
func curveSet(t *testing.T, curve elliptic.Curve, name string, n int) (list []any,
	private []*ecdsa.PrivateKey,
) {
	t.Helper()
	for k := range n {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%s-%d", name, k)
		list, private = append(list, jose.JSONWebKey{Key: &key.PublicKey, KeyID: id}),
			append(private, key)
	}
	return list, private
}

// S2: a token from an unknown sender must not be tried against every key.
func TestATokenThatNamesNoKeyIsTriedAgainstFew(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for _, tt := range []struct {
		name      string
		keys      int // of P-256
		id        string
		signed    int // by the key with this index
		wantError bool
	}{
		{"few keys, none named", triedKeys, "", triedKeys - 1, false},
		{"many keys, none named", triedKeys + 1, "", 0, true},
		{"many keys, the right one named", 125, "a-124", 124, false},
		{"many keys, a wrong one named", triedKeys + 1, "a-1", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list, private := curveSet(t, elliptic.P256(), "a", tt.keys)
			others, _ := curveSet(t, elliptic.P384(), "b", 3) // of a different algorithm
			b, err := json.Marshal(map[string]any{"keys": append(others, list...)})
			if err != nil {
				t.Fatal(err)
			}
			keys := gate(t, withTokens(func(j *JWTOptions) {
				j.JWKSFile, j.Algorithms = i.file("set.json", b), []string{"ES256", "ES384"}
			}))
			token := i.sign("ES256", tt.id, private[tt.signed], claims(nil))
			_, err = keys.Identify(t.Context(), bearer(token))
			if errors.Is(err, ErrBadKey) != tt.wantError || err != nil && !tt.wantError {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Only the key that a token names counts, whatever nameless keys the set contains.
func TestAKeyWithTheNameOfTheTokenStandsAlone(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	list, private := curveSet(t, elliptic.P256(), "a", triedKeys+3)
	for k := range triedKeys + 2 {
		key := list[k].(jose.JSONWebKey) //nolint:forcetypeassert // made above
		key.KeyID = ""
		list[k] = key
	}
	b, err := json.Marshal(map[string]any{"keys": list})
	if err != nil {
		t.Fatal(err)
	}
	keys := gate(t, withTokens(func(j *JWTOptions) { j.JWKSFile = i.file("set.json", b) }))
	last := len(private) - 1
	if _, err := keys.Identify(t.Context(), bearer(i.sign("ES256", fmt.Sprintf("a-%d", last),
		private[last], claims(nil)))); err != nil {
		t.Errorf("the key that is named: %v", err)
	}
	if _, err := keys.Identify(t.Context(), bearer(i.sign("ES256", "", private[0],
		claims(nil)))); !errors.Is(err, ErrBadKey) {
		t.Errorf("none is named, and %d could be it: %v", len(private), err)
	}
}
