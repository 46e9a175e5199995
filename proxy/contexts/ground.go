package contexts

import (
	"context"
	"fmt"

	"signalbox/memory"
	"signalbox/memory/ledger"
	"signalbox/stream/evidence"
)

// GroundOptions say what answers are checked against.
type GroundOptions struct {
	// Documents: the text of contexts is evidence, too.
	Documents bool
	// MaxFacts, MaxFactBytes and MaxDocument bound what is prepared, as the proxy does for
	// requests. Facts over them are left to requests, and of a longer text the end is taken.
	MaxFactBytes, MaxDocument int
	// Last is the end of a text, at most n bytes, without what is cut.
	Last func(text string, n int) string
}

// Ground prepares what answers are checked against: the facts, and the text when documents are
// evidence. nil says that nothing is prepared, which leaves it to the request: there is nothing, it
// is over the bounds, or it is messages, of which the model's own are no evidence. Else it is an
// *evidence.Evidence.
func Ground(t *memory.Text, o GroundOptions) (any, error) {
	n := 0
	sources := make([]evidence.Source, 0, len(t.Facts)+1)
	for _, f := range t.Facts {
		sources = append(sources, evidence.Source{ID: f.ID, Text: f.Text, Fact: true})
		n += len(f.Text)
	}
	if n > o.MaxFactBytes || o.Documents && t.Kind == ledger.Messages {
		return nil, nil
	}
	if o.Documents {
		text, err := t.Whole()
		if err != nil {
			return nil, err
		}
		if len(text) > o.MaxDocument {
			text = o.Last(text, o.MaxDocument)
		}
		if text != "" {
			sources = append(sources, evidence.Source{Text: text})
			n += len(text)
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	// Not of one request: those that come meanwhile wait for the same.
	e, err := evidence.New(context.Background(), sources, evidence.Options{MaxFacts: len(sources), MaxBytes: n})
	if err != nil {
		return nil, fmt.Errorf("prepare evidence: %w", err)
	}
	return e, nil
}
