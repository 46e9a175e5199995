package proxy

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

// Only tenants that the configuration names have metrics of their own: the others are as many as
// tokens say.
func TestMetricsByTenantAreBounded(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(http.StatusOK, tenTokens))
	b := priced(t, u, 0.015)
	for _, key := range []string{"team", "free", "free", "team"} { // the last is over its budget
		b.chat(upTo(10), "Authorization", "Bearer "+key)
	}
	if got := b.chat(upTo(10), "Authorization", "Bearer nobody"); got.status != 401 {
		t.Fatal(got.status)
	}
	body := b.metrics()
	for _, want := range []string{
		`signalbox_tenant_requests_total{tenant="default"} 4`, `signalbox_tenant_requests_total{tenant="other"} 1`,
		`signalbox_tenant_tokens_total{kind="prompt",tenant="default"} 15`,
		`signalbox_tenant_tokens_total{kind="completion",tenant="default"} 30`,
		`signalbox_tenant_cost_usd_total{tenant="default"} 0.03`, `signalbox_tenant_cost_usd_total{tenant="other"} 0`,
		`signalbox_tenant_budget_refused_total{tenant="default"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
}

// A thrown answer is paid by its tenant as well.
func TestAThrownAnswerCountsToItsTenant(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion))
	p.chat(ask("hello"))
	cost := regexp.MustCompile(`signalbox_tenant_cost_usd_total\{tenant="default"\} (\S+)`).FindStringSubmatch(p.metrics())
	if cost == nil || cost[1] != "4.4e-05" { // 1.1e-05 of small, 3.3e-05 of big
		t.Errorf("cost of the tenant: %v", cost)
	}
}
