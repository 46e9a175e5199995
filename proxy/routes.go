package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/memory"
	"signalbox/proxy/contexts"
	"signalbox/proxy/framing"
	"signalbox/proxy/pool"
	"signalbox/proxy/rate"
	"signalbox/rules"
)

// Proxy serves the main listener. It is safe for concurrent use.
type Proxy struct {
	tel       *telemetry.Telemetry
	transport framing.Transport
	budget    *pool.Budget
	memory    *memory.Store // of contexts; nil without one
	warms     *warms
	contexts  *contexts.Service
	limiter   *rate.Limiter
	bytes     inFlight
	counters  counters
	state     atomic.Pointer[State]
	swapped   chan struct{} // holds 1: a swap that Run has not seen yet; more of them are one
	draining  atomic.Bool
	leaving   leaving
	stale     atomic.Bool // the configuration has changed and could not be read
	started   int64       // Unix time in seconds; what /v1/models gives as created
}

// New makes a proxy that serves from st. It starts nothing; see Run.
func New(opts Options, st *State, tel *telemetry.Telemetry) *Proxy {
	p := &Proxy{tel: tel, transport: newTransport(opts), budget: pool.NewBudget(), swapped: make(chan struct{}, 1), started: time.Now().Unix(), warms: newWarms(), limiter: rate.New(nil, time.Now)}
	p.state.Store(st)
	tel.Metrics.WatchPool(p.poolStatus)
	return p
}

// Swap serves later requests from st; those under way keep the state they have. st takes over what
// the old state knows about the health of endpoints that both have. A State serves once: after it was
// replaced it must not be swapped in again.
func (p *Proxy) Swap(st *State) {
	st.inherit(p.state.Load())
	old := p.state.Swap(st)
	p.leaving.add(st, old)
	old.release()
	select {
	case p.swapped <- struct{}{}:
	default:
	}
}

// Run checks the health of endpoints until ctx ends. It returns nil when its goroutines have ended.
func (p *Proxy) Run(ctx context.Context) error {
	health := pool.Watcher{Transport: p.transport, Log: p.tel.Log}
	var wg sync.WaitGroup
	defer p.transport.CloseIdleConnections()
	defer wg.Wait()
	wg.Go(func() { p.warms.run(ctx, p) })
	wg.Go(func() { p.limiter.Run(ctx) })
	var checked *State
	for {
		if st := p.state.Load(); st != checked {
			checked = st
			wg.Go(func() { health.Watch(ctx, st.groups(), st.idle) })
			wg.Go(func() { p.scrape(ctx, st) })
			wg.Go(func() { st.auth.Watch(ctx, st.idle) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.swapped:
		}
	}
}

// Drain turns /readyz to 503, so that load balancers stop sending. Requests are served as before.
func (p *Proxy) Drain() { p.draining.Store(true) }

// ReloadFailed notes whether the last attempt to read the configuration again failed, which /readyz tells.
func (p *Proxy) ReloadFailed(failed bool) { p.stale.Store(failed) }

// acquire takes the current state for one request; the caller releases it.
func (p *Proxy) acquire() *State {
	for {
		if st := p.state.Load(); st.hold() {
			return st
		}
	}
}

// Handler returns the routes of the main listener: exact paths, everything else is an error of the
// API. Nothing of a request reaches an upstream but through answer.
func (p *Proxy) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.GetHead) // load balancers probe with HEAD
	forwarded := make(map[string]http.HandlerFunc, len(surfaces))
	for i := range surfaces {
		s := &surfaces[i]
		forwarded[s.path] = p.serve(func(st *State, w *reply, r *http.Request) error { return p.answer(st, w, r, s) })
		r.Post(s.path, forwarded[s.path])
	}
	r.Get("/v1/models", p.serve(p.listModels))
	r.Get("/v1/models/*", p.serve(p.oneModel))
	r.Post("/signalbox/v1/classify", p.serve(p.classifyRequest))
	r.Post("/signalbox/v1/explain", p.serve(p.explainRequest))
	r.Post("/signalbox/v1/verify", p.serve(p.verifyRequest))
	r.Get("/signalbox/v1/intents", p.serve(p.listIntents))
	r.Post("/signalbox/v1/intents/{name}/examples", p.serve(p.addExamples))
	p.contextRoutes(r)
	r.Get("/healthz", p.serve(p.live))
	r.Get("/readyz", p.serve(p.ready))
	r.NotFound(p.serve(func(*State, *reply, *http.Request) error { return errNoRoute }))
	r.MethodNotAllowed(p.serve(refuseMethod(r)))
	return refuseUpgrades(p, straight(forwarded, r))
}

// straight hands requests that are forwarded to their handler, and all others to the router: that would find the same, but makes a
// context and a copy of each request.
func straight(forwarded map[string]http.HandlerFunc, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := forwarded[r.URL.Path]; h != nil && r.Method == http.MethodPost && r.URL.RawPath == "" {
			h(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseUpgrades stands before the router: CONNECT has no path to match, and a request to switch
// protocols is no request of this API.
func refuseUpgrades(p *Proxy, next http.Handler) http.Handler {
	refuse := p.serve(func(*State, *reply, *http.Request) error { return errMethod })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || r.Method == http.MethodTrace || len(r.Header["Upgrade"]) > 0 {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serve adapts a handler: one state for the whole request, one place where errors become answers,
// and where a panic becomes one.
func (p *Proxy) serve(h func(st *State, w *reply, r *http.Request) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		st := p.acquire()
		defer st.release()
		w := newReply(rw, r)
		w.patient, w.limiter, w.bytes = time.Duration(st.opts.WriteTimeout), p.limiter, &p.bytes
		defer w.done()
		if p.draining.Load() {
			rw.Header()["Connection"] = []string{"close"} // the next request of the client is for another process
		}
		st.expect(w, r)
		defer p.recovered(w, r)
		err := stopped(r.Context(), h(st, w, r))
		switch {
		case err == nil:
		case w.status == 0 && !errors.Is(err, errClientGone):
			if e := wire(err, w.id); e.Status >= http.StatusInternalServerError && !isForwarded(r.URL.Path) {
				p.tel.Log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("id", w.id),
					slog.String("path", r.URL.Path), slog.Int("status", e.Status), slog.String("cause", err.Error()))
			}
			fail(w, err)
		default:
			panic(http.ErrAbortHandler) // the head is gone: what is left is to let the client see a break
		}
	}
}

// recovered turns a panic into an error, or into a broken connection when an answer has begun.
func (p *Proxy) recovered(w *reply, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler { //nolint:errorlint // a sentinel that is panicked, not wrapped
		p.tel.Log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("id", w.id), slog.Any("value", v), slog.String("stack", string(debug.Stack())))
		if w.status == 0 {
			fail(w, errPanicked)
			return
		}
	}
	panic(http.ErrAbortHandler)
}

func (p *Proxy) listModels(st *State, w *reply, r *http.Request) error {
	who, err := st.identify(w, r)
	if err != nil {
		return err
	}
	list := make([]openai.ModelObject, 0, len(st.opts.AutoModels)+len(st.models))
	for _, name := range st.modelNames(&who) {
		list = append(list, p.object(st, name))
	}
	return writeJSON(w, http.StatusOK, openai.NewModelList(list...))
}

func (p *Proxy) oneModel(st *State, w *reply, r *http.Request) error {
	who, err := st.identify(w, r)
	if err != nil {
		return err
	}
	asked, err := url.PathUnescape(chi.URLParam(r, "*"))
	if err != nil {
		return errNoRoute
	}
	for _, name := range st.modelNames(&who) {
		if name == asked {
			return writeJSON(w, http.StatusOK, p.object(st, name))
		}
	}
	return &unknownModelError{asked}
}

// object is a model as the API lists it; names that are routed have no window.
func (p *Proxy) object(st *State, name string) openai.ModelObject {
	out := openai.NewModelObject(name, p.started, "signalbox")
	if m, ok := st.byName[name]; ok {
		out.MaxModelLen = m.window()
	}
	return out
}

// modelNames lists what a client may ask for. Routing only leads to models that it may use, so everyone may ask for that.
func (st *State) modelNames(who *Principal) []string {
	out := append([]string(nil), st.opts.AutoModels...)
	for _, m := range st.models {
		if who.May(m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

func (*Proxy) live(_ *State, w *reply, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (p *Proxy) ready(_ *State, w *reply, _ *http.Request) error {
	ok, detail := p.Ready()
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, detail)
}

// Detail is what /readyz tells. It holds no addresses.
type Detail struct {
	Ready      bool          `json:"ready"`
	Draining   bool          `json:"draining"`
	Generation uint64        `json:"generation"` // of the configuration
	Models     []ModelDetail `json:"models"`
	Signals    []string      `json:"signals"`  // that can be computed now
	Degraded   []string      `json:"degraded"` // what does not work as configured
	Engine     *EngineDetail `json:"engine,omitempty"`
}

// Engine is a Classifier that tells what its models run on.
type Engine interface {
	// Engine returns what is known now, nil for nothing.
	Engine() *EngineDetail
}

// EngineDetail is what the models of signals run on.
type EngineDetail struct {
	Version   string           `json:"onnxruntime"`
	Fallback  string           `json:"fallback,omitempty"` // why the provider is not the configured one
	Providers []ProviderDetail `json:"providers"`
	Bundles   []BundleDetail   `json:"bundles"`
}

// ProviderDetail is what the probe of an execution provider found.
type ProviderDetail struct {
	Name      string `json:"name"`
	Available string `json:"available"` // yes, no or unknown
	Detail    string `json:"detail,omitempty"`
}

// BundleDetail is where a bundle runs.
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

// Refuses says, in words for operators, which routes answer requests with 503 because no model
// computes a signal that their conditions read; empty when none does. It names what to do.
func (st *State) Refuses() []string {
	var out []string
	able := st.classifier.Signals()
	remedy := "name a model for it under classify.tasks"
	if able.Tier(signal.TierNeural) == 0 {
		remedy = "install ONNX Runtime (make onnxruntime, or classify.library)"
	}
	for _, r := range st.program.Routes() {
		lacking := r.Kinds &^ able
		closed := r.Verb == rules.Block && r.OnUnknown == rules.Match || r.OnUnknown == rules.Error
		if lacking == 0 || !closed {
			continue
		}
		out = append(out,
			fmt.Sprintf("route %q refuses requests with 503 signal_unavailable: no model computes %s; %s",
				r.Name, strings.Join(names(lacking), ", "), remedy))
	}
	return out
}

// Ready reports whether requests can be served: the proxy is not draining, callers can be told, and some endpoint is not
// down.
func (p *Proxy) Ready() (bool, Detail) {
	st := p.acquire()
	defer st.release()
	now := time.Now()
	d := Detail{
		Draining: p.draining.Load(), Generation: st.generation,
		Signals:  names(st.classifier.Signals()),
		Degraded: append(st.Refuses(), st.classifier.Degraded()...),
	}
	if e, ok := st.classifier.(Engine); ok {
		d.Engine = e.Engine()
	}
	if lacking := st.watch.claims.Lacking(); lacking != "" && st.watch.claims.Wanted {
		d.Degraded = append(d.Degraded, lacking)
	}
	if p.stale.Load() {
		d.Degraded = append(d.Degraded, "the configuration has changed and cannot be used: the one read before is; the log and /readyz of the admin listener say why")
	}
	what, blind := st.auth.Lacking()
	if what != "" {
		d.Degraded = append(d.Degraded, what)
	}
	if p.memory != nil {
		if remote, reachable := p.memory.Reachable(); remote && !reachable {
			d.Degraded = append(d.Degraded, "redis cannot be reached: contexts are served from memory, and new ones are refused unless they are best_effort")
		}
	}
	reachable := false
	for _, m := range st.models {
		md := ModelDetail{Name: m.Name}
		if m.sleeps(now) {
			d.Degraded = append(d.Degraded, fmt.Sprintf("every endpoint of model %q that is up is asleep: "+
				"requests for it are answered with 503 model_asleep until one is woken up", m.Name))
		}
		for _, e := range m.Endpoints {
			f := e.Fitness(now)
			reachable = reachable || f != pool.Down
			md.Endpoints = append(md.Endpoints, EndpointDetail{Name: e.Name, State: e.State(now), Inflight: e.Inflight()})
		}
		d.Models = append(d.Models, md)
	}
	if d.Degraded == nil {
		d.Degraded = []string{}
	}
	for _, e := range p.leaving.list() {
		d.add(e.Model, EndpointDetail{Name: e.Name, State: "draining", Inflight: e.Inflight()})
	}
	d.Ready = reachable && !d.Draining && !blind
	return d.Ready, d
}
