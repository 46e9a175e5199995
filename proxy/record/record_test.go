package record

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"signalbox/proxy/auth"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
)

func TestACacheThatIsOffKeepsNothingAtNoCost(t *testing.T) {
	o, h := &exchange.Exchange{}, http.Header{}
	w := downstream.New(httptest.NewRecorder(), &http.Request{Header: h})
	r, b := &Recorder{}, &Book{Base: &decide.Base{}}
	if n := testing.AllocsPerRun(100, func() { r.keep(t.Context(), b, w, o, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Tenants that are not configured have no label of their own.
func TestLabelsAreOfNamedTenants(t *testing.T) {
	t.Parallel()
	b := Book{Tenants: TenantsOf(&auth.Options{
		DefaultTenant: "all", Tenants: []auth.TenantOptions{{Name: "lab"}},
		Keys: []auth.KeyOptions{{Name: "k", Tenant: "shop"}, {Name: "l"}},
	})}
	var got []string
	for _, name := range []string{"all", "lab", "shop", "from-a-token", ""} {
		got = append(got, b.tenantLabel(&auth.Principal{Tenant: name}))
	}
	if want := []string{"all", "lab", "shop", "other", "other"}; !slices.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
}
