package telemetry

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The attribute keys of traces and resources. The GenAI names are those of the OpenTelemetry
// semantic conventions v1.41.0, the last version of the Go package that carries them.
const (
	attrServiceName    = attribute.Key("service.name")
	attrServiceVersion = attribute.Key("service.version")

	AttrRequestModel  = attribute.Key("gen_ai.request.model")
	AttrOperation     = attribute.Key("gen_ai.operation.name")
	AttrInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	AttrOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	AttrProvider      = attribute.Key("gen_ai.provider.name")
	AttrMaxTokens     = attribute.Key("gen_ai.request.max_tokens")
	AttrChoices       = attribute.Key("gen_ai.request.choice.count")
	AttrSeed          = attribute.Key("gen_ai.request.seed")
	AttrTemperature   = attribute.Key("gen_ai.request.temperature")
	AttrTopP          = attribute.Key("gen_ai.request.top_p")
	AttrResponseID    = attribute.Key("gen_ai.response.id")
	AttrResponseModel = attribute.Key("gen_ai.response.model")
	AttrFinishReasons = attribute.Key("gen_ai.response.finish_reasons")
	AttrCachedTokens  = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	AttrErrorType     = attribute.Key("error.type")
	AttrServerAddress = attribute.Key("server.address")
	AttrServerPort    = attribute.Key("server.port")
	AttrStatus        = attribute.Key("http.response.status_code")
	AttrHTTPRoute     = attribute.Key("http.route")
	AttrResend        = attribute.Key("http.request.resend_count")
	AttrRoute         = attribute.Key("signalbox.route")
	AttrEndpoint      = attribute.Key("signalbox.endpoint")
	AttrTenant        = attribute.Key("signalbox.tenant")
	AttrAttempt       = attribute.Key("signalbox.attempt")

	AttrFrequencyPenalty = attribute.Key("gen_ai.request.frequency_penalty")
	AttrPresencePenalty  = attribute.Key("gen_ai.request.presence_penalty")
)

// AttrSignal is the key of a signal on the span of a decision; the suffixes .score and .unknown are
// appended.
func AttrSignal(kind string) string { return "signalbox.signal." + kind }

// Metrics records every metric of the product. Label values come from the configuration, never from
// a client; callers pass "other" for values invented by clients. Safe for concurrent use.
type Metrics struct {
	requests        counter
	requestSeconds  *histogram
	decideSeconds   *histogram
	modelRuns       counter
	modelRunSeconds *histogram
	batchSize       *histogram
	skipped         counter
	unknown         counter
	ttft            *histogram
	interToken      *histogram
	tokens          counter
	prefixTokens    counter
	placements      counter
	splits          counter
	restarts        counter
	warms           counter
	cost            floatCounter
	tenantRequests  counter
	tenantTokens    counter
	tenantCost      floatCounter
	tenantRefused   counter
	costBaseline    floatCounter
	shed            counter
	pool            poolGauges
	connections     connectionGauges
	retries         counter
	escalations     counter
	mirrors         counter
	mirrorTokens    counter
	mirrorCost      floatCounter
	mirrorLikeness  *histogram
	arms            counter
	armTokens       counter
	armCost         floatCounter
	cache           counter
	cacheKept       counter
	widened         counter
	decisions       counter
	contextRequests counter
	guardClaims     counter
	guardActions    counter
	guardSeconds    *histogram
	provider        gauge
	workerRestarts  counter
	pageSeconds     *histogram
	build           gauge
	reload          reloadGauges
	redis           redisGauge
	local           counter
	untold          counter
	contexts        contextGauges
}

// Bucket bounds in seconds: neural passes and decisions take 10 us to 1 s, requests 1 ms to
// minutes.
func fastBuckets() []float64 {
	return []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
}

func slowBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
}

// maker collects the errors of instrument creation, so that the list below stays a list.
type maker struct {
	meter metric.Meter
	errs  []error

	histograms *histograms
}

func newMetrics(meter metric.Meter, shapes *histograms) (*Metrics, error) {
	m := &maker{meter: meter, histograms: shapes}
	out := &Metrics{
		requests:        m.counter("signalbox_requests_total", "Requests by route, model and status.", "route", "model", "status"),
		requestSeconds:  m.histogram("signalbox_request_seconds", "Time from the request's first byte to the response's last.", slowBuckets(), "route"),
		decideSeconds:   m.histogram("signalbox_decide_seconds", "Time to a decision, including signal extraction.", fastBuckets()),
		modelRuns:       m.counter("signalbox_model_runs_total", "Runs of a classifier graph.", "bundle", "provider"),
		modelRunSeconds: m.histogram("signalbox_model_run_seconds", "Time of one run of a classifier graph.", fastBuckets(), "bundle", "provider"),
		batchSize:       m.histogram("signalbox_batch_size", "Rows in one run of a classifier graph.", []float64{1, 2, 4, 8, 16, 32, 64}),
		skipped:         m.counter("signalbox_signals_skipped_total", "Signals that a rule names and that did not have to be computed.", "signal"),
		unknown:         m.counter("signalbox_unknown_signals_total", "Signals that could not be extracted, by reason.", "signal", "reason"),
		ttft:            m.histogram("signalbox_ttft_seconds", "Time to the first byte of a streamed response's body.", slowBuckets(), "model"),
		interToken: m.histogram("signalbox_inter_token_seconds",
			"Time between two tokens of a streamed response, averaged over the response.", slowBuckets(), "model"),
		untold: m.counter("signalbox_untold_total",
			"Responses to completions and embeddings that reported no tokens; they are missing from all sums of tokens and cost.", "model"),
		local: m.counter("signalbox_limits_local_total", "Requests whose limits or budgets this replica counted alone, by what "+
			"(rate, concurrency, budget) and reason: Redis is away, responded to "+
			"this request too late, or is full.",
			"what", "reason"),
		tokens:          m.counter("signalbox_tokens_total", "Tokens by kind: prompt, cached, completion.", "kind"),
		prefixTokens:    m.counter("signalbox_prefix_tokens_total", "Prompt tokens that the endpoint was expected to have cached (predicted), and that it had cached (confirmed), of responses that report this.", "model", "kind"),
		placements:      m.counter("signalbox_placements_total", "Requests with a home, by where they were placed: at their home, or away from it.", "model", "where"),
		splits:          m.counter("signalbox_prefix_class_splits_total", "Requests that cannot use the servers' prefix cache of the same context or session, since the reasoning effort or the tools before it differ from the last ones.", "model"),
		restarts:        m.counter("signalbox_endpoint_restarts_total", "Detected restarts of endpoints.", "model", "endpoint"),
		warms:           m.counter("signalbox_warm_calls_total", "Contexts prefilled ahead of need, by result: read, there (it was cached already), busy, failed.", "model", "result"),
		cost:            m.floats("signalbox_cost_usd_total", "Cost of responses at the configured prices.", "model"),
		costBaseline:    m.floats("signalbox_cost_baseline_usd_total", "What the same tokens would have cost on the most expensive model."),
		tenantRequests:  m.counter("signalbox_tenant_requests_total", "Requests by tenant; other: tenants that the configuration does not name.", "tenant"),
		tenantTokens:    m.counter("signalbox_tenant_tokens_total", "Tokens by tenant and kind: prompt, cached, completion.", "tenant", "kind"),
		tenantCost:      m.floats("signalbox_tenant_cost_usd_total", "Cost of responses at the configured prices by tenant.", "tenant"),
		tenantRefused:   m.counter("signalbox_tenant_budget_refused_total", "Requests that were refused because a budget of their caller or of the models was used up, by tenant.", "tenant"),
		shed:            m.counter("signalbox_shed_total", "Requests that got no slot at any endpoint of a model, by reason: full (the queue), late (too long in the queue).", "model", "reason"),
		retries:         m.counter("signalbox_retries_total", "Attempts that were repeated on another endpoint or model, by reason.", "reason"),
		escalations:     m.counter("signalbox_escalations_total", "Responses of a model that were discarded for another model's, by the reason found in them; failed: delivered after all, since no other model responded.", "route", "model", "reason"),
		mirrors:         m.counter("signalbox_mirror_total", "Mirrored requests by result: answered, failed, dropped (too many, or no free endpoint).", "route", "model", "result"),
		mirrorTokens:    m.counter("signalbox_mirror_tokens_total", "Tokens of responses to mirrored requests by kind: prompt, completion; not included in any other metric.", "model", "kind"),
		mirrorCost:      m.floats("signalbox_mirror_cost_usd_total", "Cost of responses to mirrored requests at the configured prices.", "model"),
		mirrorLikeness:  m.histogram("signalbox_mirror_similarity", "Share of words that the response to a mirrored request has in common with the response that the client received.", []float64{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1}, "model"),
		arms:            m.counter("signalbox_canary_requests_total", "Requests of routes with a canary, by arm (control, canary) and status.", "route", "arm", "status"),
		armTokens:       m.counter("signalbox_canary_tokens_total", "Tokens of responses of routes with a canary, by kind: prompt, completion; included in signalbox_tokens_total.", "route", "arm", "kind"),
		armCost:         m.floats("signalbox_canary_cost_usd_total", "Cost of responses of routes with a canary, at the configured prices; included in signalbox_cost_usd_total.", "route", "arm"),
		widened:         m.counter("signalbox_auto_limit_widened_total", "Responses that an automatic max_tokens cut short; each widens the limit.", "model"),
		cache:           m.counter("signalbox_cache_total", "Requests by result of the answer cache lookup: exact, semantic, miss, off, ineligible, bypass, error.", "result"),
		cacheKept:       m.counter("signalbox_cache_kept_total", "Responses that were candidates for the answer cache, by result: kept, dropped, refused, failed.", "result"),
		decisions:       m.counter("signalbox_decision_log_total", "Lines of the decision log by result: written, dropped (the queue was full), failed.", "result"),
		contextRequests: m.counter("signalbox_context_requests_total", "Requests that named stored contexts, by the farthest tier that was read: hot, l2, l3.", "tier"),
		guardClaims:     m.counter("signalbox_guard_claims_total", "Claims of responses by verdict: supported, contradicted, unsupported, unchecked, not_checkable.", "verdict"),
		guardActions:    m.counter("signalbox_guard_actions_total", "Actions of the guard on responses, by action.", "action"),
		guardSeconds:    m.histogram("signalbox_guard_check_seconds", "Time from a claim's last byte to its verdict, including the wait in the queue.", fastBuckets()),
		pageSeconds:     m.histogram("signalbox_page_seconds", "Time to bring an object of a context into RAM ready for use (l2_to_hot, l3_to_hot), and to make the copies for paging out, once, when the object is stored (hot_to_l2: packing; hot_to_l3: writing to Redis).", fastBuckets(), "direction"),
		provider:        m.gauge("signalbox_provider_info", "Execution providers in use; the value is always 1.", "provider", "device"),
		build:           m.gauge("signalbox_build_info", "The running build; the value is always 1.", "version", "goversion"),
		workerRestarts:  m.counter("signalbox_worker_restarts_total", "Restarts of the process that runs the models, after it ended."),
	}
	out.pool.register(m)
	out.connections.register(m)
	out.reload.register(m)
	out.redis.register(m)
	out.contexts.register(m)
	out.begin()
	return out, errors.Join(m.errs...)
}

// begin creates the counters with known label values before anything is counted: a rate over a
// counter that begins with its first event misses it.
func (m *Metrics) begin() {
	for c, values := range map[*counter][]string{
		&m.retries:   {"connect", "broken", "timeout", "status", "length"},
		&m.tokens:    {"prompt", "cached", "completion"},
		&m.cache:     {"exact", "semantic", "miss", "off", "ineligible", "bypass", "error"},
		&m.cacheKept: {"kept", "dropped", "refused", "failed"}, &m.decisions: {"written", "dropped", "failed"},
		&m.contextRequests: {"hot", "l2", "l3"},
		&m.guardClaims:     {"supported", "contradicted", "unsupported", "unchecked", "not_checkable"},
	} {
		for _, v := range values {
			c.add(0, v)
		}
	}
	for _, what := range [...]string{"rate", "concurrency", "budget"} {
		for _, reason := range [...]string{RedisAway, RedisLate, RedisFull} {
			m.local.add(0, what, reason)
		}
	}
	m.workerRestarts.add(0)
	m.costBaseline.add(0)
}

// Serves creates the counters of a model when it is configured.
func (m *Metrics) Serves(model string) {
	m.untold.add(0, model)
	m.shed.add(0, model, "full")
	m.shed.add(0, model, "late")
	m.cost.add(0, model)
	m.widened.add(0, model)
	m.splits.add(0, model)
	for _, kind := range []string{"predicted", "confirmed"} {
		m.prefixTokens.add(0, model, kind)
	}
}

// Build records the running build.
func (m *Metrics) Build(version, goVersion string) {
	m.build.record(background(), 1, version, goVersion)
}

// Request counts one finished request.
func (m *Metrics) Request(route, model string, status int, d time.Duration) {
	m.requests.add(1, route, model, statusText(status))
	m.requestSeconds.record(d.Seconds(), route)
}

// statusText avoids an allocation for frequent codes.
func statusText(status int) string {
	switch status {
	case 200:
		return "200"
	case 400:
		return "400"
	case 429:
		return "429"
	case 499:
		return "499"
	case 502:
		return "502"
	case 503:
		return "503"
	}
	if status < 100 || status > 999 {
		return "0"
	}
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}

// Decide records the time for one decision.
func (m *Metrics) Decide(d time.Duration) { m.decideSeconds.record(d.Seconds()) }

// ModelRun counts one run of a classifier graph over rows texts.
func (m *Metrics) ModelRun(bundle, provider string, d time.Duration, rows int) {
	m.modelRuns.add(1, bundle, provider)
	m.modelRunSeconds.record(d.Seconds(), bundle, provider)
	m.batchSize.record(float64(rows))
}

// SignalSkipped counts a signal that was not computed thanks to laziness.
func (m *Metrics) SignalSkipped(signal string) {
	m.skipped.add(1, signal)
}

// SignalUnknown counts a signal that could not be extracted.
func (m *Metrics) SignalUnknown(signal, reason string) {
	m.unknown.add(1, signal, reason)
}

// TTFT records the time to the first byte of a streamed body.
func (m *Metrics) TTFT(model string, d time.Duration) {
	m.ttft.record(d.Seconds(), model)
}

// InterToken records the mean time between two tokens of a stream, for one response.
func (m *Metrics) InterToken(model string, d time.Duration) {
	m.interToken.record(d.Seconds(), model)
}

// Tokens counts tokens of one response. kind is prompt, cached or completion.
func (m *Metrics) Tokens(kind string, n int64) {
	m.tokens.add(n, kind)
}

// PrefixTokens counts prompt tokens of one response by model. kind is predicted or confirmed.
func (m *Metrics) PrefixTokens(model, kind string, n int64) {
	m.prefixTokens.add(n, model, kind)
}

// Placement counts a request that was placed by its context, session or prefix. where is home or
// away.
func (m *Metrics) Placement(model, where string) {
	m.placements.add(1, model, where)
}

// PrefixClassSplit counts a request whose prefix differs from the previous one of its context or
// session because of values at the beginning of the template.
func (m *Metrics) PrefixClassSplit(model string) {
	m.splits.add(1, model)
}

// WarmCall counts a prefill of a context ahead of requests. result is read, there, busy or failed.
func (m *Metrics) WarmCall(model, result string) {
	m.warms.add(1, model, result)
}

// EndpointRestarted counts a restart of an endpoint.
func (m *Metrics) EndpointRestarted(model, endpoint string) {
	m.restarts.add(1, model, endpoint)
}

// Cost adds the cost of a response and its cost on the most expensive model, in USD.
func (m *Metrics) Cost(model string, usd, baseline float64) {
	m.cost.add(usd, model)
	m.costBaseline.add(baseline)
}

// ServesTenant creates the counters of a tenant when it is configured.
func (m *Metrics) ServesTenant(tenant string) {
	m.tenantRequests.add(0, tenant)
	m.tenantRefused.add(0, tenant)
	m.tenantCost.add(0, tenant)
	for _, kind := range []string{"prompt", "cached", "completion"} {
		m.tenantTokens.add(0, tenant, kind)
	}
}

// Untold counts a response of a model without token counts.
func (m *Metrics) Untold(model string) { m.untold.add(1, model) }

// TenantRequest counts a finished request of a tenant. The caller limits the number of names.
func (m *Metrics) TenantRequest(tenant string) { m.tenantRequests.add(1, tenant) }

// TenantRefused counts a request of a tenant that was rejected by a budget. The caller limits the
// number of names.
func (m *Metrics) TenantRefused(tenant string) { m.tenantRefused.add(1, tenant) }

// TenantUsage adds the tokens of a response to a tenant, and its cost in USD. The caller limits the
// number of names.
func (m *Metrics) TenantUsage(tenant string, prompt, cached, completion int64, usd float64) {
	m.tenantTokens.add(prompt, tenant, "prompt")
	if cached > 0 {
		m.tenantTokens.add(cached, tenant, "cached")
	}
	m.tenantTokens.add(completion, tenant, "completion")
	m.tenantCost.add(usd, tenant)
}

// Shed counts a request that got no slot at any endpoint of a model. reason is full, of the queue,
// or late.
func (m *Metrics) Shed(model, reason string) {
	m.shed.add(1, model, reason)
}

// Retry counts an attempt that was retried elsewhere.
func (m *Metrics) Retry(reason string) {
	m.retries.add(1, reason)
}

// Escalation counts a discarded response of a model. reason is a sign, or failed.
func (m *Metrics) Escalation(route, model, reason string) {
	m.escalations.add(1, route, model, reason)
}

// Mirror counts a copy of a request. result is answered, failed or dropped.
func (m *Metrics) Mirror(route, model, result string) { m.mirrors.add(1, route, model, result) }

// Mirrored counts the response to a copy: its tokens, its cost in USD, and the share of words in
// [0,1] that it has in common with the client's response.
func (m *Metrics) Mirrored(model string, prompt, completion int64, usd, similarity float64) {
	m.mirrorTokens.add(prompt, model, "prompt")
	m.mirrorTokens.add(completion, model, "completion")
	m.mirrorCost.add(usd, model)
	m.mirrorLikeness.record(similarity, model)
}

// Arm counts a request of a route with a canary. arm is control or canary.
func (m *Metrics) Arm(route, arm string, status int) {
	m.arms.add(1, route, arm, statusText(status))
}

// ArmUsed counts the tokens of the response to such a request, and its cost in USD.
func (m *Metrics) ArmUsed(route, arm string, prompt, completion int64, usd float64) {
	m.armTokens.add(prompt, route, arm, "prompt")
	m.armTokens.add(completion, route, arm, "completion")
	m.armCost.add(usd, route, arm)
}

// Cache counts a look-up. result is exact, semantic, miss, off, ineligible, bypass or error.
func (m *Metrics) Cache(result string) {
	m.cache.add(1, result)
}

// CacheKept counts a response that could be cached. result is kept, dropped, refused or failed.
func (m *Metrics) CacheKept(result string) {
	m.cacheKept.add(1, result)
}

// DecisionsLogged counts lines of the decision log. result is written, dropped or failed.
func (m *Metrics) DecisionsLogged(result string, n int64) {
	m.decisions.add(n, result)
}

// LimitWidened counts a response that was truncated by an automatic limit.
func (m *Metrics) LimitWidened(model string) {
	m.widened.add(1, model)
}

// ContextRequest counts a request that named stored contexts. tier is hot, l2 or l3.
func (m *Metrics) ContextRequest(tier string) {
	m.contextRequests.add(1, tier)
}

// GuardClaim counts a verdict on one claim of a response.
func (m *Metrics) GuardClaim(verdict string) {
	m.guardClaims.add(1, verdict)
}

// GuardAction counts an action of the guard on a response, such as marking a claim.
func (m *Metrics) GuardAction(action string) {
	m.guardActions.add(1, action)
}

// GuardCheck records the time for the check of a claim.
func (m *Metrics) GuardCheck(d time.Duration) { m.guardSeconds.record(d.Seconds()) }

// WorkerRestart counts a restart of the worker process of the models.
func (m *Metrics) WorkerRestart() { m.workerRestarts.add(1) }

// Provider records an execution provider in use.
func (m *Metrics) Provider(name, device string) {
	m.provider.record(background(), 1, name, device)
}
