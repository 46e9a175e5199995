package app

import (
	"context"
	"maps"
	"slices"

	"signalbox/classify"
	"signalbox/classify/knn"
	"signalbox/classify/pii"
	"signalbox/internal/signal"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/redact"
	"signalbox/proxy/signals"
	"signalbox/proxy/tools"
)

// extractor is a classifier in the form that the proxy uses: signals, and intents that can be
// extended.
type extractor struct {
	*classify.Classifier

	index   *knn.Index   // nil without intents, or without an embedding model
	intents []knn.Intent // as configured

	state     func() hostState // the state of the host
	loaded    []*loaded        // the models of signals
	grounding *grounding       // checks claims; nil without a model
}

// extractor returns the set's classifier in the form that the proxy uses.
func (s *modelSet) extractor() *extractor {
	e := &extractor{Classifier: s.classifier, intents: s.intents, state: s.state, grounding: s.grounding}
	for _, key := range slices.Sorted(maps.Keys(s.loaded)) {
		e.loaded = append(e.loaded, s.loaded[key])
	}
	if s.taught != nil {
		e.index = s.taught.index
	}
	return e
}

var (
	_ signals.Classifier    = (*extractor)(nil)
	_ signals.Teacher       = (*extractor)(nil)
	_ signals.Interruptible = (*extractor)(nil)
	_ guardrail.Moderator   = (*extractor)(nil)
	_ tools.Shortener       = (*extractor)(nil)
	_ redact.Finder         = (*extractor)(nil)
)

// FindPersonal implements redact.Finder with the patterns that need no model.
func (*extractor) FindPersonal(ctx context.Context, text string) ([]signal.Span, error) {
	found, err := pii.PatternsContext(ctx, text, nil)
	out := make([]signal.Span, len(found))
	for i, s := range found {
		out[i] = signal.Span{Type: s.Type, Start: s.Start, End: s.End, Score: s.Score}
	}
	return out, err //nolint:wrapcheck // that of ctx
}
