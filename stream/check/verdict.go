package check

import "slices"

// Verdict is the outcome of a check, in the words of the guard. Verdicts ascend in weight.
type Verdict uint8

// The verdicts.
const (
	NotCheckable Verdict = iota // states nothing that evidence could confirm or deny
	Unchecked                   // there was no evidence, or nobody could read it in time
	Supported                   // the evidence says so
	Unsupported                 // the evidence does not say so
	Contradicted                // the evidence says otherwise
)

//nolint:gochecknoglobals // constant table
var verdictNames = [...]string{"not_checkable", "unchecked", "supported", "unsupported", "contradicted"}

// String is the name of the verdict in the API, in metrics and in the log.
func (v Verdict) String() string {
	if int(v) >= len(verdictNames) {
		return "invalid"
	}
	return verdictNames[v]
}

// ParseVerdict is the verdict of a name; ok is false when there is none.
func ParseVerdict(s string) (v Verdict, ok bool) {
	i := slices.Index(verdictNames[:], s)
	if i < 0 {
		return 0, false
	}
	return Verdict(i), true
}

// Overall is the verdict on an answer from those on its claims: Unsupported when a claim is
// contradicted or unsupported, else Supported when one is supported, else Unchecked.
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

// Stage tells which reader decided about a claim.
type Stage uint8

// The stages, cheapest first.
const (
	Sentinel   Stage = iota // nothing to check, or nothing to check against
	Numeric                 // numbers and dates
	NLI                     // a Judge, alone or fused with the features
	Tokens                  // a Marker
	Moderation              // a classifier of answers, whatever the evidence says
)

//nolint:gochecknoglobals // constant table
var stageNames = [...]string{"sentinel", "numeric", "nli", "tokens", "moderation"}

// String is the name of the stage in metrics and in the log.
func (s Stage) String() string {
	if int(s) >= len(stageNames) {
		return "invalid"
	}
	return stageNames[s]
}
