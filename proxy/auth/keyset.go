package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// keySet holds the keys that verify tokens. It is safe for concurrent use. Keys from a URL are
// loaded by watch; all others are loaded at the start and do not change.
type keySet struct {
	url    string       // source; empty for keys that never change
	client *http.Client // nil if there is no URL

	kick chan struct{} // capacity 1: several requests to read the set become one

	mu   sync.Mutex // guards the fields below
	keys []jose.JSONWebKey
	next time.Time     // until then, unknown keys trigger no reading
	err  error         // of the last reading
	told chan struct{} // closed at the end of the next reading
}

// patience is how long a request waits for the key set to be read. minPause is the minimum time
// between readings caused by unknown keys.
const (
	patience = 2 * time.Second
	minPause = 5 * time.Second
)

// newKeySet loads files and secrets. A set with a URL is empty until watch has read it.
func newKeySet(o *JWTOptions) (*keySet, error) {
	s := &keySet{url: o.JWKSURL, kick: make(chan struct{}, 1), told: make(chan struct{})}
	switch {
	case o.Secret != "":
		s.keys = []jose.JSONWebKey{{Key: []byte(o.Secret)}}
		return s, nil
	case o.JWKSURL != "":
		s.client = &http.Client{
			Timeout:       10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		}
		return s, nil
	case o.JWKSFile != "":
		b, err := os.ReadFile(o.JWKSFile)
		if err != nil {
			return nil, fmt.Errorf("jwks_file: %w", err)
		}
		if s.keys, err = parseSet(b); err != nil {
			return nil, fmt.Errorf("jwks_file: %w", err)
		}
		return s, nil
	}
	b, err := os.ReadFile(o.PublicKeyFile)
	if err != nil {
		return nil, fmt.Errorf("public_key_file: %w", err)
	}
	k, err := parsePublic(b)
	if err != nil {
		return nil, fmt.Errorf("public_key_file: %w", err)
	}
	s.keys = []jose.JSONWebKey{k}
	return s, nil
}

// parsePublic parses a public key in PEM, either alone or in a certificate.
func parsePublic(b []byte) (jose.JSONWebKey, error) {
	block, _ := pem.Decode(b)
	if block == nil {
		return jose.JSONWebKey{}, errors.New("contains no PEM block")
	}
	var k jose.JSONWebKey
	switch block.Type {
	case "PUBLIC KEY":
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return k, fmt.Errorf("read public key: %w", err)
		}
		k.Key = public
	case "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return k, fmt.Errorf("read certificate: %w", err)
		}
		k.Key = cert.PublicKey
	default:
		return k, fmt.Errorf("contains a %s, expected a PUBLIC KEY or a CERTIFICATE", strings.ToLower(block.Type))
	}
	if !serves(&k) {
		return k, errors.New("unsupported key type, or the key is too short")
	}
	return k, nil
}

// maxKeys is the maximum number of keys in a set.
const maxKeys = 128

// parseSet parses a JWK Set (RFC 7517, section 5). Keys that cannot verify tokens are ignored, as
// the RFC requires for unknown kinds. A set without a usable key is an error.
func parseSet(b []byte) ([]jose.JSONWebKey, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, errors.New("not a JWK set")
	}
	if len(raw.Keys) > maxKeys {
		return nil, fmt.Errorf("contains %d keys, at most %d are allowed", len(raw.Keys), maxKeys)
	}
	var out []jose.JSONWebKey
	for _, r := range raw.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(r) == nil && serves(&k) {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("contains no usable public key")
	}
	return out, nil
}

// minRSA is the minimum length of an RSA key, in bits (RFC 7518, section 3.3).
const minRSA = 2048

// serves reports whether k is a public key for signatures. A symmetric key in a published set would
// let anyone sign tokens.
func serves(k *jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// triedKeys is the maximum number of keys tried for one token. During a key rotation an issuer has
// two keys of an algorithm; with several, a token must name its key (OpenID Connect Core 1.0,
// section 10.1). The limit matters because unauthenticated senders make the proxy verify that many
// signatures.
const triedKeys = 4

// find returns the keys that may verify a token with this id and algorithm, at most triedKeys. If
// the token names an unknown key, find has the set read, unless it was just read, and waits for
// that.
func (s *keySet) find(ctx context.Context, id, algorithm string) ([]any, error) {
	found, told := s.look(id, algorithm)
	if told != nil {
		select {
		case <-told:
			found, _ = s.look(id, algorithm)
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
	switch {
	case len(found) > triedKeys:
		return nil, bad("the token has no kid, and too many keys could match")
	case len(found) > 0:
		return found, nil
	}
	if _, blind := s.lacking(); blind {
		return nil, ErrNoKeySet
	}
	return nil, bad("the kid of the token is unknown")
}

// look returns the keys for an algorithm. For a token that names a key these are the keys with that
// id, or else the keys without an id; for a token without an id, all of them. If there are none and
// a reading may help, told is closed at the end of that reading.
func (s *keySet) look(id, algorithm string) (found []any, told <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var nameless []any // keys
	for i := range s.keys {
		k := &s.keys[i]
		switch {
		case k.Algorithm != "" && k.Algorithm != algorithm || !fits(k, algorithm):
		case id == "" || k.KeyID == id:
			found = append(found, k.Key)
		case k.KeyID == "":
			nameless = append(nameless, k.Key)
		}
	}
	if len(found) == 0 {
		found = nameless
	}
	if len(found) > 0 || s.client == nil || time.Now().Before(s.next) {
		return found, nil
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
	return nil, s.told
}

// fits reports whether the type of a key matches an algorithm. The library checks this as well;
// here it ensures that a public key is never used as a secret.
func fits(k *jose.JSONWebKey, algorithm string) bool {
	switch key := k.Key.(type) {
	case []byte:
		return strings.HasPrefix(algorithm, "HS")
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		return algorithm == curveAlgorithm(key.Curve)
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

// curveAlgorithm returns the algorithm of a curve (RFC 7518, section 3.4); empty for an unsupported
// curve.
func curveAlgorithm(c elliptic.Curve) string {
	switch c {
	case elliptic.P256():
		return "ES256"
	case elliptic.P384():
		return "ES384"
	case elliptic.P521():
		return "ES512"
	}
	return ""
}

// retryAfterFailure is the time until another attempt after a failed reading.
const retryAfterFailure = 5 * time.Second

// watch reads the set from its URL immediately, at every refresh interval, and when a token
// requires it.
func (s *keySet) watch(ctx context.Context, idle <-chan struct{}, refresh time.Duration) {
	if s.client == nil {
		return
	}
	for {
		wait := refresh
		if s.reload(ctx) != nil {
			wait = min(wait, retryAfterFailure)
		}
		select {
		case <-ctx.Done():
			return
		case <-idle:
			return
		case <-time.After(wait):
		case <-s.kick:
		}
	}
}

// reload reads the set and wakes those who wait. On failure the known keys stay.
func (s *keySet) reload(ctx context.Context) error {
	keys, err := s.fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.next = err, time.Now().Add(minPause)
	if err == nil {
		s.keys = keys
	}
	select {
	case <-s.kick: // requested during this reading
	default:
	}
	close(s.told)
	s.told = make(chan struct{})
	return err
}

// maxSet limits a key set, in bytes.
const maxSet = 1 << 20

func (s *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read key set: status %d", res.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxSet))
	if err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	return parseSet(b)
}

// lacking describes what is wrong with the set.
func (s *keySet) lacking() (what string, blind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.keys) == 0:
		return "the key set of auth.jwt is not loaded yet: no token can be verified", true
	case s.err != nil:
		return "the key set of auth.jwt cannot be read: the previous one stays in use", false
	}
	return "", false
}
