package condition

import (
	"math"
	"strconv"
	"strings"

	"signalbox/internal/signal"
)

// Range is an interval of numbers. The zero value holds 0 alone.
type Range struct {
	Lo, Hi         float64 // -Inf and +Inf when absent
	LoOpen, HiOpen bool    // the end itself does not belong to the range
}

// Unbounded is the range of all numbers.
func Unbounded() Range { return Range{Lo: math.Inf(-1), Hi: math.Inf(1)} }

// Above is the range of the numbers greater than x.
func Above(x float64) Range { return Range{Lo: x, Hi: math.Inf(1), LoOpen: true} }

// AtLeast is the range from x on.
func AtLeast(x float64) Range { return Range{Lo: x, Hi: math.Inf(1)} }

// Below is the range of the numbers less than x.
func Below(x float64) Range { return Range{Lo: math.Inf(-1), Hi: x, HiOpen: true} }

// AtMost is the range up to x.
func AtMost(x float64) Range { return Range{Lo: math.Inf(-1), Hi: x} }

// An end that does not belong to its range is further inside than one that does.

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

// unite returns the numbers in one of the ranges; ok is false when they do not form a range.
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

// complement returns the numbers outside; ok is false when they do not form a range.
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
	// origins, with ofScore: the score is that of the verdicts about these; 0 for the score itself
	origins signal.Origins
}

// Tokens tests the estimated length of the prompt. ok is false when no whole number lies in the
// range.
func Tokens(in Range) (l *Leaf, ok bool) { return lengthIn(ofTokens, in) }

// ContextTokens tests the length of the stored contexts that the request refers to, as Tokens does.
func ContextTokens(in Range) (l *Leaf, ok bool) { return lengthIn(ofContextTokens, in) }

// Turns tests how many messages of the user a request has, as Tokens does.
func Turns(in Range) (l *Leaf, ok bool) { return lengthIn(ofTurns, in) }

// Results tests how many results of tools came after the last of them, as Tokens does.
func Results(in Range) (l *Leaf, ok bool) { return lengthIn(ofResults, in) }

func lengthIn(of subject, in Range) (l *Leaf, ok bool) {
	if in.LoOpen && in.HiOpen && in.Hi-in.Lo == 1 {
		in.Hi = in.Lo // nothing lies between two neighbours that are both excluded
	}
	t := &interval{subject: of, in: in}
	return newLeaf(signal.NumKinds, t), !t.empty()
}

// Score tests the score of a signal or, when label is not empty, P(label). ok is false when no
// number of [0,1] lies in the range.
func Score(k signal.Kind, label string, in Range) (l *Leaf, ok bool) {
	t := &interval{subject: ofScore, kind: k, label: label, in: in}
	return newLeaf(k, t), !t.empty()
}

// ScoreOf tests the score of what a signal says of the given origins, which are some: the greatest
// of its verdicts about them, 0 without one. ok is false when no number of [0,1] lies in the range.
func ScoreOf(k signal.Kind, origins signal.Origins, in Range) (l *Leaf, ok bool) {
	t := &interval{subject: ofScore, kind: k, in: in, origins: origins}
	return newLeaf(k, t), !t.empty()
}

// BoundsBelow reports whether the leaf tests a score that has to be above a bound, whatever it has
// to be below.
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

// single rounds to the precision that models report, so that a probability of 0.7 reaches a bound
// of 0.7.
func single(x float64) float64 { return float64(float32(x)) }

// score returns P(label) of a value that may list probabilities or only its best label. A value
// that names the other label of a two-label task gives the complement.
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

// scoreOf is the greatest score of the verdicts about origins; an origin without one has no text.
func scoreOf(v *signal.Value, origins signal.Origins) (score float64) {
	for i := range v.Verdicts {
		if origins.Has(v.Verdicts[i].Origin) {
			score = max(score, v.Verdicts[i].Score)
		}
	}
	return score
}

// about names origins in the text of a test: nothing for the score itself.
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

// over is the same test of another range.
func (t *interval) over(in Range) *interval {
	out := *t
	out.in = in
	return &out
}

// comparable reports that both tests look at one number.
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
	switch t.origins & o.origins { // the score of more origins is at least that of fewer
	case t.origins:
		return o.upwards() && !o.in.startsAfter(t.in)
	case o.origins:
		return o.downwards() && !o.in.endsBefore(t.in)
	}
	return false
}

// upwards reports that with a score every higher one passes.
func (t *interval) upwards() bool { return !t.in.endsBefore(t.values()) }

// downwards reports that with a score every lower one passes.
func (t *interval) downwards() bool { return !t.in.startsAfter(t.values()) }

// values is the range that the number lies in for every request.
func (t *interval) values() Range {
	if t.subject == ofScore {
		return Range{Lo: 0, Hi: 1}
	}
	return AtLeast(0)
}

// empty reports that no value of the subject lies in the range.
func (t *interval) empty() bool {
	r := t.in.Intersect(t.values())
	return r.Lo > r.Hi || r.Lo == r.Hi && (r.LoOpen || r.HiOpen)
}

// full reports that every value of the subject lies in the range.
func (t *interval) full() bool { return t.values().within(t.in) }

// threshold returns the bound that a reader looks for first: the lower one when there is one.
func (t *interval) threshold() float64 {
	if t.in.Lo >= 0 {
		return t.in.Lo
	}
	return t.in.Hi
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
