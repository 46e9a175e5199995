package guardrail

import (
	"context"
	"fmt"
	"strconv"

	"signalbox/memory"
	"signalbox/memory/ledger"
	"signalbox/stream/evidence"
)

// Ground prepares what answers to requests that name a context are checked against: its facts, and
// its text when o takes documents for evidence. nil says that nothing is prepared, which leaves it
// to the request: there is nothing, it is over the bounds of a request, or it is messages, of which
// the model's own are no evidence. Else it is an *evidence.Evidence.
func Ground(t *memory.Text, o *Options) (any, error) {
	n := 0
	sources := make([]evidence.Source, 0, len(t.Facts)+1)
	for i, f := range t.Facts {
		sources = append(sources, evidence.Source{ID: factID(f, "", i), Text: f.Text, Fact: true})
		n += len(f.Text)
	}
	if n > maxFactBytes || o.Documents && t.Kind == ledger.Messages {
		return nil, nil
	}
	if o.Documents {
		text, err := t.Whole()
		if err != nil {
			return nil, err
		}
		if len(text) > MaxDocumentBytes {
			text = lastPart(text, MaxDocumentBytes)
		}
		if text != "" {
			sources = append(sources, evidence.Source{ID: content, Text: text})
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

// content is what verdicts call the text of a context, beside its pointer.
const content = "content"

// factID is what verdicts call the i-th of the facts that are pinned to a context, or that are a
// session's: its id, or else its place behind prefix. A number alone would be a place among the
// facts that the request itself brings.
func factID(f memory.Fact, prefix string, i int) string {
	if f.ID != "" {
		return f.ID
	}
	return prefix + "facts[" + strconv.Itoa(i) + "]"
}
