package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/config"
	"signalbox/memory/cache"
	"signalbox/memory/conversation"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/recall"
)

// remember returns the response cache for a state: that of the previous state, unless its size
// changed.
func (a *App) remember(cfg *config.Config) (*recall.Answers, error) {
	if a.answers != nil && a.answers.Fits(cfg.Cache, a.shared) {
		return a.answers, nil
	}
	return recall.NewAnswers(cfg.Cache, a.shared, a.answers)
}

// openRedis creates the objects that use Redis: the connection, which Serve opens, and the response
// cache of all replicas.
func (a *App) openRedis(cfg *config.Config) error {
	r := &cfg.Memory.Redis
	if r.URL == "" {
		return nil
	}
	var err error
	a.redis, err = redis.New(redis.Options{
		URL: r.URL, Prefix: r.Prefix, RateBudget: time.Duration(r.LimitTimeout), MetaBudget: time.Duration(r.MetaTimeout), BlobBudget: time.Duration(r.BlobTimeout),
		WriteBudget: time.Duration(r.WriteTimeout), Log: a.tel.Log,
	})
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	a.shared = cache.NewRedis(a.redis, cache.RedisOptions{
		Prefix: r.Prefix, MaxBytes: int64(cfg.Cache.MaxSharedBytes), Budget: time.Duration(r.MetaTimeout), Write: time.Duration(r.WriteTimeout),
	})
	return nil
}

// openTalks creates the store for the states of conversations, which replicas share over their
// Redis.
func (a *App) openTalks(cfg *config.Config) {
	var link conversation.Link
	if a.redis != nil {
		link = a.redis
	}
	a.talks = conversation.New(link, cfg.Memory.Redis.Prefix)
}

// follow passes the cached questions of other replicas to the proxy, until ctx ends.
func (a *App) follow(ctx context.Context) error {
	if a.shared == nil {
		<-ctx.Done()
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	if a.contexts == nil { // otherwise the store of contexts watches
		g.Go(func() error { return a.redis.Watch(ctx, func(ledger.News) {}, func() {}) })
	}
	g.Go(func() error { return a.shared.Follow(ctx, a.cfg.Load().Cache.MaxEntries, a.proxy.LearnQuestion) })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("answers of other replicas: %w", err)
	}
	return nil
}

// decides identifies everything that decides requests and shapes their responses, identically in
// every process: the content of the file, the models behind signals and the version of this
// program.
func decides(id *decisionlog.Identity, version string) string {
	b := fmt.Appendf(nil, "%q %q\n", version, id.Config)
	for _, k := range slices.Sorted(maps.Keys(id.Definitions)) {
		b = fmt.Appendf(b, "%d %q\n", k, id.Definitions[k])
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
