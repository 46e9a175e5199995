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

// State is what requests are served from: one configuration, immutable but for the health of its
// endpoints. It is safe for concurrent use.
type State struct {
	decide.Base

	opts     settings.Server
	limits   settings.Limits
	auth     *auth.Keys
	edits    *rewrite.Options // what bodies are written by
	book     record.Book      // that requests are recorded by
	relay    relay.Stage      // that passes responses on
	metrics  *telemetry.Metrics
	guard    *guardrail.Guard  // the guard
	places   placement.Places  // where prompts are
	salted   bool              // they come from a secret of the configuration
	forwards bool              // some endpoint gets what callers show
	controls *engine.Controls  // what callers may say to model servers
	notices  *backend.Boards   // to and from other replicas; of all states of a proxy
	answers  *recall.Answers   // that are kept; nil without any
	tools    *tools.Memo       // of all states of a proxy
	results  *tools.ShortForms // short forms of results of tools

	refs atomic.Int64  // requests that use it, and one for being the current one
	idle chan struct{} // closed when refs falls to 0
}

// hold takes a reference; false when the state is no longer served from.
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

// release gives a reference back.
func (st *State) release() {
	if st.refs.Add(-1) == 0 {
		close(st.idle)
	}
}

// Idle is closed when no request uses st any more and none will. What st was made of, such as its
// classifier, may be released then.
func (st *State) Idle() <-chan struct{} { return st.idle }

// Close ends the workers of the guard and waits for them, and for the responses that are being
// kept. Call it when Idle is closed, and not twice.
func (st *State) Close() {
	st.guard.Close()
	st.book.Copies.Close()
	st.Caching.Close()
	for _, m := range st.Models {
		m.CloseIdle()
	}
}

// groups lists the endpoints of every model.
func (st *State) groups() []*pool.Group {
	out := make([]*pool.Group, len(st.Models))
	for i, m := range st.Models {
		out[i] = m.Group
	}
	return out
}

// inherit takes over what an older state learned about endpoints that both have.
func (st *State) inherit(old *State) {
	st.Chooser.Speeds, st.Chooser.Lengths = old.Chooser.Speeds, old.Chooser.Lengths
	st.Chooser.Spent = old.Chooser.Spent
	st.notices.Adopt(old.notices)
	st.places.Chains, st.tools, st.book.Seen = old.places.Chains, old.tools, old.book.Seen
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

// removedEndpoints is the endpoints that the configuration no longer has, as long as requests to
// them are under way.
type removedEndpoints struct {
	mu  sync.Mutex // guards all
	all []*pool.Endpoint
}

// add takes in what old has and st has not.
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
	l.forget()
}

// list is those that are left.
func (l *removedEndpoints) list() []*pool.Endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	return slices.Clone(l.all)
}

func (l *removedEndpoints) forget() {
	l.all = slices.DeleteFunc(l.all, func(e *pool.Endpoint) bool { return e.Inflight() == 0 })
}
