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

// New returns a proxy that serves from st. It starts no goroutine; see Run.
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

// Swap makes st the state for later requests. Requests in flight keep the state that they have. st
// takes over the health of endpoints that both states have. A State serves once: do not swap a
// replaced one in again.
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

// Generation returns the number of configurations served so far, including the current one.
func (p *Proxy) Generation() uint64 {
	st := p.acquire()
	defer st.release()
	return st.book.Generation
}

// Run runs health checks and the other background work of the proxy until ctx ends. It returns nil
// after its goroutines have ended.
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

// Drain makes /readyz return 503, so that load balancers stop sending traffic. Requests are still
// served.
func (p *Proxy) Drain() { p.draining.Store(true) }

// Serving returns the number of requests in flight.
func (p *Proxy) Serving() int64 { return p.serving.Load() }

// ReloadFailed records whether the last configuration reload failed; /readyz reports it.
func (p *Proxy) ReloadFailed(failed bool) { p.stale.Store(failed) }

// ShareLimits makes remote count the per-minute limits of callers for all replicas. Call it at most
// once, before the first request.
func (p *Proxy) ShareLimits(remote rate.Remote) { p.limiter.Share(remote) }

// Redis is the state of the connection that replicas share. It is safe for concurrent use.
type Redis interface {
	Healthy() bool // it answers
	Full() bool    // it recently refused a write because it is out of memory
}

// UseRedis makes /readyz report the state of r. Call it at most once, before the first request.
func (p *Proxy) UseRedis(r Redis) { p.redis = r }

// UseBoard sets the board through which replicas exchange notices. Call it at most once, before the
// first request.
func (p *Proxy) UseBoard(b backend.Board) { p.state.Load().notices.Use(b) }

// Learn records what another replica reported about a model's endpoint.
func (p *Proxy) Learn(model string, r affinity.Residence) {
	st := p.acquire()
	defer st.release()
	if m, ok := st.ByName[model]; ok && m.Servers.Placer != nil {
		m.Servers.Placer.Learn(time.Now(), r)
	}
}

// scrape reads the metrics that the endpoints of a state report, until ctx ends or the state is
// idle.
func (p *Proxy) scrape(ctx context.Context, st *State) {
	var targets []kv.Target
	for _, m := range st.Models {
		for i := range m.Servers.All {
			e := &m.Servers.All[i]
			plain := e.Level != kv.LevelAPC && e.Level != kv.LevelAuto
			if plain && !e.Endpoint.Probed() {
				// with health checks turned off, the endpoint is not scraped either
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

// noteReport counts and logs a change in what an endpoint reports about itself.
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

// ShareBudgets makes remote keep the budgets for all replicas. Call it at most once, before the
// first request.
func (p *Proxy) ShareBudgets(remote budget.Remote) { p.spending.Share(remote, p.tel.Log) }
