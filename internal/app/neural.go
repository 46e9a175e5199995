package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/models"
)

// neural owns the bundle, the ONNX Runtime library and the session. Its classifiers differ only in
// keywords and thresholds, so a reload makes a new one over the same session.
type neural struct {
	bundle  *bundle.Bundle
	runtime *gpu.Runtime
	session *gpu.Session
	missing error // why there is no session
	tel     *telemetry.Telemetry
}

// openBundle finds the bundle that every task uses: the embedded one, or a folder of models_dir.
func openBundle(c *config.Classify) (*bundle.Bundle, error) {
	name := c.Bundle()
	var root fs.FS
	if name == config.EmbeddedModel {
		sub, err := fs.Sub(models.FS, "default")
		if err != nil {
			return nil, fmt.Errorf("embedded bundle: %w", err)
		}
		root = sub
	} else {
		root = os.DirFS(filepath.Join(c.ModelsDir, name))
	}
	b, err := bundle.Load(root)
	if err != nil {
		return nil, fmt.Errorf("bundle %q: %w", name, err)
	}
	return b, nil
}

// Catalog tells what the bundle named by the configuration can compute. It needs no ONNX Runtime.
func Catalog(c *config.Classify) (config.Catalog, error) {
	b, err := openBundle(c)
	if err != nil {
		return config.Catalog{}, err
	}
	out := config.Catalog{Signals: signal.MaskOf(signal.Keyword), Thresholds: make(map[signal.Kind]float64)}
	for _, t := range b.Manifest.Tasks {
		k, ok := signal.ParseKind(t.Name)
		if !ok {
			continue
		}
		out.Signals |= signal.MaskOf(k)
		out.Thresholds[k] = t.Threshold
		if k == signal.Domain {
			out.Domains = t.Labels
		}
	}
	return out, nil
}

func openNeural(ctx context.Context, cfg *config.Config, o Options, tel *telemetry.Telemetry) (*neural, error) {
	b, err := openBundle(&cfg.Classify)
	if err != nil {
		return nil, err
	}
	n := &neural{bundle: b, tel: tel}
	if err := n.open(ctx, cfg, o); err != nil {
		if o.RequireModels || !errors.Is(err, gpu.ErrUnavailable) {
			return nil, errors.Join(err, n.close())
		}
		n.missing = err
		tel.Log.WarnContext(ctx, "no neural signals: every route that needs one takes its on_unknown action",
			slog.String("cause", err.Error()))
		return n, nil
	}
	tel.Metrics.Provider(n.session.Provider(), runtime.GOARCH)
	tel.Log.InfoContext(ctx, "models ready", slog.String("bundle", b.Manifest.Name), slog.String("version", b.Manifest.Version),
		slog.String("provider", n.session.Provider()), slog.String("onnxruntime", n.runtime.Version()))
	return n, nil
}

func (n *neural) open(ctx context.Context, cfg *config.Config, o Options) error {
	opts := cfg.Classify.GPU(o.Settings)
	opts.Observer, opts.Logger = n.tel.Metrics, n.tel.Log
	rt, err := gpu.Open(opts)
	if err != nil {
		return fmt.Errorf("open ONNX Runtime: %w", err)
	}
	n.runtime = rt
	graph, err := n.bundle.Graph(rt.Precision())
	if err != nil {
		return fmt.Errorf("bundle %q: %w", n.bundle.Manifest.Name, err)
	}
	n.session, err = rt.NewSession(ctx, graph, gpu.SessionOptions{Name: n.bundle.Manifest.Name})
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	return nil
}

// classifier makes the extractor of one configuration.
func (n *neural) classifier(cfg *config.Config) (*classify.Classifier, error) {
	opts := classify.DefaultOptions()
	opts.Timeout = time.Duration(cfg.Classify.Timeout)
	opts.Keywords = cfg.Signals.Keywords
	opts.Logger = n.tel.Log
	var session classify.Session
	if n.session != nil {
		session = n.session
	}
	c, err := classify.New(n.bundle, session, opts)
	if err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	return c, nil
}

func (n *neural) close() error {
	var errs []error
	if n.session != nil {
		errs = append(errs, n.session.Close())
	}
	if n.runtime != nil {
		errs = append(errs, n.runtime.Close())
	}
	return errors.Join(errs...)
}
