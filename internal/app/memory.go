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
	"signalbox/proxy/contexts"
	"signalbox/proxy/guardrail"
)

// contextStore owns the store of contexts. nil: contexts are disabled.
type contextStore struct {
	store   *memory.Store
	deriver *contexts.Deriver
	cfg     *atomic.Pointer[config.Config]
}

// openContexts creates the store of the section, and connects it to the proxy. An unreachable Redis
// is not an error: the store keeps trying.
func (a *App) openContexts(cfg *config.Config) (*contextStore, error) {
	m := &cfg.Memory
	if !m.Enabled {
		return nil, nil
	}
	c := &contextStore{cfg: &a.cfg}
	c.deriver = contexts.NewDeriver(contexts.DeriverOptions{
		Read: a.proxy.ReadStored, Needs: a.proxy.StoredSignals, Selected: a.proxy.ReadsSelection,
		Able:     func() signal.Mask { return a.classifier.Load().Signals() },
		Skeleton: skeleton, Count: a.proxy.CountTokens, Timeout: time.Duration(m.DeriveTimeout),
		Revision: a.revision(),
	})
	var remote memory.Remote
	if a.redis != nil {
		remote = a.redis
	}
	pages := page.DefaultOptions()
	pages.Bytes, pages.IdleHot, pages.IdleL2 = int64(m.L2Bytes), time.Duration(m.IdleToL2), time.Duration(m.IdleToL3)
	pages.Loaded = func(from page.Tier, took time.Duration, _ int) { a.tel.Metrics.PageIn(from.String(), took) }
	store, err := memory.New(memory.Options{
		Pages: pages, TTL: time.Duration(m.DefaultTTL), MaxTTL: time.Duration(m.MaxTTL),
		Quota:  func(tenant string) memory.Quota { return a.cfg.Load().Memory.Of(tenant) },
		Derive: c.deriver.Derive, Revision: a.revision(), Ground: c.ground, Log: a.tel.Log,
		Stored: func(to page.Tier, took time.Duration) { a.tel.Metrics.PageOut(to.String(), took) },
	}, remote)
	if err != nil {
		return nil, err
	}
	c.store = store
	a.tel.Metrics.WatchContexts(c.census)
	a.proxy.UseMemory(store)
	a.proxy.ServeContexts(contexts.New(store, contexts.Options{
		BestEffort: m.Durability == config.DurabilityBestEffort, Warmer: a.proxy, Resident: a.proxy,
		Models: func() []string { return a.cfg.Load().ModelNames() },
	}))
	return c, nil
}

// skeleton returns a text shortened to the length that a classifier reads in one row.
func skeleton(ctx context.Context, text string) (string, error) {
	r, err := compress.Compress(ctx, text, compress.Options{})
	return r.Text, err
}

// revision identifies the basis of verdicts on contexts: the models of the safety signals, whether
// they can run, whether they read data at all, and how much they read.
func (a *App) revision() string {
	var b strings.Builder
	able := a.classifier.Load().Signals()
	for _, k := range []signal.Kind{signal.Jailbreak, signal.Injection, signal.PII} {
		mark := "none"
		switch {
		case signal.DefaultOrigins(k) != 0 && !a.identity.ReadsOf(k).Has(signal.OriginData):
			mark = "unread"
		case able.Has(k):
			mark = a.identity.Definitions[k]
		}
		fmt.Fprintf(&b, "%s %s;", k, mark)
	}
	if !a.current.ReadsSelection() {
		b.WriteString("all")
	}
	return b.String()
}

// ground prepares the evidence for the guard, as configured in its section.
func (c *contextStore) ground(_ context.Context, t memory.Text) (any, error) {
	return guardrail.Ground(&t, &c.cfg.Load().Guard)
}

// census counts contexts by tier.
func (c *contextStore) census(tell func(tier string, count, bytes int64)) {
	n := c.store.Census()
	tell(page.Hot.String(), n.Hot, n.HotBytes)
	tell(page.L2.String(), n.L2, n.L2Bytes)
	if remote, _ := c.store.Reachable(); remote {
		tell(page.L3.String(), n.L3, n.L3Bytes)
	}
}

// run maintains the store until ctx ends.
func (c *contextStore) run(ctx context.Context) error {
	if c == nil {
		<-ctx.Done()
		return nil
	}
	return c.store.Run(ctx)
}

// revise announces which models read contexts from now on.
func (c *contextStore) revise(revision string) {
	if c != nil {
		c.deriver.Revise(revision)
		c.store.Revise(revision)
	}
}
