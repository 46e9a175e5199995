package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func TestCallersAreKnownByTheirKeys(t *testing.T) {
	t.Parallel()
	o := Options{
		Mode: ModeKeys, DefaultTenant: "default", DefaultRole: "guest", AdminRoles: []string{"admin"},
		Keys: []KeyOptions{
			{Name: "plain", SHA256: hashOf("k1")},
			{Name: "unset", SHA256: hashOf("")},
			{Name: "boss", SHA256: hashOf("k2"), Tenant: "t", Role: "admin"},
		},
	}
	tests := []struct {
		name, header string
		want         Principal
		admin        bool
		err          error
	}{
		{"a key takes the defaults", "Bearer k1", Principal{Name: "plain", Tenant: "default", Role: "guest"}, false, nil},
		{"a key has its own tenant and role", "bearer  k2 ", Principal{Name: "boss", Tenant: "t", Role: "admin"}, true, nil},
		{"an unknown key", "Bearer k3", Principal{}, false, ErrBadKey},
		{"another scheme", "Basic k1", Principal{}, false, ErrBadKey},
		{"no key", "", Principal{}, false, ErrNoKey},
		{"an empty key", "Bearer ", Principal{}, false, ErrBadKey},
	}
	keys, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := keys.Identify(t.Context(), http.Header{"Authorization": {tt.header}})
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("caller (-want +got):\n%s", diff)
			}
			if keys.MayExplain(got) != tt.admin {
				t.Errorf("may see explanations: %v", !tt.admin)
			}
		})
	}
}

func TestWithoutAuthenticationEveryoneIsTheDefault(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.DefaultRole = "guest"
	keys, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := keys.Identify(t.Context(), http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Principal{Tenant: "default", Role: "guest"}, got); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
	if !keys.MayExplain(got) {
		t.Error("nobody may see explanations")
	}
}
