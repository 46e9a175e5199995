package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"signalbox/classify/compress"
	"signalbox/classify/knn"
	"signalbox/internal/config"
	"signalbox/proxy/signals"
)

// taught is the index of the private intents with the values that it was made from. A reload that
// changes none of these keeps the index, with the examples added at runtime.
type taught struct {
	index   *knn.Index
	intents []knn.Intent
	margin  float64
	model   string
}

// teach creates the index of a configuration's intents, or takes over the previous one. embed
// computes the embedding, o describes it; o.Model identifies it.
func (n *neural) teach(ctx context.Context, cfg *config.Config, embed knn.Embedder, o knn.Options) (*taught, error) {
	sum := sha256.Sum256([]byte(o.Model))
	t := &taught{intents: cfg.Signals.Intents, margin: cfg.Signals.IntentMargin, model: hex.EncodeToString(sum[:])}
	if old := n.taught; old != nil && old.model == t.model && old.margin == t.margin && reflect.DeepEqual(old.intents, t.intents) {
		return old, nil
	}
	o.Margin, o.Neighbours, o.Cache, o.Model = t.margin, knn.DefaultOptions().Neighbours, n.examples, t.model
	var err error
	if t.index, err = knn.New(ctx, t.intents, o, embed); err != nil {
		return nil, fmt.Errorf("private intents: %w", err)
	}
	live := n.kept
	if n.taught != nil {
		live = n.taught.index.Live()
	}
	if err := t.remember(ctx, live); err != nil {
		return nil, fmt.Errorf("private intents: %w", err)
	}
	return t, nil
}

// carry adds to the current index the examples that the previous index received while its successor
// was created. Without a current index they are kept for the next; Add removes duplicates.
func (n *neural) carry(ctx context.Context, old *taught) error {
	switch {
	case old == nil || old == n.taught:
		return nil
	case n.taught != nil:
		return n.taught.remember(ctx, old.index.Live())
	}
	kept := old.index.Live()
	for name, examples := range n.kept {
		kept[name] = append(kept[name], examples...)
	}
	n.kept = kept
	return nil
}

// remember adds the runtime examples of previous intents to those that still exist, except examples
// that the file now lists under another intent.
func (t *taught) remember(ctx context.Context, live map[string][]string) error {
	for _, name := range t.index.Names() {
		if examples := live[name]; len(examples) > 0 {
			if _, _, err := t.index.Restore(ctx, name, examples); err != nil {
				return err
			}
		}
	}
	return nil
}

// Intents lists the private intents. Without a model they are as configured, and an automatic
// threshold is 0.
func (e *extractor) Intents() []signals.Intent {
	var out []signals.Intent
	if e.index == nil {
		for i := range e.intents {
			in := &e.intents[i]
			out = append(out, signals.Intent{
				Name: in.Name, Examples: len(in.Examples), Negatives: len(in.Negatives),
				Threshold: float64(in.Threshold), Auto: in.Threshold == knn.Auto,
			})
		}
		return out
	}
	for _, s := range e.index.Intents() {
		out = append(out, signals.Intent{Name: s.Name, Examples: s.Examples, Live: s.Live, Negatives: s.Negatives, Threshold: s.Threshold, Auto: s.Auto})
	}
	return out
}

var errNoEmbedding = errors.New("no model to compare examples by")

// AddExamples adds examples to a private intent.
func (e *extractor) AddExamples(ctx context.Context, intent string, examples []string) (added, total int, err error) {
	if e.index == nil {
		if slices.ContainsFunc(e.intents, func(in knn.Intent) bool { return in.Name == intent }) {
			return 0, 0, errNoEmbedding
		}
		return 0, 0, signals.ErrUnknownIntent
	}
	counts, err := e.index.Add(ctx, intent, examples)
	var bad *knn.ExampleError
	switch {
	case errors.Is(err, knn.ErrUnknownIntent):
		return 0, 0, signals.ErrUnknownIntent
	case errors.As(err, &bad):
		return 0, 0, &signals.ExampleError{Index: bad.Index, Msg: bad.Msg}
	case err != nil:
		return 0, 0, fmt.Errorf("add examples: %w", err)
	}
	return counts.Added, counts.Examples, nil
}

// Shorten implements tools.Shortener: the skeleton of a text.
func (*extractor) Shorten(ctx context.Context, text string, tokens int) (string, error) {
	r, err := compress.Compress(ctx, text, compress.Options{Budget: max(tokens, compress.MinBudget)})
	return r.Text, err //nolint:wrapcheck // that of ctx
}
