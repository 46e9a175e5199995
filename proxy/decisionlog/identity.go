package decisionlog

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/signal"
)

// Identity identifies the definitions of one configuration, for the decision log and for replay.
// Once in use it is immutable and safe for concurrent use.
type Identity struct {
	Config string // fingerprint of the configuration file
	// of the models and examples behind a signal; absent if nothing can change it
	Definitions map[signal.Kind]string
	Keywords    map[string]string // fingerprint of each keyword set
	Names       signal.Names      // of the configuration's own classifiers
	// Provided holds the signals that the configured models compute; all others are unknown.
	Provided signal.Mask
	// Windows is classify.windows: the default maximum of windows that a safety signal reads in a
	// long text.
	Windows int
	// Origins holds the origins that the scores of attack signals refer to, Reads those that are
	// read. A kind without an entry has signal.DefaultOrigins.
	Origins, Reads map[signal.Kind]signal.Origins
	// HeaderWords holds the values that rules compare each header with, by canonical name.
	HeaderWords map[string][]string
	// HeaderPatterns holds the headers that rules match with expressions, by canonical name.
	HeaderPatterns map[string]bool
}

// selected reports whether a kind reads only classify.windows windows of a long text.
func selected(k signal.Kind) bool { return k == signal.PII || signal.DefaultOrigins(k) != 0 }

// OriginsOf returns the origins that the score of a kind refers to; 0 for a kind without origins.
func (id *Identity) OriginsOf(k signal.Kind) signal.Origins {
	if o, ok := id.Origins[k]; ok {
		return o
	}
	return signal.DefaultOrigins(k)
}

// ReadsOf returns the origins that are read for a kind; 0 for a kind without origins.
func (id *Identity) ReadsOf(k signal.Kind) signal.Origins { return id.OriginsOf(k) | id.Reads[k] }

// Fingerprint returns a short hash that distinguishes definitions. It does not protect secrets.
func Fingerprint(b []byte) string {
	return fmt.Sprintf("%016x", xxhash.Sum64(b))
}
