package signals

import (
	"context"
	"time"

	"signalbox/internal/signal"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/fault"
)

// Classifier computes signals from text. Implementations are safe for concurrent use.
type Classifier interface {
	// Extract sets every kind in need to known or unknown; a kind that it leaves unset counts as
	// unknown. It returns soon after ctx ends. It keeps neither text nor set, and does not change
	// what it stored in set afterwards.
	Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
	// Signals returns the kinds that it can compute now.
	Signals() signal.Mask
	// Degraded describes what does not work as configured, for /readyz; empty when everything
	// works.
	Degraded() []string
}

// Interruptible is a Classifier that asks which signals still matter whenever some are ready and
// others are not, and cancels the work for the rest.
type Interruptible interface {
	// ExtractWhile is Extract, but calls still each time that some kinds in need have been set and
	// others have not. Kinds that still does not return are left unset. still is called by one
	// goroutine at a time, while no other uses set, and never after ExtractWhile has returned.
	ExtractWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask)
	// ExtractAllWhile is ExtractWhile with safety signals that read the whole text.
	ExtractAllWhile(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set, still func() signal.Mask)
}

// Thorough is a Classifier that reads a selection of a long prompt unless it is asked to read all
// of it.
type Thorough interface {
	// ExtractAll is Extract with safety signals that read the whole text.
	ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
}

// Extent is how much of a long text is read for safety signals.
type Extent uint8

// The extents.
const (
	Selection Extent = iota
	Everything
)

// Reader computes the signals of requests with the classifier of one configuration, and reports
// them with its names and thresholds. It is safe for concurrent use and must not be copied.
type Reader struct {
	Classifier

	Identity decisionlog.Identity // of the configuration
	// minimum score for a label; a kind without an entry has no threshold
	Thresholds map[signal.Kind]float64
	// for all signals that the rules of a request need; 0 leaves the limit to the classifier
	Timeout  time.Duration
	Patience time.Duration // how long the classifier searches for personal data; 0 if unknown
	keywords keywordMemo   // for contexts
}

// Remaining returns a context for the next reading that the rules of a request need, after earlier
// readings and lookups have taken spent. All of them together get Timeout.
func (r *Reader) Remaining(ctx context.Context, spent time.Duration) (context.Context, context.CancelFunc) {
	if r.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.Timeout-spent)
}

// ReadsAll reports whether the classifier can read the whole text.
func (r *Reader) ReadsAll() bool {
	switch r.Classifier.(type) {
	case Thorough, Interruptible:
		return true
	}
	return false
}

// read is Read for a text without contexts.
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

// threshold returns the minimum probability of an attack signal.
func (r *Reader) threshold(k signal.Kind) float64 {
	if t, ok := r.Thresholds[k]; ok && t > 0 {
		return t
	}
	return 0.5
}

// Label returns the label of a value as rules see it. An attack signal is an attack from its
// threshold on.
func (r *Reader) Label(k signal.Kind, v *signal.Value) string {
	switch {
	case signal.DefaultOrigins(k) == 0:
		return v.Label
	case float32(v.Score) >= float32(r.threshold(k)): // in the precision in which rules compare
		return k.String()
	}
	return benign
}

// Names returns the configured names of the signals in a mask.
func (r *Reader) Names(m signal.Mask) []string {
	out := make([]string, 0, m.Len())
	for _, k := range m.Kinds() {
		out = append(out, r.Name(k))
	}
	return out
}

// Name returns the configured name of a signal.
func (r *Reader) Name(k signal.Kind) string { return r.Identity.Names.Of(k) }

// PersonalData searches the whole text for personal data. Errors are ErrClientGone, those of
// fault.Late, LateError, and ErrNotRedacted if the text could not be read.
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
