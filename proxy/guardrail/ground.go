package guardrail

import (
	"context"
	"fmt"
	"strconv"

	"signalbox/memory"
	"signalbox/memory/ledger"
	"signalbox/stream/evidence"
)

// Ground prepares the evidence for responses to requests that name a context: its facts and, if o
// counts documents as evidence, its text. The result is an *evidence.Evidence, or nil if nothing is
// prepared and each request has to do it: the context has no evidence, exceeds the limits of a
// request, or consists of messages, of which the model's own are no evidence.
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
	// Not the context of one request, since others wait for the same result.
	e, err := evidence.New(context.Background(), sources, evidence.Options{MaxFacts: len(sources), MaxBytes: n})
	if err != nil {
		return nil, fmt.Errorf("prepare evidence: %w", err)
	}
	return e, nil
}

// content is the name of a context's text in verdicts, next to its pointer.
const content = "content"

// factID returns the name in verdicts of the i-th fact of a context or session: its id, or else its
// position after prefix. A plain number would refer to a fact of the request itself.
func factID(f memory.Fact, prefix string, i int) string {
	if f.ID != "" {
		return f.ID
	}
	return prefix + "facts[" + strconv.Itoa(i) + "]"
}
