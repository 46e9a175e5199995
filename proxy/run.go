package proxy

import (
	"context"
	"sync"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/proxy/budget"
	"signalbox/proxy/count"
	"signalbox/proxy/framing"
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
		records: record.Recorder{Tel: tel, Transport: transport, Recent: recent.New()}, started: time.Now().Unix(), warms: warm.New(tel, transport), limiter: rate.New(nil, time.Now),
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

// ReloadFailed notes whether the last attempt to read the configuration again failed, which /readyz
// tells.
func (p *Proxy) ReloadFailed(failed bool) { p.stale.Store(failed) }

// ShareLimits lets the minutes of callers be counted by remote, for all replicas. Call it once,
// before the first request.
func (p *Proxy) ShareLimits(remote rate.Remote) { p.limiter.Share(remote) }
