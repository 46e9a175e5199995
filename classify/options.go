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

// Options tunes a Classifier.
type Options struct {
	// Timeout bounds one Extract; the signals that are not there by then are unknown (timeout).
	// Default 10s; 0 leaves the caller's context alone. Reloadable.
	Timeout time.Duration `yaml:"timeout"`
	// Timeouts bounds single signals of TimedKinds, from the start of the Extract that computes
	// them: one that is not there by then is unknown (timeout), the others go on. Each is at most
	// Timeout, where that is set; that of embedding holds for intent as well. Default 0: none of
	// its own. Reloadable.
	Timeouts [signal.NumKinds]time.Duration `yaml:"-"`
	// MaxBatch is the most rows of one run, at least 1. Default 8. Reloadable.
	MaxBatch int `yaml:"max_batch"`
	// Windows bounds what the safety signals read of the texts of one request that are not
	// remembered: so many windows of the model, at least 1, or as many tokens in shorter rows. What
	// a scan finds most like an attack is read first, the newest text before the others. Default
	// 12. It needs a bundle with a scan table; without one every window is read. Reloadable.
	Windows int `yaml:"windows"`
	// Memo is how many verdicts on texts an engine remembers at most, 0 for none: a message that
	// was read in one turn of a conversation is not read again in the next. About 400 bytes each.
	// Default 65,536. Reloadable.
	Memo int `yaml:"memo"`
	// Origins are the origins of text that the values of Jailbreak and Injection speak for.
	// Default, and for kinds that are missing: signal.DefaultOrigins. Text of OriginAny always
	// counts. Reloadable.
	Origins map[signal.Kind]signal.Origins `yaml:"-"`
	// Read are the origins that are read for a Verdict, beside those of Origins. Default, and for
	// kinds that are missing: those of Origins alone. Reloadable.
	Read map[signal.Kind]signal.Origins `yaml:"-"`
	// Keywords are the sets of the keyword signal. Default none. Reloadable.
	Keywords []lexical.Options `yaml:"keywords"`
	// Patterns makes pii what patterns find, without a model. No engine may give pii then.
	// Reloadable.
	Patterns bool `yaml:"-"`
	// Intents are the private intents, nil for none. They need an engine that gives embedding.
	Intents *knn.Index `yaml:"-"`
	// Own are the configuration's own classifiers: the one at i gives signal.Own+i. Default none.
	Own []Own `yaml:"-"`
	// Given are the signals, of GivenKinds, that one of Own gives. Default none.
	Given map[signal.Kind]Given `yaml:"-"`
	// Logger gets the errors behind signals that are unknown for internal or invalid_output.
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

// origins says whose text the signals about attacks read.
type origins struct {
	score [signal.NumKinds]signal.Origins // what the value speaks for
	read  [signal.NumKinds]signal.Origins // what is read: that, and what has a verdict only
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
