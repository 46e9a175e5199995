package condition

import (
	"math"
	"strconv"
	"strings"

	"signalbox/internal/signal"
)

// Range is an interval of numbers. The zero value contains only 0.
type Range struct {
	Lo, Hi         float64 // -Inf and +Inf when absent
	LoOpen, HiOpen bool    // the end itself is excluded
}

// Unbounded returns the range of all numbers.
func Unbounded() Range { return Range{Lo: math.Inf(-1), Hi: math.Inf(1)} }

// Above returns the range of the numbers greater than x.
func Above(x float64) Range { return Range{Lo: x, Hi: math.Inf(1), LoOpen: true} }

// AtLeast returns the range of the numbers from x on.
func AtLeast(x float64) Range { return Range{Lo: x, Hi: math.Inf(1)} }

// Below returns the range of the numbers less than x.
func Below(x float64) Range { return Range{Lo: math.Inf(-1), Hi: x, HiOpen: true} }

// AtMost returns the range of the numbers up to x.
func AtMost(x float64) Range { return Range{Lo: math.Inf(-1), Hi: x} }

// An excluded end is further inside than an included one.

func (r Range) startsAfter(o Range) bool { return r.Lo > o.Lo || r.Lo == o.Lo && r.LoOpen && !o.LoOpen }

func (r Range) endsBefore(o Range) bool { return r.Hi < o.Hi || r.Hi == o.Hi && r.HiOpen && !o.HiOpen }

// Intersect returns the numbers in both ranges.
func (r Range) Intersect(o Range) Range {
	if o.startsAfter(r) {
		r.Lo, r.LoOpen = o.Lo, o.LoOpen
	}
	if o.endsBefore(r) {
		r.Hi, r.HiOpen = o.Hi, o.HiOpen
	}
	return r
}

// unite returns the union of the ranges; ok is false if it is not a range.
func (r Range) unite(o Range) (u Range, ok bool) {
	if r.startsAfter(o) {
		r, o = o, r
	}
	if r.Hi < o.Lo || r.Hi == o.Lo && r.HiOpen && o.LoOpen {
		return r, false
	}
	if r.endsBefore(o) {
		r.Hi, r.HiOpen = o.Hi, o.HiOpen
	}
	return r, true
}

// complement returns the numbers outside; ok is false if they do not form a range.
func (r Range) complement() (c Range, ok bool) {
	switch {
	case math.IsInf(r.Hi, 1):
		return Range{Lo: math.Inf(-1), Hi: r.Lo, HiOpen: !r.LoOpen}, true
	case math.IsInf(r.Lo, -1):
		return Range{Lo: r.Hi, Hi: math.Inf(1), LoOpen: !r.HiOpen}, true
	}
	return r, false
}

func (r Range) within(o Range) bool { return !o.startsAfter(r) && !o.endsBefore(r) }

// interval tests a number: tokens or a score.
type interval struct {
	subject subject
	kind    signal.Kind // with ofScore
	label   string      // with ofScore: the label whose probability counts; empty for the score itself
	in      Range
	// origins, with ofScore: the score is that of the verdicts on these origins; 0 for the score of
	// the value
	origins signal.Origins
}

// Tokens tests the estimated length of the prompt. ok is false if no whole number is in the range.
func Tokens(in Range) (l *Leaf, ok bool) { return lengthIn(ofTokens, in) }

// ContextTokens tests the length of the stored contexts that the request refers to, as Tokens does.
func ContextTokens(in Range) (l *Leaf, ok bool) { return lengthIn(ofContextTokens, in) }

// Turns tests the number of user messages in a request; ok is as for Tokens.
func Turns(in Range) (l *Leaf, ok bool) { return lengthIn(ofTurns, in) }

// Results tests the number of tool results after the last user message; ok is as for Tokens.
func Results(in Range) (l *Leaf, ok bool) { return lengthIn(ofResults, in) }

func lengthIn(of subject, in Range) (l *Leaf, ok bool) {
	if in.LoOpen && in.HiOpen && in.Hi-in.Lo == 1 {
		in.Hi = in.Lo // no number is between two adjacent excluded ends
	}
	t := &interval{subject: of, in: in}
	return newLeaf(signal.NumKinds, t), !t.empty()
}

// Score tests the score of a signal or, if label is not empty, P(label). ok is false if no number
// of [0,1] is in the range.
func Score(k signal.Kind, label string, in Range) (l *Leaf, ok bool) {
	t := &interval{subject: ofScore, kind: k, label: label, in: in}
	return newLeaf(k, t), !t.empty()
}

// ScoreOf tests the greatest score of a signal's verdicts on the given origins, of which there must
// be at least one; 0 without a verdict. ok is false if no number of [0,1] is in the range.
func ScoreOf(k signal.Kind, origins signal.Origins, in Range) (l *Leaf, ok bool) {
	t := &interval{subject: ofScore, kind: k, in: in, origins: origins}
	return newLeaf(k, t), !t.empty()
}

// BoundsBelow reports whether the leaf tests that a score is above a bound, whether or not it also
// has an upper bound.
func (l *Leaf) BoundsBelow() bool {
	t, ok := l.test.(*interval)
	return ok && t.subject == ofScore && t.in.Lo > 0
}

func (t *interval) holds(set *signal.Set) bool {
	x, lo, hi := float64(set.Facts.Tokens), t.in.Lo, t.in.Hi
	switch t.subject {
	case ofContextTokens:
		x = float64(set.Facts.Context)
	case ofTurns:
		x = float64(set.Facts.Turns)
	case ofResults:
		x = float64(set.Facts.Results)
	case ofScore:
		x = single(t.score(set.Value(t.kind)))
		lo, hi = single(lo), single(hi)
	case ofRole, ofTenant, ofModel, ofTokens, ofLabel:
	}
	return (x > lo || x == lo && !t.in.LoOpen) && (x < hi || x == hi && !t.in.HiOpen)
}

// single rounds to the precision of model outputs, so that a probability of 0.7 reaches a bound of
// 0.7.
func single(x float64) float64 { return float64(float32(x)) }

// score returns P(label) of a value that may list probabilities or only its best label. For a value
// with the other label of a two-label task it returns the complement.
func (t *interval) score(v *signal.Value) float64 {
	if t.origins != 0 {
		return scoreOf(v, t.origins)
	}
	if t.label == "" {
		return v.Score
	}
	if p, ok := v.Prob(t.label); ok {
		return p
	}
	if v.Label == t.label {
		return v.Score
	}
	return 1 - v.Score
}

// scoreOf returns the greatest score of the verdicts on origins; an origin without a verdict has no
// text.
func scoreOf(v *signal.Value, origins signal.Origins) (score float64) {
	for i := range v.Verdicts {
		if origins.Has(v.Verdicts[i].Origin) {
			score = max(score, v.Verdicts[i].Score)
		}
	}
	return score
}

// about returns the origins for the text of a test; empty for the score of the value.
func about(origins signal.Origins) string {
	if origins == 0 {
		return ""
	}
	var names []string
	for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
		if origins.Has(o) {
			names = append(names, o.String())
		}
	}
	return " of [" + strings.Join(names, ", ") + "]"
}

func (t *interval) text() string {
	var b strings.Builder
	b.WriteString(t.subject.name(t.kind) + about(t.origins))
	if !math.IsInf(t.in.Lo, -1) {
		b.WriteString(choose(t.in.LoOpen, " > ", " >= ") + number(t.in.Lo))
	}
	if !math.IsInf(t.in.Hi, 1) {
		b.WriteString(choose(t.in.HiOpen, " < ", " <= ") + number(t.in.Hi))
	}
	return b.String()
}

// over returns the same test with another range.
func (t *interval) over(in Range) *interval {
	out := *t
	out.in = in
	return &out
}

// comparable reports whether both tests refer to comparable numbers.
func (t *interval) comparable(o *interval) bool {
	return o.subject == t.subject && o.kind == t.kind && o.label == t.label &&
		o.origins == t.origins
}

func (t *interval) implies(other predicate) bool {
	o, ok := other.(*interval)
	if !ok {
		return false
	}
	if t.comparable(o) {
		return t.in.within(o.in)
	}
	if t.kind != o.kind || t.origins == 0 || o.origins == 0 {
		return false
	}
	switch t.origins & o.origins { // a superset of origins has at least the score of a subset
	case t.origins:
		return o.upwards() && !o.in.startsAfter(t.in)
	case o.origins:
		return o.downwards() && !o.in.endsBefore(t.in)
	}
	return false
}

// upwards reports whether every score above a passing one passes.
func (t *interval) upwards() bool { return !t.in.endsBefore(t.values()) }

// downwards reports whether every score below a passing one passes.
func (t *interval) downwards() bool { return !t.in.startsAfter(t.values()) }

// values returns the range of the number over all requests.
func (t *interval) values() Range {
	if t.subject == ofScore {
		return Range{Lo: 0, Hi: 1}
	}
	return AtLeast(0)
}

// empty reports whether no value of the subject is in the range.
func (t *interval) empty() bool {
	r := t.in.Intersect(t.values())
	return r.Lo > r.Hi || r.Lo == r.Hi && (r.LoOpen || r.HiOpen)
}

// full reports whether every value of the subject is in the range.
func (t *interval) full() bool { return t.values().within(t.in) }

// threshold returns the bound to show to a reader: the lower one if there is one.
func (t *interval) threshold() float64 {
	if t.in.Lo >= 0 {
		return t.in.Lo
	}
	return t.in.Hi
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
