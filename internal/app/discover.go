package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"signalbox/internal/config"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
)

// discovery finds the servers behind names. It is safe for concurrent use.
type discovery struct {
	mu     sync.Mutex // guards what follows
	lookup func(ctx context.Context, kind, host, port string) ([]found, error)
	known  map[string][]found
}

// found is a server behind a name.
type found struct {
	address string // of IP or host
	port    int    // 0 is that of the URL
	weight  int    // 0 is that of the endpoint
}

func newDiscovery(env func(string) (string, bool)) *discovery {
	cluster := newKubernetes(env)
	return &discovery{
		known: make(map[string][]found),
		lookup: func(ctx context.Context, kind, host, port string) ([]found, error) {
			if kind == pool.ResolveSlices {
				return cluster.find(ctx, host, port)
			}
			return lookup(ctx, kind, host)
		},
	}
}

// lookup asks DNS.
func lookup(ctx context.Context, kind, host string) (out []found, err error) {
	switch kind {
	case pool.ResolveSRV:
		_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", host)
		if err != nil {
			return nil, err //nolint:wrapcheck // names what was looked for
		}
		for _, r := range records {
			if r.Priority == records[0].Priority { // they come sorted; the others are for when these are gone
				out = append(out, found{strings.TrimSuffix(r.Target, "."), int(r.Port), int(r.Weight)})
			}
		}
	default:
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return nil, err //nolint:wrapcheck // names what was looked for
		}
		for _, a := range addresses {
			out = append(out, found{address: a})
		}
	}
	return out, nil
}

// resolveTimeout bounds one round of questions.
const resolveTimeout = 5 * time.Second

// ask asks for every name of models. Names that cannot be resolved keep what is known of them.
func (d *discovery) ask(ctx context.Context, models []backend.ModelOptions) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	var errs []error
	d.mu.Lock()
	look := d.lookup
	d.mu.Unlock()
	for i := range models {
		endpoints := models[i].Endpoints
		for j := range endpoints {
			e := &endpoints[j]
			key, host, port := nameOf(e)
			if key == "" {
				continue
			}
			now, err := look(ctx, e.Resolve, host, port)
			if err == nil && len(now) == 0 {
				err = fmt.Errorf("%s has no addresses", host)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			now = tidied(now)
			d.mu.Lock()
			d.known[key] = now
			d.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}

// tidied sorts servers and drops duplicates: a Pod may be in two EndpointSlices while they change.
// Weights of SRV records, which go up to 65535, are scaled to those of endpoints.
func tidied(list []found) []found {
	slices.SortStableFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.port, b.port))
	})
	list = slices.CompactFunc(list, func(a, b found) bool { return a.address == b.address && a.port == b.port })
	most := 0
	for _, s := range list {
		most = max(most, s.weight)
	}
	for i := range list {
		if s := &list[i]; most > pool.MaxWeight && s.weight > 0 {
			s.weight = max(1, s.weight*pool.MaxWeight/most)
		}
	}
	return list
}

// nameOf is what is resolved for an endpoint; an empty key is nothing.
func nameOf(e *pool.EndpointOptions) (key, host, port string) {
	if e.Resolve == "" || e.Resolve == pool.ResolveOff {
		return "", "", ""
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return "", "", ""
	}
	key = e.Resolve + " " + u.Hostname()
	if e.Resolve == pool.ResolveSlices {
		key = e.Resolve + " " + u.Host
	}
	return key, u.Hostname(), u.Port()
}

// expand puts the servers that are known in place of the endpoints that stand for them. A name of
// which nothing is known stays an endpoint, which is resolved when it is dialled.
func (d *discovery) expand(models []backend.ModelOptions) []backend.ModelOptions {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(models)
	for i := range out {
		var all []pool.EndpointOptions
		for _, e := range out[i].Endpoints {
			key, _, _ := nameOf(&e)
			servers := d.known[key]
			if key == "" || len(servers) == 0 {
				all = append(all, e)
				continue
			}
			for _, s := range servers {
				all = append(all, s.endpoint(e))
			}
		}
		out[i].Endpoints = all
	}
	return out
}

// endpoint is e at one server.
func (s found) endpoint(e pool.EndpointOptions) pool.EndpointOptions {
	u, err := url.Parse(e.URL)
	if err != nil {
		return e
	}
	port := u.Port()
	if s.port != 0 {
		port = strconv.Itoa(s.port)
	}
	if e.TLS.ServerName == "" && u.Scheme == "https" {
		e.TLS.ServerName = u.Hostname()
	}
	e.Name += "-" + strings.NewReplacer(":", "-", ".", "-", "%", "-").Replace(s.address)
	switch {
	case port != "":
		u.Host = net.JoinHostPort(s.address, port)
		e.Name += "-" + port
	case strings.Contains(s.address, ":"):
		u.Host = "[" + s.address + "]"
	default:
		u.Host = s.address
	}
	e.URL = u.String()
	e.Weight = cmp.Or(s.weight, e.Weight)
	return e
}

// resolveEvery is how often names are asked for: as soon as a headless Kubernetes service tells of
// a new server, whose records live for 5 to 30 s.
const resolveEvery = 10 * time.Second

// resolve asks for the names of endpoints until ctx ends, and serves from what it finds.
func (a *App) resolve(ctx context.Context) error {
	tick := time.NewTicker(resolveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.rediscover(ctx)
		}
	}
}

// rediscover asks once.
func (a *App) rediscover(ctx context.Context) {
	cfg := a.cfg.Load()
	if err := a.discovery.ask(ctx, cfg.Models); err != nil && ctx.Err() == nil {
		a.tel.Log.WarnContext(ctx, "endpoints unchanged: a name cannot be resolved", slog.String("cause", err.Error()))
	}
	// What is known may be newer than what is served from: a state may not have come about with it.
	if served := a.endpoints.Load(); ctx.Err() != nil || served != nil && *served == addresses(a.discovery.expand(cfg.Models)) {
		return
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if err := a.use(ctx, a.cfg.Load()); err != nil {
		a.tel.Log.ErrorContext(ctx, "endpoints kept", slog.String("cause", err.Error()))
		return
	}
	a.tel.Log.InfoContext(ctx, "endpoints resolved again")
}

// addresses tells the endpoints of models apart from others.
func addresses(models []backend.ModelOptions) string {
	var b strings.Builder
	for i := range models {
		m := &models[i]
		for _, e := range m.Endpoints {
			b.WriteString(m.Name + " " + e.Name + " " + e.URL + " " + strconv.Itoa(e.Weight) + "\n")
		}
	}
	return b.String()
}

// pools is the models of a configuration with the endpoints that are known now; names that were
// never asked for are.
func (a *App) pools(ctx context.Context, cfg *config.Config) []backend.ModelOptions {
	if err := a.discovery.ask(ctx, cfg.Models); err != nil {
		a.tel.Log.WarnContext(ctx, "the name of an endpoint cannot be resolved", slog.String("cause", err.Error()))
	}
	return a.discovery.expand(cfg.Models)
}
