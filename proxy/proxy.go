package proxy

import (
	"sync/atomic"

	"signalbox/internal/telemetry"
	"signalbox/proxy/budget"
	"signalbox/proxy/contexts"
	"signalbox/proxy/count"
	"signalbox/proxy/downstream"
	"signalbox/proxy/framing"
	"signalbox/proxy/pool"
	"signalbox/proxy/rate"
	"signalbox/proxy/recent"
	"signalbox/proxy/record"
	"signalbox/proxy/resolve"
	"signalbox/proxy/warm"
)

// Proxy serves the main listener. It is safe for concurrent use.
type Proxy struct {
	tel       *telemetry.Telemetry
	transport framing.Transport
	retries   *pool.Budget
	resolver  resolve.Resolver
	warms     *warm.Reader
	contexts  *contexts.Service
	limiter   *rate.Limiter
	spending  *budget.Keeper
	redis     Redis // nil if not used
	bytes     downstream.InFlight
	counters  *count.Servers
	records   record.Recorder
	state     atomic.Pointer[State]
	swapped   chan struct{} // holds 1 value: a swap that Run has not handled yet
	draining  atomic.Bool
	serving   atomic.Int64 // requests in flight
	removed   removedEndpoints
	stale     atomic.Bool // the last reload failed
	started   int64       // Unix time in seconds; the created field of /v1/models
}

// acquire returns the current state with a reference for one request. The caller must release it.
func (p *Proxy) acquire() *State {
	for {
		if st := p.state.Load(); st.hold() {
			return st
		}
	}
}

// Recent returns the latest decisions.
func (p *Proxy) Recent() *recent.Decisions { return p.records.Recent }
