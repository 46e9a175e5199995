// Package signal defines the vocabulary shared by the packages that extract signals (classify),
// decide on them (rules) and act on the decision (proxy). It only contains values: no I/O and no
// dependencies.
//
// A signal is in one of three states, which all users must distinguish: not extracted yet
// (extracting it may still change the decision), known, and unknown (extraction failed, with a
// reason). Unknown is never replaced by a default label.
package signal

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"time"
)

// Kind identifies a signal that has to be extracted from the text of a request. Properties that
// need no extraction, such as role or prompt length, are in Facts instead.
type Kind uint8

// The kinds, cheapest tier first. Traces and tables use the order of this block.
const (
	Keyword Kind = iota
	Language
	Domain
	Jailbreak
	Injection
	PII
	Complexity
	FactCheck
	Embedding
	Intent
	Cache
	// Own is the first of MaxOwn kinds for the classifiers defined by the configuration, in its
	// order. Names holds their names.
	Own
)

// MaxOwn is the maximum number of classifiers that a configuration can define.
const MaxOwn = 12

// NumKinds is the number of kinds, including those of the configuration's own classifiers.
const NumKinds = Own + MaxOwn

var kindNames = [Own]string{ //nolint:gochecknoglobals // constant table
	"keyword", "language", "domain", "jailbreak", "injection", "pii", "complexity", "factcheck",
	"embedding", "intent", "cache",
}

// String returns the name used in YAML, metrics and the API. For a configuration's own classifier,
// whose name only Names knows, it is the number.
func (k Kind) String() string {
	switch {
	case k < Own:
		return kindNames[k]
	case k < NumKinds:
		return "classifier " + strconv.Itoa(int(k-Own)+1)
	}
	return "invalid"
}

// Names are the names of a configuration's own classifiers; index i holds the name of kind Own+i.
type Names []string

// Of returns the name of k in metrics and the API.
func (n Names) Of(k Kind) string {
	if i := int(k) - int(Own); i >= 0 && i < len(n) {
		return n[i]
	}
	return k.String()
}

// Parse is the inverse of Of.
func (n Names) Parse(name string) (Kind, bool) {
	if i := slices.Index(n, name); i >= 0 && i < MaxOwn {
		return Own + Kind(i), true
	}
	return ParseKind(name)
}

// OwnClassifier describes a classifier defined by the configuration to other parts of it.
type OwnClassifier struct {
	Name   string
	Labels []string // in the order of Value.Labels; empty if not known
	// Thresholds, parallel to Labels, are the probabilities from which each label applies. They are
	// 0 for labels that exclude each other, of which the most probable applies.
	Thresholds []float64
}

// Exchange is the input of a classifier: it judges the answer if there is one, else the prompt.
type Exchange struct{ Prompt, Answer string }

// Judged returns the text to judge.
func (x *Exchange) Judged() string { return cmp.Or(x.Answer, x.Prompt) }

// Judgement is the result of a remote model for a text. Slices are shared and must not be modified.
type Judgement struct {
	Label  string  // the label that applies; empty if none does
	Score  float64 // probability of Label, in [0,1]
	Labels []string
	Probs  []float32 // parallel to Labels; they need not add up to 1
	Cut    bool      // only a part of the text was read
}

// Independent reports whether each label has its own threshold.
func (c *OwnClassifier) Independent() bool {
	return slices.ContainsFunc(c.Thresholds, func(t float64) bool { return t > 0 })
}

// ParseKind is the inverse of String.
func ParseKind(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), true
		}
	}
	return NumKinds, false
}

// Tier orders signals by the cost of extracting them.
type Tier uint8

// The cost tiers of the decision engine.
const (
	TierFree    Tier = iota // known from the request itself
	TierLexical             // a scan of the text, microseconds
	TierNeural              // one pass of the shared trunk, milliseconds
	TierLarge               // a large or remote model
	NumTiers
)

// Tier returns the cost tier of the kind.
func (k Kind) Tier() Tier {
	switch k { //nolint:exhaustive // Own and NumKinds are no single kinds
	case Keyword, Language:
		return TierLexical
	case Domain, Jailbreak, Injection, PII, Complexity, FactCheck, Embedding, Intent, Cache:
		return TierNeural
	}
	if k < NumKinds {
		return TierNeural
	}
	return TierLarge
}

// Mask is a set of kinds.
type Mask uint32

// MaskOf returns the set of the given kinds.
func MaskOf(kinds ...Kind) Mask {
	var m Mask
	for _, k := range kinds {
		m |= 1 << k
	}
	return m
}

// Has reports whether k is in the set.
func (m Mask) Has(k Kind) bool { return m&(1<<k) != 0 }

// Len returns the number of kinds in the set.
func (m Mask) Len() int { return bits.OnesCount32(uint32(m)) }

// Tier returns the members of the set that belong to tier t.
func (m Mask) Tier(t Tier) Mask {
	var out Mask
	for k := range NumKinds {
		if m.Has(k) && k.Tier() == t {
			out |= 1 << k
		}
	}
	return out
}

// Kinds lists the members in order.
func (m Mask) Kinds() []Kind {
	out := make([]Kind, 0, m.Len())
	for k := range NumKinds {
		if m.Has(k) {
			out = append(out, k)
		}
	}
	return out
}

// State is whether a value can be used.
type State uint8

// The three states. NotExtracted is the zero value of a Value.
const (
	NotExtracted State = iota
	Known
	Unknown
)

// Reason is why a signal is unknown. It is a metric label, so the set of values is closed.
type Reason string

// The reasons for which extraction fails.
const (
	ReasonNone     Reason = ""
	ReasonTimeout  Reason = "timeout"
	ReasonOverload Reason = "overload"
	ReasonNoModel  Reason = "no_model"
	ReasonNoText   Reason = "no_text" // nothing to read: the text that the signal reads is empty
	// ReasonUndecided means that the text was read but does not favour any answer.
	ReasonUndecided Reason = "undecided"
	ReasonInvalid   Reason = "invalid_output"
	ReasonCanceled  Reason = "canceled"
	ReasonInternal  Reason = "internal"
)

// Coverage is how much of the text a value is based on.
type Coverage uint8

// How the text was read.
const (
	Complete   Coverage = iota // all of it, in one row
	Windowed                   // in windows; see Value.Windows
	Compressed                 // as a skeleton
)

// Value is one extracted signal. Slices are shared and must not be modified. Each request may have
// NumKinds of them: the small fields share one word.
type Value struct {
	State    State
	Coverage Coverage
	// Partial means that a part of the request could not be read for this signal, such as a stored
	// context. What was found is valid, but there may be more: a condition that finds nothing
	// evaluates to unknown. If a value has Verdicts, Partial refers to Score; Verdict.Partial
	// refers to one origin.
	Partial bool
	// Leans is the share of the value, in [0,1], that comes from earlier turns: signals about the
	// topic take it over if the last turn follows them. The rest comes from the last turn.
	Leans  float32
	Reason Reason // set if State is Unknown, and with Partial if a model failed
	Label  string // the most probable label; empty for kinds without one
	// calibrated probability of Label, for Jailbreak and Injection of an attack; in [0,1]
	Score float64
	// all labels, in the order of Probs; for Keyword the names of the sets that matched
	Labels []string
	Probs  []float32 // calibrated probabilities, sum 1; empty for Keyword
	Vector []float32 // Embedding only: L2-normalised
	// PII only, by segment and start; Labels are the types found, Probs the highest score of each
	Spans    []Span
	Source   string        // bundle or component that computed it
	Provider string        // execution provider, such as cpu
	Elapsed  time.Duration // time spent on it; kinds of one pass share its time
	Windows  int           // number of windows that cover the text
	Read     int           // number of windows that were read
	// Verdicts are the verdicts of Jailbreak and Injection, one for each origin that was read and
	// has text, in the order of the origins. Score is the greatest among the origins that the
	// signal reads by default.
	Verdicts []Verdict
}

// Span is a piece of personal data in one segment of a request.
type Span struct {
	Type    string  // a type of the API, such as EMAIL_ADDRESS
	Segment int     // index in Text.Segments
	Start   int     // byte offset in the segment's text
	End     int     // byte offset after the last byte
	Score   float64 // in [0,1]; 1 for patterns with a checksum
}

// Verdict is the verdict of a signal on the text of one origin, with the position of the sentence
// with the most weight.
type Verdict struct {
	Origin Origin
	// calibrated probability that the text of this origin contains an attack, in [0,1]
	Score   float64
	Windows int // number of windows that cover the text
	Read    int // number of windows that were read
	Segment int // index in Text.Segments
	Start   int // byte offset of the sentence in the segment's text
	End     int // byte offset after the sentence
	// Partial means that some text of this origin could not be read, as for Value.Partial. Reading
	// it could only raise the score.
	Partial bool
}

// Prob returns the probability of label, or false if the value does not have the label.
func (v *Value) Prob(label string) (float64, bool) {
	for i, l := range v.Labels {
		if l == label && i < len(v.Probs) {
			return float64(v.Probs[i]), true
		}
	}
	return 0, false
}

// Features is a set of things that a request contains besides text.
type Features uint8

// The features that the condition `has` can test.
const (
	HasTools Features = 1 << iota
	HasImages
	HasContext
	HasFacts
)

// Facts are the properties of a request that are known without reading its text: tier 0.
type Facts struct {
	Role     string
	Tenant   string
	Model    string // the model that the client asked for
	Session  string // empty if the client named none
	Tokens   int    // estimate of the prompt's tokens
	Context  int    // number of tokens in the stored contexts that the request refers to
	Turns    int    // number of user messages, except those next to tool results
	Results  int    // number of tool results after the last of them
	ToolLoop bool   // the model is called again with a tool result
	Features Features
	// values of a request header, case-insensitive; nil means no headers
	Header func(name string) []string
}

// Set holds everything known about one request so far. It is not safe for concurrent writes: each
// request owns one Set, and the extractor fills it between two steps of the decision. A copy is
// independent: Put on either does not change the other.
type Set struct {
	Facts Facts

	// A value is 224 bytes and most requests have few; those that were not extracted take none.
	values [NumKinds]*Value // never modified
}

var notExtracted Value //nolint:gochecknoglobals // never modified

// Value returns the value of k. It is shared and must not be modified.
func (s *Set) Value(k Kind) *Value {
	if v := s.values[k]; v != nil {
		return v
	}
	return &notExtracted
}

// Put replaces the value of k.
func (s *Set) Put(k Kind, v Value) { s.values[k] = &v }

// Drop removes the values of the kinds in m.
func (s *Set) Drop(m Mask) {
	for k := range NumKinds {
		if m.Has(k) {
			s.values[k] = nil
		}
	}
}

// Have returns the kinds that were extracted, known or not.
func (s *Set) Have() Mask {
	var m Mask
	for k := range NumKinds {
		if s.Value(k).State != NotExtracted {
			m |= 1 << k
		}
	}
	return m
}

// Fail marks every kind of m without a value as unknown.
func (s *Set) Fail(m Mask, why Reason) {
	for k := range NumKinds {
		if m.Has(k) && s.Value(k).State == NotExtracted {
			s.Put(k, Value{State: Unknown, Reason: why})
		}
	}
}

// Text is a request's text in the views that extractors read. Strings are shared with the request.
type Text struct {
	LastUser string    // the last message of role user with text: the subject of the request
	Before   []string  // the messages of role user before it, oldest first
	Segments []Segment // every text of the request in order: all roles, tool results, names
}

// Segment is one run of text with its role and origin.
type Segment struct {
	Role   string // system, developer, user, assistant, tool, function
	Text   string
	Origin Origin
	List   bool // Text is several short strings of the request, such as names and ids, one per line
}

// Origin is where a piece of text comes from. Signals about attacks only read some origins.
type Origin uint8

// The origins. Every signal reads text of OriginAny, whichever origins it is configured for.
const (
	OriginAny          Origin = iota // not known: a bare text
	OriginInstructions               // system and developer messages, Responses instructions
	OriginUser                       // text of the user
	OriginModel                      // earlier answers, reasoning and tool calls of a model
	// OriginData is for tool and function results, contexts, facts, documents and quoted material.
	OriginData
	NumOrigins
)

//nolint:gochecknoglobals // constant table
var originNames = [NumOrigins]string{"any", "instructions", "user", "model", "data"}

// String returns the name used in YAML and the API.
func (o Origin) String() string {
	if o < NumOrigins {
		return originNames[o]
	}
	return "invalid"
}

// ParseOrigin is the inverse of String for the origins that can be configured; OriginAny is not one
// of them.
func ParseOrigin(name string) (Origin, bool) {
	for o := OriginInstructions; o < NumOrigins; o++ {
		if originNames[o] == name {
			return o, true
		}
	}
	return OriginAny, false
}

// Origins is a set of origins.
type Origins uint8

// OriginsOf returns the set of the given origins.
func OriginsOf(origins ...Origin) Origins {
	var s Origins
	for _, o := range origins {
		s |= 1 << o
	}
	return s
}

// Has reports whether a signal configured for the set reads text of origin o. This is always true
// for OriginAny.
func (s Origins) Has(o Origin) bool { return o == OriginAny || s&(1<<o) != 0 }

// DefaultOrigins returns the origins that a signal about attacks reads by default, and 0 for other
// kinds.
func DefaultOrigins(k Kind) Origins {
	switch k { //nolint:exhaustive // two kinds have origins
	case Jailbreak:
		return OriginsOf(OriginUser)
	case Injection:
		return OriginsOf(OriginData)
	}
	return 0
}
