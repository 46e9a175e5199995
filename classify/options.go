package classify

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"signalbox/classify/knn"
	"signalbox/classify/lexical"
	"signalbox/internal/option"
	"signalbox/internal/signal"
)

// TimedKinds are the kinds that Options.Timeouts can bound. The language is not among them: telling
// it takes microseconds, however long the text is.
const TimedKinds signal.Mask = 1<<signal.Keyword | 1<<signal.Domain | 1<<signal.Jailbreak | 1<<signal.Injection |
	1<<signal.PII | 1<<signal.Complexity | 1<<signal.FactCheck | 1<<signal.Embedding | 1<<signal.Intent

// Options configures a Classifier.
type Options struct {
	// Timeout limits one Extract. Signals that are missing by then are unknown (timeout). 0 applies
	// only the caller's context. Default 10s. Reloadable.
	Timeout time.Duration `yaml:"timeout"`
	// Timeouts limits individual signals of TimedKinds, counted from the start of the Extract that
	// computes them. A signal that is late is unknown (timeout); the others continue. Each is at
	// most Timeout, if that is set; the timeout of embedding also applies to intent. Default 0:
	// none. Reloadable.
	Timeouts [signal.NumKinds]time.Duration `yaml:"-"`
	// MaxBatch is the maximum number of rows in one run, at least 1. Default 8. Reloadable.
	MaxBatch int `yaml:"max_batch"`
	// Windows limits how much text the safety signals read per request, not counting texts whose
	// verdicts are remembered: this many windows of the model, at least 1, or the same number of
	// tokens in shorter rows. Windows that a scan finds most similar to an attack are read first,
	// those of the newest text before others. It needs a bundle with a scan table; without one
	// every window is read. Default 12. Reloadable.
	Windows int `yaml:"windows"`
	// Memo is the maximum number of verdicts on texts that an engine remembers, so that a message
	// read in one turn of a conversation is not read again in the next. A verdict takes about 400
	// bytes. 0 disables the memo. Default 65,536. Reloadable.
	Memo int `yaml:"memo"`
	// Origins are the origins of text that the values of Jailbreak and Injection cover. Default,
	// and for kinds that are missing: signal.DefaultOrigins. Text of OriginAny always counts.
	// Reloadable.
	Origins map[signal.Kind]signal.Origins `yaml:"-"`
	// Read are the origins that are read for a Verdict, in addition to those of Origins. Default,
	// and for kinds that are missing: only those of Origins. Reloadable.
	Read map[signal.Kind]signal.Origins `yaml:"-"`
	// Keywords are the sets of the keyword signal. Default none. Reloadable.
	Keywords []lexical.Options `yaml:"keywords"`
	// Patterns makes pii use patterns only, without a model. No engine may then provide pii.
	// Reloadable.
	Patterns bool `yaml:"-"`
	// Intents are the private intents, nil for none. They need an engine that provides embedding.
	Intents *knn.Index `yaml:"-"`
	// Own are the classifiers that the configuration defines: the one at i provides signal.Own+i.
	// Default none.
	Own []Own `yaml:"-"`
	// Given are the signals, of GivenKinds, that a classifier of Own provides. Default none.
	Given map[signal.Kind]Given `yaml:"-"`
	// Logger receives the errors behind signals that are unknown for internal or invalid_output.
	// Default none.
	Logger *slog.Logger `yaml:"-"`
}

// defaultTimeout is generous against a pass of some 10 ms and enough for the safety signal to read
// about 40,000 tokens, window by window, on one core of 2025.
const defaultTimeout = 10 * time.Second

// defaultWindows keeps the first reading of a long conversation near 150 ms on one core: 12 windows
// of 128 tokens at 9 to 11 ms each with the embedded bundle.
const defaultWindows = 12

// defaultMemo remembers some hundred long conversations, in about 25 MB.
const defaultMemo = 64 << 10

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{Timeout: defaultTimeout, MaxBatch: 8, Windows: defaultWindows, Memo: defaultMemo}
}

// Validate reports every problem of o as "field: problem", joined, or nil.
func (o Options) Validate() error {
	var p option.Problems
	option.NotNegative(&p, "timeout", o.Timeout)
	option.AtLeast(&p, "max_batch", o.MaxBatch, 1)
	option.AtLeast(&p, "windows", o.Windows, 1)
	option.NotNegative(&p, "memo", o.Memo)
	for _, m := range []struct {
		key     string
		origins map[signal.Kind]signal.Origins
	}{{"origins", o.Origins}, {"read", o.Read}} {
		for _, k := range slices.Sorted(maps.Keys(m.origins)) {
			if !attackKinds.Has(k) {
				p.Addf(m.key+"."+k.String(), "it reads no origins")
			}
		}
	}
	for k := range signal.NumKinds {
		field := "timeouts." + k.String()
		switch d := o.Timeouts[k]; {
		case d < 0:
			p.Addf(field, "%v is negative", d)
		case d > 0 && !TimedKinds.Has(k):
			p.Addf(field, "it has no deadline of its own")
		case o.Timeout > 0 && d > o.Timeout:
			p.Addf(field, "%v is longer than the timeout of all, %v", d, o.Timeout)
		}
	}
	p.Join("own", checkOwn(o.Own))
	p.Join("given", o.checkGiven())
	for i, k := range o.Keywords {
		p.Join(fmt.Sprintf("keywords[%d]", i), k.Validate())
	}
	return p.Err()
}

// origins are the origins of the text that the signals about attacks read.
type origins struct {
	score [signal.NumKinds]signal.Origins // covered by the value of a signal
	read  [signal.NumKinds]signal.Origins // those, and the origins that only have a verdict
}

func (o Options) origins() origins {
	var out origins
	for _, k := range attackKinds.Kinds() {
		score, ok := o.Origins[k]
		if !ok {
			score = signal.DefaultOrigins(k)
		}
		out.score[k], out.read[k] = score, score|o.Read[k]
	}
	return out
}
