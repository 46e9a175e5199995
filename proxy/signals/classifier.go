package signals

import (
	"context"
	"time"

	"signalbox/internal/signal"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/fault"
)

// Classifier extracts signals from text. Implementations are safe for concurrent use.
type Classifier interface {
	// Extract sets every kind of need in set to known or unknown; a kind that it leaves alone is
	// taken for unknown. It returns soon after ctx ends. It keeps neither text nor set, and what it
	// stores in set is not changed afterwards.
	Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
	// Signals returns the kinds that it can compute now.
	Signals() signal.Mask
	// Degraded names what does not work as configured, in words for /readyz; empty when all is
	// well.
	Degraded() []string
}

// Interruptible is a Classifier that asks, whenever some signals are there and others are not yet,
// which ones still matter, and cancels what is left of the work for the rest.
type Interruptible interface {
	// ExtractWhile is Extract that calls still each time that kinds of need were set and others
	// were not. Kinds that still does not return are left alone. still is called by one goroutine
	// at a time, while no other touches set, and not after ExtractWhile has returned.
	ExtractWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask)
	// ExtractAllWhile is the same with safety signals that read every part of the text.
	ExtractAllWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask)
}

// Thorough is a Classifier that reads a selection of a long prompt unless it is told to read it
// all.
type Thorough interface {
	// ExtractAll is Extract with safety signals that read every part of the text.
	ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
}

// Extent says how much of a long text is read for safety.
type Extent uint8

// The extents.
const (
	Selection Extent = iota
	Everything
)

// Reader reads the signals of requests with the classifier of one configuration, and tells them by
// the names and thresholds of that. It is safe for concurrent use, and must not be copied.
type Reader struct {
	Classifier

	Identity   decisionlog.Identity    // of the configuration
	Thresholds map[signal.Kind]float64 // from which a label is told; a kind that is not there has none
	Timeout    time.Duration           // of all that the rules of a request ask for; 0 where only the classifier bounds it
	Patience   time.Duration           // how long the classifier looks for personal data; 0 where that is not known
	keywords   keywordMemo             // of contexts
}

// Remaining is ctx for the next reading that the rules of a request ask for, after others, and the
// stores that they asked, have taken spent: all of them together get Timeout.
func (r *Reader) Remaining(ctx context.Context, spent time.Duration) (context.Context, context.CancelFunc) {
	if r.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.Timeout-spent)
}

// ReadsAll reports whether the classifier can read everything.
func (r *Reader) ReadsAll() bool {
	switch r.Classifier.(type) {
	case Thorough, Interruptible:
		return true
	}
	return false
}

// read is Read of a text alone.
func (r *Reader) read(
	ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, how Extent, still func() signal.Mask,
) {
	asks, interruptible := r.Classifier.(Interruptible)
	reads, _ := r.Classifier.(Thorough)
	switch {
	case interruptible && how == Everything:
		asks.ExtractAllWhile(ctx, text, need, set, still)
	case interruptible:
		asks.ExtractWhile(ctx, text, need, set, still)
	case how == Everything && reads != nil:
		reads.ExtractAll(ctx, text, need, set)
	default:
		r.Extract(ctx, text, need, set)
	}
}

// threshold is the probability from which a signal about attacks counts as one.
func (r *Reader) threshold(k signal.Kind) float64 {
	if t, ok := r.Thresholds[k]; ok && t > 0 {
		return t
	}
	return 0.5
}

// Label is that of a value, as rules take it: a signal about attacks is one from its threshold on.
func (r *Reader) Label(k signal.Kind, v *signal.Value) string {
	switch {
	case signal.DefaultOrigins(k) == 0:
		return v.Label
	case float32(v.Score) >= float32(r.threshold(k)): // in the precision that rules compare in
		return k.String()
	}
	return benign
}

// Names are what the configuration calls the signals of a mask.
func (r *Reader) Names(m signal.Mask) []string {
	out := make([]string, 0, m.Len())
	for _, k := range m.Kinds() {
		out = append(out, r.Name(k))
	}
	return out
}

// Name is what the configuration calls a signal.
func (r *Reader) Name(k signal.Kind) string { return r.Identity.Names.Of(k) }

// PersonalData reads all of a text for personal data. Errors: ErrClientGone, those of fault.Late,
// LateError, and ErrNotRedacted where it could not be read.
func (r *Reader) PersonalData(ctx context.Context, text *signal.Text) (*signal.Value, error) {
	var set signal.Set
	need := signal.MaskOf(signal.PII)
	r.read(ctx, text, need, &set, Everything, func() signal.Mask { return need })
	v := set.Value(signal.PII)
	switch {
	case ctx.Err() != nil:
		return nil, fault.ErrClientGone
	case v.State == signal.Known && v.Read >= v.Windows, v.Reason == signal.ReasonNoText:
		return v, nil
	case v.Reason == signal.ReasonTimeout:
		return nil, fault.Late(text, r.Patience, r.Name(signal.PII))
	case v.Reason == signal.ReasonOverload:
		return nil, &fault.LateError{Signals: []string{r.Name(signal.PII)}}
	}
	return nil, fault.ErrNotRedacted
}
