package proxy

import (
	"slices"
	"sync"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/proxy/pool"
)

// leaving is the endpoints that the configuration no longer has, as long as requests to them are
// under way.
type leaving struct {
	mu  sync.Mutex // guards all
	all []*pool.Endpoint
}

// add takes in what old has and st has not.
func (l *leaving) add(st, old *State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range old.models {
		gone := m.Endpoints
		if now, ok := st.byName[m.Name]; ok {
			gone = now.Left(m.Group)
		}
		l.all = append(l.all, gone...)
	}
	l.forget()
}

// list is those that are left.
func (l *leaving) list() []*pool.Endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	return slices.Clone(l.all)
}

func (l *leaving) forget() {
	l.all = slices.DeleteFunc(l.all, func(e *pool.Endpoint) bool { return e.Inflight() == 0 })
}

// add puts an endpoint to its model.
func (d *Detail) add(model string, e EndpointDetail) {
	for i := range d.Models {
		if d.Models[i].Name == model {
			d.Models[i].Endpoints = append(d.Models[i].Endpoints, e)
			return
		}
	}
	d.Models = append(d.Models, ModelDetail{Name: model, Endpoints: []EndpointDetail{e}})
}

// poolStatus is what metrics tell of the endpoints at the moment they are read: those of the
// current configuration and no others, but for those that still have requests.
func (p *Proxy) poolStatus() (s telemetry.PoolStatus) {
	st := p.acquire()
	defer st.release()
	now := time.Now()
	for _, m := range st.models {
		for _, e := range m.Endpoints {
			s.Endpoints = append(s.Endpoints, telemetry.EndpointStatus{
				Model: m.Name, Endpoint: e.Name, Up: e.Up(now),
				Asleep: e.Fitness(now) == pool.Asleep, Inflight: e.Inflight(),
			})
		}
		s.Queued = append(s.Queued, telemetry.QueueStatus{Model: m.Name, Requests: m.Queued()})
	}
	for _, e := range p.leaving.list() {
		s.Endpoints = append(s.Endpoints, telemetry.EndpointStatus{Model: e.Model, Endpoint: e.Name, Inflight: e.Inflight()})
	}
	return s
}
