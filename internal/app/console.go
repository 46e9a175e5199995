package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"signalbox/internal/config"
	"signalbox/internal/console"
	"signalbox/proxy"
	"signalbox/proxy/decisionlog"
	"signalbox/rules"
)

// consoleSource is the data source of an App's console.
type consoleSource struct{ *App }

var _ console.Source = consoleSource{}

// Proxy implements console.Source.
func (s consoleSource) Proxy() *proxy.Proxy { return s.proxy }

// Overview implements console.Source.
func (s consoleSource) Overview() *console.Overview {
	cfg := s.cfg.Load()
	ready, d := s.proxy.Ready()
	o := &console.Overview{
		Version: s.opts.Version, Now: time.Now(), Started: s.started, Ready: ready, Draining: d.Draining,
		Generation: d.Generation, Degraded: d.Degraded, Signals: d.Signals,
		Prompts: cfg.Telemetry.RecordPrompts, Models: s.proxy.Load(), Tally: s.proxy.Recent().Tally(),
		Marker: cfg.Guard.Marker, Contexts: []console.Tier{}, Redis: "none",
	}
	var most float64
	for i := range cfg.Models {
		m := &cfg.Models[i]
		if price := m.Price.Input + m.Price.Output; price > most {
			o.Dearest, most = m.Name, price
		}
	}
	if s.contexts == nil {
		return o
	}
	s.contexts.census(func(tier string, count, bytes int64) {
		o.Contexts = append(o.Contexts, console.Tier{Name: tier, Contexts: count, Bytes: bytes})
	})
	switch remote, reachable := s.contexts.store.Reachable(); {
	case remote && reachable:
		o.Redis = "reachable"
	case remote:
		o.Redis = "unreachable"
	}
	return o
}

// Configuration implements console.Source.
func (s consoleSource) Configuration(ctx context.Context) *console.Configuration {
	cfg := s.cfg.Load()
	problem, _ := s.problem.Load().(string)
	out := &console.Configuration{
		File: cfg.File, Generation: s.proxy.Generation(), Text: cfg.Text, Problem: problem, Restart: s.waiting(),
		Warnings: notes(cfg.Warnings),
	}
	if cfg.File == "" {
		return out
	}
	b, err := os.ReadFile(cfg.File)
	switch {
	case err != nil:
		out.Disk = &console.Preview{Problems: []console.Note{{Text: err.Error()}}, Restart: []string{}}
	case decisionlog.Fingerprint(b) != cfg.Fingerprint:
		out.Disk = s.Preview(ctx, b)
	}
	return out
}

// Preview implements console.Source.
func (s consoleSource) Preview(_ context.Context, text []byte) *console.Preview {
	running := s.cfg.Load()
	file := cmp.Or(running.File, "configuration")
	out := &console.Preview{
		Problems: []console.Note{}, Restart: []string{},
		Diff: string(diff.Diff("running", []byte(running.Text), "new", text)),
	}
	next, warnings, err := config.Parse(file, text, s.opts.Env, Catalog)
	invalid, known := errors.AsType[*config.Error](err)
	switch {
	case err == nil:
		out.Problems = notes(warnings)
	case known:
		out.Problems = notes(invalid.Problems)
		return out
	default:
		out.Problems = append(out.Problems, console.Note{Text: err.Error()})
		return out
	}
	next.Override(s.opts.Settings)
	if running.File == "" { // the demo sets addresses
		next.Telemetry = running.Telemetry
	}
	if err := config.Open(next); err != nil {
		out.Problems = append(out.Problems, console.Note{Path: "server.listen", Text: err.Error()})
		return out
	}
	out.Valid, out.Restart = true, append(out.Restart, running.RestartNeeded(next)...)
	return out
}

func notes(problems []rules.Problem) []console.Note {
	out := make([]console.Note, len(problems))
	for i, p := range problems {
		out[i] = console.Note{Line: p.Line, Column: p.Col, Path: p.Path, Text: p.Msg, Warning: p.Warning}
	}
	return out
}
