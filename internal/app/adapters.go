package app

import (
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
	"signalbox/classify/head"
	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/hub/local"
	"signalbox/internal/signal"
	"signalbox/internal/worker"
)

// adapted is a classifier of one's own that is an adapter, and the placement whose graph it goes on
// from.
type adapted struct {
	*bundle.Adapter

	name string
	kind signal.Kind
	base int // of the placements
}

// tailed is the open graph of an adapter.
type tailed struct {
	session

	sum string // of its file
}

func (t *tailed) close() error { return t.Close() }

// adapterFile is the file of an adapter: NAME.onnx of models_dir.
func adapterFile(c *config.Classify, o *config.OwnClassifier) (string, error) {
	dir, err := headDir(c, o)
	return dir + ".onnx", err
}

// readAdapter reads the adapter of a classifier of one's own; nil without an error when there is
// none.
func readAdapter(c *config.Classify, o *config.OwnClassifier) (*bundle.Adapter, error) {
	path, err := adapterFile(c, o)
	if err != nil {
		return nil, err
	}
	file, err := readAdapterFile(c.ModelsDir, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read adapter: %w", err)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSuffix(path, ".onnx"), head.InfoFile)); err == nil {
		return nil, fmt.Errorf("there is an adapter, %s, and a trained classifier of the same name beside it: "+
			"remove one", path)
	}
	a, err := bundle.ReadAdapter(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	info, err := head.NewInfo(head.Mode(a.Mode), a.Labels, a.Scale, a.Shift, a.Thresholds)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a.Thresholds = info.WithThreshold(o.Threshold).Thresholds
	return a, nil
}

// readAdapterFile reads a file of models_dir, of a size that an adapter can have.
func readAdapterFile(modelsDir, path string) ([]byte, error) {
	files, name := local.Files(modelsDir), filepath.Base(path)
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // a *fs.PathError
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > bundle.MaxAdapterBytes:
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", path, info.Size(), bundle.MaxAdapterBytes)
	}
	return fs.ReadFile(files, name) //nolint:wrapcheck // as above
}

// baseOf finds the placement whose graph an adapter goes on from.
func baseOf(a *bundle.Adapter, placed []placement) (int, error) {
	elsewhere := false
	for i := range placed {
		p := &placed[i]
		if _, _, err := p.bundle.Manifest.Taps(a.Base.SHA256); err != nil || p.foreign {
			continue
		}
		if p.remote.URL == "" {
			return i, nil
		}
		elsewhere = true
	}
	if elsewhere {
		return 0, fmt.Errorf("the model that it goes on from, %s %s, runs on another server", a.Base.Name,
			a.Base.Version)
	}
	return 0, fmt.Errorf("it goes on from %s %s (sha256 %.12s), and no model of classify.tasks is that one: "+
		"train it again", a.Base.Name, a.Base.Version, a.Base.SHA256)
}

// adapters reads the classifiers of one's own that are adapters, and lets the graphs that they go on
// from show their taps.
func adapters(c *config.Classify, placed []placement) ([]adapted, error) {
	var out []adapted
	for i := range c.Classifiers {
		o := &c.Classifiers[i]
		if o.Remote() {
			continue
		}
		a, err := readAdapter(c, o)
		if err != nil {
			return nil, fmt.Errorf("classifier %q: %w", o.Name, err)
		}
		if a == nil {
			continue
		}
		at, err := baseOf(a, placed)
		if err != nil {
			return nil, fmt.Errorf("classifier %q: %w", o.Name, err)
		}
		out = append(out, adapted{a, o.Name, signal.Own + signal.Kind(i), at})
		placed[at].show(a)
	}
	return out, nil
}

// show puts the taps of an adapter among the outputs of a placement's graph.
func (p *placement) show(a *bundle.Adapter) {
	p.tapped = a.Base.SHA256
	for _, name := range a.Taps {
		if !slices.Contains(p.taps, name) {
			p.taps = append(p.taps, name)
		}
	}
	slices.Sort(p.taps)
}

// attach gives the engines of sources the tails of adapters. One that cannot be used leaves its
// classifier unknown when the product starts; in a reload it is an error, unless it was unknown
// before.
func (n *neural) attach(ctx context.Context, list []adapted, sources []classify.Source, set *modelSet) error {
	for i := range list {
		a := &list[i]
		s := &sources[a.base]
		if !s.Engine.Ready() {
			continue
		}
		e, err := n.withTail(ctx, a, s.Engine, set)
		if err == nil {
			s.Engine, s.Signals = e, s.Signals|signal.MaskOf(a.kind)
			continue
		}
		if n.required || n.loaded != nil && !n.unusable[a.Sum] {
			return err
		}
		set.unusable[a.Sum] = true
		n.tel.Log.ErrorContext(ctx, "an adapter cannot be used", slog.String("effect", "its classifier is unknown"),
			slog.String("classifier", a.name), slog.String("cause", err.Error()))
	}
	for sum, t := range n.tails {
		if set.tails[sum] == nil {
			set.dropped = append(set.dropped, t)
		}
	}
	return nil
}

// withTail is Engine.WithTail with a session of the adapter's graph, the one in use where there is
// one.
func (n *neural) withTail(ctx context.Context, a *adapted, e *classify.Engine, set *modelSet) (*classify.Engine, error) {
	t := n.tails[a.Sum]
	if t == nil {
		t = set.tails[a.Sum]
	}
	if t == nil {
		s, err := n.host.open(ctx, worker.SessionOptions{
			Name: a.name, CPU: true,
			Graph: func(gpu.Choice) ([]byte, error) { return a.File, nil },
		})
		if err != nil {
			return nil, fmt.Errorf("adapter %q: open session: %w", a.name, err)
		}
		t = &tailed{s, a.Sum}
		set.fresh = append(set.fresh, t)
	}
	with, err := e.WithTail(a.name, a.kind, a.Adapter, t)
	if err != nil {
		return nil, err
	}
	set.tails[a.Sum] = t
	return with, nil
}
