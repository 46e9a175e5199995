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
	redis     Redis // nil: there is none
	bytes     downstream.InFlight
	counters  *count.Servers
	records   record.Recorder
	state     atomic.Pointer[State]
	swapped   chan struct{} // holds 1: a swap that Run has not seen yet; more of them are one
	draining  atomic.Bool
	serving   atomic.Int64 // requests that are under way
	removed   removedEndpoints
	stale     atomic.Bool // the configuration has changed and could not be read
	started   int64       // Unix time in seconds; what /v1/models gives as created
}

// acquire takes the current state for one request; the caller releases it.
func (p *Proxy) acquire() *State {
	for {
		if st := p.state.Load(); st.hold() {
			return st
		}
	}
}

// Recent returns what was decided lately.
func (p *Proxy) Recent() *recent.Decisions { return p.records.Recent }
