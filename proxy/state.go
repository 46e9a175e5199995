package proxy

import (
	"slices"
	"sync"
	"sync/atomic"

	"signalbox/internal/telemetry"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/engine"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/placement"
	"signalbox/proxy/pool"
	"signalbox/proxy/recall"
	"signalbox/proxy/record"
	"signalbox/proxy/relay"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/settings"
	"signalbox/proxy/tools"
)

// State is what requests are served from: one configuration, immutable except for the health of its
// endpoints. It is safe for concurrent use.
type State struct {
	decide.Base

	opts     settings.Server
	limits   settings.Limits
	auth     *auth.Keys
	edits    *rewrite.Options // for writing bodies
	book     record.Book      // records requests
	relay    relay.Stage      // relays responses
	metrics  *telemetry.Metrics
	guard    *guardrail.Guard
	places   placement.Places  // knows where prompts were sent
	salted   bool              // places.Salts come from a configured secret
	forwards bool              // some endpoint receives the client's credentials
	controls *engine.Controls  // which engine parameters callers may set
	notices  *backend.Boards   // exchanged with other replicas; shared by all states of a proxy
	answers  *recall.Answers   // cached responses; nil if there are none
	tools    *tools.Memo       // shared by all states of a proxy
	results  *tools.ShortForms // shortened tool results

	replaced bool // a newer state has the pool of copies; written before idle is closed

	refs atomic.Int64  // requests in flight, plus one while the state is current
	idle chan struct{} // closed when refs falls to 0
}

// hold takes a reference. It returns false when the state is no longer served from.
func (st *State) hold() bool {
	for {
		n := st.refs.Load()
		if n == 0 {
			return false
		}
		if st.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release returns a reference.
func (st *State) release() {
	if st.refs.Add(-1) == 0 {
		close(st.idle)
	}
}

// Idle returns a channel that is closed when no request uses st and none will. The things that st
// was made of, such as its classifier, may be released then.
func (st *State) Idle() <-chan struct{} { return st.idle }

// Close stops the workers of the guard and waits for them and for responses that are being stored.
// It also ends copies in flight, unless a newer state has taken them over. Call it once, after Idle
// is closed.
func (st *State) Close() {
	st.guard.Close()
	if !st.replaced {
		st.book.Copies.Close()
	}
	st.Caching.Close()
	for _, m := range st.Models {
		m.CloseIdle()
	}
}

// groups returns the endpoint groups of all models.
func (st *State) groups() []*pool.Group {
	out := make([]*pool.Group, len(st.Models))
	for i, m := range st.Models {
		out[i] = m.Group
	}
	return out
}

// inherit takes over what an older state has learned about endpoints that both have.
func (st *State) inherit(old *State) {
	st.Chooser.Speeds, st.Chooser.Lengths = old.Chooser.Speeds, old.Chooser.Lengths
	st.Chooser.Spent = old.Chooser.Spent
	st.notices.Adopt(old.notices)
	st.places.Chains, st.tools, st.book.Seen = old.places.Chains, old.tools, old.book.Seen
	st.book.Copies, old.replaced = old.book.Copies, true
	st.auth.Adopt(old.auth)
	if !st.salted {
		st.places.Salts = old.places.Salts
	}
	for _, m := range st.Models {
		if before, ok := old.ByName[m.Name]; ok {
			m.Adopt(before.Group)
			m.Servers.Inherit(before.Servers)
		}
	}
}

// removedEndpoints tracks endpoints that were removed from the configuration while requests to them
// are still in flight.
type removedEndpoints struct {
	mu  sync.Mutex // guards all fields
	all []*pool.Endpoint
}

// add adds the endpoints that old has and st does not.
func (l *removedEndpoints) add(st, old *State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range old.Models {
		gone := m.Endpoints
		if now, ok := st.ByName[m.Name]; ok {
			gone = now.Left(m.Group)
		}
		l.all = append(l.all, gone...)
	}
	l.all = slices.DeleteFunc(l.all, func(e *pool.Endpoint) bool {
		m, ok := st.ByName[e.Model]
		return ok && m.Has(e) // it is back
	})
	l.forget()
}

// list returns the endpoints that still have requests.
func (l *removedEndpoints) list() []*pool.Endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	return slices.Clone(l.all)
}

func (l *removedEndpoints) forget() {
	l.all = slices.DeleteFunc(l.all, func(e *pool.Endpoint) bool { return e.Inflight() == 0 })
}
