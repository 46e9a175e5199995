package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"signalbox/classify/knn"
	"signalbox/internal/config"
	"signalbox/internal/telemetry"
)

// probeModels opens the models of a configuration like serve, and closes them again. Problems that
// concern all models come first, then those of single models. An unreachable server that a model
// runs on is left to probeRemotes.
func probeModels(ctx context.Context, cfg *config.Config, o Options) []Probed {
	all := Probed{Name: "ONNX Runtime and bundle", Local: true}
	quiet := config.Default().Telemetry
	quiet.Log = "error"
	tel, err := telemetry.New(ctx, quiet, o.Version, io.Discard)
	if err != nil {
		all.Err = err
		return []Probed{all}
	}
	n, err := openNeural(ctx, cfg, o, tel)
	if err != nil {
		all.Err = errors.Join(err, tel.Shutdown(ctx))
		return []Probed{all}
	}
	n.examples = knn.NewCache("") // nothing is cached
	failed := n.tryOut(ctx, cfg, &all)
	all.Err = errors.Join(all.Err, n.missing, n.close(), tel.Shutdown(ctx))
	return append([]Probed{all}, failed...)
}

// tryOut opens every model that a configuration names and returns those that cannot be used.
func (n *neural) tryOut(ctx context.Context, cfg *config.Config, all *Probed) (failed []Probed) {
	if n.missing != nil {
		return nil
	}
	set, err := n.prepare(ctx, cfg)
	if err != nil {
		all.Err = err
		return nil
	}
	all.Detail = "ONNX Runtime " + n.state().version
	look := func(l *loaded) {
		m := &l.place.bundle.Manifest
		all.Detail += fmt.Sprintf(", bundle %s %s", m.Name, m.Version)
		if _, away := errors.AsType[undialled](l.err); l.err != nil && !away {
			failed = append(failed, Probed{Name: "bundle " + m.Name, Err: l.err, Local: true})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(set.loaded)) {
		look(set.loaded[key])
	}
	for _, err := range set.broken {
		failed = append(failed, Probed{Name: "classifier", Err: err, Local: true})
	}
	if set.grounding != nil {
		j := set.grounding.open(ctx)
		look(j.loaded)
		if j.loaded.err == nil && j.err != nil {
			failed = append(failed, Probed{Name: "bundle " + j.loaded.engine.Name(), Err: j.err, Local: true})
		}
	}
	all.Err = set.discard()
	return failed
}
