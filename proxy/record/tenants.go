package record

import (
	"errors"

	"signalbox/proxy/auth"
	"signalbox/proxy/budget"
)

// otherTenants is the label of all tenants that the configuration does not name. Names come from
// tokens as well, so they are as many as whoever signs those likes.
const otherTenants = "other"

// TenantsOf are the tenants that a section names: as such, of keys, and the default one.
func TenantsOf(o *auth.Options) map[string]bool {
	out := map[string]bool{otherTenants: true}
	if o.DefaultTenant != "" {
		out[o.DefaultTenant] = true
	}
	for i := range o.Tenants {
		out[o.Tenants[i].Name] = true
	}
	for i := range o.Keys {
		if t := o.Keys[i].Tenant; t != "" {
			out[t] = true
		}
	}
	return out
}

// tenantLabel is the label of a caller in metrics. One that was not identified is of no tenant that
// is named.
func (b *Book) tenantLabel(who *auth.Principal) string {
	if b.Tenants[who.Tenant] {
		return who.Tenant
	}
	return otherTenants
}

// isSpent reports whether a request was refused for a budget.
func isSpent(err error) bool {
	_, ok := errors.AsType[*budget.ExceededError](err)
	return ok
}
