package proxy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/count"
	"signalbox/proxy/framing"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
	"signalbox/proxy/rate"
	"signalbox/proxy/recent"
	"signalbox/proxy/record"
	"signalbox/proxy/resolve"
	"signalbox/proxy/settings"
	"signalbox/proxy/warm"
)

// New makes a proxy that serves from st. It starts nothing; see Run.
func New(opts settings.Server, st *State, tel *telemetry.Telemetry) *Proxy {
	transport := framing.NewTransport(time.Duration(opts.ConnectTimeout))
	p := &Proxy{
		tel: tel, resolver: resolve.Resolver{Tel: tel}, transport: transport, counters: count.New(transport),
		retries: pool.NewBudget(), swapped: make(chan struct{}, 1),
		records: record.Recorder{Tel: tel, Transport: transport, Recent: recent.New()},
		started: time.Now().Unix(), warms: warm.New(tel, transport), limiter: rate.New(nil, time.Now),
		spending: budget.New(nil, time.Now),
	}
	p.state.Store(st)
	tel.Metrics.WatchPool(p.poolStatus)
	return p
}

// Swap serves later requests from st; those under way keep the state they have. st takes over what
// the old state knows about the health of endpoints that both have. A State serves once: after it
// was replaced it must not be swapped in again.
func (p *Proxy) Swap(st *State) {
	st.inherit(p.state.Load())
	old := p.state.Swap(st)
	p.removed.add(st, old)
	p.records.Recent.Adopt(&st.book)
	old.release()
	select {
	case p.swapped <- struct{}{}:
	default:
	}
}

// Generation counts the configurations that were served from, this one included.
func (p *Proxy) Generation() uint64 {
	st := p.acquire()
	defer st.release()
	return st.book.Generation
}

// Run checks the health of endpoints until ctx ends. It returns nil when its goroutines have ended.
func (p *Proxy) Run(ctx context.Context) error {
	health := pool.Watcher{Transport: p.transport, Log: p.tel.Log}
	var wg sync.WaitGroup
	defer p.transport.CloseIdleConnections()
	defer wg.Wait()
	wg.Go(func() { p.warms.Run(ctx) })
	wg.Go(func() { p.limiter.Run(ctx) })
	wg.Go(func() { p.records.Run(ctx) })
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

// Serving is how many requests are under way.
func (p *Proxy) Serving() int64 { return p.serving.Load() }

// ReloadFailed notes whether the last attempt to read the configuration again failed, which /readyz
// tells.
func (p *Proxy) ReloadFailed(failed bool) { p.stale.Store(failed) }

// ShareLimits lets the minutes of callers be counted by remote, for all replicas. Call it once,
// before the first request.
func (p *Proxy) ShareLimits(remote rate.Remote) { p.limiter.Share(remote) }

// Redis is what replicas share. It is safe for concurrent use.
type Redis interface {
	Healthy() bool // it answers
	Full() bool    // it has refused a write for want of memory, lately
}

// UseRedis lets /readyz tell of r. Call it once, before the first request.
func (p *Proxy) UseRedis(r Redis) { p.redis = r }

// UseBoard makes b the board. Call it once, before the first request.
func (p *Proxy) UseBoard(b backend.Board) { p.state.Load().notices.Use(b) }

// Learn takes in what another replica told of a model's endpoint.
func (p *Proxy) Learn(model string, r affinity.Residence) {
	st := p.acquire()
	defer st.release()
	if m, ok := st.ByName[model]; ok && m.Servers.Placer != nil {
		m.Servers.Placer.Learn(time.Now(), r)
	}
}

// scrape reads what the endpoints of a state say of themselves until ctx ends or the state is idle.
func (p *Proxy) scrape(ctx context.Context, st *State) {
	var targets []kv.Target
	for _, m := range st.Models {
		for i := range m.Servers.All {
			e := &m.Servers.All[i]
			plain := e.Level != kv.LevelAPC && e.Level != kv.LevelAuto
			if plain && !e.Endpoint.Probed() { // who wants no health checks asks nothing
				continue
			}
			targets = append(targets, kv.Target{
				URL: kv.Metrics(e.Endpoint.Chat, m.Servers.KV.Scrape.Path), Bearer: e.Endpoint.Bearer,
				Options: m.Servers.KV.Scrape, Transport: e.Endpoint.Via(p.transport),
				Models: e.Endpoint.URL("models"), Served: m.ServedAs,
				Paused: kv.Metrics(e.Endpoint.Chat, "/is_paused"),
				Rarely: plain,
				Window: func(tokens int) { e.ModelLen.Store(int64(tokens)) },
				Told: func(now time.Time, r kv.Report) {
					p.noteReport(ctx, m, e.Endpoint, m.Servers.Report(now, i, r))
				},
			})
		}
	}
	if len(targets) > 0 {
		kv.Watch(ctx, targets, st.idle)
	}
}

// noteReport counts and logs what an endpoint has told of itself.
func (p *Proxy) noteReport(ctx context.Context, m *backend.Model, e *pool.Endpoint, c backend.Change) {
	log := p.tel.Log.With(slog.String("model", m.Name), slog.String("endpoint", e.Name))
	if c.Restarted {
		p.tel.Metrics.EndpointRestarted(m.Name, e.Name)
		log.InfoContext(ctx, "endpoint restarted")
	}
	if c.Slept {
		log.WarnContext(ctx, "endpoint asleep")
	}
	if c.Woke {
		log.InfoContext(ctx, "endpoint awake")
	}
}

// ShareBudgets lets budgets be kept by remote, for all replicas. Call it once, before the first
// request.
func (p *Proxy) ShareBudgets(remote budget.Remote) { p.spending.Share(remote, p.tel.Log) }
