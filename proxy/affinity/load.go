package affinity

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// stale is how long an observation of an endpoint is used.
const stale = 10 * time.Second

// load is the current load of an endpoint.
type load struct {
	queued  atomic.Int64 // prompt tokens sent that must be computed before another prompt
	pending atomic.Int64 // requests without a first token
	running atomic.Int64 // requests in flight, including pending ones
	foreign atomic.Int64 // requests from others, as observed
	waiting atomic.Int64 // requests waiting for a seat, as observed
	seen    atomic.Int64 // time of that observation, in Unix nanoseconds

	mu   sync.Mutex // guards hold
	hold float64    // average seconds that a request keeps its seat; 0 if unknown
	last Status
}

// holdShare is the weight of a new sample in hold.
const holdShare = 0.1

// assumedSeats is used in place of an unknown number of seats when a share of an endpoint is
// computed.
const assumedSeats = 64

// wait returns the seconds until an endpoint would begin with another prompt, plus the cost of the
// requests that run beside it.
func (e *endpoint) wait(now time.Time, crowd float64) float64 {
	running := float64(e.load.running.Load())
	if now.UnixNano()-e.load.seen.Load() < int64(stale) {
		running += float64(e.load.foreign.Load())
	}
	wait := float64(e.load.queued.Load())*e.speed.perToken() + running*crowd
	if ahead := running - float64(e.Seats) + 1; e.Seats > 0 && ahead > 0 {
		wait += ahead * e.load.held() / float64(e.Seats)
	}
	return wait
}

// idle reports whether a request would start immediately.
func (e *endpoint) idle() bool {
	return e.load.pending.Load() == 0 && e.load.waiting.Load() == 0 &&
		(e.Seats == 0 || e.load.running.Load() < int64(e.Seats))
}

// Load returns the number of requests running at endpoint i, including those of others if observed
// recently, and the number waiting there for a seat.
func (p *Placer) Load(now time.Time, i int) (running, waiting int) {
	l := &p.endpoints[i].load
	running = int(l.running.Load())
	if now.UnixNano()-l.seen.Load() < int64(stale) {
		running, waiting = running+int(l.foreign.Load()), int(l.waiting.Load())
	}
	return running, waiting
}

// held returns how long a request keeps its seat, in seconds.
func (l *load) held() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold
}

// release records how long a request kept its seat, in seconds.
func (l *load) release(seconds float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = cmp.Or(l.hold, seconds)
	l.hold += holdShare * (seconds - l.hold)
}

// Status is what an endpoint reports at /metrics. Missing values are zero.
type Status struct {
	Started float64 // process_start_time_seconds, Unix time
	Queries float64 // vllm:prefix_cache_queries_total, which only grows
	Running int     // vllm:num_requests_running
	Waiting int     // vllm:num_requests_waiting
}

// Observe records what endpoint i reports, and returns whether the endpoint was restarted since the
// last report. If so, its predicted cache is cleared.
func (p *Placer) Observe(now time.Time, i int, s Status) (restarted bool) {
	e := &p.endpoints[i]
	if restarted = e.load.observe(now, s); restarted {
		e.count.restarts.Add(1)
		p.Forget(i)
	}
	return restarted
}

// observe records a status and reports whether it comes from another process than the last one.
// Start times are compared to the second, since some servers recompute them.
func (l *load) observe(now time.Time, s Status) (restarted bool) {
	l.foreign.Store(max(0, int64(s.Running+s.Waiting)-l.running.Load()))
	l.waiting.Store(int64(s.Waiting))
	l.seen.Store(now.UnixNano())
	l.mu.Lock()
	defer l.mu.Unlock()
	moved := s.Started != 0 && l.last.Started != 0 && math.Abs(s.Started-l.last.Started) >= 1
	restarted = moved || s.Queries < l.last.Queries
	l.last = s
	return restarted
}

// counts are the counters of an endpoint.
type counts struct {
	placed, deviated, mispredicted, restarts atomic.Int64
	told                                     atomic.Int64
	predicted, cached                        atomic.Int64
}

// Stats is what a Placer knows about an endpoint. Counts start at New.
type Stats struct {
	Name         string
	Blocks       int     // including expired blocks that were not yet evicted
	Prefill      float64 // seconds per prompt token
	Queued       int64   // prompt tokens in flight to it
	Running      int64   // requests in flight
	Placed       int64   // requests
	Deviated     int64   // requests whose home is another endpoint
	Mispredicted int64   // requests that found less than half of the predicted tokens
	Restarts     int64   // observed restarts
	Predicted    int64   // predicted prompt tokens, of requests that reported cached tokens
	Cached       int64   // prompt tokens that it reported as cached
	Told         int64   // notices about it from other proxies
}

// Stats returns what is known of endpoint i.
func (p *Placer) Stats(i int) Stats {
	e := &p.endpoints[i]
	return Stats{
		Name: e.Name, Blocks: e.table.len(), Prefill: e.speed.perToken(), Queued: e.load.queued.Load(), Running: e.load.running.Load(),
		Placed: e.count.placed.Load(), Deviated: e.count.deviated.Load(), Mispredicted: e.count.mispredicted.Load(),
		Restarts: e.count.restarts.Load(), Predicted: e.count.predicted.Load(), Cached: e.count.cached.Load(),
		Told: e.count.told.Load(),
	}
}
