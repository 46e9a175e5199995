package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"signalbox/internal/config"
	"signalbox/memory/outcomes"
)

// openOutcomes makes room for how good answers were, and reads what is known from the file.
func (a *App) openOutcomes(ctx context.Context, cfg *config.Config) error {
	o := &cfg.Outcomes
	s, lost, err := outcomes.Open(outcomes.Options{
		Path: o.Path, Limit: o.MaxPerTenant, Tenants: o.MaxTenants, Waiting: o.MaxWaiting,
	})
	if err != nil {
		return fmt.Errorf("outcomes.path: %w", err)
	}
	if a.outcomes = s; lost > 0 {
		a.tel.Log.WarnContext(ctx, "outcomes could not be read and are lost", slog.Int("lines", lost))
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
