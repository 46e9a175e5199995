// Package pool holds the servers of each model: which of them is up, which to send a request to,
// and how many retries the pool can bear.
//
// It sends no requests but health checks, and does not choose among models; see package choose.
// Callers tell it how requests ended.
//
// Invariants: an endpoint that is down or asleep gets no requests; the last endpoint of a model
// that is not down is never ejected, and no more than half of them are by what they answer; an
// ejected one is used only when no other is left; no endpoint has more requests than its cap,
// whatever configurations they came by.
//
// Everything is safe for concurrent use. Watch owns one goroutine for each endpoint with health
// checks and returns when they have ended; nothing else starts one. The lock of an endpoint is a
// leaf: nothing is called under it.
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

// Group is the endpoints that serve one model. It is immutable but for what endpoints know of
// themselves, and safe for concurrent use.
type Group struct {
	Endpoints []*Endpoint // in the order of the configuration
	health    HealthOptions
	line      QueueOptions
	queue     *queue
	capped    bool // some endpoint has a cap
}

// Endpoint is one server of a model. It is up unless active checks say otherwise, and ejected for a
// while when requests to it keep failing. It is safe for concurrent use; its exported fields are
// not to be changed.
type Endpoint struct {
	Model, Name string   // as the configuration has them
	Chat        *url.URL // of chat completions, which URL returns as well
	Bearer      string   // the Authorization header; empty when there is no key
	own         *wire    // nil: spoken to like most others
	passes      bool     // the client's credentials

	*vitals

	base   *url.URL // of the API
	probe  *url.URL // of the health check; nil when it has none
	second *url.URL // asked where probe is not there; nil when nothing is
	weight float64
	queue  *queue
}

// vitals is what an endpoint knows of itself. It goes from an endpoint to its successor, so that
// both see the requests of both.
type vitals struct {
	inflight atomic.Int64
	cap      atomic.Int64 // of inflight, by the newest configuration; 0 is no bound
	alone    queue        // requests that no other endpoint of the model will do for

	mu        sync.Mutex // guards what follows
	down      bool       // by active checks
	misses    int        // failed checks in a row
	passed    int        // checks that passed since a request failed
	failures  int        // failed requests in a row
	ejections int        // since the last success; scales the time out
	until     time.Time  // end of the time out
	rest      time.Time  // the server asked to be left alone until then
	asleep    time.Time  // it takes no requests until then, by its own word
	told      string     // the state that the log has last; empty: up
	cause     error      // of the last check that failed
}

const (
	// Failed checks in a row after which an endpoint is down: one lost packet is no outage.
	missesToDown = 2
	// Passed checks since the last failed request after which an endpoint is suspect no more: the
	// first may have been under way when that request failed.
	passesToTrust = 2
	// Failed requests in a row after which an endpoint is ejected, and for how long: the defaults
	// of Envoy's outlier detection (consecutive_5xx 5, base_ejection_time 30s, growing with each
	// ejection, max_ejection_time 300s).
	failuresToEject = 5
	ejectionBase    = 30 * time.Second
	maxEjections    = 10
)

// New makes the group of a model from options that are valid. It starts nothing; endpoints count as
// healthy until a check or a request says otherwise. transport makes what requests to an endpoint
// are sent through when its options ask for one of its own; CloseIdle is for those.
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
			Model: model, Name: o.Name, Chat: base.JoinPath(chatPath), vitals: new(vitals), base: base,
			weight: float64(max(o.Weight, 1)), queue: g.queue,
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

// The paths that are not joined like all others: the most frequent one, and one that vLLM serves
// beside the API and not below it (vllm/entrypoints/serve/tokenize/api_router.py).
const (
	chatPath     = "chat/completions"
	tokenizePath = "tokenize"
	modelsPath   = "models"
)

// URL returns where the endpoint serves a path of the API, such as completions or audio/speech. It
// is not to be changed.
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

// Probed reports whether active checks ask the endpoint.
func (e *Endpoint) Probed() bool { return e.probe != nil }

// Inflight is how many leases of the endpoint are open.
func (e *Endpoint) Inflight() int64 { return e.inflight.Load() }

// Full reports whether no request may be added.
func (e *Endpoint) Full() bool {
	most := e.cap.Load()
	return most > 0 && e.inflight.Load() >= most
}

// load is what placement compares: requests in flight for each unit of weight, which count for more
// at an endpoint that failed lately.
func (e *Endpoint) load() float64 {
	return float64(e.inflight.Load()) * float64(1+e.Failures()) / e.weight
}

// Fitness orders endpoints by how much is known against them.
type Fitness uint8

// What is known against an endpoint.
const (
	Fit     Fitness = iota // nothing
	Resting                // asked to be left alone for a while; others are asked first
	Ejected                // failed requests lately; better than nothing
	Asleep                 // says that it does not run requests; they would wait until it does
	Down                   // does not answer health checks
)

// String returns the word of /readyz.
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

// stateSuspect is the state of an endpoint that is used like any other, with doubts.
const stateSuspect = "suspect"

// State is what /readyz says of the endpoint: up, suspect when requests or checks have failed
// lately and checks have not passed since, or it was ejected and no request has succeeded since,
// resting, ejected, asleep or down.
func (e *Endpoint) State(now time.Time) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state(now)
}

// state is State for those who hold the lock.
func (e *Endpoint) state(now time.Time) string {
	f := e.fitness(now)
	if f == Fit && (e.misses > 0 || e.ejections > 0 || e.failures > 0 && e.passed < passesToTrust) {
		return stateSuspect
	}
	return f.String()
}

// news is the state at now, why the last health check that failed did, and whether the log has
// another state; it has this one then. Endpoints that rest
// or sleep have lines of their own, or need none. All configurations that have the endpoint watch
// it, and one of them tells.
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

// Up reports whether the endpoint takes requests as a matter of course at now.
func (e *Endpoint) Up(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.down && e.ejections == 0 && !now.Before(e.asleep)
}

// Fitness judges the endpoint at now. One whose time out is over is tried with a single request,
// whose outcome decides.
func (e *Endpoint) Fitness(now time.Time) Fitness {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fitness(now)
}

// fitness is Fitness for those who hold the lock.
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

// Rest notes that the server is to be left alone until then: it is busy, and says for how long by
// Retry-After, or does not say.
func (e *Endpoint) Rest(until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rest = until
}

// Sleep notes, at now, that the server takes no requests until then, by its own word, and reports
// whether it did before. A word that is not repeated lapses: a server that tells nothing any more
// is judged by its health alone.
func (e *Endpoint) Sleep(now, until time.Time) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed = !now.Before(e.asleep)
	e.asleep = until
	return changed
}

// Wake notes that the server takes requests, lets one that waits for an endpoint try, and reports
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

// wakeNext tells those who are first in their lines that there may be a place here.
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

// Serves reports whether some endpoint of the group takes requests at now, as far as is known.
func (g *Group) Serves(now time.Time) bool {
	return slices.ContainsFunc(g.Endpoints, func(e *Endpoint) bool {
		return e.Fitness(now) <= Resting
	})
}

// Succeeded notes a request that was answered.
func (e *Endpoint) Succeeded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures, e.ejections = 0, 0
}

// Failures is how many requests failed in a row.
func (e *Endpoint) Failures() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failures
}

// Failed notes, at now, a request that endpoint e of the group did not answer, or not to its end.
func (g *Group) Failed(e *Endpoint, now time.Time) { g.failed(e, now, len(g.Endpoints)) }

// Erred notes, at now, a request that endpoint e of the group answered with a failure of its own,
// such as a status of 500 or above. A request may be made that every server answers so: by such
// answers at most half of the endpoints, rounded down, are ejected at a time (as by Envoy's
// max_ejection_percent), so that who sends it takes no more from the others. Those that count are
// out until a request to them succeeds, for till then they get one at a time.
func (g *Group) Erred(e *Endpoint, now time.Time) { g.failed(e, now, len(g.Endpoints)/2) }

// failed counts a failure, and ejects e where that makes no more than most endpoints ejected.
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
		return // the last endpoint is never ejected: failing sometimes beats refusing always
	}
	e.ejections = min(e.ejections+1, maxEjections)
	e.until = now.Add(time.Duration(e.ejections) * ejectionBase)
}

// ejected reports whether the endpoint was ejected and has answered no request since, while it is
// not down anyway.
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

// checked notes the outcome of an active check.
func (e *Endpoint) checked(err error) {
	e.mu.Lock()
	was := e.down
	if err == nil {
		e.misses, e.down = 0, false
		e.passed = min(e.passed+1, passesToTrust)
	} else if e.misses, e.cause = e.misses+1, err; e.misses >= missesToDown {
		e.down = true
	}
	up := was && !e.down
	e.mu.Unlock()
	if up {
		e.wakeNext()
	}
}

// Adopt makes the group the successor of an older one of the same model: endpoints that both have,
// by name and address, continue with what is known of them, and requests of both wait in one line.
// The successor's max_inflight holds for both from now on, so that a request that waits since
// before the change gets the room that it brings. To be called before the group is used.
func (g *Group) Adopt(old *Group) {
	g.queue = old.queue
	for _, e := range g.Endpoints {
		e.queue = old.queue
		for _, b := range old.Endpoints {
			if b.Name == e.Name && *b.Chat == *e.Chat {
				b.cap.Store(e.cap.Load())
				e.vitals = b.vitals
				e.wakeNext()
				if e.own != nil && b.own != nil && e.own.mark == b.own.mark {
					e.own = b.own
				}
			}
		}
	}
}

// Left are the endpoints of an older group that have no successor in this one.
func (g *Group) Left(old *Group) (out []*Endpoint) {
	for _, b := range old.Endpoints {
		if !slices.ContainsFunc(g.Endpoints, func(e *Endpoint) bool { return e.vitals == b.vitals }) {
			out = append(out, b)
		}
	}
	return out
}
