package signals

import (
	"cmp"
	"slices"

	"signalbox/internal/signal"
	"signalbox/proxy/resolve"
)

// Trace describes one signal of a decision.
type Trace struct {
	State string `json:"state"`           // evaluated, skipped or unknown
	Value string `json:"value,omitempty"` // the label
	// for keyword: sets that matched; for pii: types found
	Labels   []string  `json:"labels,omitempty"`
	Score    *float64  `json:"score,omitempty"`    // probability of the label, in [0,1]
	Entities *[]Entity `json:"entities,omitempty"` // for pii
	// for intent: minimum score of the intent that the score belongs to
	Threshold *float64 `json:"threshold,omitempty"`
	Nearest   string   `json:"nearest,omitempty"` // that intent, if its threshold was not reached
	// windowed or compressed; absent if everything was read in one piece
	Coverage string `json:"coverage,omitempty"`
	Windows  int    `json:"windows,omitempty"` // with windowed: number of windows in the text
	Read     int    `json:"read,omitempty"`    // with windowed: number of windows read
	Partial  bool   `json:"partial,omitempty"` // some text could not be read
	// share of it that comes from earlier turns, in [0,1], when the last turn depends on them
	Leans float64 `json:"leans,omitempty"`
	// why it is unknown or partial, or was not computed
	Reason string  `json:"reason,omitempty"`
	Ms     float64 `json:"ms"` // time in milliseconds; signals of one pass share it

	Verdicts []OriginVerdict `json:"verdicts,omitempty"` // for jailbreak and injection, by origin
	// for these: origins of text in the request that were not read
	NotRead []string `json:"not_read,omitempty"`
}

// Trace returns the description of a signal.
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

// Explain is Trace for a request, with the origins that were not read, including the text of
// contexts, and the intent that the score belongs to.
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

// traceIntent adds the private intent that the score belongs to and its threshold.
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
		t.Reason = cmp.Or(t.Reason, "another intent is too similar")
	}
}
