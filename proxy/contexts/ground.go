package contexts

import (
	"context"
	"fmt"
	"strconv"

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
	for i, f := range t.Facts {
		sources = append(sources, evidence.Source{ID: FactID(f, "", i), Text: f.Text, Fact: true})
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
			sources = append(sources, evidence.Source{ID: Content, Text: text})
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

// Content is what verdicts call the text of a context, beside its pointer.
const Content = "content"

// FactID is what verdicts call the i-th of the facts that are pinned to a context, or that are a
// session's: its id, or else its place behind prefix. A number alone would be a place among the
// facts that the request itself brings.
func FactID(f memory.Fact, prefix string, i int) string {
	if f.ID != "" {
		return f.ID
	}
	return prefix + "facts[" + strconv.Itoa(i) + "]"
}
