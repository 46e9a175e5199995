package pool

import "sync/atomic"

// Lease is one slot of an endpoint, held by one request from Enter to Close. A request is sent
// under a lease only, so that what an endpoint counts as in flight is what was sent to it. Its
// methods are safe for concurrent use.
type Lease struct {
	endpoint *Endpoint
	closed   atomic.Bool
}

// Enter takes a slot for a request to the endpoint; nil and false when max_inflight of them are
// taken. The caller closes the lease when the request has ended.
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

// Endpoint is where the slot is.
func (l *Lease) Endpoint() *Endpoint { return l.endpoint }

// Close gives the slot back and lets a request that waits for one try. Later calls, and calls on
// nil, do nothing.
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
