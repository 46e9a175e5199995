// Package pool holds the servers of each model: which of them is up, which to send a request to, and how
// many retries the pool can bear.
//
// It sends no requests but health checks, and does not choose among models; see package choose. Callers
// tell it how requests ended.
//
// Invariants: an endpoint that is down gets no requests; the last endpoint of a model that is not down is
// never ejected; an ejected one is used only when no other is left.
//
// Everything is safe for concurrent use. Watch owns one goroutine for each endpoint with health checks and
// returns when they have ended; nothing else starts one. The lock of an endpoint is a leaf: nothing is called
// under it but a metric.
package pool

import (
	"cmp"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/telemetry"
)

// Group is the endpoints that serve one model. It is immutable but for what endpoints know of themselves,
// and safe for concurrent use.
type Group struct {
	Endpoints []*Endpoint // in the order of the configuration
	health    HealthOptions
}

// Endpoint is one server of a model. It is up unless active checks say otherwise, and ejected for a
// while when requests to it keep failing. It is safe for concurrent use; its exported fields are not to
// be changed.
type Endpoint struct {
	Model, Name string   // as the configuration has them
	Chat        *url.URL // of chat completions, which URL returns as well
	Bearer      string   // the Authorization header; empty when there is no key

	base     *url.URL // of the API
	probe    *url.URL // of the health check; nil when it has none
	weight   float64
	metrics  *telemetry.Metrics
	inflight atomic.Int64

	mu        sync.Mutex // guards what follows
	down      bool       // by active checks
	misses    int        // failed checks in a row
	failures  int        // failed requests in a row
	ejections int        // since the last success; scales the time out
	until     time.Time  // end of the time out
}

const (
	// Failed checks in a row after which an endpoint is down: one lost packet is no outage.
	missesToDown = 2
	// Failed requests in a row after which an endpoint is ejected, and for how long: the defaults of
	// Envoy's outlier detection (consecutive_5xx 5, base_ejection_time 30s, growing with each
	// ejection, max_ejection_time 300s).
	failuresToEject = 5
	ejectionBase    = 30 * time.Second
	maxEjections    = 10
)

// New makes the group of a model from options that are valid. It starts nothing; endpoints count as
// healthy until a check or a request says otherwise.
func New(model string, endpoints []EndpointOptions, health HealthOptions, metrics *telemetry.Metrics) (*Group, error) {
	g := &Group{health: health}
	if g.health.Path == "" {
		g.health.Path = defaultHealthPath
	}
	g.health.Interval = cmp.Or(g.health.Interval, option.Duration(defaultHealthInterval))
	g.health.Timeout = cmp.Or(g.health.Timeout, option.Duration(defaultHealthTimeout))
	for _, o := range endpoints {
		base, err := baseURL(o.URL)
		if err != nil {
			return nil, err
		}
		e := &Endpoint{Model: model, Name: o.Name, Chat: base.JoinPath(chatPath), base: base, weight: float64(max(o.Weight, 1)), metrics: metrics}
		if g.health.Path != healthOff {
			e.probe = base.ResolveReference(&url.URL{Path: g.health.Path})
		}
		if o.APIKey != "" {
			e.Bearer = "Bearer " + o.APIKey
		}
		metrics.EndpointUp(e.Model, e.Name, true)
		g.Endpoints = append(g.Endpoints, e)
	}
	return g, nil
}

// The paths that are not joined like all others: the most frequent one, and one that vLLM serves beside
// the API and not below it (vllm/entrypoints/serve/tokenize/api_router.py).
const (
	chatPath     = "chat/completions"
	tokenizePath = "tokenize"
)

// URL returns where the endpoint serves a path of the API, such as completions or audio/speech. It is not
// to be changed.
func (e *Endpoint) URL(path string) *url.URL {
	switch path {
	case chatPath:
		return e.Chat
	case tokenizePath:
		beside := *e.base
		beside.Path = strings.TrimSuffix(beside.Path, "/v1") + "/" + path
		return &beside
	}
	return e.base.JoinPath(path)
}

// Enter notes that a request goes to the endpoint; Leave has to follow, once.
func (e *Endpoint) Enter() {
	e.inflight.Add(1)
	e.metrics.EndpointInflight(e.Model, e.Name, 1)
}

// Leave notes that a request to the endpoint has ended.
func (e *Endpoint) Leave() {
	e.inflight.Add(-1)
	e.metrics.EndpointInflight(e.Model, e.Name, -1)
}

// Inflight is how many requests are between Enter and Leave.
func (e *Endpoint) Inflight() int64 { return e.inflight.Load() }

// load is what placement compares: requests in flight, this one included, for each unit of weight.
func (e *Endpoint) load() float64 { return float64(e.inflight.Load()+1) / e.weight }

// Fitness orders endpoints by how much is known against them.
type Fitness uint8

// What is known against an endpoint.
const (
	Fit     Fitness = iota // nothing
	Ejected                // failed requests lately; better than nothing
	Down                   // does not answer health checks
)

// String returns the word of /readyz.
func (f Fitness) String() string {
	switch f {
	case Fit:
		return "up"
	case Ejected:
		return "ejected"
	case Down:
	}
	return "down"
}

// Fitness judges the endpoint at now. One whose time out is over is tried with a single request,
// whose outcome decides.
func (e *Endpoint) Fitness(now time.Time) Fitness {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.down:
		return Down
	case e.ejections == 0:
		return Fit
	case now.Before(e.until), e.inflight.Load() > 0:
		return Ejected
	}
	return Fit
}

// Succeeded notes a request that was answered.
func (e *Endpoint) Succeeded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ejections > 0 && !e.down {
		e.metrics.EndpointUp(e.Model, e.Name, true)
	}
	e.failures, e.ejections = 0, 0
}

// Failures is how many requests failed in a row.
func (e *Endpoint) Failures() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failures
}

// Failed notes, at now, a request that endpoint e of the group did not answer or answered with a status of 500 or above.
func (g *Group) Failed(e *Endpoint, now time.Time) {
	last := true
	for _, other := range g.Endpoints {
		if other != e && other.Fitness(now) == Fit {
			last = false
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures++
	if e.failures < failuresToEject || last || now.Before(e.until) {
		return // the last endpoint is never ejected: failing sometimes beats refusing always
	}
	e.ejections = min(e.ejections+1, maxEjections)
	e.until = now.Add(time.Duration(e.ejections) * ejectionBase)
	e.metrics.EndpointUp(e.Model, e.Name, false)
}

// checked notes the outcome of an active check and reports whether it changed the endpoint's state.
func (e *Endpoint) checked(err error) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.down
	if err == nil {
		e.misses, e.down = 0, false
	} else if e.misses++; e.misses >= missesToDown {
		e.down = true
	}
	if was != e.down {
		e.metrics.EndpointUp(e.Model, e.Name, !e.down && e.ejections == 0)
	}
	return was != e.down
}

// Adopt takes over what an older group of the same model knows about endpoints that both have: those of
// the same name and address.
func (g *Group) Adopt(old *Group) {
	for _, e := range g.Endpoints {
		for _, b := range old.Endpoints {
			if b.Name == e.Name && *b.Chat == *e.Chat {
				e.adopt(b)
			}
		}
	}
}

// adopt copies what an older group's twin of this endpoint knows.
func (e *Endpoint) adopt(b *Endpoint) {
	b.mu.Lock()
	isDown, misses, failures, ejections, until := b.down, b.misses, b.failures, b.ejections, b.until
	b.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down, e.misses, e.failures, e.ejections, e.until = isDown, misses, failures, ejections, until
	e.metrics.EndpointUp(e.Model, e.Name, !isDown && ejections == 0)
}
