package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/configs"
	"signalbox/internal/config"
	"signalbox/internal/simulator"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
)

// Demo is the demo configuration with its simulated backends running.
type Demo struct {
	Config  *config.Config
	Sims    map[string]*simulator.Server // by endpoint name
	servers []*http.Server
	group   errgroup.Group
}

// The pace of the simulated backends: fast enough for a demo, slow enough to see the streaming and
// the effect of a cached long prompt: 25,000 uncached tokens take half a second.
const (
	demoTTFT    = 30 * time.Millisecond
	demoTPOT    = 12 * time.Millisecond
	demoPrefill = 20 * time.Microsecond
)

// NewDemo starts one simulated backend for every endpoint of the embedded demo configuration, on
// free loopback ports, and sets their addresses in the configuration. The caller calls Close.
func NewDemo(ctx context.Context) (*Demo, error) {
	cfg, err := DemoConfig()
	if err != nil {
		return nil, err
	}
	d := &Demo{Config: cfg, Sims: map[string]*simulator.Server{}}
	for i := range cfg.Models {
		for j := range cfg.Models[i].Endpoints {
			if err := d.start(ctx, &cfg.Models[i], &cfg.Models[i].Endpoints[j]); err != nil {
				return nil, errors.Join(err, d.Close())
			}
		}
	}
	return d, nil
}

// DemoConfig parses the embedded demo configuration. Its endpoints have no addresses yet.
func DemoConfig() (*config.Config, error) {
	b, err := configs.FS.ReadFile("demo.yaml")
	if err != nil {
		return nil, fmt.Errorf("embedded demo configuration: %w", err)
	}
	none := func(string) (string, bool) { return "", false }
	cfg, _, err := config.Parse("demo.yaml", b, none, Catalog)
	if err != nil {
		return nil, fmt.Errorf("embedded demo configuration: %w", err)
	}
	cfg.Auth.AllowAnonymous = true // simulated servers have no secrets and no costs
	cfg.File = ""                  // there is no file to watch
	return cfg, nil
}

func (d *Demo) start(ctx context.Context, m *backend.ModelOptions, e *pool.EndpointOptions) error {
	o := simulator.DefaultOptions()
	o.Model, o.TTFT, o.TPOT, o.MaxModelLen = cmp.Or(m.ServedAs, m.Name), demoTTFT, demoTPOT, m.ContextWindow
	o.KV = simulator.DefaultKV()
	o.KV.Prefill = demoPrefill
	sim, err := simulator.New(o)
	if err != nil {
		return fmt.Errorf("simulated backend %s: %w", e.Name, err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("simulated backend %s: %w", e.Name, err)
	}
	s := &http.Server{Handler: sim.Handler(), ReadHeaderTimeout: 5 * time.Second}
	d.servers = append(d.servers, s)
	d.Sims[e.Name] = sim
	d.group.Go(func() error { return serveUntilClosed(s, l) })
	e.URL = "http://" + l.Addr().String() + "/v1"
	return nil
}

// Close stops the backends and waits for their goroutines.
func (d *Demo) Close() error {
	errs := make([]error, 0, len(d.servers)+1)
	for _, s := range d.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, d.group.Wait())...)
}
