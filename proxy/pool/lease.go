package pool

import "sync/atomic"

// Lease is one slot of an endpoint, held by one request from Enter to Close. Every request is sent
// under a lease, so that the in-flight count of an endpoint is exact. Its methods are safe for
// concurrent use.
type Lease struct {
	endpoint *Endpoint
	closed   atomic.Bool
}

// Enter takes a slot of the endpoint; it returns nil and false when max_inflight slots are taken.
// The caller closes the lease when the request has ended.
func (e *Endpoint) Enter() (*Lease, bool) {
	for {
		n := e.inflight.Load()
		if most := e.cap.Load(); most > 0 && n >= most {
			return nil, false
		}
		if e.inflight.CompareAndSwap(n, n+1) {
			return &Lease{endpoint: e}, true
		}
	}
}

// Endpoint returns the endpoint of the slot.
func (l *Lease) Endpoint() *Endpoint { return l.endpoint }

// Close returns the slot and lets a waiting request try. Further calls, and calls on nil, do
// nothing.
func (l *Lease) Close() {
	if l == nil || l.closed.Swap(true) {
		return
	}
	e := l.endpoint
	e.inflight.Add(-1)
	if e.cap.Load() > 0 {
		e.wakeNext()
	}
}
