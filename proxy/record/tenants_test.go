package record

import (
	"slices"
	"testing"

	"signalbox/proxy/auth"
)

// Tenants that the configuration does not name have no label of their own.
func TestLabelsAreOfNamedTenants(t *testing.T) {
	t.Parallel()
	b := Book{Tenants: TenantsOf(&auth.Options{
		DefaultTenant: "all", Tenants: []auth.TenantOptions{{Name: "lab"}}, Keys: []auth.KeyOptions{{Name: "k", Tenant: "shop"}, {Name: "l"}},
	})}
	var got []string
	for _, name := range []string{"all", "lab", "shop", "from-a-token", ""} {
		got = append(got, b.tenantLabel(&auth.Principal{Tenant: name}))
	}
	if want := []string{"all", "lab", "shop", "other", "other"}; !slices.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
}
