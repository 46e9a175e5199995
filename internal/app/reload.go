package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"signalbox/internal/config"
)

// Reload reads the configuration file and the files that it names again. A bad file changes
// nothing; what cannot change while running keeps its old value and is logged. What went wrong is
// told by /readyz until a later Reload goes well.
func (a *App) Reload(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	err := a.reload(ctx)
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	a.problem.Store(problem)
	a.proxy.ReloadFailed(err != nil)
	a.tel.Metrics.Reloaded(err == nil, a.generation, time.Now())
	return err
}

// reload does it; the caller holds reloading.
func (a *App) reload(ctx context.Context) error {
	a.tel.Decisions.Reopen()
	old := a.cfg.Load()
	if old.File == "" {
		return errNoFile
	}
	a.noteFiles(files(old))
	if err := a.renew(old); err != nil { // also where the configuration cannot be read: certificates run out
		a.tel.Log.WarnContext(ctx, "certificates unchanged", slog.String("cause", err.Error()))
	}
	cfg, warnings, err := config.Load(old.File, a.opts.Env, Catalog)
	if more := named(err); len(more) > 0 {
		a.noteFiles(append(files(old), more...)) // such as a secret that comes later
		cfg, warnings, err = config.Load(old.File, a.opts.Env, Catalog)
	}
	if err != nil {
		a.tel.Log.ErrorContext(ctx, "configuration unchanged: the new file is not valid", slog.String("problems", err.Error()))
		return err
	}
	for _, w := range warnings {
		a.tel.Log.WarnContext(ctx, "configuration", slog.String("warning", config.Format(cfg.File, w)))
	}
	cfg.Override(a.opts.Settings)
	pending := old.RestartNeeded(cfg)
	for _, name := range pending {
		a.tel.Log.WarnContext(ctx, "a changed setting requires a restart", slog.String("setting", name))
	}
	cfg.KeepRestartOnly(old)
	next, err := readPair(&cfg.Server.TLS)
	if err != nil { // changed since it was checked
		a.tel.Log.ErrorContext(ctx, "configuration unchanged", slog.String("cause", err.Error()))
		return err
	}
	if err := a.use(ctx, cfg); err != nil {
		a.tel.Log.ErrorContext(ctx, "configuration unchanged", slog.String("cause", err.Error()))
		return err
	}
	a.pending.Store(pending)
	if next != nil {
		a.certs.now.Store(next)
	}
	if !slices.Equal(a.read.Load().files, files(cfg)) { // the note was of other files
		a.noteFiles(files(cfg))
	}
	a.tellLost(ctx)
	a.tel.Log.InfoContext(ctx, "configuration reloaded",
		slog.String("file", cfg.File), slog.Uint64("generation", a.generation))
	return nil
}

// use serves from a configuration, with the models and the endpoints that are known now. The caller
// holds reloading. After an error requests are served as before.
func (a *App) use(ctx context.Context, cfg *config.Config) error {
	before, index, kept := a.current, a.neural.taught, a.answers
	st, dropped, err := a.state(ctx, cfg)
	if err != nil {
		return err
	}
	if !cfg.Telemetry.RecordPrompts {
		a.tel.Decisions.ForbidPrompts()
	}
	a.proxy.Recent().Prompts(cfg.Telemetry.RecordPrompts)
	a.proxy.Swap(st)
	a.retire(context.WithoutCancel(ctx), before, index, dropped)
	a.cfg.Store(cfg)
	a.contexts.revise(a.revision())
	if a.shared != nil && a.answers != kept {
		a.shared.Refresh()
	}
	return nil
}

// waiting names the settings of the file that take a restart.
func (a *App) waiting() []string {
	names, _ := a.pending.Load().([]string)
	return names
}

// renew reads the certificates of the main listener again.
func (a *App) renew(cfg *config.Config) error {
	if cfg.Server.TLS.CertFile == "" {
		return nil
	}
	return a.certs.load(&cfg.Server.TLS)
}

// watch reloads on the signal and on changes of the configuration file and of the files that it
// names. Folders are watched, not files, so that a rename over one (editors, Kubernetes config
// maps) is seen.
func (a *App) watch(ctx context.Context, reload <-chan os.Signal) error {
	if a.cfg.Load().File == "" {
		<-ctx.Done()
		return nil
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(filepath.Dir(a.cfg.Load().File)); err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	quiet := time.NewTimer(settle)
	quiet.Stop()
	defer quiet.Stop()
	look := time.NewTicker(poll)
	defer look.Stop()
	quiet.Reset(0)      // for what was written before anything was watched
	var first time.Time // of the events that nothing was done about yet
	var watched *noted
	for {
		if now := a.read.Load(); now != watched {
			now.follow(w)
			watched = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-reload:
			_ = a.Reload(ctx) // Reload has logged it; the old configuration serves on
		case err := <-w.Errors:
			a.tel.Log.WarnContext(ctx, "watch configuration", slog.Any("error", err))
		case <-w.Events:
			if first.IsZero() {
				first = time.Now()
			}
			if time.Since(first) < poll { // else the timer may run out
				quiet.Reset(settle)
			}
		case <-look.C:
			watched = nil // a folder may be there now
			if a.changed() {
				quiet.Reset(settle)
			}
		case <-quiet.C:
			first = time.Time{}
			if a.changed() {
				_ = a.Reload(ctx) // as above
			}
		}
	}
}

// files lists the configuration file and the files that it names and that may change while the
// process runs.
func files(cfg *config.Config) []string {
	out := append([]string{cfg.File}, cfg.SecretFiles...)
	out = append(out, cfg.Server.TLS.Files()...)
	out = append(out, cfg.Auth.JWT.Files()...)
	for i := range cfg.Models {
		for j := range cfg.Models[i].Endpoints {
			out = append(out, cfg.Models[i].Endpoints[j].TLS.Files()...)
		}
	}
	return append(out, classifierFiles(&cfg.Classify)...)
}

// named are the files that a configuration names which is not valid.
func named(err error) []string {
	if invalid, ok := errors.AsType[*config.Error](err); ok {
		return invalid.Files
	}
	return nil
}

// noted are files as they were when they were last read.
type noted struct {
	files []string
	sum   string
}

// follow watches the folders of the files.
func (n *noted) follow(w *fsnotify.Watcher) {
	for _, file := range n.files {
		_ = w.Add(filepath.Dir(file)) // twice is once; where it fails, the ticker looks
	}
}

// noteFiles remembers files as they are now, before they are read: a change in between is read
// again rather than missed.
func (a *App) noteFiles(files []string) {
	a.read.Store(&noted{files, fingerprint(files)})
}

// changed reports whether the files are not what was last read.
func (a *App) changed() bool {
	n := a.read.Load()
	return fingerprint(n.files) != n.sum
}

// fingerprint tells two contents of files apart.
func fingerprint(files []string) string {
	h := sha256.New()
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			b = []byte("unreadable")
		}
		_, _ = fmt.Fprintf(h, "%d\n", len(b))
		_, _ = h.Write(b)
	}
	return string(h.Sum(nil))
}
