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

// tailed is the open graph of an adapter, or of several as one.
type tailed struct{ session }

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
	a, err := local.ReadAdapter(c.ModelsDir, filepath.Base(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSuffix(path, ".onnx"), head.InfoFile)); err == nil {
		return nil, fmt.Errorf("both an adapter, %s, and a trained classifier of the same name exist: "+
			"remove one", path)
	}
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
		return 0, fmt.Errorf("its base model, %s %s, runs on another server", a.Base.Name,
			a.Base.Version)
	}
	return 0, fmt.Errorf("its base model is %s %s (sha256 %.12s), which is not configured in classify.tasks: "+
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
		set.broken = append(set.broken, err)
		n.tel.Log.ErrorContext(ctx, "adapter not usable", slog.String("effect", "its classifier is unknown"),
			slog.String("classifier", a.name), slog.String("cause", err.Error()))
	}
	for base := range sources {
		n.stackUp(ctx, list, base, &sources[base], set)
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
	t, err := n.tail(ctx, a.name, a.Sum, set, func() ([]byte, error) { return a.File, nil })
	if err != nil {
		return nil, fmt.Errorf("adapter %q: %w", a.name, err)
	}
	with, err := e.WithTail(a.name, a.kind, a.Adapter, t)
	if err != nil {
		n.unused(a.Sum, t, set)
		return nil, err
	}
	set.tails[a.Sum] = t
	return with, nil
}

// tail returns the session of a graph, the one in use where there is one of that sum.
func (n *neural) tail(ctx context.Context, name, sum string, set *modelSet, graph func() ([]byte, error)) (*tailed, error) {
	if t := cmp.Or(n.tails[sum], set.tails[sum]); t != nil {
		return t, nil
	}
	s, err := n.host.open(ctx, worker.SessionOptions{
		Name: name, CPU: true,
		Graph: func(gpu.Choice) ([]byte, error) { return graph() },
	})
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	t := &tailed{s}
	set.fresh = append(set.fresh, t)
	return t, nil
}

// unused lets a session that was opened for a set, which cannot use it, be closed with what the set
// drops.
func (n *neural) unused(sum string, t *tailed, set *modelSet) {
	if n.tails[sum] == nil && set.tails[sum] == nil {
		set.dropped = append(set.dropped, t)
	}
}

// stackUp lets those adapters of a source run as one graph that can. It is for speed alone: what
// fails is logged, and they go on one by one.
func (n *neural) stackUp(ctx context.Context, list []adapted, base int, s *classify.Source, set *modelSet) {
	var forms []string
	same := make(map[string][]*adapted)
	for i := range list {
		a := &list[i]
		if a.base != base || a.Form == "" || set.tails[a.Sum] == nil || !s.Signals.Has(a.kind) {
			continue
		}
		if same[a.Form] == nil {
			forms = append(forms, a.Form)
		}
		same[a.Form] = append(same[a.Form], a)
	}
	for _, form := range forms {
		if len(same[form]) < 2 {
			continue
		}
		e, err := n.withStack(ctx, same[form], s.Engine, set)
		if errors.Is(err, errUnusable) {
			continue // it was logged
		}
		if err != nil {
			n.tel.Log.WarnContext(ctx, "adapters cannot run as one graph", slog.String("effect", "each runs alone"),
				slog.Int("adapters", len(same[form])), slog.String("cause", err.Error()))
			continue
		}
		s.Engine = e
	}
}

// errUnusable says that adapters could not run as one graph before.
var errUnusable = errors.New("unusable")

// withStack is Engine.WithStack with a session of the graph of several adapters.
func (n *neural) withStack(ctx context.Context, list []*adapted, e *classify.Engine, set *modelSet) (*classify.Engine, error) {
	var adapters []*bundle.Adapter
	var kinds []signal.Kind
	var names, sums []string
	for _, a := range list {
		adapters, kinds = append(adapters, a.Adapter), append(kinds, a.kind)
		names, sums = append(names, a.name), append(sums, a.Sum)
	}
	key := strings.Join(sums, " ")
	if n.unusable[key] {
		set.unusable[key] = true
		return nil, errUnusable
	}
	t, err := n.tail(ctx, strings.Join(names, "+"), key, set, func() ([]byte, error) { return bundle.Stack(adapters) })
	if err != nil {
		set.unusable[key] = true
		return nil, err
	}
	with, err := e.WithStack(t, kinds)
	if err != nil {
		set.unusable[key] = true
		n.unused(key, t, set)
		return nil, err //nolint:wrapcheck // says what it is
	}
	set.tails[key] = t
	return with, nil
}
