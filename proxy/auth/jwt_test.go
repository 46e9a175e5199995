package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"signalbox/internal/option"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer signs tokens.
type issuer struct {
	tb  testing.TB
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	ed  ed25519.PrivateKey
}

func newIssuer(tb testing.TB) *issuer {
	tb.Helper()
	i := &issuer{tb: tb}
	var err error
	if i.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		tb.Fatal(err)
	}
	if i.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		tb.Fatal(err)
	}
	if _, i.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		tb.Fatal(err)
	}
	return i
}

// claims returns valid claims with changes; nil removes a claim.
func claims(change map[string]any) map[string]any {
	now := time.Now().Unix()
	out := map[string]any{"iss": "https://issuer.test", "aud": "signalbox", "sub": "ada", "exp": now + 600, "iat": now, "org": "acme", "roles": []string{"staff", "analyst"}}
	for k, v := range change {
		if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	return out
}

func (i *issuer) sign(alg, id string, key, payload any) string {
	i.tb.Helper()
	b, ok := payload.([]byte)
	if !ok {
		b, _ = json.Marshal(payload)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		i.tb.Fatal(err)
	}
	object, err := s.Sign(b)
	if err != nil {
		i.tb.Fatal(err)
	}
	token, err := object.CompactSerialize()
	if err != nil {
		i.tb.Fatal(err)
	}
	return token
}

// set returns the published key set, including keys that must never verify anything.
func (i *issuer) set(ids ...string) []byte {
	i.tb.Helper()
	keys := []any{
		jose.JSONWebKey{Key: []byte("a secret that everybody can read, long enough for HS256"), KeyID: "oct"},
		map[string]string{"kty": "FUTURE", "kid": "unknown kind"},
	}
	for _, id := range ids {
		var public crypto.PublicKey = &i.rsa.PublicKey
		switch id[:2] {
		case "ec":
			public = &i.ec.PublicKey
		case "ed":
			public = i.ed.Public()
		}
		keys = append(keys, jose.JSONWebKey{Key: public, KeyID: id, Use: "sig"})
	}
	b, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		i.tb.Fatal(err)
	}
	return b
}

func (i *issuer) file(name string, b []byte) string {
	i.tb.Helper()
	file := filepath.Join(i.tb.TempDir(), name)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		i.tb.Fatal(err)
	}
	return file
}

func withTokens(change func(*JWTOptions)) Options {
	o := DefaultOptions()
	o.Mode = ModeJWT
	o.JWT.Issuer, o.JWT.Audience = "https://issuer.test", []string{"signalbox"}
	o.JWT.TenantClaim, o.JWT.RoleClaim = "org", "roles"
	change(&o.JWT)
	return o
}

func gate(tb testing.TB, o Options) *Keys {
	tb.Helper()
	if err := o.Validate(); err != nil {
		tb.Fatal(err)
	}
	k, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func unsigned(header string, payload any) string {
	b, _ := json.Marshal(payload)
	e := base64.RawURLEncoding
	return e.EncodeToString([]byte(header)) + "." + e.EncodeToString(b) + "."
}

func TestTokensAreAcceptedOrRefused(t *testing.T) {
	t.Parallel()
	i, stranger := newIssuer(t), newIssuer(t)
	public, _ := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	o := withTokens(func(j *JWTOptions) { j.JWKSFile = i.file("jwks.json", i.set("rsa-1", "ec-1", "ed-1")) })
	o.Roles = []RoleOptions{{Name: "analyst"}}
	o.Keys = []KeyOptions{{Name: "batch", SHA256: hashOf("k1"), Tenant: "ops"}}
	keys := gate(t, o)
	good := claims(nil)
	ada := Principal{Name: "ada", Tenant: "acme", Role: "analyst"}
	now := time.Now().Unix()
	tests := []struct {
		name, token string
		want        Principal
		refused     bool
	}{
		{"RS256", i.sign("RS256", "rsa-1", i.rsa, good), ada, false},
		{"ES256", i.sign("ES256", "ec-1", i.ec, good), ada, false},
		{"EdDSA", i.sign("EdDSA", "ed-1", i.ed, good), ada, false},
		{"without the name of its key", i.sign("RS256", "", i.rsa, good), ada, false},
		{"a key beside tokens", "k1", Principal{Name: "batch", Tenant: "ops"}, false},
		{"several audiences", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"aud": []string{"other", "signalbox"}})), ada, false},
		{"expired within the leeway", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"exp": now - 10})), ada, false},
		{"a role as a word", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"roles": "staff"})), Principal{Name: "ada", Tenant: "acme", Role: "staff"}, false},
		{"no role", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"roles": nil})), Principal{Name: "ada", Tenant: "acme"}, false},

		{"no algorithm", unsigned(`{"alg":"none"}`, good), Principal{}, true},
		{"no algorithm, oddly spelled", unsigned(`{"alg":"nOnE","typ":"JWT"}`, good), Principal{}, true},
		{"the public key as a secret", i.sign("HS256", "rsa-1", asPEM, good), Principal{}, true},
		{"the published secret", i.sign("HS256", "oct", []byte("a secret that everybody can read, long enough for HS256"), good), Principal{}, true},
		{"an algorithm that is not listed", i.sign("RS512", "rsa-1", i.rsa, good), Principal{}, true},
		{"somebody else's key", i.sign("RS256", "rsa-1", stranger.rsa, good), Principal{}, true},
		{"a key of another kind under that name", i.sign("ES256", "rsa-1", i.ec, good), Principal{}, true},
		{"an unknown key", i.sign("RS256", "rsa-2", i.rsa, good), Principal{}, true},
		{"its own key in its head", embedded(i, stranger.rsa, good), Principal{}, true},
		{"expired", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"exp": now - 60})), Principal{}, true},
		{"without an end", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"exp": nil})), Principal{}, true},
		{"not valid yet", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"nbf": now + 60})), Principal{}, true},
		{"issued in the future", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"iat": now + 600})), Principal{}, true},
		{"another issuer", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"iss": "https://issuer.test.evil"})), Principal{}, true},
		{"another audience", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"aud": "other"})), Principal{}, true},
		{"no audience", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"aud": nil})), Principal{}, true},
		{"no tenant", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"org": nil})), Principal{}, true},
		{"a tenant that is no word", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"org": 7})), Principal{}, true},
		{"a tenant with a line break", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"org": "a\nb"})), Principal{}, true},
		{"no caller", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"sub": ""})), Principal{}, true},
		{"a caller that is a key", i.sign("RS256", "rsa-1", i.rsa, claims(map[string]any{"sub": "batch"})), Principal{}, true},
		{"a claim twice", i.sign("RS256", "rsa-1", i.rsa, []byte(strings.TrimSuffix(mustJSON(good), "}")+`,"org":"other"}`)), Principal{}, true},
		{"a claim that differs by case", i.sign("RS256", "rsa-1", i.rsa, []byte(strings.TrimSuffix(mustJSON(claims(map[string]any{"exp": now - 60})), "}")+`,"EXP":9999999999}`)), Principal{}, true},
		{"cut short", i.sign("RS256", "rsa-1", i.rsa, good)[:100], Principal{}, true},
		{"three dots", "...", Principal{}, true},
		{"too long", strings.Repeat("a", maxToken) + ".b.c", Principal{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := keys.Identify(t.Context(), bearer(tt.token))
			if refused := errors.Is(err, ErrBadKey); refused != tt.refused || err != nil && !refused {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("caller (-want +got):\n%s", diff)
			}
			if err != nil && len(tt.token) > 10 && strings.Contains(err.Error(), tt.token[:10]) {
				t.Errorf("the error tells of the token: %v", err)
			}
		})
	}
}

func mustJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// embedded returns a token that contains the key to verify it with (RFC 7515, section 4.1.3).
func embedded(i *issuer, key *rsa.PrivateKey, payload any) string {
	i.tb.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		i.tb.Fatal(err)
	}
	b, _ := json.Marshal(payload)
	object, err := s.Sign(b)
	if err != nil {
		i.tb.Fatal(err)
	}
	token, _ := object.CompactSerialize()
	return token
}

func TestTokensMayBeSignedWithASecretOrAStaticKey(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	const secret = "0123456789abcdef0123456789abcdef"
	hs := gate(t, withTokens(func(j *JWTOptions) { j.Secret = secret }))
	if _, err := hs.Identify(t.Context(), bearer(i.sign("HS256", "", []byte(secret), claims(nil)))); err != nil {
		t.Errorf("signed with the secret: %v", err)
	}
	if _, err := hs.Identify(t.Context(), bearer(i.sign("RS256", "", i.rsa, claims(nil)))); !errors.Is(err, ErrBadKey) {
		t.Errorf("signed with a key: %v", err)
	}
	der, _ := x509.MarshalPKIXPublicKey(&i.ec.PublicKey)
	file := i.file("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	static := gate(t, withTokens(func(j *JWTOptions) { j.PublicKeyFile, j.RoleClaim = file, "realm.groups" }))
	got, err := static.Identify(t.Context(), bearer(i.sign("ES256", "any", i.ec, claims(map[string]any{"realm": map[string]any{"groups": []any{7, "dev"}}}))))
	if err != nil || got.Role != "dev" {
		t.Errorf("caller %+v, %v", got, err)
	}
}

// Keys rotate: a token signed with a new key is verified at the first request, without a failure in
// between. While the issuer is down, known keys stay valid.
func TestKeySetsAreReadAgainWhenAKeyIsNew(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	var ids atomic.Pointer[[]string]
	ids.Store(&[]string{"rsa-1"})
	var reads atomic.Int64
	var down atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads.Add(1)
		if down.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(i.set(*ids.Load()...))
	}))
	t.Cleanup(s.Close)
	keys := gate(t, withTokens(func(j *JWTOptions) { j.JWKSURL = s.URL }))
	if what, blind := keys.Lacking(); !blind || what == "" {
		t.Errorf("before the first reading: %q, %v", what, blind)
	}
	if _, err := keys.Identify(expired(t), bearer(i.sign("RS256", "rsa-1", i.rsa, claims(nil)))); !errors.Is(err, ErrNoKeySet) {
		t.Errorf("before the first reading: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); keys.Watch(ctx, nil) }()
	t.Cleanup(func() { stop(); <-done })

	if _, err := keys.Identify(t.Context(), bearer(i.sign("RS256", "rsa-1", i.rsa, claims(nil)))); err != nil {
		t.Fatalf("the first token: %v", err)
	}
	if what, blind := keys.Lacking(); blind || what != "" {
		t.Errorf("after the first reading: %q, %v", what, blind)
	}
	keys.tokens.set.pause(0)
	ids.Store(&[]string{"rsa-1", "ec-2"})
	if _, err := keys.Identify(t.Context(), bearer(i.sign("ES256", "ec-2", i.ec, claims(nil)))); err != nil {
		t.Errorf("a token with a new key: %v", err)
	}
	before := reads.Load()
	for range 50 {
		if _, err := keys.Identify(t.Context(), bearer(i.sign("ES256", "made-up", i.ec, claims(nil)))); !errors.Is(err, ErrBadKey) {
			t.Fatalf("a made-up key: %v", err)
		}
	}
	if n := reads.Load() - before; n > 0 {
		t.Errorf("50 made-up keys led to %d readings within %s", n, minPause)
	}
	down.Store(true)
	keys.tokens.set.pause(0)
	if _, err := keys.Identify(t.Context(), bearer(i.sign("ES256", "made-up", i.ec, claims(nil)))); !errors.Is(err, ErrBadKey) {
		t.Errorf("a made-up key while the issuer is down: %v", err)
	}
	if _, err := keys.Identify(t.Context(), bearer(i.sign("ES256", "ec-2", i.ec, claims(nil)))); err != nil {
		t.Errorf("a known key while the issuer is down: %v", err)
	}
	if what, blind := keys.Lacking(); blind || !strings.Contains(what, "the previous one stays in use") {
		t.Errorf("while the issuer is down: %q, %v", what, blind)
	}
	next := gate(t, withTokens(func(j *JWTOptions) { j.JWKSURL = s.URL }))
	next.Adopt(keys)
	if _, err := next.Identify(t.Context(), bearer(i.sign("ES256", "ec-2", i.ec, claims(nil)))); err != nil {
		t.Errorf("after a reload: %v", err)
	}
}

// A reloaded file replaces all earlier keys: a key that was removed from it no longer verifies
// anything.
func TestAKeyThatWasTakenOutOfAFileVerifiesNothing(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	public := func(key any) []byte {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	for name, x := range map[string]struct {
		before, after []byte
		use           func(j *JWTOptions, file string)
	}{
		"jwks_file":       {i.set("rsa-1"), i.set("ec-2"), func(j *JWTOptions, file string) { j.JWKSFile = file }},
		"public_key_file": {public(&i.rsa.PublicKey), public(&i.ec.PublicKey), func(j *JWTOptions, file string) { j.PublicKeyFile = file }},
	} {
		file := i.file("keys", x.before)
		o := withTokens(func(j *JWTOptions) { x.use(j, file) })
		old := gate(t, o)
		if err := os.WriteFile(file, x.after, 0o600); err != nil {
			t.Fatal(err)
		}
		next := gate(t, o)
		next.Adopt(old)
		if _, err := next.Identify(t.Context(), bearer(i.sign("RS256", "rsa-1", i.rsa, claims(nil)))); !errors.Is(err, ErrBadKey) {
			t.Errorf("%s: the key that was taken out: %v", name, err)
		}
		if _, err := next.Identify(t.Context(), bearer(i.sign("ES256", "ec-2", i.ec, claims(nil)))); err != nil {
			t.Errorf("%s: the key that was put in: %v", name, err)
		}
	}
}

// pause sets when a token with an unknown key may trigger another reading.
func (s *keySet) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = time.Now().Add(d)
}

func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestOptionsOfTokensAreChecked(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	file := i.file("jwks.json", i.set("rsa-1"))
	tests := []struct {
		name   string
		change func(*JWTOptions)
		want   string
	}{
		{"good", func(j *JWTOptions) { j.JWKSFile = file }, ""},
		{"no source", func(*JWTOptions) {}, "jwt: mode jwt requires exactly one of"},
		{"two sources", func(j *JWTOptions) { j.JWKSFile, j.JWKSURL = file, "https://h/jwks" }, "jwt: mode jwt requires exactly one of"},
		{"a short secret", func(j *JWTOptions) { j.Secret = "short" }, "jwt.secret: the secret is shorter than 32 bytes"},
		{"plain http", func(j *JWTOptions) { j.JWKSURL = "http://issuer.test/jwks" }, "jwt.jwks_url: an https URL is required"},
		{"a user in the URL", func(j *JWTOptions) { j.JWKSURL = "https://me:secret@issuer.test/jwks" }, "jwt.jwks_url: an https URL is required"},
		{"none", func(j *JWTOptions) { j.JWKSFile, j.Algorithms = file, []string{"none"} }, `jwt.algorithms[0]: "none" is not one of RS256`},
		{"HS with a key set", func(j *JWTOptions) { j.JWKSFile, j.Algorithms = file, []string{"RS256", "HS256"} }, `jwt.algorithms[1]: "HS256" is not one of RS256`},
		{"RS with a secret", func(j *JWTOptions) { j.Secret, j.Algorithms = strings.Repeat("x", 32), []string{"RS256"} }, `jwt.algorithms[0]: "RS256" is not one of HS256`},
		{"no issuer", func(j *JWTOptions) { j.JWKSFile, j.Issuer = file, "" }, "jwt.issuer: required"},
		{"no audience", func(j *JWTOptions) { j.JWKSFile, j.Audience = file, nil }, "jwt.audience: required"},
		{"a long leeway", func(j *JWTOptions) { j.JWKSFile, j.Leeway = file, option.Duration(time.Hour) }, "jwt.leeway: 1h0m0s is not between 0s and 5m0s"},
		{"a missing file", func(j *JWTOptions) { j.JWKSFile = "/nonexistent/jwks.json" }, "jwt: jwks_file: "},
		{"a set of secrets", func(j *JWTOptions) { j.JWKSFile = i.file("oct.json", i.set()) }, "contains no usable public key"},
		{"a private key", func(j *JWTOptions) {
			j.PublicKeyFile = i.file("private.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
		}, "contains a private key, expected a PUBLIC KEY"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := withTokens(tt.change).Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("problems %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWhatACallerMayUseIsCutByItsRoleAndItsTenant(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Mode = ModeKeys
	o.Keys = []KeyOptions{
		{Name: "free", SHA256: hashOf("k1")},
		{Name: "own", SHA256: hashOf("k2"), Models: []string{"c", "b"}, Rate: RateOptions{RPM: 5}},
		{Name: "role", SHA256: hashOf("k3"), Role: "guest", Models: []string{"a", "c"}},
		{Name: "tenant", SHA256: hashOf("k4"), Role: "guest", Tenant: "small"},
		{Name: "nothing", SHA256: hashOf("k5"), Tenant: "small", Models: []string{"a"}},
	}
	o.Roles = []RoleOptions{{Name: "guest", Models: []string{"a", "b"}, Rate: RateOptions{RPM: 60, TPM: 1000}}}
	o.Tenants = []TenantOptions{{Name: "small", Models: []string{"b"}, Rate: RateOptions{Concurrency: 2}}}
	keys := gate(t, o)
	tests := []struct {
		key    string
		models []string
		limits []Limit
	}{
		{"k1", nil, nil},
		{"k2", []string{"b", "c"}, []Limit{{"key:default\x00own", RateOptions{RPM: 5}}}},
		{"k3", []string{"a"}, []Limit{{"key:default\x00role", RateOptions{RPM: 60, TPM: 1000}}}},
		{"k4", []string{"b"}, []Limit{{"key:small\x00tenant", RateOptions{RPM: 60, TPM: 1000}}, {"tenant:small", RateOptions{Concurrency: 2}}}},
		{"k5", []string{}, []Limit{{"tenant:small", RateOptions{Concurrency: 2}}}},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			t.Parallel()
			got, err := keys.Identify(t.Context(), bearer(tt.key))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.models, got.Models); diff != "" {
				t.Errorf("models (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.limits, got.Limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			if got.May("nothing of the kind") != (tt.models == nil) {
				t.Error("the list is not kept to")
			}
		})
	}
}

// onlyVirtual has one virtual key that nobody holds or, with err, no known keys.
type onlyVirtual struct {
	name string
	err  error
}

func (onlyVirtual) Find(string, *[sha256.Size]byte) (*KeyOptions, error) { return nil, nil } //nolint:nilnil // none

func (v onlyVirtual) Taken(name string) (bool, error) { return name == v.name, v.err }

func (onlyVirtual) Lacking() (string, bool) { return "", false }

// Otherwise the token would share what belongs to the key in its tenant, such as private contexts.
func TestATokenIsNobodyWhomAVirtualKeyIsCalledAs(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	for _, tt := range []struct {
		virtual onlyVirtual
		want    error
	}{
		{onlyVirtual{name: "ada"}, ErrBadKey},
		{onlyVirtual{name: "bob"}, nil},
		{onlyVirtual{err: errors.New("not read yet")}, ErrNoKeySet},
	} {
		keys := gate(t, withTokens(func(j *JWTOptions) { j.JWKSFile = i.file("set.json", i.set("rsa-1")) }))
		keys.Accept(tt.virtual)
		who, err := keys.Identify(t.Context(), bearer(i.sign("RS256", "rsa-1", i.rsa, claims(nil))))
		if !errors.Is(err, tt.want) || err == nil && who.Name != "ada" {
			t.Errorf("%+v: %+v, %v, want %v", tt.virtual, who, err, tt.want)
		}
	}
}
