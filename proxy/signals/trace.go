package signals

import (
	"cmp"
	"slices"

	"signalbox/internal/signal"
	"signalbox/proxy/resolve"
)

// Trace is what became of one signal.
type Trace struct {
	State    string    `json:"state"`              // evaluated, skipped or unknown
	Value    string    `json:"value,omitempty"`    // the label
	Labels   []string  `json:"labels,omitempty"`   // of keyword the sets that matched, of pii the types found
	Score    *float64  `json:"score,omitempty"`    // probability of the label, in [0,1]
	Entities *[]Entity `json:"entities,omitempty"` // of pii
	// of intent: the score from which the intent holds that the score is of
	Threshold *float64 `json:"threshold,omitempty"`
	Nearest   string   `json:"nearest,omitempty"`  // that intent, where it does not hold
	Coverage  string   `json:"coverage,omitempty"` // windowed or compressed; absent when all was read in one piece
	Windows   int      `json:"windows,omitempty"`  // with windowed: how many cover the text
	Read      int      `json:"read,omitempty"`     // with windowed: how many of them were read
	Partial   bool     `json:"partial,omitempty"`  // some text could not be read
	// how much of it comes from the turns before, in [0,1]: the last one follows them
	Leans float64 `json:"leans,omitempty"`
	// why it is unknown or partial, or was not computed
	Reason string  `json:"reason,omitempty"`
	Ms     float64 `json:"ms"` // time spent, in milliseconds; signals of one pass share it

	Verdicts []OriginVerdict `json:"verdicts,omitempty"` // of jailbreak and injection, by origin
	// of these: origins that the request has text of and that nothing looked at
	NotRead []string `json:"not_read,omitempty"`
}

// Trace tells what became of a signal.
func (r *Reader) Trace(k signal.Kind, v *signal.Value, text *signal.Text) Trace {
	t := Trace{Ms: float64(v.Elapsed.Microseconds()) / 1000}
	switch v.State {
	case signal.NotExtracted:
		t.State = "skipped"
	case signal.Unknown:
		t.State, t.Reason = "unknown", string(v.Reason)
	case signal.Known:
		t.State, t.Value = "evaluated", r.Label(k, v)
		t.Partial, t.Reason = v.Partial, string(v.Reason)
		t.Verdicts = originVerdicts(v, text)
		t.Coverage, t.Windows, t.Read = coverageOf(v)
		t.Leans = leaning(v)
		if k == signal.Keyword || k == signal.PII {
			t.Labels = v.Labels
		}
		if k == signal.PII {
			found := entitiesOf(v, text)
			t.Entities = &found
		}
		if k != signal.Keyword {
			t.Score = &v.Score
		}
	}
	return t
}

// Explain is Trace of a signal of a request that is at hand: with the origins that were not read,
// the text of contexts among them, and the intent that the score is of.
func (r *Reader) Explain(k signal.Kind, v *signal.Value, text *signal.Text, of *resolve.Contexts) Trace {
	t := r.Trace(k, v, text)
	if v.State != signal.NotExtracted {
		t.NotRead = r.notRead(k, text, of.Named())
	}
	if k == signal.Intent {
		r.traceIntent(&t, v)
	}
	return t
}

// traceIntent tells which private intent the score is of, and from which score it holds.
func (r *Reader) traceIntent(t *Trace, v *signal.Value) {
	_, ok := r.Classifier.(Teacher)
	at := slices.Index(v.Probs, float32(v.Score))
	if !ok || v.State != signal.Known || at < 0 || at >= len(v.Labels) || v.Score == 0 {
		return
	}
	name := cmp.Or(v.Label, v.Labels[at])
	if from, ok := r.IntentThreshold(name); ok {
		t.Threshold = &from
	}
	if v.Label != "" {
		return
	}
	t.Nearest = name
	if t.Threshold != nil && v.Score >= *t.Threshold {
		t.Reason = cmp.Or(t.Reason, "another intent is too near")
	}
}
