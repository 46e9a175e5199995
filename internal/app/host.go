package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/hub/local"
	"signalbox/internal/signal"
	"signalbox/internal/worker"
	"signalbox/proxy"
)

// host runs graphs: in this process, or in a separate one. Implementations are safe for concurrent
// use.
type host interface {
	// open opens a model on the first of the host's providers that can load it.
	open(ctx context.Context, o worker.SessionOptions) (session, error)
	// found describes what the host runs on.
	found() hostState
	// Choices are the providers that a model may run on, best first.
	Choices() []gpu.Choice
	Close() error
}

// hostState describes what a host runs on.
type hostState struct {
	version   string // of ONNX Runtime
	fallback  string // why the provider is not the configured one; empty if it is
	providers []gpu.Provider
	fault     error // why it currently runs nothing
	lost      error // models that it could not open again
}

// session is an open model.
type session interface {
	classify.Session
	// Fallback returns why Provider is not the requested one; empty if it is.
	Fallback() string
}

var (
	_ proxy.Engine = (*extractor)(nil)
	_ proxy.Faulty = (*extractor)(nil)

	_ host    = inProcess{}
	_ host    = isolated{}
	_ session = (*gpu.Session)(nil)
	_ session = (*worker.Session)(nil)
)

// openHost loads ONNX Runtime in this process, or starts a worker that does.
func (n *neural) openHost(ctx context.Context, cfg *config.Config, o *Options) (host, error) {
	opts := cfg.Classify.GPU(o.Settings)
	opts.Observer, opts.Logger = n.tel.Metrics, n.tel.Log
	if cfg.Classify.Isolation != config.IsolationProcess {
		rt, err := gpu.Open(opts)
		if err != nil {
			return nil, fmt.Errorf("open ONNX Runtime: %w", err)
		}
		return inProcess{rt}, nil
	}
	command, err := o.workerCommand()
	if err != nil {
		return nil, err
	}
	p, err := worker.Start(ctx, worker.Options{
		Command: command, GPU: opts, Observer: n.tel.Metrics, Restart: n.tel.Metrics.WorkerRestart, Log: n.tel.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("open ONNX Runtime: %w", err)
	}
	return isolated{p}, nil
}

// workerCommand returns the command that starts a worker: this program.
func (o *Options) workerCommand() ([]string, error) {
	if len(o.Worker) > 0 {
		return o.Worker, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start a worker: %w", err)
	}
	return []string{exe, "worker"}, nil
}

// inProcess runs models in this process.
type inProcess struct{ *gpu.Runtime }

func (l inProcess) found() hostState {
	s := hostState{version: l.Version(), providers: l.Providers()}
	_, s.fallback = l.Provider()
	return s
}

func (l inProcess) open(ctx context.Context, o worker.SessionOptions) (session, error) {
	var lost []error
	for _, c := range o.Choices(l.Choices()) {
		graph, err := o.Graph(c)
		var s *gpu.Session
		if err == nil {
			s, err = l.NewSession(ctx, graph, gpu.SessionOptions{Name: o.Name, Provider: c.Provider, Pad: o.Pad})
		}
		if err == nil {
			return fallen{s, errors.Join(lost...)}, nil
		}
		lost = append(lost, fmt.Errorf("%s: %w", c.Provider, err))
	}
	if len(lost) == 1 {
		lost[0] = errors.Unwrap(lost[0])
	}
	return nil, errors.Join(lost...)
}

// fallen is a session that better providers could not open.
type fallen struct {
	*gpu.Session

	lost error // why; nil if it runs on the best
}

// Fallback implements session.
func (f fallen) Fallback() string {
	if f.lost != nil {
		return f.lost.Error()
	}
	return f.Session.Fallback()
}

// isolated runs models in a worker.
type isolated struct{ *worker.Process }

func (i isolated) found() hostState {
	s := hostState{version: i.Version(), providers: i.Providers(), fault: i.Fault(), lost: i.Lost()}
	_, s.fallback = i.Provider()
	return s
}

func (i isolated) open(ctx context.Context, o worker.SessionOptions) (session, error) {
	return i.Open(ctx, o) //nolint:wrapcheck // it names the model
}

// sessionOptions returns how the model of a placement is opened.
func (p *placement) sessionOptions(modelsDir string) worker.SessionOptions {
	m := &p.bundle.Manifest
	return worker.SessionOptions{
		Name:  m.Name,
		Graph: func(c gpu.Choice) ([]byte, error) { return p.graph(c.Precision, modelsDir) },
		Pad:   p.padding(),
		CPU:   p.foreign,
	}
}

// padding fills the rows of requests that are combined; nil if they stay separate. In 8-bit graphs
// from other sources, the range of a row's numbers may depend on the other rows of the batch, which
// must not belong to other callers.
func (p *placement) padding() map[string]int64 {
	if p.model != config.EmbeddedModel && slices.ContainsFunc(p.bundle.Manifest.Graphs, func(g bundle.Graph) bool { return g.Precision == bundle.Int8 }) {
		return nil
	}
	return map[string]int64{p.bundle.Manifest.Inputs.IDs: p.bundle.Manifest.PadID}
}

// graph reads the graph for a provider. Half-precision graphs of the embedded bundles are in
// models_dir.
func (p *placement) graph(precision, modelsDir string) ([]byte, error) {
	if p.model != config.EmbeddedModel || precision != bundle.FP16 {
		return p.bundle.Tapped(precision, p.tapped, p.taps) //nolint:wrapcheck // it names the bundle
	}
	dir := filepath.Join(modelsDir, local.HalfModels, p.folder)
	half, err := bundle.Load(local.Files(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bundle %q has no graph of half precision: %s is not there", p.bundle.Manifest.Name,
			filepath.Join(local.HalfModels, p.folder, bundle.ManifestFile))
	}
	if err != nil {
		return nil, fmt.Errorf("graph of half precision: %w", err)
	}
	if have, want := &half.Manifest, &p.bundle.Manifest; have.Name != want.Name || have.Version != want.Version {
		return nil, fmt.Errorf("the graph of half precision is that of %s %s, want %s %s", have.Name, have.Version, want.Name, want.Version)
	}
	return half.Graph(precision) //nolint:wrapcheck // it names the bundle
}

// note describes that a model runs differently from the configuration, or not at all.
func (l *loaded) note() string {
	switch {
	case l.session == nil && l.remote:
		return fmt.Sprintf("bundle %s: %v", l.engine.Name(), l.err)
	case l.session == nil:
		return ""
	case l.session.Fallback() != "":
		return fmt.Sprintf("bundle %s runs on %s: %s", l.engine.Name(), l.session.Provider(), l.session.Fallback())
	}
	return ""
}

// Fault implements proxy.Faulty. Without ONNX Runtime there is no fault of any single model.
func (e *extractor) Fault(kinds signal.Mask) string {
	var out []string
	for _, l := range e.loaded {
		if l.err == nil || l.place.foreign || l.engine.Signals()&kinds == 0 || errors.Is(l.err, gpu.ErrUnavailable) {
			continue
		}
		cause := strings.ReplaceAll(l.err.Error(), "\n", "; ")
		out = append(out, fmt.Sprintf("bundle %s cannot be used: %s", l.engine.Name(), cause))
	}
	return strings.Join(out, "; ")
}

// tellProvider records what a model runs on.
func (n *neural) tellProvider(ctx context.Context, p *placement, s session) {
	provider := s.Provider()
	device := provider
	for _, found := range n.state().providers {
		if found.Name == provider {
			device = found.Device()
		}
	}
	n.tel.Metrics.Provider(provider, device)
	attrs := []slog.Attr{
		slog.String("bundle", p.bundle.Manifest.Name), slog.String("version", p.bundle.Manifest.Version),
		slog.String("provider", provider), slog.String("onnxruntime", n.state().version),
	}
	level := slog.LevelInfo
	if why := cmp.Or(s.Fallback(), n.state().fallback); why != "" {
		attrs, level = append(attrs, slog.String("fallback", why)), slog.LevelWarn
	}
	n.tel.Log.LogAttrs(ctx, level, "models ready", attrs...)
}

// state describes what the host runs on; empty without one.
func (n *neural) state() hostState {
	if n.host == nil {
		return hostState{}
	}
	return n.host.found()
}

// opened returns the models of signals, and the one that checks claims once it was needed.
func (e *extractor) opened() []*loaded {
	if e.grounding != nil {
		if j := e.grounding.opened.Load(); j != nil {
			return append(slices.Clip(e.loaded), j.loaded)
		}
	}
	return e.loaded
}

// Degraded names what does not work as configured, for /readyz.
func (e *extractor) Degraded() []string {
	out := e.Classifier.Degraded()
	s := e.state()
	if s.fault != nil {
		out = append(out, fmt.Sprintf("the process of the models is down: %v", s.fault))
	}
	if s.lost != nil {
		out = append(out, s.lost.Error())
	}
	if s.fallback != "" {
		out = append(out, "models run on the cpu: "+s.fallback)
	}
	for _, l := range e.opened() {
		if note := l.note(); note != "" {
			out = append(out, note)
		}
	}
	return out
}

// Engine implements proxy.Engine.
func (e *extractor) Engine() *proxy.EngineDetail {
	s := e.state()
	if s.version == "" {
		return nil
	}
	d := &proxy.EngineDetail{Version: s.version, Fallback: s.fallback}
	for _, p := range s.providers {
		d.Providers = append(d.Providers, proxy.ProviderDetail{Name: p.Name, Available: p.State.String(), Detail: p.Detail})
	}
	for _, l := range e.opened() {
		if l.session != nil {
			d.Bundles = append(d.Bundles, proxy.BundleDetail{Name: l.engine.Name(), Provider: l.session.Provider()})
		}
	}
	return d
}
