package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/option"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/keyring"
)

// openKeys makes room for virtual keys, and reads those of a file; those in Redis are read from
// Serve on.
func (a *App) openKeys(ctx context.Context, cfg *config.Config) error {
	o := &cfg.Auth.Virtual
	if !o.On() {
		return nil
	}
	var store keyring.Store = sharedKeys{a.redis}
	if o.File != "" {
		file, err := keyring.OpenFile(o.File)
		if err != nil {
			return fmt.Errorf("auth.virtual.file: %w", err)
		}
		store = file
	}
	a.keys = keyring.New(store, keyring.Options{
		Max: o.Max, Refresh: time.Duration(o.Refresh), Now: a.opts.now, Log: a.tel.Log,
		Check:   func(k *auth.KeyOptions) error { return knownModels(a.cfg.Load(), k) },
		Unknown: func(models []string) []string { return unknownModels(a.cfg.Load(), models) },
		Hint:    func(role, tenant string) string { return a.cfg.Load().Slip(role, tenant) },
		Taken:   func(name string) bool { return slices.Contains(keyNames(a.cfg.Load()), name) },
		Usage: func(ctx context.Context, k *auth.KeyOptions) []keyring.Usage {
			return a.proxy.UsageOf(ctx, k)
		},
	})
	if o.File == "" {
		return nil
	}
	return a.keys.Look(ctx)
}

// knownModels reports models that a key names and that are not there.
func knownModels(cfg *config.Config, k *auth.KeyOptions) error {
	var p option.Problems
	for i, m := range k.Models {
		if problem := cfg.NoModel(m); problem != "" {
			p.Addf(fmt.Sprintf("models[%d]", i), "%s", problem)
		}
	}
	return p.Err()
}

// unknownModels are those of some models that are not there.
func unknownModels(cfg *config.Config, models []string) (out []string) {
	for _, m := range models {
		if !slices.ContainsFunc(cfg.Models, func(o backend.ModelOptions) bool { return o.Name == m }) {
			out = append(out, m)
		}
	}
	return out
}

// maxTold is how many keys a line of the log names.
const maxTold = 10

// tellLost logs which virtual keys name models that the configuration has no more.
func (a *App) tellLost(ctx context.Context) {
	if a.keys == nil {
		return
	}
	if ids := a.keys.Lost(); len(ids) > 0 {
		a.tel.Log.WarnContext(ctx, "virtual keys refer to models that are not configured",
			slog.Int("keys", len(ids)), slog.String("key_ids", strings.Join(ids[:min(len(ids), maxTold)], " ")))
	}
}

func keyNames(cfg *config.Config) []string {
	names := make([]string, len(cfg.Auth.Keys))
	for i := range cfg.Auth.Keys {
		names[i] = cfg.Auth.Keys[i].Name
	}
	return names
}

// collides refuses a configuration with a key of the name of a virtual one, as far as those are
// known.
func (a *App) collides(cfg *config.Config) error {
	if a.keys == nil {
		return nil
	}
	if name := a.keys.Collision(keyNames(cfg)); name != "" {
		return fmt.Errorf("auth.keys: %q is already the name of a virtual key: revoke it, or choose another name", name)
	}
	return nil
}

// followKeys looks for changes of virtual keys until ctx ends.
func (a *App) followKeys(ctx context.Context) error {
	if a.keys == nil {
		<-ctx.Done()
		return nil
	}
	return a.keys.Run(ctx)
}

// sharedKeys keeps virtual keys in Redis, for all replicas.
type sharedKeys struct{ redis *redis.Store }

var _ keyring.Store = sharedKeys{}

// Load implements keyring.Store.
func (s sharedKeys) Load(ctx context.Context, known string) (map[string]string, string, error) {
	texts, revision, err := s.redis.VirtualKeys(ctx, known)
	return texts, revision, keyError(err)
}

// Swap implements keyring.Store.
func (s sharedKeys) Swap(ctx context.Context, name, was, text string, most int) error {
	return keyError(s.redis.SwapVirtualKey(ctx, name, was, text, most))
}

func keyError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrConflict):
		return keyring.ErrConflict
	case errors.Is(err, redis.ErrTooMany):
		return keyring.ErrTooMany
	}
	return fmt.Errorf("%w: %w", keyring.ErrUnavailable, err)
}
