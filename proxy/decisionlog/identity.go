package decisionlog

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/signal"
)

// Identity tells the definitions of one configuration apart from those of another, for the decision
// log and for replay. It is immutable once it is used, and safe for
// concurrent use.
type Identity struct {
	Config      string                 // fingerprint of the file
	Definitions map[signal.Kind]string // of the models and examples behind a signal; absent where nothing can change it
	Keywords    map[string]string      // fingerprint of each keyword set
	Names       signal.Names           // of the configuration's own classifiers
	// Provided are the signals that the configuration's models compute; the others are unknown.
	Provided signal.Mask
	// Windows is classify.windows: the most windows that a safety signal reads of a long text by
	// default.
	Windows int
	// Origins are the origins that the scores of signals about attacks speak for, and Reads those
	// that are read at all. A kind without an entry has signal.DefaultOrigins.
	Origins, Reads map[signal.Kind]signal.Origins
	// HeaderWords are the values that rules compare each header with, by canonical name.
	HeaderWords map[string][]string
	// HeaderPatterns are the headers that rules match with expressions, by canonical name.
	HeaderPatterns map[string]bool
}

// selected reports a kind that reads only some windows of a long text, as many as classify.windows
// says.
func selected(k signal.Kind) bool { return k == signal.PII || signal.DefaultOrigins(k) != 0 }

// OriginsOf returns the origins that the score of a kind speaks for; 0 for a kind that knows no
// origins.
func (id *Identity) OriginsOf(k signal.Kind) signal.Origins {
	if o, ok := id.Origins[k]; ok {
		return o
	}
	return signal.DefaultOrigins(k)
}

// ReadsOf returns the origins that are read for a kind; 0 for a kind that knows no origins.
func (id *Identity) ReadsOf(k signal.Kind) signal.Origins { return id.OriginsOf(k) | id.Reads[k] }

// Fingerprint is a short hash by which two definitions are told apart. It is no protection of
// secrets.
func Fingerprint(b []byte) string {
	return fmt.Sprintf("%016x", xxhash.Sum64(b))
}
