package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"signalbox/internal/config"
	"signalbox/memory/outcomes"
	outcomesshared "signalbox/memory/outcomes/shared"
)

// tellEvery is how often replicas tell each other of outcomes.
const tellEvery = time.Second

// openOutcomes makes room for how good answers were, and reads what is known from the file.
func (a *App) openOutcomes(ctx context.Context, cfg *config.Config) error {
	o := &cfg.Outcomes
	options := outcomes.Options{
		Path: o.Path, Limit: o.MaxPerTenant, Tenants: o.MaxTenants, Waiting: o.MaxWaiting,
		ReadOnly: a.opts.Once,
	}
	var others *outcomesshared.Shared
	switch {
	case !o.Shared, a.opts.Once:
	case a.redis == nil:
		return errors.New("outcomes.shared: memory.redis.url is not set")
	default:
		others = outcomesshared.New(a.redis, outcomesshared.Options{
			Prefix: cfg.Memory.Redis.Prefix, Limit: o.MaxPerTenant, Tenants: o.MaxTenants, Every: tellEvery,
			Log: a.tel.Log,
		})
		options.Tell = others.Tell
	}
	s, lost, err := outcomes.Open(options)
	if err != nil {
		return fmt.Errorf("outcomes.path: %w", err)
	}
	if others != nil {
		others.Start(s)
		a.told = others
	}
	if a.outcomes = s; lost > 0 {
		a.tel.Log.WarnContext(ctx, "some outcomes could not be read and are discarded", slog.Int("lines", lost))
	}
	if s.Contested() {
		a.tel.Log.WarnContext(ctx, "another process writes this outcomes file: until it ends, new outcomes are kept "+
			"only in memory; use a separate file for each process", slog.String("file", o.Path))
	}
	return nil
}

// exportOutcomes writes the outcomes of a tenant, or of all, as JSON lines.
func (a *App) exportOutcomes(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/jsonl")
	_ = a.outcomes.Export(w, r.URL.Query().Get("tenant")) // the reader has gone
}

// forgetOutcomes drops those of a tenant.
func (a *App) forgetOutcomes(w http.ResponseWriter, r *http.Request) {
	tenant := r.URL.Query().Get("tenant")
	if tenant == "" {
		http.Error(w, "tenant is required", http.StatusBadRequest)
		return
	}
	if err := a.outcomes.Forget(tenant); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
