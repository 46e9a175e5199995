package proxy

import (
	"context"
	"log/slog"
	"time"

	"signalbox/proxy/backend"
	"signalbox/proxy/kv"
	"signalbox/proxy/pool"
)

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
				URL: kv.Metrics(e.Endpoint.Chat, m.Servers.KV.Scrape.Path), Bearer: e.Endpoint.Bearer, Options: m.Servers.KV.Scrape, Transport: e.Endpoint.Via(p.transport),
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
