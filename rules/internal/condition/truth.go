package condition

// Truth is a Kleene value. The order matters: all is the minimum, any is the maximum.
type Truth uint8

// The three values.
const (
	False Truth = iota
	Unknown
	True
)

// String returns the word used in traces.
func (t Truth) String() string {
	switch t {
	case False:
		return "false"
	case True:
		return "true"
	case Unknown:
	}
	return "unknown"
}

// Bounds is the range of values that a condition can still take when its pending signals arrive.
type Bounds struct{ Lo, Hi Truth }

// Exactly returns the bounds of a settled value.
func Exactly(t Truth) Bounds { return Bounds{t, t} }

// open returns the bounds of an entirely open value.
func open() Bounds { return Bounds{False, True} }

// of returns the bounds of a settled two-valued result.
func of(b bool) Bounds { //nolint:revive // converts a bool
	if b {
		return Exactly(True)
	}
	return Exactly(False)
}

// Settled reports whether the value can no longer change.
func (b Bounds) Settled() bool { return b.Lo == b.Hi }

// And returns the bounds of the conjunction.
func (b Bounds) And(o Bounds) Bounds { return Bounds{min(b.Lo, o.Lo), min(b.Hi, o.Hi)} }

// Or returns the bounds of the disjunction.
func (b Bounds) Or(o Bounds) Bounds { return Bounds{max(b.Lo, o.Lo), max(b.Hi, o.Hi)} }

func (b Bounds) negate() Bounds { return Bounds{True - b.Hi, True - b.Lo} }

// OnUnknown is the policy for a route whose condition is unknown because signals failed.
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

// Resolve applies the policy to both bounds. Minimum and maximum commute with a monotone map, so
// the result covers the policy's result for every value the condition can still take.
func (u OnUnknown) Resolve(b Bounds) Bounds {
	return Bounds{u.one(b.Lo), u.one(b.Hi)}
}

func (u OnUnknown) one(t Truth) Truth {
	if t != Unknown {
		return t
	}
	switch u {
	case Match:
		return True
	case Skip:
		return False
	case Error:
	}
	return Unknown
}
