package proxy

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/backend"
	"signalbox/proxy/downstream"
	"signalbox/proxy/placement"
	"signalbox/proxy/pool"
	"signalbox/rules"
)

func (*Proxy) live(_ *State, w *downstream.Writer, _ *http.Request) error {
	return downstream.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (p *Proxy) ready(_ *State, w *downstream.Writer, _ *http.Request) error {
	ok, detail := p.Ready()
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	return downstream.WriteJSON(w, status, detail)
}

// Detail is the body of /readyz. It contains no addresses.
type Detail struct {
	Ready      bool          `json:"ready"`
	Draining   bool          `json:"draining"`
	Generation uint64        `json:"generation"` // of the configuration
	Models     []ModelDetail `json:"models"`
	Signals    []string      `json:"signals"`  // that can be computed at the moment
	Degraded   []string      `json:"degraded"` // what does not work as configured
	Engine     *EngineDetail `json:"engine,omitempty"`
}

// Engine is a Classifier that reports what its models run on.
type Engine interface {
	// Engine returns the current state; nil if nothing is known.
	Engine() *EngineDetail
}

// Faulty is a Classifier that reports why configured models cannot be used.
type Faulty interface {
	// Fault explains to operators why the given kinds cannot be computed although a model is
	// configured for them. It is empty for kinds without a model, and when no model can be used at
	// all.
	Fault(kinds signal.Mask) string
}

// EngineDetail describes what the signal models run on.
type EngineDetail struct {
	Version string `json:"onnxruntime"`
	// why the configured provider is not used
	Fallback  string           `json:"fallback,omitempty"`
	Providers []ProviderDetail `json:"providers"`
	Bundles   []BundleDetail   `json:"bundles"`
}

// ProviderDetail is the result of probing an execution provider.
type ProviderDetail struct {
	Name      string `json:"name"`
	Available string `json:"available"` // yes, no or unknown
	Detail    string `json:"detail,omitempty"`
}

// BundleDetail describes where a bundle runs.
type BundleDetail struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
}

// ModelDetail is the state of one model's endpoints.
type ModelDetail struct {
	Name      string           `json:"name"`
	Endpoints []EndpointDetail `json:"endpoints"`
}

// EndpointDetail is the state of one endpoint.
type EndpointDetail struct {
	Name     string `json:"name"`
	State    string `json:"state"` // up, suspect, resting, ejected, asleep, down or draining
	Inflight int64  `json:"inflight"`
}

// Refuses explains to operators which routes refuse requests with a 503 because no model computes a
// signal that their conditions read. It is empty when there are none. The text names the remedy, or
// why the model configured for the signal cannot be used.
func (st *State) Refuses() []string {
	var out []string
	able := st.Signals.Signals()
	remedy := "configure a model for it under classify.tasks"
	if st.Program.Local(able) == 0 {
		remedy = "install ONNX Runtime (make onnxruntime, or classify.library)"
	}
	for _, r := range st.Program.Routes() {
		lacking := r.Kinds &^ able
		closed := r.Verb == rules.Block && r.OnUnknown == rules.Match || r.OnUnknown == rules.Error
		if lacking == 0 || !closed {
			continue
		}
		do := remedy
		if f, ok := st.Signals.Classifier.(Faulty); ok {
			do = cmp.Or(f.Fault(lacking), remedy)
		}
		out = append(out,
			fmt.Sprintf("route %q refuses requests with 503 signal_unavailable: no model computes %s; %s",
				r.Name, strings.Join(st.Signals.Names(lacking), ", "), do))
	}
	return out
}

// Ready reports whether requests can be served: the proxy is not draining, callers can be
// authenticated, and at least one endpoint is not down.
func (p *Proxy) Ready() (bool, Detail) {
	st := p.acquire()
	defer st.release()
	now := time.Now()
	d := Detail{
		Draining: p.draining.Load(), Generation: st.book.Generation,
		Signals:  st.Signals.Names(st.Signals.Signals()),
		Degraded: append(st.Refuses(), st.Signals.Degraded()...),
	}
	if e, ok := st.Signals.Classifier.(Engine); ok {
		d.Engine = e.Engine()
	}
	if lacking := st.guard.Lacking(); lacking != "" && st.guard.Claims.Wanted {
		d.Degraded = append(d.Degraded, lacking)
	}
	if p.stale.Load() {
		d.Degraded = append(d.Degraded, "the changed configuration is invalid: the previous one stays in use; see the log and /readyz of the admin listener")
	}
	what, blind := st.auth.Lacking()
	if what != "" {
		d.Degraded = append(d.Degraded, what)
	}
	d.Degraded = append(d.Degraded, p.withoutRedis()...)
	reachable := false
	for _, m := range st.Models {
		md, down := detailOf(m, now)
		switch {
		case down:
			d.Degraded = append(d.Degraded, fmt.Sprintf("every endpoint of model %q is down: "+
				"requests that no other model can serve get 503 no_endpoint until an endpoint passes a health check", m.Name))
		case m.Sleeps(now):
			d.Degraded = append(d.Degraded, fmt.Sprintf("every endpoint of model %q that is up is asleep: "+
				"requests that no other model can serve get 503 model_asleep until an endpoint is woken up", m.Name))
		}
		reachable = reachable || !down
		d.Models = append(d.Models, md)
	}
	if d.Degraded == nil {
		d.Degraded = []string{}
	}
	for _, e := range p.removed.list() {
		d.add(e.Model, EndpointDetail{Name: e.Name, State: "draining", Inflight: e.Inflight()})
	}
	d.Ready = reachable && !d.Draining && !blind
	return d.Ready, d
}

// withoutRedis lists what is degraded because Redis is unavailable or full.
func (p *Proxy) withoutRedis() (out []string) {
	switch {
	case p.redis == nil:
	case !p.redis.Healthy():
		out = append(
			out,
			"redis is not reachable: limits and budgets count per replica, and replicas do not share state",
		)
	case p.redis.Full():
		out = append(out, "redis is full: limits and budgets count per replica, and nothing more is stored in it")
	}
	if p.resolver.Store != nil {
		if remote, reachable := p.resolver.Store.Reachable(); remote && !reachable {
			out = append(out, "redis is not reachable: contexts are served from memory, "+
				"and new ones are refused unless they are best_effort")
		}
	}
	return out
}

// detailOf returns the state of a model's endpoints; down is true when all of them are down.
func detailOf(m *backend.Model, now time.Time) (md ModelDetail, down bool) {
	md, down = ModelDetail{Name: m.Name}, true
	for _, e := range m.Endpoints {
		down = down && e.Fitness(now) == pool.Down
		md.Endpoints = append(md.Endpoints, EndpointDetail{Name: e.Name, State: e.State(now), Inflight: e.Inflight()})
	}
	return md, down
}

// add adds an endpoint to its model.
func (d *Detail) add(model string, e EndpointDetail) {
	for i := range d.Models {
		if d.Models[i].Name == model {
			d.Models[i].Endpoints = append(d.Models[i].Endpoints, e)
			return
		}
	}
	d.Models = append(d.Models, ModelDetail{Name: model, Endpoints: []EndpointDetail{e}})
}

// poolStatus returns the state of endpoints for a metrics scrape: the endpoints of the current
// configuration, and removed ones that still have requests in flight.
func (p *Proxy) poolStatus() (s telemetry.PoolStatus) {
	st := p.acquire()
	defer st.release()
	now := time.Now()
	for _, m := range st.Models {
		for _, e := range m.Endpoints {
			s.Endpoints = append(s.Endpoints, telemetry.EndpointStatus{
				Model: m.Name, Endpoint: e.Name, Up: e.Up(now),
				Asleep: e.Fitness(now) == pool.Asleep, Inflight: e.Inflight(),
			})
		}
		s.Queued = append(s.Queued, telemetry.QueueStatus{Model: m.Name, Requests: m.Queued()})
	}
	for _, e := range p.removed.list() {
		s.Endpoints = append(s.Endpoints, telemetry.EndpointStatus{Model: e.Model, Endpoint: e.Name, Inflight: e.Inflight()})
	}
	return s
}

// Load returns the current load of every endpoint in the configuration.
func (p *Proxy) Load() []placement.ModelLoad {
	st := p.acquire()
	defer st.release()
	return placement.Load(st.Models)
}

// Prefixes lists the prefixes recently sent to an endpoint of a model, most recent first, each with
// its owner. It returns false when the configuration has no such endpoint.
func (p *Proxy) Prefixes(model, endpoint string) ([]placement.HeldPrefix, bool) {
	st := p.acquire()
	defer st.release()
	m, ok := st.ByName[model]
	if !ok {
		return nil, false
	}
	return placement.Prefixes(m, endpoint)
}
