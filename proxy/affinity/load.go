package affinity

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// stale is for how long an observation of an endpoint counts.
const stale = 10 * time.Second

// load is what an endpoint is busy with.
type load struct {
	queued  atomic.Int64 // prompt tokens that were sent and have to be computed before another prompt
	pending atomic.Int64 // requests without a first token
	running atomic.Int64 // requests that were sent and have not ended, those included
	foreign atomic.Int64 // requests of others, as observed
	waiting atomic.Int64 // requests that wait for a seat, as observed
	seen    atomic.Int64 // when that was, in Unix nanoseconds

	mu   sync.Mutex // guards what follows
	hold float64    // seconds that a request keeps its seat, averaged; 0 when not known
	last Status
}

// holdShare is the weight of a new sample of how long seats are kept.
const holdShare = 0.1

// assumedSeats stands for the number of seats that is not known where a share of an endpoint is
// needed.
const assumedSeats = 64

// wait is the seconds before an endpoint would begin with another prompt, and what company costs
// besides.
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

// idle reports whether a request would be begun with at once.
func (e *endpoint) idle() bool {
	return e.load.pending.Load() == 0 && e.load.waiting.Load() == 0 &&
		(e.Seats == 0 || e.load.running.Load() < int64(e.Seats))
}

// Load is what runs at endpoint i, requests of others included as far as it was observed lately,
// and what waits there for a seat.
func (p *Placer) Load(now time.Time, i int) (running, waiting int) {
	l := &p.endpoints[i].load
	running = int(l.running.Load())
	if now.UnixNano()-l.seen.Load() < int64(stale) {
		running, waiting = running+int(l.foreign.Load()), int(l.waiting.Load())
	}
	return running, waiting
}

// held is how long a request keeps its seat, in seconds.
func (l *load) held() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold
}

// release notes for how long, in seconds, a request kept its seat.
func (l *load) release(seconds float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = cmp.Or(l.hold, seconds)
	l.hold += holdShare * (seconds - l.hold)
}

// Status is what an endpoint says of itself at /metrics. Fields that it does not say are zero.
type Status struct {
	Started float64 // process_start_time_seconds, Unix time
	Queries float64 // vllm:prefix_cache_queries_total, which only ever grows
	Running int     // vllm:num_requests_running
	Waiting int     // vllm:num_requests_waiting
}

// Observe takes in what endpoint i says of itself, and reports whether it was restarted since the
// last time: then what it held is forgotten.
func (p *Placer) Observe(now time.Time, i int, s Status) (restarted bool) {
	e := &p.endpoints[i]
	if restarted = e.load.observe(now, s); restarted {
		e.count.restarts.Add(1)
		p.Forget(i)
	}
	return restarted
}

// observe notes a status and reports whether it is one of another process than the last. Start
// times are compared to the second, since some servers compute them anew.
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

// counts is what a Placer tells of an endpoint.
type counts struct {
	placed, deviated, mispredicted, restarts atomic.Int64
	told                                     atomic.Int64
	predicted, cached                        atomic.Int64
}

// Stats is what a Placer knows of an endpoint. Counts are since New.
type Stats struct {
	Name         string
	Blocks       int     // that it should have, those that have expired but were not needed included
	Prefill      float64 // seconds that it takes for a prompt token
	Queued       int64   // prompt tokens on their way to it
	Running      int64   // requests on their way
	Placed       int64   // requests
	Deviated     int64   // requests of which it is not the home
	Mispredicted int64   // requests of which it had less than half of what was predicted
	Restarts     int64   // observed
	Predicted    int64   // prompt tokens that it should have had, of requests that reported cached tokens
	Cached       int64   // prompt tokens that it had
	Told         int64   // what other proxies have told of it
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
