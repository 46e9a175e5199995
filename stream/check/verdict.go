package check

import "slices"

// Verdict is the outcome of a check, with the names the guard uses. Larger values are more severe.
type Verdict uint8

// The verdicts.
const (
	NotCheckable Verdict = iota // states nothing that evidence could confirm or deny
	Unchecked                   // there was no evidence, or nothing could read it in time
	Supported                   // the evidence confirms it
	Unsupported                 // the evidence does not confirm it
	Contradicted                // the evidence contradicts it
)

//nolint:gochecknoglobals // constant table
var verdictNames = [...]string{"not_checkable", "unchecked", "supported", "unsupported", "contradicted"}

// String returns the name of the verdict in the API, in metrics and in the log.
func (v Verdict) String() string {
	if int(v) >= len(verdictNames) {
		return "invalid"
	}
	return verdictNames[v]
}

// ParseVerdict returns the verdict with the given name; ok is false if there is none.
func ParseVerdict(s string) (v Verdict, ok bool) {
	i := slices.Index(verdictNames[:], s)
	if i < 0 {
		return 0, false
	}
	return Verdict(i), true
}

// Overall returns the verdict on an answer: Unsupported if a claim is contradicted or unsupported,
// otherwise Supported if one is supported, otherwise Unchecked.
func Overall(verdicts []Verdict) Verdict {
	overall := Unchecked
	for _, v := range verdicts {
		switch v {
		case Contradicted, Unsupported:
			return Unsupported
		case Supported:
			overall = Supported
		case NotCheckable, Unchecked:
		}
	}
	return overall
}

// Stage identifies the reader that decided on a claim.
type Stage uint8

// The stages, cheapest first.
const (
	Sentinel   Stage = iota // nothing to check, or no evidence
	Numeric                 // numbers and dates
	NLI                     // a Judge, alone or combined with the features
	Tokens                  // a Marker
	Moderation              // a classifier of answers, independent of the evidence
)

//nolint:gochecknoglobals // constant table
var stageNames = [...]string{"sentinel", "numeric", "nli", "tokens", "moderation"}

// String returns the name of the stage in metrics and in the log.
func (s Stage) String() string {
	if int(s) >= len(stageNames) {
		return "invalid"
	}
	return stageNames[s]
}
