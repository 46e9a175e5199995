package rules

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/signal"
)

// predicate is the test of a leaf, asked only when its signal is known. Implementations are
// immutable, comparable by their text, and do not allocate in holds.
type predicate interface {
	holds(set *signal.Set) bool
	text() string
	// implies reports that every set which satisfies the receiver satisfies other. False may mean
	// that it cannot tell.
	implies(other predicate) bool
}

// subject is what a member or range test looks at.
type subject uint8

const (
	ofRole          subject = iota // Facts.Role
	ofTenant                       // Facts.Tenant
	ofModel                        // Facts.Model
	ofTokens                       // Facts.Tokens
	ofContextTokens                // Facts.Context
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
	case ofLabel, ofScore:
	}
	return k.String()
}

// member tests that one word, such as the role or the predicted label, is (out: is not) in a list.
type member struct {
	subject subject
	kind    signal.Kind // with ofLabel
	names   []string    // sorted, distinct
	out     bool
}

func (m *member) value(set *signal.Set) string {
	switch m.subject {
	case ofRole:
		return set.Facts.Role
	case ofTenant:
		return set.Facts.Tenant
	case ofModel:
		return set.Facts.Model
	case ofLabel, ofTokens, ofContextTokens, ofScore:
	}
	return set.Values[m.kind].Label
}

func (m *member) holds(set *signal.Set) bool {
	return contains(m.names, m.value(set)) != m.out
}

func (m *member) text() string {
	return m.subject.name(m.kind) + words(m.names, m.out)
}

func (m *member) implies(other predicate) bool {
	if s, ok := other.(*scored); ok && m.subject == ofLabel && s.kind == m.kind {
		// A label other than the predicted one has at most half of the probability.
		return s.min <= 0 && s.margin < 0 && s.max >= 0.5 && m.within(s.outside())
	}
	o, ok := other.(*member)
	if !ok || o.subject != m.subject || o.kind != m.kind {
		return false
	}
	return m.within(o)
}

// within reports that every word the receiver accepts is one that o accepts.
func (m *member) within(o *member) bool {
	switch {
	case !m.out && !o.out:
		return subset(m.names, o.names)
	case !m.out && o.out:
		return !overlap(m.names, o.names)
	case m.out && o.out:
		return subset(o.names, m.names)
	}
	return false
}

// span tests a number: tokens or a score.
type span struct {
	subject        subject
	kind           signal.Kind // with ofScore
	label          string      // with ofScore: the label whose probability counts; empty for the score itself
	lo, hi         float64     // -Inf and +Inf when absent
	loOpen, hiOpen bool        // the end itself does not belong to the range
}

func (s *span) holds(set *signal.Set) bool {
	x, lo, hi := float64(set.Facts.Tokens), s.lo, s.hi
	switch s.subject {
	case ofContextTokens:
		x = float64(set.Facts.Context)
	case ofScore:
		x = single(probability(&set.Values[s.kind], s.label))
		lo, hi = single(lo), single(hi)
	case ofRole, ofTenant, ofModel, ofTokens, ofLabel:
	}
	return (x > lo || x == lo && !s.loOpen) && (x < hi || x == hi && !s.hiOpen)
}

// single rounds to the precision that models report, so that a probability of 0.7 reaches a bound of
// 0.7.
func single(x float64) float64 { return float64(float32(x)) }

// probability returns P(label) of a value that may list probabilities or only its best label. A
// value that names the other label of a two-label task gives the complement.
func probability(v *signal.Value, label string) float64 {
	if label == "" {
		return v.Score
	}
	if p, ok := v.Prob(label); ok {
		return p
	}
	if v.Label == label {
		return v.Score
	}
	return 1 - v.Score
}

func (s *span) text() string {
	var b strings.Builder
	b.WriteString(s.subject.name(s.kind))
	if !math.IsInf(s.lo, -1) {
		b.WriteString(choose(s.loOpen, " > ", " >= "))
		b.WriteString(number(s.lo))
	}
	if !math.IsInf(s.hi, 1) {
		b.WriteString(choose(s.hiOpen, " < ", " <= "))
		b.WriteString(number(s.hi))
	}
	return b.String()
}

func (s *span) implies(other predicate) bool {
	o, ok := other.(*span)
	if !ok || o.subject != s.subject || o.kind != s.kind || o.label != s.label {
		return false
	}
	above := s.lo > o.lo || s.lo == o.lo && (s.loOpen || !o.loOpen)
	below := s.hi < o.hi || s.hi == o.hi && (s.hiOpen || !o.hiOpen)
	return above && below
}

// empty reports that no value of the subject lies in the range.
func (s *span) empty() bool {
	return s.lo > s.hi || s.lo == s.hi && (s.loOpen || s.hiOpen) ||
		s.hi < 0 || s.hi == 0 && s.hiOpen || s.lo > s.top() || s.lo == s.top() && s.loOpen
}

// full reports that every value of the subject lies in the range.
func (s *span) full() bool {
	return (s.lo < 0 || s.lo == 0 && !s.loOpen) && (s.hi > s.top() || s.hi == s.top() && !s.hiOpen)
}

// top is the greatest value of the subject; the least is 0.
func (s *span) top() float64 {
	if s.subject == ofScore {
		return 1
	}
	return math.Inf(1)
}

// scored tests the probability of the best label inside a set of labels.
type scored struct {
	kind     signal.Kind
	names    []string // sorted, distinct; empty with out: every label
	out      bool     // names are the labels outside
	min, max float64
	margin   float64  // least lead over the best label outside, over the runner-up when nothing is outside; -1 for any
	order    []string // the labels in the order the models are known to report them
	inside   []bool   // membership, parallel to order
	at       []int    // where order has each of names, -1 when it does not; nil with out
}

// index prepares the lookups by the order in which labels are expected.
func (s *scored) index(order []string) {
	s.order = order
	for _, label := range order {
		s.inside = append(s.inside, s.has(label))
	}
	for _, n := range s.names {
		if !s.out {
			s.at = append(s.at, slices.Index(order, n))
		}
	}
}

func (s *scored) holds(set *signal.Set) bool {
	v := &set.Values[s.kind]
	if s.margin < 0 && len(v.Probs) > 0 && s.at != nil {
		if in, ok := s.quick(v); ok {
			return in >= float32(s.min) && in <= float32(s.max)
		}
	}
	in, out := s.best(v)
	return single(in) >= single(s.min) && single(in) <= single(s.max) && single(in-out) >= single(s.margin)
}

// quick is best without the labels outside, for a value that has its labels where they are expected.
func (s *scored) quick(v *signal.Value) (in float32, ok bool) {
	for i, n := range s.names {
		j := s.at[i]
		if j < 0 || j >= len(v.Labels) || j >= len(v.Probs) || v.Labels[j] != n {
			return 0, false
		}
		in = max(in, v.Probs[j])
	}
	return in, true
}

// best returns the highest probability inside and outside of the set. A value without probabilities
// speaks only for its label: the other side can then hold at most the rest.
func (s *scored) best(v *signal.Value) (in, out float64) {
	if len(v.Probs) == 0 {
		if s.has(v.Label) {
			return v.Score, 1 - v.Score
		}
		return 0, v.Score
	}
	everything := s.everything()
	for i, l := range v.Labels[:min(len(v.Labels), len(v.Probs))] {
		p := float64(v.Probs[i])
		inside := everything
		if !everything {
			inside = i < len(s.order) && s.order[i] == l && s.inside[i]
			if i >= len(s.order) || s.order[i] != l {
				inside = s.has(l)
			}
		}
		switch {
		case inside && everything && p > in:
			in, out = p, in
		case inside && !everything:
			in = max(in, p)
		default:
			out = max(out, p)
		}
	}
	return in, out
}

// trivial reports that every value passes.
func (s *scored) trivial() bool { return s.min <= 0 && s.max >= 1 && s.margin < 0 }

// everything reports that no label is outside.
func (s *scored) everything() bool { return s.out && len(s.names) == 0 }

func (s *scored) has(label string) bool { return contains(s.names, label) != s.out }

func (s *scored) text() string {
	var b strings.Builder
	b.WriteString(s.kind.String())
	if len(s.names) > 0 || !s.out {
		b.WriteString(words(s.names, s.out))
	}
	if s.min > 0 || s.max >= 1 && s.margin < 0 {
		b.WriteString(" score >= " + number(s.min))
	}
	if s.max < 1 {
		b.WriteString(" score <= " + number(s.max))
	}
	if s.margin >= 0 {
		b.WriteString(" margin >= " + number(s.margin))
	}
	return b.String()
}

func (s *scored) implies(other predicate) bool {
	if m, ok := other.(*member); ok {
		return m.subject == ofLabel && m.kind == s.kind && s.wins() && s.set().within(m)
	}
	o, ok := other.(*scored)
	if !ok || o.kind != s.kind {
		return false
	}
	if o.out == s.out && slices.Equal(o.names, s.names) {
		return s.min >= o.min && s.max <= o.max && s.margin >= o.margin
	}
	switch {
	case o.margin >= 0:
		// What is not in the best label is all that a runner-up can have.
		lead := 2*s.least() - 1
		if len(s.names) == 1 && !s.out {
			lead = max(lead, s.margin)
		}
		return o.everything() && o.max >= 1 && s.least() >= o.min && lead >= o.margin
	case o.max >= 1:
		return s.least() >= o.min && s.set().within(o.set())
	case o.min <= 0:
		return 1-s.least() <= o.max && s.set().within(o.outside())
	}
	return false
}

// set is the labels inside, as a test of the predicted one; outside is its complement.
func (s *scored) set() *member     { return &member{ofLabel, s.kind, s.names, s.out} }
func (s *scored) outside() *member { return &member{ofLabel, s.kind, s.names, !s.out} }

// least is the smallest probability that the best label inside has when the test holds.
func (s *scored) least() float64 { return max(s.min, s.margin) }

// wins reports that the test can only hold when the predicted label is inside: more than half of the
// probability, or a lead over everything outside, belongs to a label of the set.
func (s *scored) wins() bool {
	return s.min > 0.5 || s.margin > 0 && !s.everything()
}

// keywords tests that one of some keyword sets matched (out: that none did).
type keywords struct {
	names []string // sorted, distinct
	out   bool
}

func (k *keywords) holds(set *signal.Set) bool {
	return overlap(set.Values[signal.Keyword].Labels, k.names) != k.out
}

func (k *keywords) text() string { return "keyword" + words(k.names, k.out) }

func (k *keywords) implies(other predicate) bool {
	o, ok := other.(*keywords)
	if !ok || o.out != k.out {
		return false
	}
	if k.out {
		return subset(o.names, k.names)
	}
	return subset(k.names, o.names)
}

// entities tests that personal data of some type was found with at least a score.
type entities struct {
	types []string // sorted, distinct; empty for any type
	min   float64
}

// holds reads Labels as the types that the value speaks of and Probs as the highest score of each;
// a type without a score was found by a pattern and is certain.
func (e *entities) holds(set *signal.Set) bool {
	v := &set.Values[signal.PII]
	for i, l := range v.Labels {
		if len(e.types) > 0 && !contains(e.types, l) {
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
		out += words(e.types, false)
	}
	return out + " score >= " + number(e.min)
}

func (e *entities) implies(other predicate) bool {
	o, ok := other.(*entities)
	return ok && e.min >= o.min && (len(o.types) == 0 || len(e.types) > 0 && subset(e.types, o.types))
}

// features tests that a request has all of some features.
type features struct {
	want  signal.Features
	names []string
}

func (f *features) holds(set *signal.Set) bool { return set.Facts.Features&f.want == f.want }

func (f *features) text() string { return "has " + strings.Join(f.names, " and ") }

func (f *features) implies(other predicate) bool {
	o, ok := other.(*features)
	return ok && f.want&o.want == o.want
}

// header tests that one of the values of a header equals a text or matches an expression.
type header struct {
	name   string // canonical
	equals string
	re     *regexp.Regexp // when set, instead of equals
}

func (h *header) holds(set *signal.Set) bool {
	if set.Facts.Header == nil {
		return false
	}
	for _, v := range set.Facts.Header(h.name) {
		if h.re == nil && v == h.equals || h.re != nil && h.re.MatchString(v) {
			return true
		}
	}
	return false
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

// session tests that the request names a session.
type session struct{}

func (session) holds(set *signal.Set) bool { return set.Facts.Session != "" }

func (session) text() string { return "session is present" }

func (session) implies(predicate) bool { return false }

// tautology is what simplification makes of x with not x: its value is fixed as soon as the signal
// is known, and unknown when the signal failed.
type tautology struct {
	kind  signal.Kind
	value bool
}

func (t tautology) holds(*signal.Set) bool { return t.value }

// pending is the range before the signal is extracted: its fixed value, or unknown.
func (t tautology) pending() bounds {
	if t.value {
		return bounds{unknown, yes}
	}
	return bounds{no, unknown}
}

func (t tautology) text() string {
	return choose(t.value, "any ", "no ") + t.kind.String()
}

func (t tautology) implies(predicate) bool { return !t.value }

// contains searches the few names of a rule; comparing shared strings is a pointer comparison.
func contains(names []string, name string) bool {
	return slices.Contains(names, name)
}

func overlap(a, b []string) bool {
	for _, x := range a {
		if contains(b, x) {
			return true
		}
	}
	return false
}

func subset(a, b []string) bool {
	for _, x := range a {
		if !contains(b, x) {
			return false
		}
	}
	return true
}

func words(names []string, out bool) string {
	if len(names) == 1 {
		return choose(out, " is not ", " is ") + quoted(names[0])
	}
	shown := make([]string, len(names))
	for i, n := range names {
		shown[i] = quoted(n)
	}
	return choose(out, " not in [", " in [") + strings.Join(shown, ", ") + "]"
}

// quoted puts a name in quotes that could be read as something else in a text.
func quoted(name string) string {
	if namePattern.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func choose(which bool, ifTrue, ifFalse string) string { //nolint:revive // a conditional expression
	if which {
		return ifTrue
	}
	return ifFalse
}
