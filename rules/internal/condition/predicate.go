package condition

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/signal"
)

// predicate is the test of a leaf, only called if its signal is known. Implementations are
// immutable, comparable by their text, and do not allocate in holds.
type predicate interface {
	holds(set *signal.Set) bool
	text() string
	// implies reports whether every set that satisfies the receiver satisfies other. False may mean
	// that this could not be proved.
	implies(other predicate) bool
}

// subject is the property that a member or interval test reads.
type subject uint8

const (
	ofRole          subject = iota // Facts.Role
	ofTenant                       // Facts.Tenant
	ofModel                        // Facts.Model
	ofTokens                       // Facts.Tokens
	ofContextTokens                // Facts.Context
	ofTurns                        // Facts.Turns
	ofResults                      // Facts.Results
	ofLabel                        // the label of a signal
	ofScore                        // the score of a signal
)

func (s subject) name(k signal.Kind) string {
	switch s {
	case ofRole:
		return "role"
	case ofTenant:
		return "tenant"
	case ofModel:
		return "model"
	case ofTokens:
		return "tokens"
	case ofContextTokens:
		return "context_tokens"
	case ofTurns:
		return "conversation turns"
	case ofResults:
		return "conversation tool_results"
	case ofLabel, ofScore:
	}
	return k.String()
}

// member tests whether one name, such as the role or the predicted label, is in a set.
type member struct {
	subject subject
	kind    signal.Kind // with ofLabel
	in      Names
}

// Role tests the role of the caller.
func Role(in Names) *Leaf { return factIn(ofRole, in) }

// Tenant tests the tenant of the caller.
func Tenant(in Names) *Leaf { return factIn(ofTenant, in) }

// Model tests the name of the model that the client asked for.
func Model(in Names) *Leaf { return factIn(ofModel, in) }

func factIn(s subject, in Names) *Leaf {
	return newLeaf(signal.NumKinds, &member{subject: s, in: in})
}

// Label tests the predicted label of a signal.
func Label(k signal.Kind, in Names) *Leaf {
	return newLeaf(k, &member{subject: ofLabel, kind: k, in: in})
}

func (m *member) value(set *signal.Set) string {
	switch m.subject {
	case ofRole:
		return set.Facts.Role
	case ofTenant:
		return set.Facts.Tenant
	case ofModel:
		return set.Facts.Model
	case ofLabel, ofTokens, ofContextTokens, ofTurns, ofResults, ofScore:
	}
	return set.Value(m.kind).Label
}

func (m *member) holds(set *signal.Set) bool { return m.in.has(m.value(set)) }

func (m *member) text() string { return m.subject.name(m.kind) + m.in.String() }

func (m *member) implies(other predicate) bool {
	switch o := other.(type) {
	case *member:
		return o.subject == m.subject && o.kind == m.kind && m.in.within(o.in)
	case *best:
		// A label other than the predicted one has at most half of the probability.
		return m.subject == ofLabel && o.kind == m.kind &&
			o.Min <= 0 && o.Margin < 0 && o.Max >= 0.5 && m.in.within(o.in.complement())
	}
	return false
}

// keywords tests whether one of the listed keyword sets matched or, with except, whether none of
// them did.
type keywords struct{ in Names }

// Keywords tests which keyword sets matched: one of those listed, or none of those excluded. A text
// can match several sets, so two such tests cannot be joined.
func Keywords(in Names) *Leaf { return newLeaf(signal.Keyword, &keywords{in}) }

func (k *keywords) holds(set *signal.Set) bool {
	return overlap(set.Value(signal.Keyword).Labels, k.in.list) != k.in.except
}

func (k *keywords) text() string { return "keyword" + k.in.String() }

func (k *keywords) implies(other predicate) bool {
	o, ok := other.(*keywords)
	return ok && o.in.except == k.in.except && k.in.within(o.in)
}

// entities tests whether personal data of some type was found with at least a given score.
type entities struct {
	types []string // sorted, distinct; empty for any type
	min   float64
}

// Entities tests whether personal data of one of the types, or of any type if none is given, was
// found with a score of at least least, in [0,1].
func Entities(least float64, types ...string) *Leaf {
	return newLeaf(signal.PII, &entities{types: distinct(types), min: least})
}

// holds uses Labels as the types found and Probs as the highest score of each; a type without a
// score was found by a pattern and is certain.
func (e *entities) holds(set *signal.Set) bool {
	v := set.Value(signal.PII)
	for i, l := range v.Labels {
		if len(e.types) > 0 && !slices.Contains(e.types, l) {
			continue
		}
		if i >= len(v.Probs) || v.Probs[i] >= float32(e.min) {
			return true
		}
	}
	return false
}

func (e *entities) text() string {
	out := "pii"
	if len(e.types) > 0 {
		out += Names{list: e.types}.String()
	}
	return out + " score >= " + number(e.min)
}

func (e *entities) implies(other predicate) bool {
	o, ok := other.(*entities)
	return ok && e.min >= o.min && (len(o.types) == 0 || len(e.types) > 0 && subset(e.types, o.types))
}

// features tests whether a request has all of some features.
type features struct {
	want  signal.Features
	names []string // sorted, distinct
}

// Has tests whether the request has every feature in want; names are used in the text.
func Has(want signal.Features, names ...string) *Leaf {
	return newLeaf(signal.NumKinds, &features{want, distinct(names)})
}

func (f *features) holds(set *signal.Set) bool { return set.Facts.Features&f.want == f.want }

func (f *features) text() string { return "has " + strings.Join(f.names, " and ") }

func (f *features) implies(other predicate) bool {
	o, ok := other.(*features)
	return ok && f.want&o.want == o.want
}

// header tests whether one of the values of a header equals a text or matches an expression.
type header struct {
	name   string // canonical
	equals string
	re     *regexp.Regexp // if set, used instead of equals
}

// HeaderEquals tests whether one of the values of a header, named in canonical form, equals text.
func HeaderEquals(name, text string) *Leaf {
	return newLeaf(signal.NumKinds, &header{name: name, equals: text})
}

// HeaderMatches tests whether the expression matches a part of one of the values of a header, named
// in canonical form.
func HeaderMatches(name string, re *regexp.Regexp) *Leaf {
	return newLeaf(signal.NumKinds, &header{name: name, re: re})
}

func (h *header) holds(set *signal.Set) bool {
	return set.Facts.Header != nil && slices.ContainsFunc(set.Facts.Header(h.name), func(v string) bool {
		return h.re == nil && v == h.equals || h.re != nil && h.re.MatchString(v)
	})
}

func (h *header) text() string {
	if h.re != nil {
		return "header " + h.name + " matches " + strconv.Quote(h.re.String())
	}
	return "header " + h.name + " equals " + strconv.Quote(h.equals)
}

func (h *header) implies(other predicate) bool {
	o, ok := other.(*header)
	return ok && o.name == h.name && h.re == nil && o.re != nil && o.re.MatchString(h.equals)
}

type session struct{}

// Session tests whether the request names a session.
func Session() *Leaf { return newLeaf(signal.NumKinds, session{}) }

func (session) holds(set *signal.Set) bool { return set.Facts.Session != "" }

func (session) text() string { return "session is present" }

func (session) implies(predicate) bool { return false }

type toolLoop struct{}

// ToolLoop tests whether the model is called again with a tool result.
func ToolLoop() *Leaf { return newLeaf(signal.NumKinds, toolLoop{}) }

func (toolLoop) holds(set *signal.Set) bool { return set.Facts.ToolLoop }

func (toolLoop) text() string { return "conversation is in a tool loop" }

// A request that continues from a tool result contains one.
func (toolLoop) implies(other predicate) bool {
	o, ok := other.(*interval)
	return ok && o.subject == ofResults && o.upwards() && AtLeast(1).within(o.in)
}

// excludedMiddle is the simplified form of `x or not x` (value: true) and of `x and not x` (false):
// it has its value as soon as the signal is known, and is unknown if the signal failed, because the
// law of the excluded middle does not hold for three values.
type excludedMiddle struct {
	kind    signal.Kind
	value   bool
	origins signal.Origins // of the tests that it replaces
}

func (e excludedMiddle) holds(*signal.Set) bool { return e.value }

// pending returns the bounds before the signal is extracted: the fixed value, or unknown.
func (e excludedMiddle) pending() Bounds {
	if e.value {
		return Bounds{Unknown, True}
	}
	return Bounds{False, Unknown}
}

func (e excludedMiddle) text() string {
	return choose(e.value, "any ", "no ") + e.kind.String() + about(e.origins)
}

// The result for one origin may be known while that for another is not.
func (e excludedMiddle) implies(other predicate) bool {
	return !e.value && originsOf(other) == e.origins
}

// originsOf returns the origins whose verdicts a test reads; 0 for a test of the whole value.
func originsOf(p predicate) signal.Origins {
	switch t := p.(type) {
	case *interval:
		return t.origins
	case excludedMiddle:
		return t.origins
	}
	return 0
}

// Compared returns the score that the test compares in a known value of its signal, in [0,1], and
// the threshold. Either is nil if the test has none.
func (l *Leaf) Compared(v *signal.Value) (score, threshold *float64) {
	switch t := l.test.(type) {
	case *best:
		in, _ := t.scores(v)
		return &in, new(t.Min)
	case *interval:
		return new(t.score(v)), new(t.threshold())
	case *entities:
		return nil, new(t.min)
	case *member:
		return new(v.Score), nil
	case *own:
		score, least := t.compared(v)
		return &score, least
	}
	return nil, nil
}
