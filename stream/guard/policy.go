package guard

import (
	"cmp"
	"time"

	"signalbox/stream/check"
)

// Verdicts is a set of verdicts.
type Verdicts uint8

// VerdictsOf returns the set of the given verdicts.
func VerdictsOf(list ...check.Verdict) Verdicts {
	var s Verdicts
	for _, v := range list {
		s |= 1 << v
	}
	return s
}

// Has reports whether a verdict is in the set.
func (s Verdicts) Has(v check.Verdict) bool { return s&(1<<v) != 0 }

// MarkerAs is how annotate marks a claim.
type MarkerAs uint8

// The ways to mark.
const (
	Text MarkerAs = iota // a piece of the answer's text
	// Field is a member x_signalbox of a chunk without text. In a body only the summary reports the
	// claim.
	Field
)

// ParseMarkerAs returns the way with the given name, text or field; ok is false if there is none.
func ParseMarkerAs(name string) (m MarkerAs, ok bool) {
	switch name {
	case "text":
		return Text, true
	case "field":
		return Field, true
	}
	return Text, false
}

// OnUnchecked is what happens to a claim whose check was late, found the queue full or failed, and
// that nothing else decides, and to an answer that cannot be read. A claim that the checker read
// but could not decide passes.
type OnUnchecked uint8

// The choices.
const (
	Pass  OnUnchecked = iota // it counts as not failed
	Block                    // it ends the answer, unless the mode is observe
)

// ParseOnUnchecked returns the choice with the given name, pass or block; ok is false if there is
// none.
func ParseOnUnchecked(name string) (u OnUnchecked, ok bool) {
	switch name {
	case "pass":
		return Pass, true
	case "block":
		return Block, true
	}
	return Pass, false
}

// Policy is how an answer is treated. The zero value does nothing: its Mode is Off.
type Policy struct {
	Mode Mode
	// ActOn are the verdicts that count as failed. Zero: contradicted and unsupported.
	ActOn Verdicts
	// Failures is the number of failed claims at which the answer ends: for Terminate, where 0
	// means 1, and for Hold, where 0 means never. Not negative.
	Failures int
	// Marker is the text of the mark. Empty: DefaultMarker. Hold omits its leading spaces, because
	// it replaces a claim.
	Marker string
	// MarkerAs is how Annotate marks. An answer with a format to keep is always marked by Field.
	MarkerAs MarkerAs
	// MaxHold is how long a claim may wait for its verdict after its last byte. Zero:
	// DefaultMaxHold. At most a minute.
	MaxHold time.Duration
	// OnUnchecked decides on claims whose check was lost, and on what cannot be read.
	OnUnchecked OnUnchecked
	// Reasoning enables checks of the model's reasoning. Otherwise reasoning passes unchecked.
	Reasoning bool
	// Summary adds the verdicts to the answer's last chunk in mode Observe too. The stricter modes
	// always do.
	Summary bool
}

// Defaults of a Policy.
const (
	DefaultMarker  = " [unverified]"
	DefaultMaxHold = 400 * time.Millisecond
)

// rules is a Policy with its defaults filled in, as it applies to one answer.
type rules struct {
	Policy
	limit int // failed claims that end the answer; 0: never
}

// rules returns the rules that apply. An answer that must not be annotated is never changed inside:
// its marks are placed beside the text.
func (p Policy) rules(mayAnnotate bool) rules { //nolint:revive // a fact about the answer
	p.ActOn = cmp.Or(p.ActOn, VerdictsOf(check.Contradicted, check.Unsupported))
	p.Marker, p.MaxHold = cmp.Or(p.Marker, DefaultMarker), cmp.Or(p.MaxHold, DefaultMaxHold)
	r := rules{Policy: p}
	r.Summary = p.Summary || p.Mode > Observe
	if !mayAnnotate {
		r.MarkerAs = Field
	}
	switch {
	case r.Mode == Hold && !mayAnnotate:
		r.limit = 1 // a claim that cannot be replaced must not be released
	case r.Mode == Hold:
		r.limit = p.Failures
	case r.Mode == Terminate:
		r.limit = max(1, p.Failures)
	}
	return r
}

// ends reports whether the given number of failed claims ends the answer.
func (r *rules) ends(failed int) bool { return r.limit > 0 && failed >= r.limit }

// blocks reports whether a claim whose check was lost, or something that cannot be read, ends the
// answer.
func (r *rules) blocks(v check.Verdict) bool {
	return v == check.Unchecked && r.OnUnchecked == Block && r.Mode > Observe
}
