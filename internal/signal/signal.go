// Package signal is the vocabulary between the parts that extract signals (classify), decide on
// them (rules) and act on the decision (proxy). It holds values only: no I/O, no dependencies.
//
// A signal is in one of three states, and the difference matters everywhere: not extracted yet
// (asking for it may still change the decision), known, and unknown (extraction failed, with a
// reason). Unknown is never a default label.
package signal

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"time"
)

// Kind identifies a signal that has to be extracted from the text of a request.
// What is known for free, such as role or prompt length, is in Facts instead.
type Kind uint8

// The kinds, cheapest tier first. The order within the block is the order of traces and tables.
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
	// Own is the first of MaxOwn kinds for the classifiers of a configuration, in its order. Names
	// tells what they are called there.
	Own
)

// MaxOwn is how many classifiers of its own a configuration can have.
const MaxOwn = 12

// NumKinds is the number of kinds, those of a configuration's own classifiers included.
const NumKinds = Own + MaxOwn

var kindNames = [Own]string{ //nolint:gochecknoglobals // constant table
	"keyword", "language", "domain", "jailbreak", "injection", "pii", "complexity", "factcheck",
	"embedding", "intent", "cache",
}

// String returns the name used in YAML, metrics and the API. That of a configuration's own
// classifier only Names knows; here it is its number.
func (k Kind) String() string {
	switch {
	case k < Own:
		return kindNames[k]
	case k < NumKinds:
		return "classifier " + strconv.Itoa(int(k-Own)+1)
	}
	return "invalid"
}

// Names are the names of a configuration's own classifiers: that of kind Own+i at index i.
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

// OwnClassifier is what the rest of a configuration may know of a classifier of its own.
type OwnClassifier struct {
	Name   string
	Labels []string // in the order of Value.Labels; empty when they are not known
	// Thresholds, parallel to Labels, are the probabilities from which each holds; 0 for labels
	// that exclude each other, of which the most probable one does.
	Thresholds []float64
}

// Exchange is what a classifier judges: the answer where there is one, or else the prompt.
type Exchange struct{ Prompt, Answer string }

// Judged is the text that is judged.
func (x *Exchange) Judged() string { return cmp.Or(x.Answer, x.Prompt) }

// Judgement is what a model elsewhere says of a text. Slices are shared and must not be modified.
type Judgement struct {
	Label  string  // that holds; empty when none does
	Score  float64 // probability of Label, in [0,1]
	Labels []string
	Probs  []float32 // parallel to Labels; they need not add up to 1
	Cut    bool      // only a part of the text was read
}

// Independent reports whether labels hold from thresholds of their own on.
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

// Tier orders signals by what they cost to extract.
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

// Len is the number of kinds in the set.
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

// State tells whether a value can be used.
type State uint8

// The three states. NotExtracted is the zero value of a Value.
const (
	NotExtracted State = iota
	Known
	Unknown
)

// Reason says why a signal is unknown. It is a metric label, so the set is closed.
type Reason string

// Why extraction failed.
const (
	ReasonNone     Reason = ""
	ReasonTimeout  Reason = "timeout"
	ReasonOverload Reason = "overload"
	ReasonNoModel  Reason = "no_model"
	ReasonNoText   Reason = "no_text" // nothing to read: the view that the signal reads is empty
	// ReasonUndecided is for a text that was read and that speaks for no answer more than for
	// another.
	ReasonUndecided Reason = "undecided"
	ReasonInvalid   Reason = "invalid_output"
	ReasonCanceled  Reason = "canceled"
	ReasonInternal  Reason = "internal"
)

// Coverage tells how much of the text a value speaks for.
type Coverage uint8

// How the text was read.
const (
	Complete   Coverage = iota // all of it, in one row
	Windowed                   // in windows; see Value.Windows
	Compressed                 // as a skeleton
)

// Value is one extracted signal. Slices are shared and must not be modified. Each request has
// NumKinds of them: the small fields share one word.
type Value struct {
	State    State
	Coverage Coverage
	// Partial: some of the request could not be read for it, such as a stored context. What was
	// found is there, and there may be more: of a test that finds nothing the result is unknown. Of
	// a value with Verdicts it is about Score; Verdict.Partial is about one origin.
	Partial bool
	// Leans is how much of the value is that of the turns before, in [0,1]: of a signal about the
	// topic, where the last turn follows them. The rest is the last turn's own.
	Leans  float32
	Reason Reason // set when State is Unknown, and with Partial where a model failed
	Label  string // the most probable label; empty for kinds without one
	// calibrated probability of Label; of Jailbreak and Injection that of an attack; in [0,1]
	Score    float64
	Labels   []string      // every label, in the order of Probs; for Keyword the names of the sets that matched
	Probs    []float32     // calibrated probabilities, sum 1; empty for Keyword
	Vector   []float32     // Embedding only: L2-normalised
	Spans    []Span        // PII only, by segment and start; Labels are the types found, Probs the best score of each
	Source   string        // bundle or component that produced it
	Provider string        // execution provider, such as cpu
	Elapsed  time.Duration // time spent on it; kinds of one pass share the pass
	Windows  int           // windows that cover the text
	Read     int           // windows that were read
	// Verdicts are those of Jailbreak and Injection by origin, one for each origin that was read
	// and has text, in the order of the origins. Score is the greatest of the origins that the
	// signal reads by default.
	Verdicts []Verdict
}

// Span is a piece of personal data in one segment of a request.
type Span struct {
	Type    string  // one of the contract's types, such as EMAIL_ADDRESS
	Segment int     // index in Text.Segments
	Start   int     // byte offset in the segment's text
	End     int     // byte offset behind the last byte
	Score   float64 // in [0,1]; 1 for patterns with a checksum
}

// Verdict is what a signal says of the text of one origin, and where the text is that speaks most
// for an attack.
type Verdict struct {
	Origin  Origin
	Score   float64 // calibrated probability that the text of this origin holds an attack, in [0,1]
	Windows int     // windows that cover the text
	Read    int     // windows of them that were read
	Segment int     // index in Text.Segments
	Start   int     // byte offset of the sentence in the segment's text
	End     int     // byte offset behind it
	// Partial: some text of this origin could not be read, as with Value.Partial. The score only
	// grows with it.
	Partial bool
}

// Prob returns the probability of label, and false when the value does not know the label.
func (v *Value) Prob(label string) (float64, bool) {
	for i, l := range v.Labels {
		if l == label && i < len(v.Probs) {
			return float64(v.Probs[i]), true
		}
	}
	return 0, false
}

// Features is what a request contains besides text.
type Features uint8

// The features that `has` can ask for.
const (
	HasTools Features = 1 << iota
	HasImages
	HasContext
	HasFacts
)

// Facts is what is known about a request without looking into its text: tier 0.
type Facts struct {
	Role     string
	Tenant   string
	Model    string // the model that the client asked for
	Session  string // empty when none was named
	Tokens   int    // estimate of the prompt's tokens
	Context  int    // tokens of the stored contexts that the request refers to
	Turns    int    // messages of the user in the request, but for those beside results of tools
	Results  int    // results of tools behind the last of them
	ToolLoop bool   // the model is called again with the result of a tool
	Features Features
	Header   func(name string) []string // values of a request header, by any case; nil means no headers
}

// Set is everything known about one request so far. It is not safe for concurrent writes; one
// request owns one Set and the extractor fills it between two steps of the decision. A copy keeps
// what it holds whatever is put into the original, and the other way round.
type Set struct {
	Facts Facts

	// A value is 224 bytes and most requests have few: those that were not extracted take none.
	values [NumKinds]*Value // never modified
}

var notExtracted Value //nolint:gochecknoglobals // never modified

// Value returns what is known of k. It is shared and must not be modified.
func (s *Set) Value(k Kind) *Value {
	if v := s.values[k]; v != nil {
		return v
	}
	return &notExtracted
}

// Put replaces what is known of k.
func (s *Set) Put(k Kind, v Value) { s.values[k] = &v }

// Drop forgets what is known of the kinds of m.
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

// Fail marks every kind of m that has no value yet as unknown.
func (s *Set) Fail(m Mask, why Reason) {
	for k := range NumKinds {
		if m.Has(k) && s.Value(k).State == NotExtracted {
			s.Put(k, Value{State: Unknown, Reason: why})
		}
	}
}

// Text is a request's text in the views that extractors read. Strings are shared with the request.
type Text struct {
	LastUser string    // the last message of role user that has text: what the request is about
	Before   []string  // the messages of role user before it, the oldest first
	Segments []Segment // every text of the request in order: all roles, tool results, names
}

// Segment is one run of text, who said it and where it comes from.
type Segment struct {
	Role   string // system, developer, user, assistant, tool, function
	Text   string
	Origin Origin
	List   bool // Text is several short strings of the request, such as names and ids, one a line
}

// Origin tells where a piece of text comes from. Signals about attacks read some origins only.
type Origin uint8

// The origins. Text of OriginAny is read by every signal, whatever origins it reads.
const (
	OriginAny          Origin = iota // nobody told: a bare text
	OriginInstructions               // system and developer messages, Responses instructions
	OriginUser                       // what the user says
	OriginModel                      // earlier answers, reasoning and tool calls of a model
	// OriginData is results of tools and functions, contexts, facts, documents, quoted material.
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

// ParseOrigin is the inverse of String for the origins that can be asked for; OriginAny is none of
// them.
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

// Has reports whether text of origin o is read by who reads the set: OriginAny always is.
func (s Origins) Has(o Origin) bool { return o == OriginAny || s&(1<<o) != 0 }

// DefaultOrigins returns the origins that a signal about attacks reads unless told otherwise, and 0
// for other kinds.
func DefaultOrigins(k Kind) Origins {
	switch k { //nolint:exhaustive // two kinds have origins
	case Jailbreak:
		return OriginsOf(OriginUser)
	case Injection:
		return OriginsOf(OriginData)
	}
	return 0
}
