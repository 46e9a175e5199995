package rules

// truth is a Kleene value. The order matters: all is the minimum, any is the maximum.
type truth uint8

const (
	no truth = iota
	unknown
	yes
)

// String returns the word used in traces.
func (t truth) String() string {
	switch t {
	case no:
		return "false"
	case yes:
		return "true"
	case unknown:
	}
	return "unknown"
}

// bounds is the range of values that a condition can still take once its pending signals arrive.
type bounds struct{ lo, hi truth }

// exactly is a settled value.
func exactly(t truth) bounds { return bounds{t, t} }

// of is a settled two-valued result.
func of(b bool) bounds { //nolint:revive // converts a bool
	if b {
		return bounds{yes, yes}
	}
	return bounds{no, no}
}

// settled reports whether nothing that is still pending can change the value.
func (b bounds) settled() bool { return b.lo == b.hi }

func (b bounds) flip() bounds { return bounds{yes - b.hi, yes - b.lo} }

// OnUnknown says what becomes of a route whose condition ends unknown because signals failed.
type OnUnknown uint8

// The policies for unknown conditions.
const (
	Skip  OnUnknown = iota // the route does not match
	Match                  // the route matches: fail closed
	Error                  // the request ends with signal_unavailable
)

// String returns the word used in YAML.
func (u OnUnknown) String() string {
	switch u {
	case Match:
		return "match"
	case Error:
		return "error"
	case Skip:
	}
	return "skip"
}

// resolve applies the policy to both ends. Minimum and maximum commute with a monotone map, so the
// result is what the policy makes of every value the condition can still take.
func (u OnUnknown) resolve(b bounds) bounds {
	return bounds{u.one(b.lo), u.one(b.hi)}
}

func (u OnUnknown) one(t truth) truth {
	if t != unknown {
		return t
	}
	switch u {
	case Match:
		return yes
	case Skip:
		return no
	case Error:
	}
	return unknown
}
