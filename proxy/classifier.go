package proxy

import (
	"context"

	"signalbox/internal/signal"
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

// thorough is a Classifier that reads a selection of a long prompt unless it is told to read it
// all.
type thorough interface {
	// ExtractAll is Extract with safety signals that read every part of the text.
	ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
}

// extent says how much of a long text is read for safety.
type extent uint8

const (
	selection extent = iota
	everything
)

// readsAll reports whether the classifier can read everything.
func (st *State) readsAll() bool {
	switch st.classifier.(type) {
	case thorough, Interruptible:
		return true
	}
	return false
}
