package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"signalbox/internal/option"
)

// JWTOptions configures which tokens are accepted and how their callers are identified. Exactly one
// of jwks_url, jwks_file, public_key_file and secret must be set; it supplies the keys that verify
// signatures.
type JWTOptions struct {
	// JWKSURL is the https URL at which the issuer publishes its keys. The keys are fetched every
	// refresh, and when a token names an unknown key. If a fetch fails, the known keys stay in use.
	JWKSURL string `yaml:"jwks_url"`
	// JWKSFile is a file with a key set in the format of jwks_url (a JSON Web Key Set).
	JWKSFile string `yaml:"jwks_file" path:"true"`
	// PublicKeyFile is a file with one public key, in PEM.
	PublicKeyFile string `yaml:"public_key_file" path:"true"`
	// Secret is the shared secret for tokens signed with an HS algorithm, at least 32 bytes long. A
	// reference, ${NAME} or file:PATH.
	Secret string `yaml:"secret" secret:"true"`
	// Algorithms lists the accepted signature algorithms: RS256, RS384, RS512, PS256, PS384, PS512,
	// ES256, ES384, ES512 and EdDSA. With secret, only HS256, HS384 and HS512 are allowed. Default
	// [RS256, ES256, EdDSA]; with secret [HS256].
	Algorithms []string `yaml:"algorithms" words:"RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA HS256 HS384 HS512"`
	// Issuer is the required value of the claim iss. Required.
	Issuer string `yaml:"issuer"`
	// Audience lists the names of this service. The claim aud must contain one of them. Required.
	Audience []string `yaml:"audience"`
	// Leeway is the clock difference tolerated when exp, nbf and iat are checked. At most 5m.
	// Default 30s.
	Leeway option.Duration `yaml:"leeway"`
	// NameClaim is the claim with the name of the caller. The name is used for logs, limits and
	// data that belongs to the caller alone. Dots address members of nested objects. Default sub.
	NameClaim string `yaml:"name_claim"`
	// TenantClaim is the claim with the tenant. A token without it is rejected. Default: none;
	// every caller belongs to default_tenant.
	TenantClaim string `yaml:"tenant_claim"`
	// RoleClaim is the claim with the role. If it holds a list, the role is the first entry of
	// roles that is in the list, or else the first of the list. A token without the claim gets
	// default_role. Default: none.
	RoleClaim string `yaml:"role_claim"`
	// Refresh is the interval at which jwks_url is fetched. At least 10s. Default 10m.
	Refresh option.Duration `yaml:"refresh"`
}

func defaultJWT() JWTOptions {
	return JWTOptions{
		Leeway: option.Duration(30 * time.Second), NameClaim: "sub", Refresh: option.Duration(10 * time.Minute),
	}
}

// Files returns the files that are set.
func (o *JWTOptions) Files() []string {
	return slices.DeleteFunc([]string{o.JWKSFile, o.PublicKeyFile}, func(f string) bool { return f == "" })
}

// The accepted signature algorithms. They do not include "none".
func symmetric() []string { return []string{"HS256", "HS384", "HS512"} }

func asymmetric() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

const (
	minSecret  = 32 // bytes, the size of HS256's hash (RFC 7518, section 3.2)
	maxLeeway  = 5 * time.Minute
	minRefresh = 10 * time.Second
)

func (o *JWTOptions) check(p *option.Problems, at string) {
	o.checkSource(p, at)
	known := asymmetric()
	if o.Secret != "" {
		known = symmetric()
	}
	for i, a := range o.Algorithms {
		if !slices.Contains(known, a) {
			p.Addf(fmt.Sprintf("%s.algorithms[%d]", at, i), "%q is not one of %s", a, strings.Join(known, ", "))
		}
	}
	if o.Issuer == "" {
		p.Addf(at+".issuer", "required: without it, tokens of any issuer would be accepted")
	}
	if len(o.Audience) == 0 || slices.Contains(o.Audience, "") {
		p.Addf(at+".audience", "required: without it, tokens for other services would be accepted")
	}
	option.Between(p, at+".leeway", time.Duration(o.Leeway), 0, maxLeeway)
	if o.NameClaim == "" {
		p.Addf(at+".name_claim", "the name of a claim is required")
	}
	option.AtLeast(p, at+".refresh", time.Duration(o.Refresh), minRefresh)
}

func (o *JWTOptions) checkSource(p *option.Problems, at string) {
	n := 0
	for _, s := range []string{o.JWKSURL, o.JWKSFile, o.PublicKeyFile, o.Secret} {
		if s != "" {
			n++
		}
	}
	if n != 1 {
		p.Addf(at, "mode jwt requires exactly one of jwks_url, jwks_file, public_key_file and secret")
		return
	}
	if o.Secret != "" && len(o.Secret) < minSecret {
		p.Addf(at+".secret", "the secret is shorter than %d bytes", minSecret)
	}
	if o.JWKSURL != "" {
		u, err := url.Parse(o.JWKSURL)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !option.Loopback(u.Hostname())) {
			p.Addf(at+".jwks_url", "an https URL is required; http is for loopback only")
		} else if err := option.Port(u); err != nil {
			p.Addf(at+".jwks_url", "%v", err)
		}
		return
	}
	if _, err := newKeySet(o); err != nil {
		p.Addf(at, "%v", err)
	}
}

// tokens verifies JSON Web Tokens (RFC 7519). It is immutable except for its key set.
type tokens struct {
	o          JWTOptions
	algorithms []jose.SignatureAlgorithm
	roles      []string // roles with an entry in the configuration
	tenant     string   // used when no claim names the tenant
	role       string   // used for tokens without a role
	set        *keySet
	now        func() time.Time
}

func newTokens(o *Options) (*tokens, error) {
	set, err := newKeySet(&o.JWT)
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	t := &tokens{o: o.JWT, tenant: o.DefaultTenant, role: o.DefaultRole, set: set, now: time.Now}
	names := o.JWT.Algorithms
	switch {
	case len(names) > 0:
	case o.JWT.Secret != "":
		names = []string{"HS256"}
	default:
		names = []string{"RS256", "ES256", "EdDSA"}
	}
	for _, a := range names {
		t.algorithms = append(t.algorithms, jose.SignatureAlgorithm(a))
	}
	for _, r := range o.Roles {
		t.roles = append(t.roles, r.Name)
	}
	return t, nil
}

// maxToken limits a token, in bytes. The request head has its own limit.
const maxToken = 16 << 10

// bad returns an ErrBadKey with a reason for the log, which must contain nothing of the token.
func bad(reason string) error { return fmt.Errorf("%w: %s", ErrBadKey, reason) }

// caller verifies a token and returns its Principal.
func (t *tokens) caller(ctx context.Context, token string) (Principal, error) {
	if strings.Count(token, ".") != 2 || len(token) > maxToken {
		return Principal{}, ErrBadKey
	}
	signed, err := jwt.ParseSigned(token, t.algorithms)
	if err != nil || len(signed.Headers) != 1 {
		return Principal{}, bad("the token is malformed or signed with another algorithm")
	}
	keys, err := t.set.find(ctx, signed.Headers[0].KeyID, signed.Headers[0].Algorithm)
	if err != nil {
		return Principal{}, err
	}
	var registered jwt.Claims
	var claims map[string]any
	verified := false
	for _, k := range keys {
		if signed.Claims(k, &registered, &claims) == nil {
			verified = true
			break
		}
	}
	if !verified {
		return Principal{}, bad("no known key verifies the token")
	}
	if registered.Expiry == nil {
		return Principal{}, bad("the token does not expire")
	}
	err = registered.ValidateWithLeeway(jwt.Expected{Issuer: t.o.Issuer, AnyAudience: t.o.Audience, Time: t.now()}, time.Duration(t.o.Leeway))
	if err != nil {
		return Principal{}, bad(reasonOf(err))
	}
	return t.read(claims)
}

// reasonOf names the claim that failed.
func reasonOf(err error) string {
	for _, x := range []struct {
		err error
		why string
	}{
		{jwt.ErrExpired, "the token has expired"},
		{jwt.ErrNotValidYet, "the token is not valid yet"},
		{jwt.ErrIssuedInTheFuture, "the token was issued in the future"},
		{jwt.ErrInvalidIssuer, "the token has a different issuer"},
		{jwt.ErrInvalidAudience, "the token has a different audience"},
	} {
		if errors.Is(err, x.err) {
			return x.why
		}
	}
	return "a required claim of the token does not match"
}

// read converts verified claims to a Principal.
func (t *tokens) read(claims map[string]any) (Principal, error) {
	who := Principal{Tenant: t.tenant, Role: t.role}
	var ok bool
	if who.Name, ok = word(claimAt(claims, t.o.NameClaim)); !ok {
		return Principal{}, bad("the token has no claim with the name of the caller")
	}
	if t.o.TenantClaim != "" {
		if who.Tenant, ok = word(claimAt(claims, t.o.TenantClaim)); !ok {
			return Principal{}, bad("the token has no tenant claim")
		}
	}
	if t.o.RoleClaim == "" {
		return who, nil
	}
	switch v := claimAt(claims, t.o.RoleClaim).(type) {
	case nil:
	case []any:
		if r, ok := t.pick(v); ok {
			who.Role = r
		}
	default:
		if who.Role, ok = word(v); !ok {
			return Principal{}, bad("the role in the token is not a valid name")
		}
	}
	return who, nil
}

// pick selects one of several roles: the first one with an entry, in the order of the entries, or
// else the first valid name.
func (t *tokens) pick(list []any) (string, bool) {
	var words []string
	for _, v := range list {
		if w, ok := word(v); ok {
			words = append(words, w)
		}
	}
	for _, r := range t.roles {
		if slices.Contains(words, r) {
			return r, true
		}
	}
	if len(words) == 0 {
		return "", false
	}
	return words[0], true
}

// claimAt returns a claim by name, or by a path with dots into nested objects.
func claimAt(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	inner, ok := claims[first].(map[string]any)
	if !ok {
		return nil
	}
	return claimAt(inner, rest)
}

// maxWord limits names, tenants and roles, in bytes, since they become parts of keys and log lines.
const maxWord = 200

// word returns v if it is a string that is safe for logs and keys.
func word(v any) (string, bool) {
	s, ok := v.(string)
	if !ok || s == "" || len(s) > maxWord || !utf8.ValidString(s) {
		return "", false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return "", false
		}
	}
	return s, true
}
