package app

import (
	"context"
	"log/slog"
	"time"

	"signalbox/internal/config"
	"signalbox/memory/board"
	"signalbox/proxy"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
)

// prompts tells other replicas where prompts are. nil: there are none.
type prompts struct {
	board *board.Board
	proxy *proxy.Proxy
}

var _ backend.Board = (*prompts)(nil)

// openBoard lets the proxy tell the replicas that share its Redis where prompts are.
func (a *App) openBoard(ctx context.Context, cfg *config.Config) *prompts {
	if a.redis == nil {
		return nil // it stands alone
	}
	if cfg.Memory.SaltSecret == "" {
		a.tel.Log.LogAttrs(ctx, slog.LevelWarn, "memory.salt_secret is not set: replicas salt prompts differently and cannot use each other's cached prefixes")
	}
	o := board.Options{Prefix: cfg.Memory.Redis.Prefix, Log: a.tel.Log}
	p := &prompts{board: board.New(a.redis, o), proxy: a.proxy}
	a.proxy.UseBoard(p)
	return p
}

// Publish implements proxy.Board.
func (p *prompts) Publish(model string, r affinity.Residence) {
	p.board.Publish(board.Note{Model: model, Key: r.Key, Endpoint: r.Endpoint, Tokens: r.Tokens, Expires: r.Expires})
}

// Claim implements proxy.Board.
func (p *prompts) Claim(ctx context.Context, name string, d time.Duration) bool {
	return p.board.Claim(ctx, name, d)
}

// run passes notes on until ctx ends.
func (p *prompts) run(ctx context.Context) error {
	if p == nil {
		<-ctx.Done()
		return nil
	}
	return p.board.Run(ctx, func(n board.Note) {
		p.proxy.Learn(n.Model, affinity.Residence{Key: n.Key, Endpoint: n.Endpoint, Tokens: n.Tokens, Expires: n.Expires})
	})
}
