package app

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"signalbox/classify/compress"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/memory"
	"signalbox/memory/page"
	"signalbox/memory/redis"
	"signalbox/proxy"
	"signalbox/proxy/contexts"
)

// contextStore owns the store of contexts and its connection to Redis. nil: contexts are turned off.
type contextStore struct {
	store   *memory.Store
	redis   *redis.Store // nil: there is none
	deriver *contexts.Deriver
	cfg     *atomic.Pointer[config.Config]
}

// openContexts makes the store that the section asks for, and lets the proxy use it. A Redis that cannot be reached is no
// error: the store keeps trying.
func (a *App) openContexts(ctx context.Context, cfg *config.Config) (*contextStore, error) {
	m := &cfg.Memory
	if !m.Enabled {
		return nil, nil
	}
	c := &contextStore{cfg: &a.cfg}
	c.deriver = contexts.NewDeriver(contexts.DeriverOptions{
		Read: a.proxy.ReadAll, Skeleton: skeleton, Count: a.proxy.CountTokens, Timeout: time.Duration(m.DeriveTimeout), Revision: a.revision(),
	})
	var remote memory.Remote
	if m.Redis.URL != "" {
		var err error
		c.redis, err = redis.Open(ctx, redis.Options{
			URL: m.Redis.URL, Prefix: m.Redis.Prefix, MetaBudget: time.Duration(m.Redis.MetaTimeout),
			BlobBudget: time.Duration(m.Redis.BlobTimeout), WriteBudget: time.Duration(m.Redis.WriteTimeout), Log: a.tel.Log,
		})
		if err != nil {
			return nil, fmt.Errorf("memory: %w", err)
		}
		remote = c.redis
	}
	pages := page.DefaultOptions()
	pages.Bytes, pages.IdleHot, pages.IdleL2 = int64(m.L2Bytes), time.Duration(m.IdleToL2), time.Duration(m.IdleToL3)
	pages.Loaded = func(from page.Tier, took time.Duration, _ int) { a.tel.Metrics.PageIn(from.String(), took) }
	store, err := memory.New(memory.Options{
		Pages: pages, TTL: time.Duration(m.DefaultTTL), MaxTTL: time.Duration(m.MaxTTL),
		Quota:  func(tenant string) memory.Quota { return a.cfg.Load().Memory.Of(tenant) },
		Derive: c.deriver.Derive, Revision: a.revision(), Ground: c.ground, Log: a.tel.Log,
	}, remote)
	if err != nil {
		c.close()
		return nil, err
	}
	c.store = store
	if err := a.tel.Metrics.WatchContexts(c.census); err != nil {
		c.close()
		return nil, err
	}
	a.proxy.UseMemory(store)
	warmer, _ := any(a.proxy).(contexts.Warmer)
	a.proxy.ServeContexts(contexts.New(store, contexts.Options{
		BestEffort: m.Durability == config.DurabilityBestEffort, Models: c.models, Warmer: warmer,
	}))
	return c, nil
}

// skeleton is a text in short, as long as a classifier reads in one row.
func skeleton(ctx context.Context, text string) (string, error) {
	r, err := compress.Compress(ctx, text, compress.Options{})
	return r.Text, err
}

// revision names what verdicts on contexts are made of: the models of the safety signals, and whether they can run.
func (a *App) revision() string {
	var b strings.Builder
	able := a.classifier.Load().Signals()
	for _, k := range []signal.Kind{signal.Jailbreak, signal.PII} {
		mark := "none"
		if able.Has(k) {
			mark = a.identity.Definitions[k]
		}
		fmt.Fprintf(&b, "%s %s;", k, mark)
	}
	return b.String()
}

// ground prepares what answers are checked against: all that the section of the guard takes for evidence.
func (c *contextStore) ground(_ context.Context, t memory.Text) (any, error) {
	return proxy.Ground(&t, c.cfg.Load().Guard.Documents)
}

// models are the names that requests may use.
func (c *contextStore) models() []string {
	cfg := c.cfg.Load()
	out := make([]string, len(cfg.Models))
	for i := range cfg.Models {
		out[i] = cfg.Models[i].Name
	}
	return out
}

// census counts what is in RAM.
func (c *contextStore) census(tell func(tier string, objects, bytes int64)) {
	s := c.store.Stats()
	tell(page.Hot.String(), int64(s.Hot), s.HotBytes)
	tell(page.L2.String(), int64(s.L2), s.L2Bytes)
}

// run keeps the store until ctx ends.
func (c *contextStore) run(ctx context.Context) error {
	if c == nil {
		<-ctx.Done()
		return nil
	}
	return c.store.Run(ctx)
}

// revise says that contexts are read by other models from now on, or by the same.
func (c *contextStore) revise(revision string) {
	if c != nil {
		c.deriver.Revise(revision)
		c.store.Revise(revision)
	}
}

// close ends the connection to Redis. Nothing may use the store any more.
func (c *contextStore) close() {
	if c != nil && c.redis != nil {
		c.redis.Close()
	}
}
