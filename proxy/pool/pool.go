// Package pool manages the servers of each model: which of them are up, which one gets the next
// request, and how many retries the pool can bear.
//
// It sends no requests except health checks, and does not choose among models; see package choose.
// Callers report how requests ended.
//
// Invariants: an endpoint that is down or asleep gets no requests. The last usable endpoint of a
// model is not ejected, and error responses eject at most half of a model's endpoints. An ejected
// endpoint is used only when no other is left. No endpoint has more requests than its cap,
// including those that started under earlier configurations.
//
// Everything is safe for concurrent use. Watch owns one goroutine per endpoint and returns when
// they have ended; nothing else starts one. The lock of an endpoint is a leaf: nothing is called
// while it is held.
package pool

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/option"
	"signalbox/proxy/framing"
)

// Group is the set of endpoints that serve one model. It is immutable except for the state of its
// endpoints, and safe for concurrent use.
type Group struct {
	Endpoints []*Endpoint // in the order of the configuration
	health    HealthOptions
	line      QueueOptions
	queue     *queue
	capped    bool        // some endpoint has a cap
	gone      []*Endpoint // removed by a reload while they had requests in flight
}

// Endpoint is one server of a model. It is up unless active checks fail, and ejected for a while
// when requests to it keep failing. It is safe for concurrent use; its exported fields must not be
// changed.
type Endpoint struct {
	Model, Name string   // as configured
	Chat        *url.URL // URL for chat completions, which URL returns as well
	Bearer      string   // value of the Authorization header; empty without a key
	own         *wire    // its own transport; nil: the shared one
	passes      bool     // forwards the client's credentials

	*vitals

	base   *url.URL       // URL of the API
	probe  *url.URL       // URL of the health check; nil if there is none
	second *url.URL       // checked instead when the server does not have probe; nil for none
	health *HealthOptions // of its group
	weight float64
	queue  *queue
}

// vitals is the state of an endpoint. An endpoint shares it with its successor after a reload, so
// that both count the requests of both.
type vitals struct {
	inflight atomic.Int64
	cap      atomic.Int64 // maximum of inflight in the newest configuration; 0: no limit
	alone    queue        // requests that can only go to this endpoint

	mu        sync.Mutex     // guards the fields below
	checks    *HealthOptions // of the newest configuration; other checks do not count
	down      bool           // according to active checks
	misses    int            // consecutive failed checks
	passed    int            // passed checks since the last failed request
	failures  int            // consecutive failed requests
	ejections int            // since the last success; scales the ejection time
	until     time.Time      // end of the ejection
	rest      time.Time      // end of the time for which the server asked to be left alone
	asleep    time.Time      // the server reports that it takes no requests; valid until then
	told      string         // last state logged; empty: up
	cause     error          // error of the last failed check
}

const (
	// Consecutive failed checks after which an endpoint is down. One lost packet is no outage.
	missesToDown = 2
	// Passed checks since the last failed request after which an endpoint is no longer suspect. The
	// first one may have been in progress when the request failed.
	passesToTrust = 2
	// Consecutive failed requests after which an endpoint is ejected, and the duration: the
	// defaults of Envoy's outlier detection (consecutive_5xx 5, base_ejection_time 30s, growing
	// with each ejection, max_ejection_time 300s).
	failuresToEject = 5
	ejectionBase    = 30 * time.Second
	maxEjections    = 10
)

// New makes the group of a model from valid options. It starts nothing; endpoints count as healthy
// until a check or a request shows otherwise. transport returns a new transport for an endpoint
// whose options require its own; CloseIdle closes the idle connections of those.
func New(model string, endpoints []EndpointOptions, health HealthOptions, line QueueOptions, transport func() framing.Transport) (*Group, error) {
	g := &Group{health: health, line: line, queue: new(queue)}
	byDefault := g.health.Path == ""
	g.health.Path = cmp.Or(g.health.Path, defaultHealthPath)
	g.health.Interval = cmp.Or(g.health.Interval, option.Duration(defaultHealthInterval))
	g.health.Timeout = cmp.Or(g.health.Timeout, option.Duration(defaultHealthTimeout))
	g.line.Max = cmp.Or(g.line.Max, defaultQueueMax)
	g.line.Wait = cmp.Or(g.line.Wait, option.Duration(defaultQueueWait))
	for _, o := range endpoints {
		base, err := baseURL(o.URL)
		if err != nil {
			return nil, err
		}
		e := &Endpoint{
			Model: model, Name: o.Name, Chat: base.JoinPath(chatPath), vitals: &vitals{checks: &g.health}, base: base,
			health: &g.health, weight: float64(max(o.Weight, 1)), queue: g.queue,
		}
		e.cap.Store(int64(o.MaxInflight))
		g.capped = g.capped || o.MaxInflight > 0
		if g.health.Path != healthOff {
			e.probe = base.ResolveReference(&url.URL{Path: g.health.Path})
		}
		if byDefault {
			e.second = base.JoinPath(modelsPath)
		}
		e.passes = o.ForwardAuth
		if o.APIKey != "" {
			e.Bearer = "Bearer " + o.APIKey
		}
		if err := e.equip(&o, transport); err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", o.Name, err)
		}
		g.Endpoints = append(g.Endpoints, e)
	}
	return g, nil
}

// The paths with special handling: the most frequent one, one that vLLM serves next to /v1 rather
// than below it (vllm/entrypoints/serve/tokenize/api_router.py), and the list of models, which
// health checks fall back to.
const (
	chatPath     = "chat/completions"
	tokenizePath = "tokenize"
	modelsPath   = "models"
)

// URL returns the URL of an API path at the endpoint, such as completions or audio/speech. The
// result must not be changed.
func (e *Endpoint) URL(path string) *url.URL {
	switch path {
	case chatPath:
		return e.Chat
	case tokenizePath:
		beside := *e.base
		beside.Path = strings.TrimSuffix(strings.TrimSuffix(beside.Path, "/v1"), "/") + "/" + path
		return &beside
	}
	return e.base.JoinPath(path)
}

// Probed reports whether active checks are made.
func (e *Endpoint) Probed() bool { return e.probe != nil }

// Inflight returns the number of open leases of the endpoint.
func (e *Endpoint) Inflight() int64 { return e.inflight.Load() }

// Full reports whether the endpoint is at its cap.
func (e *Endpoint) Full() bool {
	most := e.cap.Load()
	return most > 0 && e.inflight.Load() >= most
}

// load returns the figure that Pick compares: requests in flight per unit of weight, multiplied by
// one plus the number of recent consecutive failures.
func (e *Endpoint) load() float64 {
	return float64(e.inflight.Load()) * float64(1+e.Failures()) / e.weight
}

// Fitness grades an endpoint; a lower value is better.
type Fitness uint8

// The grades of an endpoint.
const (
	Fit     Fitness = iota // nothing is known against it
	Resting                // asked to be left alone for a while; others are preferred
	Ejected                // requests failed recently; used when nothing better is left
	Asleep                 // reports that it runs no requests; they would wait
	Down                   // fails its health checks
)

// String returns the name used in /readyz.
func (f Fitness) String() string {
	switch f {
	case Fit:
		return "up"
	case Resting:
		return "resting"
	case Ejected:
		return "ejected"
	case Asleep:
		return "asleep"
	case Down:
	}
	return "down"
}

// stateSuspect is the state of an endpoint that is used normally although requests or checks have
// failed recently.
const stateSuspect = "suspect"

// State returns the state for /readyz: up, suspect, resting, ejected, asleep or down. An endpoint
// is suspect when requests or checks failed recently and checks have not passed since, or when it
// was ejected and no request has succeeded since.
func (e *Endpoint) State(now time.Time) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state(now)
}

// state is State for callers that hold the lock.
func (e *Endpoint) state(now time.Time) string {
	f := e.fitness(now)
	if f == Fit && (e.misses > 0 || e.ejections > 0 || e.failures > 0 && e.passed < passesToTrust) {
		return stateSuspect
	}
	return f.String()
}

// news returns the state at now, the error of the last failed health check, and whether the state
// differs from the one last logged; it then counts as logged. Resting and sleeping are logged
// elsewhere or not at all.
func (e *Endpoint) news(now time.Time) (state string, changed bool, cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	state = e.state(now)
	switch state {
	case Resting.String(), Asleep.String():
		return state, false, nil
	}
	changed = state != cmp.Or(e.told, Fit.String())
	e.told = state
	return state, changed, e.cause
}

// Up reports whether the endpoint takes requests normally at now.
func (e *Endpoint) Up(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.down && e.ejections == 0 && !now.Before(e.asleep)
}

// Fitness grades the endpoint at now. After the end of its ejection, an endpoint gets a single
// request, whose result decides.
func (e *Endpoint) Fitness(now time.Time) Fitness {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fitness(now)
}

// fitness is Fitness for callers that hold the lock.
func (e *Endpoint) fitness(now time.Time) Fitness {
	switch {
	case e.down:
		return Down
	case now.Before(e.asleep):
		return Asleep
	case e.ejections > 0 && (now.Before(e.until) || e.inflight.Load() > 0):
		return Ejected
	case now.Before(e.rest):
		return Resting
	}
	return Fit
}

// Rest records that the server is busy and should be left alone until then, by its Retry-After
// header or a default.
func (e *Endpoint) Rest(until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rest = until
}

// Sleep records, at now, that the server reports that it takes no requests. The report expires at
// until unless it is repeated: a server that no longer reports is graded by its health alone.
// changed is true when the server was awake before.
func (e *Endpoint) Sleep(now, until time.Time) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed = !now.Before(e.asleep)
	e.asleep = until
	return changed
}

// Wake records that the server takes requests and lets a waiting request try. changed reports
// whether the server was asleep at now.
func (e *Endpoint) Wake(now time.Time) (changed bool) {
	e.mu.Lock()
	changed = now.Before(e.asleep)
	e.asleep = time.Time{}
	e.mu.Unlock()
	if changed {
		e.wakeNext()
	}
	return changed
}

// wakeNext notifies the first request in each line that a slot may be free here.
func (e *Endpoint) wakeNext() {
	e.alone.wake()
	e.queue.wake()
}

// Asleep reports whether some endpoint of the group is asleep at now.
func (g *Group) Asleep(now time.Time) bool {
	return slices.ContainsFunc(g.Endpoints, func(e *Endpoint) bool {
		return e.Fitness(now) == Asleep
	})
}

// Serves reports whether some endpoint of the group is known to take requests at now.
func (g *Group) Serves(now time.Time) bool {
	return slices.ContainsFunc(g.Endpoints, func(e *Endpoint) bool {
		return e.Fitness(now) <= Resting
	})
}

// Succeeded records a request that was answered.
func (e *Endpoint) Succeeded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures, e.ejections = 0, 0
}

// Failures returns the number of consecutive failed requests.
func (e *Endpoint) Failures() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failures
}

// Failed records, at now, a request that endpoint e of the group did not answer, or not completely.
func (g *Group) Failed(e *Endpoint, now time.Time) { g.failed(e, now, len(g.Endpoints)) }

// Erred records, at now, a request that endpoint e of the group answered with an error of its own,
// such as a status of 500 or above. A crafted request may cause such an error at every server.
// Therefore these errors eject at most half of the endpoints, rounded down, at a time (like Envoy's
// max_ejection_percent), so that one sender cannot take away the rest. An endpoint counts as
// ejected until a request to it succeeds, since until then it gets one at a time.
func (g *Group) Erred(e *Endpoint, now time.Time) { g.failed(e, now, len(g.Endpoints)/2) }

// failed counts a failure and ejects e, unless more than most endpoints would then be ejected.
func (g *Group) failed(e *Endpoint, now time.Time, most int) {
	last, out := true, 0
	for _, other := range g.Endpoints {
		if other == e {
			continue
		}
		if other.Fitness(now) <= Resting {
			last = false
		}
		if other.ejected() {
			out++
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures, e.passed = e.failures+1, 0
	if e.failures < failuresToEject || last || out >= most || now.Before(e.until) {
		// the last endpoint is never ejected: occasional failures are better than refusing
		// everything
		return
	}
	e.ejections = min(e.ejections+1, maxEjections)
	e.until = now.Add(time.Duration(e.ejections) * ejectionBase)
}

// ejected reports whether the endpoint was ejected and has answered no request since; false while
// it is down.
func (e *Endpoint) ejected() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ejections > 0 && !e.down
}

func (e *Endpoint) isDown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.down
}

// replaced reports whether a newer configuration has the endpoint and checks it.
func (e *Endpoint) replaced() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.checks != e.health
}

// checked records the result of an active check. It does not count once a newer configuration has
// the endpoint.
func (e *Endpoint) checked(err error) {
	e.mu.Lock()
	was := e.down
	switch {
	case e.checks != e.health:
	case err == nil:
		e.misses, e.down = 0, false
		e.passed = min(e.passed+1, passesToTrust)
	default:
		e.misses, e.cause = e.misses+1, err
		e.down = e.down || e.misses >= missesToDown
	}
	up := was && !e.down
	e.mu.Unlock()
	if up {
		e.wakeNext()
	}
}

// Adopt makes the group the successor of an older one of the same model. Endpoints that both have,
// by name and address, keep their state, and the requests of both groups share one queue. So does
// an endpoint that was removed earlier and still has requests in flight. From now on the new
// max_inflight applies to both, and a waiting request gets the room that it adds. Only the new
// health checks count; without any, no endpoint is down. Call it before the group is used.
func (g *Group) Adopt(old *Group) {
	g.queue = old.queue
	before := slices.Concat(old.gone, old.Endpoints)
	for _, e := range g.Endpoints {
		e.queue = old.queue
		for _, b := range before {
			if b.Name == e.Name && *b.Chat == *e.Chat {
				b.cap.Store(e.cap.Load())
				e.vitals = b.vitals
				e.takeChecks()
				e.wakeNext()
				if e.own != nil && b.own != nil && e.own.mark == b.own.mark {
					e.own = b.own
				}
			}
		}
	}
	g.gone = slices.DeleteFunc(before, func(b *Endpoint) bool { return g.Has(b) || b.Inflight() == 0 })
}

// takeChecks makes the health checks of the endpoint's own group the only ones that count.
func (e *Endpoint) takeChecks() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checks = e.health; e.probe == nil {
		e.down, e.misses, e.cause = false, 0, nil
	}
}

// Left returns the endpoints of an older group that have no successor in this one.
func (g *Group) Left(old *Group) (out []*Endpoint) {
	for _, b := range old.Endpoints {
		if !g.Has(b) {
			out = append(out, b)
		}
	}
	return out
}

// Has reports whether the group has an endpoint or its successor.
func (g *Group) Has(b *Endpoint) bool {
	return slices.ContainsFunc(g.Endpoints, func(e *Endpoint) bool { return e.vitals == b.vitals })
}
