package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/stream/check"
)

// task is the name of the task over pairs in a bundle.
const task = "nli"

// judge reads pairs with a bundle's model, like the product does.
type judge struct {
	runtime    *gpu.Runtime
	session    *gpu.Session
	classifier *classify.Classifier
	order      [3]int // of entailment, neutral and contradiction among the labels
	english    bool   // the bundle's only language
}

var _ check.Judge = (*judge)(nil)

// openJudge opens a bundle; library is the path of ONNX Runtime, empty to look for it where the
// product does.
func openJudge(ctx context.Context, dir, library string) (*judge, error) {
	b, err := bundle.Open(os.DirFS(dir), bundle.OpenOptions{})
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", dir, err)
	}
	o := gpu.DefaultOptions()
	o.Library = library
	if o.CacheDir, err = os.UserCacheDir(); err != nil {
		return nil, fmt.Errorf("cache directory: %w", err)
	}
	j := &judge{}
	if j.runtime, err = gpu.Open(o); err != nil { //nolint:contextcheck // opens once, at the start
		return nil, fmt.Errorf("open ONNX Runtime: %w", err)
	}
	if err := j.load(ctx, b); err != nil {
		return nil, errors.Join(fmt.Errorf("bundle %s: %w", dir, err), j.close())
	}
	return j, nil
}

func (j *judge) load(ctx context.Context, b *bundle.Bundle) error {
	graph, err := b.Graph(j.runtime.Precision())
	if err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	if j.session, err = j.runtime.NewSession(ctx, graph, gpu.SessionOptions{Name: b.Manifest.Name}); err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	engine, err := classify.OpenEngine(b, j.session) //nolint:contextcheck // opens once, at the start
	if err != nil {
		return fmt.Errorf("open engine: %w", err)
	}
	if j.classifier, err = classify.New([]classify.Source{{Engine: engine}}, classify.DefaultOptions()); err != nil {
		return fmt.Errorf("classifier: %w", err)
	}
	j.english = slices.Equal(b.Manifest.Languages, []string{"en"})
	labels := j.classifier.PairLabels(task)
	for i, name := range [...]string{"entailment", "neutral", "contradiction"} {
		if j.order[i] = slices.Index(labels, name); j.order[i] < 0 {
			return fmt.Errorf("task %s: no label %q among %q", task, name, labels)
		}
	}
	return nil
}

// Judge implements check.Judge.
func (j *judge) Judge(ctx context.Context, pairs []check.Pair) ([]check.Inference, error) {
	list := make([]classify.Pair, len(pairs))
	for i, p := range pairs {
		list[i] = classify.Pair{First: p.Premise, Second: p.Claim}
	}
	probs, err := j.classifier.ClassifyPairs(ctx, task, list)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", task, err)
	}
	out := make([]check.Inference, len(probs))
	for i, p := range probs {
		out[i] = check.Inference{Entailment: p[j.order[0]], Neutral: p[j.order[1]], Contradiction: p[j.order[2]]}
	}
	return out, nil
}

func (j *judge) close() error {
	var err error
	if j.session != nil {
		err = j.session.Close()
	}
	return errors.Join(err, j.runtime.Close())
}
