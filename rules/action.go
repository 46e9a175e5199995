package rules

import (
	"slices"
	"time"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
)

// Verb is what a route does with a request.
type Verb uint8

// The verbs.
const (
	Use    Verb = iota // forward to a model
	Block              // decline with Action.Text
	Answer             // reply with Action.Text, nothing is forwarded
)

// String returns the word used in YAML.
func (v Verb) String() string {
	switch v {
	case Block:
		return "block"
	case Answer:
		return "answer"
	case Use:
	}
	return "use"
}

// Action is what a route, or the default, asks for. The zero value forwards a request as it is. It
// is shared and must not be modified. Empty words mean: not said by the route.
type Action struct {
	Verb      Verb
	Text      string   // the message of Block, the reply of Answer
	Models    []Choice // with Use: the candidates in order, at least one; empty for a request that names its model
	By        string   // "order", "weight", "quality", "cost" or "latency": how to choose among Models
	Margin    float64  // with By cost or latency: how far below the best candidate's quality the chosen one may be, in [0,1]; 1 when quality plays no part
	Reasoning string   // "none", "low", "medium", "high" or "auto"
	Override  bool     // Reasoning and MaxTokens win over what the client set
	Prompt    Prompt
	MaxTokens MaxTokens
	Guard     string  // "off", "observe", "annotate", "terminate" or "hold"
	Cache     string  // "off", "exact" or "semantic"
	Windows   string  // "all" or "cascade": how long texts are read
	Redact    *Redact // nil: personal data is sent as it is
	Body      []Field
	Headers   []Header
	Escalate  *Escalate // nil: the first answer stands
	Mirror    *Mirror   // nil: no copies are sent
	Tools     *Tools    // nil: all tools that the client names are sent
	Results   *Results  // nil: results of tools are sent as they are
	Canary    *Canary   // nil: all conversations go to Models
}

// ranksQuality reports that the choice among several models depends on how well each answers.
func (a *Action) ranksQuality() bool {
	switch a.By {
	case "quality":
		return len(a.Models) > 1
	case "cost", "latency":
		return len(a.Models) > 1 && a.Margin < 1
	}
	return false
}

// Redact is which personal data is replaced before a request leaves.
type Redact struct {
	Types  []string // such data alone; nil: of every type
	Except []string // not these
}

// Takes reports whether data of a type is replaced. A nil Redact takes none.
func (r *Redact) Takes(kind string) bool {
	return r != nil && (r.Types == nil || slices.Contains(r.Types, kind)) && !slices.Contains(r.Except, kind)
}

// Choice is a candidate model.
type Choice struct {
	Name   string
	Weight int // at least 1
}

// Prompt is a system prompt to put into the request; none when Name is empty.
type Prompt struct {
	Name     string // of the prompts section
	Mode     string // "replace_vague", "prefix" or "always"
	Position string // "after_context" or "before"
}

// MaxTokens limits the completion; the zero value sets nothing.
type MaxTokens struct {
	Auto  bool // from the lengths seen so far
	Limit int  // in tokens, at least 1, when not Auto
}

// Limits reports whether MaxTokens bounds a completion of at most client tokens by the client's own
// limit, which is below 1 where it set none. An automatic limit never shrinks what a client asked
// for.
func (a *Action) Limits(client int64) bool {
	if client > 0 {
		return a.Override && a.MaxTokens.Limit > 0
	}
	return a.MaxTokens != MaxTokens{}
}

// Escalate says when the answer of a candidate is thrown away and the next one is asked.
type Escalate struct {
	When       []Sign
	Logprobs   bool          // MinLogprob counts
	MinLogprob float64       // the least mean log-probability of a token, at most 0
	Hold       time.Duration // how long a stream is held back at most, to be judged whole
}

// Sign is what shows that an answer is not good enough.
type Sign string

// The signs. SignLogprob is that of MinLogprob, the others are the words of `when`.
const (
	SignLength   Sign = "length"    // it was cut at the limit on its length
	SignEmpty    Sign = "empty"     // it has neither text nor a call of a tool
	SignRefusal  Sign = "refusal"   // the model declines, or a filter ended the answer
	SignToolCall Sign = "tool_call" // a call of a tool that is not there, or whose arguments do not fit
	SignJSON     Sign = "json"      // it breaks the format that the request asks for
	SignGuard    Sign = "guard"     // the guard finds a claim that fails
	SignLogprob  Sign = "logprob"
)

// Signs are the words of `when`.
func Signs() []string {
	return []string{
		string(SignLength), string(SignEmpty), string(SignRefusal), string(SignToolCall),
		string(SignJSON), string(SignGuard),
	}
}

// Mirror sends copies of requests to a model whose answers nobody gets.
type Mirror struct {
	Model string
	Share float64 // of requests, in (0,1]
}

// Tools says how many of the tools that a client names are offered to the model.
type Tools struct {
	Keep   int      // for each turn of the user, at least 1
	Share  float64  // of the tokens of the list, that Keep whole tools and brief ones may take; 0: no brief ones
	Always []string // names of functions that are kept whatever is asked
}

// Results bounds what the results of tools take of a prompt.
type Results struct {
	Budget int // tokens of all of them, at least 1; beyond it the oldest are shortened
	Each   int // tokens that one is shortened to
}

// Canary sends a share of the conversations to a model that is tried out; Models are what it is
// compared with, and what answers where it does not.
type Canary struct {
	Model string  // none of Models
	Share float64 // of conversations, in (0,1]
}

// Field is a top-level field added to the body sent upstream.
type Field struct {
	Name string
	JSON []byte // its encoded value
}

// Header is a header added to the request sent upstream.
type Header struct{ Name, Value string }

// OnUnknown says what becomes of a route whose condition ends unknown because signals failed. Its
// String is the word used in YAML.
type OnUnknown = condition.OnUnknown

// The policies for unknown conditions.
const (
	Skip  = condition.Skip  // the route does not match
	Match = condition.Match // the route matches: fail closed
	Error = condition.Error // the request ends with signal_unavailable
)

// Outcome tells how a decision came about.
type Outcome uint8

// The outcomes.
const (
	Matched     Outcome = iota // the route's condition is true
	FailClosed                 // the condition is unknown and the route's on_unknown is match
	Unavailable                // the condition is unknown and the route's on_unknown is error
	Defaulted                  // no route matched
)

// Decision is what to do with a request.
type Decision struct {
	Route   string // the route's name, RouteDefault or RouteNamed
	Index   int    // the route's place in the file, from 0; -1 with Defaulted
	Outcome Outcome
	Action  *Action     // never nil in a final decision; do not follow it when Outcome is Unavailable
	Failed  signal.Mask // failed signals that left a condition unknown on the way here, or that the action wanted
}

// The names that decisions without a route carry. Routes cannot take them.
const (
	RouteDefault = "default" // no route matched
	RouteNamed   = "named"   // the client named a model and no route blocked it
)
