package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"

	"signalbox/classify"
	"signalbox/classify/knn"
	"signalbox/internal/config"
	"signalbox/proxy"
)

// taught is the index of the private intents and what it was made from. A reload that changes none of
// it keeps the index, with the examples that were added while it ran.
type taught struct {
	index   *knn.Index
	intents []knn.Intent
	margin  float64
	model   string
}

// teach makes the index of a configuration's intents, or takes over that of the one before. engine
// gives the embedding, key says which model it is.
func (n *neural) teach(ctx context.Context, cfg *config.Config, engine *classify.Engine, key string) (*taught, error) {
	sum := sha256.Sum256([]byte(key))
	t := &taught{intents: cfg.Signals.Intents, margin: cfg.Signals.IntentMargin, model: hex.EncodeToString(sum[:])}
	if old := n.taught; old != nil && old.model == t.model && old.margin == t.margin && reflect.DeepEqual(old.intents, t.intents) {
		return old, nil
	}
	o := knn.DefaultOptions()
	o.Margin, o.Cache, o.Model = t.margin, n.examples, t.model
	var err error
	if t.index, err = knn.New(ctx, t.intents, o, engine.Embed); err != nil {
		return nil, fmt.Errorf("private intents: %w", err)
	}
	if n.taught != nil {
		if err := t.remember(ctx, n.taught.index.Live()); err != nil {
			return nil, fmt.Errorf("private intents: %w", err)
		}
	}
	return t, nil
}

// remember gives the intents that are still there the examples that were added to those before.
func (t *taught) remember(ctx context.Context, live map[string][]string) error {
	for _, name := range t.index.Names() {
		if examples := live[name]; len(examples) > 0 {
			_, err := t.index.Add(ctx, name, examples)
			var bad *knn.ExampleError
			if err != nil && !errors.As(err, &bad) { // one that the file now has elsewhere is its business
				return err
			}
		}
	}
	return nil
}

// extractor is a classifier as the proxy sees it: signals, and intents that can be added to.
type extractor struct {
	*classify.Classifier

	index *knn.Index // nil without intents
}

var (
	_ proxy.Classifier    = (*extractor)(nil)
	_ proxy.IntentTeacher = (*extractor)(nil)
)

// extractor returns the set's classifier as the proxy sees it.
func (s *modelSet) extractor() *extractor {
	e := &extractor{Classifier: s.classifier}
	if s.taught != nil {
		e.index = s.taught.index
	}
	return e
}

// Intents lists the private intents.
func (e *extractor) Intents() []proxy.IntentSummary {
	if e.index == nil {
		return nil
	}
	var out []proxy.IntentSummary
	for _, s := range e.index.Intents() {
		out = append(out, proxy.IntentSummary{Name: s.Name, Examples: s.Examples, Live: s.Live, Negatives: s.Negatives, Threshold: s.Threshold, Auto: s.Auto})
	}
	return out
}

// AddExamples adds examples to a private intent.
func (e *extractor) AddExamples(ctx context.Context, intent string, examples []string) (added, total int, err error) {
	if e.index == nil {
		return 0, 0, proxy.ErrUnknownIntent
	}
	counts, err := e.index.Add(ctx, intent, examples)
	var bad *knn.ExampleError
	switch {
	case errors.Is(err, knn.ErrUnknownIntent):
		return 0, 0, proxy.ErrUnknownIntent
	case errors.As(err, &bad):
		return 0, 0, &proxy.ExampleError{Index: bad.Index, Msg: bad.Msg}
	case err != nil:
		return 0, 0, fmt.Errorf("add examples: %w", err)
	}
	return counts.Added, counts.Examples, nil
}
