package proxy

import (
	"slices"
	"sync"

	"signalbox/proxy/pool"
)

// removedEndpoints is the endpoints that the configuration no longer has, as long as requests to them are
// under way.
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
