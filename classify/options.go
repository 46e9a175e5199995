package classify

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"signalbox/classify/knn"
	"signalbox/classify/lexical"
	"signalbox/internal/signal"
)

// TimedKinds are the kinds that Options.Timeouts can bound. The language is not among them: telling it
// takes microseconds, however long the text is.
const TimedKinds signal.Mask = 1<<signal.Keyword | 1<<signal.Domain | 1<<signal.Jailbreak | 1<<signal.PII |
	1<<signal.Complexity | 1<<signal.FactCheck | 1<<signal.Embedding | 1<<signal.Intent

// Options tunes a Classifier.
type Options struct {
	// Timeout bounds one Extract; the signals that are not there by then are unknown (timeout).
	// Default 10s; 0 leaves the caller's context alone. Reloadable.
	Timeout time.Duration `yaml:"timeout"`
	// Timeouts bounds single signals of TimedKinds, from the start of the Extract that computes them:
	// one that is not there by then is unknown (timeout), the others go on. Each is at most Timeout, where
	// that is set; that of embedding holds for intent as well. Default 0: none of its own. Reloadable.
	Timeouts [signal.NumKinds]time.Duration `yaml:"-"`
	// MaxBatch is the most rows of one run, at least 1. Default 8. Reloadable.
	MaxBatch int `yaml:"max_batch"`
	// Windows is the most windows that a safety signal reads of a prompt by default, beside its first
	// and its last, at least 1: longer prompts are scanned for the windows worth reading. Default 12.
	// It needs a bundle with a scan table; without one every window is read. Reloadable.
	Windows int `yaml:"windows"`
	// Keywords are the sets of the keyword signal. Default none. Reloadable.
	Keywords []lexical.Options `yaml:"keywords"`
	// Patterns makes pii what patterns find, without a model. No engine may give pii then. Reloadable.
	Patterns bool `yaml:"-"`
	// Intents are the private intents, nil for none. They need an engine that gives embedding.
	Intents *knn.Index `yaml:"-"`
	// Logger gets the errors behind signals that are unknown for internal or invalid_output. Default
	// none.
	Logger *slog.Logger `yaml:"-"`
}

// defaultTimeout is generous against a pass of some 10 ms and enough for the safety signal to read
// about 40,000 tokens, window by window, on one core of 2025.
const defaultTimeout = 10 * time.Second

// defaultWindows keeps the reading of the longest prompts near 150 ms on one core: 14 windows of 128
// tokens at 11 ms each with the embedded bundle.
const defaultWindows = 12

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{Timeout: defaultTimeout, MaxBatch: 8, Windows: defaultWindows}
}

// Validate reports every problem of o as "field: problem", joined, or nil.
func (o Options) Validate() error {
	var errs []error
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout: %v is negative", o.Timeout))
	}
	if o.MaxBatch < 1 {
		errs = append(errs, fmt.Errorf("max_batch: %d is less than 1", o.MaxBatch))
	}
	if o.Windows < 1 {
		errs = append(errs, fmt.Errorf("windows: %d is less than 1", o.Windows))
	}
	for k := range signal.NumKinds {
		switch d := o.Timeouts[k]; {
		case d < 0:
			errs = append(errs, fmt.Errorf("timeouts.%v: %v is negative", k, d))
		case d > 0 && !TimedKinds.Has(k):
			errs = append(errs, fmt.Errorf("timeouts.%v: it has no deadline of its own", k))
		case o.Timeout > 0 && d > o.Timeout:
			errs = append(errs, fmt.Errorf("timeouts.%v: %v is longer than the timeout of all, %v", k, d, o.Timeout))
		}
	}
	for i, k := range o.Keywords {
		if err := k.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("keywords[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}
