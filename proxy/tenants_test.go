package proxy

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"signalbox/internal/telemetry"
	"signalbox/internal/testkit"
	"signalbox/proxy/decisionlog"
)

// Only configured tenants have metrics of their own, since tokens can name any number of others.
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

// A discarded response is charged to its tenant as well.
func TestAThrownAnswerCountsToItsTenant(t *testing.T) {
	t.Parallel()
	p := escalating(t, everySign, testkit.JSON(200, tooShort), testkit.JSON(200, testkit.Completion))
	p.chat(ask("hello"))
	cost := regexp.MustCompile(`signalbox_tenant_cost_usd_total\{tenant="default"\} (\S+)`).FindStringSubmatch(p.metrics())
	if cost == nil || cost[1] != "4.4e-05" { // 1.1e-05 of small, 3.3e-05 of big
		t.Errorf("cost of the tenant: %v", cost)
	}
}

// What a budget is charged for a stream that its client leaves also shows in the metrics and the
// decision log.
func TestAStreamThatIsLeftCountsByTheEstimate(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stall(testkit.Event("some words of an answer")))
	p := start(t, oneModel(up))
	counts := p.tel
	l := logDecisions(t, p)
	leave := l.leaveable(askStream("hi"), "answer")
	within(t, up.Arrived, "the upstream request")
	leave()
	within(t, up.Gone, "the upstream's cancellation")
	waitFor(t, "the record", func() bool { return strings.Contains(l.log.String(), `"status":499`) })
	if e := l.estimated(t, counts); e.Error != "client_closed_request" {
		t.Errorf("the decision log has error %q", e.Error)
	}
}

// The same holds for a stream that the guard ends: its line reports what its client received, not
// what the server sent later.
func TestAStreamThatTheGuardEndsCountsByTheEstimate(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.Stream(towerStream(towerTrue, towerFalse, towerRest)...))
	p := watched(t, "terminate", up)
	counts := p.tel
	l := logDecisions(t, p)
	for _, got := range []answered{
		l.chat(guarded(askStream("hi"), towerFact)),
		l.message(guarded(askMessage("hi", `,"stream":true`), towerFact)),
	} {
		if got.status != http.StatusOK {
			t.Fatal(got.body)
		}
	}
	waitFor(t, "the records", func() bool { return strings.Count(l.log.String(), `"msg":"request"`) == 2 })
	if log := l.log.String(); strings.Count(log, `"tokens_estimated":true`) != 2 {
		t.Errorf("the log says %s", log)
	}
	if e := l.estimated(t, counts); e.Finish != "content_filter" || !e.Guard.Cut {
		t.Errorf("the decision log has finish %q, guard %+v", e.Finish, e.Guard)
	}
}

// estimated checks that metrics and lines contain an estimate, and returns the last line. counts is
// the proxy's telemetry.
func (l *logged) estimated(t *testing.T, counts *telemetry.Telemetry) *decisionlog.Entry {
	t.Helper()
	logs := l.tel
	l.tel = counts
	page := l.metrics()
	l.tel = logs
	for _, name := range []string{
		`signalbox_tokens_total{kind="prompt"}`, `signalbox_tokens_total{kind="completion"}`,
		`signalbox_tenant_tokens_total{kind="completion",tenant="default"}`,
		`signalbox_tenant_cost_usd_total{tenant="default"}`,
	} {
		if !regexp.MustCompile(regexp.QuoteMeta(name) + ` [0-9.e-]*[1-9]`).MatchString(page) {
			t.Errorf("%s counts nothing", name)
		}
	}
	if counted(page, "signalbox_untold_total") {
		t.Error("answers are counted as untold")
	}
	text, lines := l.lines(t)
	if len(lines) == 0 {
		t.Fatal("no line")
	}
	for _, e := range lines {
		if e.Tokens == nil || !e.Tokens.Estimated || e.Tokens.Completion == 0 || e.Cost == 0 {
			t.Errorf("the decision log has no estimate: %s", text)
		}
	}
	return lines[len(lines)-1]
}

func TestAnswersThatTellNoTokensAreCounted(t *testing.T) {
	t.Parallel()
	u := testkit.NewUpstream(t, testkit.JSON(200, strings.Replace(okAnswer, `"usage"`, `"x"`, 1)))
	u.Next(testkit.JSON(200, okAnswer))
	p := start(t, oneModel(u))
	for range 2 {
		p.chat(ask("hello"))
	}
	u.Next(testkit.JSON(200, `{"tokens":[1]}`), testkit.JSON(200, `{}`))
	p.post("/v1/tokenize", `{"model":"small","prompt":"a"}`)
	p.post("/v1/audio/speech", `{"model":"small","input":"a","voice":"b"}`)
	u.Next(testkit.JSON(200, `{"object":"list","data":[]}`))
	p.post("/v1/embeddings", `{"model":"small","input":"a"}`)
	if n := len(u.Requests()); n != 5 {
		t.Fatalf("%d requests came to the model", n)
	}
	if page := p.metrics(); !strings.Contains(page, `signalbox_untold_total{model="small"} 2`) {
		t.Error("an answer without tokens is not counted as such, or one that has none")
	}
	if s := p.proxy.Recent().Tally().Spent; len(s) != 1 || s[0].Untold != 2 {
		t.Errorf("the console: %+v", s)
	}
}
