package proxy

import (
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"signalbox/internal/telemetry"
)

// model is one configured model and the endpoints that serve it.
type model struct {
	name     string
	servedAs string
	window   int // context window in tokens; 0 when not known
	price    PriceOptions
	skills   skills
	dialect  *dialect
	// tokenField is the field in which it takes a limit on the answer.
	tokenField string
	endpoints  []*endpoint
	health     HealthOptions
	firstByte  time.Duration
	answer     time.Duration
	gap        time.Duration
}

// endpoint is one server of a model. It is up unless active checks say otherwise, and ejected for a
// while when requests to it keep failing.
type endpoint struct {
	model, name string
	chat        *url.URL // of chat completions
	probe       *url.URL // of the health check; nil when it has none
	bearer      string   // the Authorization header; empty when there is no key
	weight      float64
	metrics     *telemetry.Metrics
	inflight    atomic.Int64

	mu        sync.Mutex // guards what follows
	down      bool       // by active checks
	misses    int        // failed checks in a row
	failures  int        // failed requests in a row
	ejections int        // since the last success; scales the time out
	until     time.Time  // end of the time out
}

const (
	defaultHealthPath     = "/health"
	defaultHealthInterval = 5 * time.Second
	defaultHealthTimeout  = 2 * time.Second
	minHealthInterval     = 10 * time.Millisecond

	// Failed checks in a row after which an endpoint is down: one lost packet is no outage.
	missesToDown = 2
	// Failed requests in a row after which an endpoint is ejected, and for how long: the defaults of
	// Envoy's outlier detection (consecutive_5xx 5, base_ejection_time 30s, growing with each
	// ejection, max_ejection_time 300s).
	failuresToEject = 5
	ejectionBase    = 30 * time.Second
	maxEjections    = 10
)

func newModel(o ModelOptions, defaults Options, metrics *telemetry.Metrics) (*model, error) {
	m := &model{
		name: o.Name, servedAs: o.ServedAs, window: o.ContextWindow, price: o.Price, skills: newSkills(o), tokenField: o.tokenField(), health: o.Health,
		firstByte: override(o.FirstByteTimeout, defaults.FirstByteTimeout),
		answer:    override(o.AnswerTimeout, defaults.AnswerTimeout),
		gap:       override(o.GapTimeout, defaults.GapTimeout),
	}
	var err error
	if m.dialect, err = newDialect(&o.Reasoning); err != nil {
		return nil, err
	}
	if m.servedAs == "" {
		m.servedAs = o.Name
	}
	if m.health.Path == "" {
		m.health.Path = defaultHealthPath
	}
	m.health.Interval = Duration(override(m.health.Interval, Duration(defaultHealthInterval)))
	m.health.Timeout = Duration(override(m.health.Timeout, Duration(defaultHealthTimeout)))
	for _, eo := range o.Endpoints {
		base, err := endpointURL(eo.URL)
		if err != nil {
			return nil, err
		}
		e := &endpoint{model: o.Name, name: eo.Name, chat: base.JoinPath("chat/completions"), weight: float64(max(eo.Weight, 1)), metrics: metrics}
		if m.health.Path != healthOff {
			e.probe = base.ResolveReference(&url.URL{Path: m.health.Path})
		}
		if eo.APIKey != "" {
			e.bearer = "Bearer " + eo.APIKey
		}
		metrics.EndpointUp(e.model, e.name, true)
		m.endpoints = append(m.endpoints, e)
	}
	return m, nil
}

func override(own, fallback Duration) time.Duration {
	if own != 0 {
		return time.Duration(own)
	}
	return time.Duration(fallback)
}

// enter and leave bracket one request to the endpoint.
func (e *endpoint) enter() {
	e.inflight.Add(1)
	e.metrics.EndpointInflight(e.model, e.name, 1)
}

func (e *endpoint) leave() {
	e.inflight.Add(-1)
	e.metrics.EndpointInflight(e.model, e.name, -1)
}

// load is what placement compares: requests in flight, this one included, for each unit of weight.
func (e *endpoint) load() float64 { return float64(e.inflight.Load()+1) / e.weight }

// fitness orders endpoints by how much is known against them.
type fitness uint8

const (
	fit     fitness = iota
	ejected         // failed requests lately; better than nothing
	down            // does not answer health checks
)

// String returns the word of /readyz.
func (f fitness) String() string {
	switch f {
	case fit:
		return "up"
	case ejected:
		return "ejected"
	case down:
	}
	return "down"
}

// fitness judges the endpoint at now. One whose time out is over is tried with a single request,
// whose outcome decides.
func (e *endpoint) fitness(now time.Time) fitness {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.down:
		return down
	case e.ejections == 0:
		return fit
	case now.Before(e.until), e.inflight.Load() > 0:
		return ejected
	}
	return fit
}

// succeeded notes a request that was answered.
func (e *endpoint) succeeded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ejections > 0 && !e.down {
		e.metrics.EndpointUp(e.model, e.name, true)
	}
	e.failures, e.ejections = 0, 0
}

// failed notes a request that the endpoint did not answer or answered with a status of 500 or above.
func (m *model) failed(e *endpoint, now time.Time) {
	last := true
	for _, other := range m.endpoints {
		if other != e && other.fitness(now) == fit {
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
	e.metrics.EndpointUp(e.model, e.name, false)
}

// checked notes the outcome of an active check and reports whether it changed the endpoint's state.
func (e *endpoint) checked(err error) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.down
	if err == nil {
		e.misses, e.down = 0, false
	} else if e.misses++; e.misses >= missesToDown {
		e.down = true
	}
	if was != e.down {
		e.metrics.EndpointUp(e.model, e.name, !e.down && e.ejections == 0)
	}
	return was != e.down
}

// adopt copies what another state's twin of this endpoint knows.
func (e *endpoint) adopt(b *endpoint) {
	b.mu.Lock()
	isDown, misses, failures, ejections, until := b.down, b.misses, b.failures, b.ejections, b.until
	b.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down, e.misses, e.failures, e.ejections, e.until = isDown, misses, failures, ejections, until
	e.metrics.EndpointUp(e.model, e.name, !isDown && ejections == 0)
}
