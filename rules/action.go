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
	Block              // refuse with Action.Text
	Answer             // reply with Action.Text; nothing is forwarded
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

// Action is the action of a route or of the default. The zero value forwards a request unchanged.
// An Action is shared and must not be modified. Empty words mean that the route does not set the
// property.
type Action struct {
	Verb Verb
	Text string // the message of Block, the reply of Answer
	// with Use: the candidates in order, at least one; empty for a request that names its model
	Models []Choice
	// how to choose among Models: "order", "weight", "quality", "cost" or "latency"
	By string
	// with By cost or latency: how far the chosen model's quality may be below the best
	// candidate's, in [0,1]; 1 if quality does not matter
	Margin    float64
	Reasoning string // "none", "low", "medium", "high" or "auto"
	Override  bool   // Reasoning and MaxTokens take precedence over the client's values
	Prompt    Prompt
	MaxTokens MaxTokens
	Guard     string  // "off", "observe", "annotate", "terminate" or "hold"
	Cache     string  // "off", "exact" or "semantic"
	Windows   string  // how much of long texts is read: "all" or "cascade"
	Redact    *Redact // nil: personal data is not replaced
	Body      []Field
	Headers   []Header
	Escalate  *Escalate // nil: the first response is final
	Mirror    *Mirror   // nil: no copies are sent
	Tools     *Tools    // nil: all of the client's tools are sent
	Results   *Results  // nil: tool results are sent unchanged
	Canary    *Canary   // nil: all conversations use Models
}

// ranksQuality reports whether the choice among several models depends on the quality of their
// responses.
func (a *Action) ranksQuality() bool {
	switch a.By {
	case "quality":
		return len(a.Models) > 1
	case "cost", "latency":
		return len(a.Models) > 1 && a.Margin < 1
	}
	return false
}

// Redact selects the personal data that is replaced before a request is forwarded.
type Redact struct {
	Types  []string // only these types; nil: all types
	Except []string // except these types
}

// Takes reports whether data of a type is replaced. It is false for a nil Redact.
func (r *Redact) Takes(kind string) bool {
	return r != nil && (r.Types == nil || slices.Contains(r.Types, kind)) && !slices.Contains(r.Except, kind)
}

// Choice is a candidate model.
type Choice struct {
	Name   string
	Weight int // at least 1
}

// Prompt is a system prompt to insert into the request; none if Name is empty.
type Prompt struct {
	Name     string // a name in the prompts section
	Mode     string // "replace_vague", "prefix" or "always"
	Position string // "after_context" or "before"
}

// MaxTokens limits the completion; the zero value sets no limit.
type MaxTokens struct {
	Auto  bool // computed from the lengths seen so far
	Limit int  // in tokens, at least 1, if not Auto
}

// Limits reports whether MaxTokens sets the limit of a completion, given the client's own limit in
// tokens, which is below 1 if there is none. An automatic limit never lowers the client's.
func (a *Action) Limits(client int64) bool {
	if client > 0 {
		return a.Override && a.MaxTokens.Limit > 0
	}
	return a.MaxTokens != MaxTokens{}
}

// Escalate defines when the response of a candidate is discarded and the next one is asked.
type Escalate struct {
	When       []Sign
	Logprobs   bool          // MinLogprob applies
	MinLogprob float64       // the minimum mean log-probability of a token, at most 0
	Hold       time.Duration // the maximum time that a stream is held back to be judged as a whole
}

// Sign is a reason to consider a response not good enough.
type Sign string

// The signs. SignLogprob belongs to MinLogprob, the others are the words of `when`.
const (
	SignLength  Sign = "length"  // it was cut off at its length limit
	SignEmpty   Sign = "empty"   // it has neither text nor a tool call
	SignRefusal Sign = "refusal" // the model declined, or a filter ended the response
	// SignToolCall is a call of an unknown tool, or with arguments that do not fit the tool.
	SignToolCall Sign = "tool_call"
	SignJSON     Sign = "json"  // it does not have the format that the request demands
	SignGuard    Sign = "guard" // the guard found a claim that fails
	SignLogprob  Sign = "logprob"
)

// Signs returns the words of `when`.
func Signs() []string {
	return []string{
		string(SignLength), string(SignEmpty), string(SignRefusal), string(SignToolCall),
		string(SignJSON), string(SignGuard),
	}
}

// Mirror sends copies of requests to a model whose responses are discarded.
type Mirror struct {
	Model string
	Share float64 // of requests, in (0,1]
}

// Tools limits how many of the client's tools are offered to the model.
type Tools struct {
	Keep int // number of tools for each turn of the user, at least 1
	// share of the tokens of the whole list that Keep complete tools and shortened ones may take;
	// 0: no shortened tools
	Share  float64
	Always []string // names of functions that are always kept
}

// Results limits the size of tool results in a prompt.
type Results struct {
	Budget int // tokens of all results together, at least 1; beyond it the oldest are shortened
	Each   int // tokens to which a result is shortened
}

// Canary sends a share of the conversations to a model that is being tried out. Models are the
// baseline, and serve the other conversations.
type Canary struct {
	Model string  // not one of Models
	Share float64 // of conversations, in (0,1]
}

// Field is a top-level field added to the body sent upstream.
type Field struct {
	Name string
	JSON []byte // its encoded value
}

// Header is a header added to the request sent upstream.
type Header struct{ Name, Value string }

// OnUnknown is the policy for a route whose condition is unknown because signals failed. Its String
// is the word used in YAML.
type OnUnknown = condition.OnUnknown

// The policies for unknown conditions.
const (
	Skip  = condition.Skip  // the route does not match
	Match = condition.Match // the route matches: fail closed
	Error = condition.Error // the request ends with signal_unavailable
)

// Outcome is how a decision was reached.
type Outcome uint8

// The outcomes.
const (
	Matched     Outcome = iota // the route's condition is true
	FailClosed                 // the condition is unknown and the route's on_unknown is match
	Unavailable                // the condition is unknown and the route's on_unknown is error
	Defaulted                  // no route matched
)

// Decision is the decision on a request.
type Decision struct {
	Route   string // the route's name, RouteDefault or RouteNamed
	Index   int    // the route's index in the file, from 0; -1 with Defaulted
	Outcome Outcome
	// never nil in a final decision; must not be followed if Outcome is Unavailable
	Action *Action
	// failed signals that left a condition on the way unknown, or that the action needs
	Failed signal.Mask
}

// The route names of decisions without a route. Routes cannot have these names.
const (
	RouteDefault = "default" // no route matched
	RouteNamed   = "named"   // the client named a model and no route blocked the request
)
