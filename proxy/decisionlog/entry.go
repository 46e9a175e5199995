// Package decisionlog defines the decision log: what a line contains, how it is made from a
// decision and parsed, and how a logged request would be decided under another configuration.
//
// It writes no files; package telemetry does. It makes no decisions; package rules does, from the
// logged data.
//
// Invariants: a line contains no text of a request unless prompts are recorded. Texts of the
// configuration and values of headers appear as fingerprints. A request decided again under the
// configuration that logged it gets the same decision. Entries are plain values; everything else is
// safe for concurrent use. Nothing here starts a goroutine.
package decisionlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Version is the version of the format that is written; no other is read.
const Version = 1

// Entry is one line of the decision log: the request as rules see it, the decision with the signals
// that it was based on, and the result. It contains no text of the request unless prompts are
// recorded.
type Entry struct {
	Version    int       `json:"v"`
	Time       time.Time `json:"time"` // of the decision
	ID         string    `json:"id"`   // x-request-id
	Generation uint64    `json:"generation"`
	Config     string    `json:"config,omitempty"` // fingerprint of the configuration file
	Request    Facts     `json:"request"`
	Route      string    `json:"route"`
	Outcome    string    `json:"outcome"` // matched, fail_closed, unavailable or default
	// signals that were missing in the decision
	Failed []string `json:"failed,omitempty"`
	Action Action   `json:"action"`
	// requested signals; an absent one was not computed
	Signals  map[string]Signal `json:"signals"`
	DecideMs float64           `json:"decide_ms"`

	// the model that the route chose; empty if nothing was to be forwarded
	Chosen string `json:"chosen,omitempty"`
	// probability of choosing it, at the requested effort, when outcomes are learned from; absent
	// if unknown
	Chance float64 `json:"chance,omitempty"`
	// by model, of all candidates that could have been chosen; absent without a choice
	Chances  map[string]float64 `json:"chances,omitempty"`
	Model    string             `json:"model,omitempty"`    // the model that answered
	Endpoint string             `json:"endpoint,omitempty"` // its endpoint
	// the effort requested in the last attempt
	Reasoning string `json:"reasoning,omitempty"`
	// the limit sent instead of the client's; 0 if none was
	MaxTokens int `json:"max_tokens,omitempty"`
	// API of a request without a completion: embeddings, rerank, tokenize, speech, transcription or
	// translation
	Operation string `json:"operation,omitempty"`
	Status    int    `json:"status"`
	// Error is the code of the error that the client received, or its type if it has no code. It is
	// upstream_error for a server error within a response of status 200, and empty for the
	// upstream's own status.
	Error string `json:"error,omitempty"`
	Key   string `json:"key,omitempty"` // name of the key, or subject of the token
	// Finish is why the response ended: stop, length, tool_calls, function_call, content_filter or
	// other; with several choices, that of the last one.
	Finish string  `json:"finish,omitempty"`
	TookMs float64 `json:"took_ms,omitempty"` // to the end of the response
	TTFTMs float64 `json:"ttft_ms,omitempty"` // to the beginning of a streamed response
	// cost of the response at the configured prices, in USD; 0 if its tokens or the price are
	// unknown. Discarded responses have their own
	Cost float64 `json:"cost_usd,omitempty"`
	// cost of the same tokens at the price of the dearest configured model, in USD
	Baseline float64 `json:"baseline_usd,omitempty"`
	Placed   *Placed `json:"placed,omitempty"` // why this endpoint; absent if any would have done
	// as reported by the response, or estimated; absent if neither is possible
	Tokens *Tokens `json:"tokens,omitempty"`
	// cache result: exact, semantic, miss, off, ineligible, bypass or error; absent where caching
	// is off everywhere. With exact no signal was computed, and Model is the one that answered
	// originally
	Cache string `json:"cache,omitempty"`
	// what became of its conversation; absent when stickiness is off
	Conversation *Conversation `json:"conversation,omitempty"`
	// savings applied because a budget was nearly exhausted: cheaper, less_effort or both,
	// separated by a comma
	Budget string `json:"budget,omitempty"`
	// what became of judged responses; absent if none was
	Escalation *Escalation `json:"escalation,omitempty"`
	// control or canary, if the route has a canary; absent if the request is in no arm
	Arm string `json:"arm,omitempty"`
	// what became of a copy of the request; absent if none was sent
	Mirror *Mirror `json:"mirror,omitempty"`
	// result of checking the response; absent if it was not checked
	Guard *Guard `json:"guard,omitempty"`

	Prompt *Text `json:"prompt,omitempty"` // only with telemetry.record_prompts
}

// Conversation is what became of a conversation.
type Conversation struct {
	State  string   `json:"state"`            // new, kept or moved
	Reason string   `json:"reason,omitempty"` // why it was kept or moved
	Model  string   `json:"model,omitempty"`  // of the previous turn
	Kept   []string `json:"kept,omitempty"`   // signals kept from the previous turn
}

// Escalation is what became of the responses of a route with escalation.
type Escalation struct {
	Result string   `json:"result"`           // kept, late, unread, escalated or failed
	Reason string   `json:"reason,omitempty"` // the last sign found
	From   []Thrown `json:"from,omitempty"`   // discarded responses, in order
}

// Tried returns the model that was asked first; empty if none was.
func (e *Entry) Tried() string {
	switch x := e.Escalation; {
	case x == nil:
		return e.Chosen
	case len(x.From) > 0:
		return x.From[0].Model
	case x.Result == "failed": // no other model answered, and the first response was delivered
		return e.Model
	}
	return e.Chosen
}

// Thrown is a discarded response.
type Thrown struct {
	Model  string  `json:"model"`
	Reason string  `json:"reason"`
	Tokens Tokens  `json:"tokens"`             // estimated if the response does not report them
	Cost   float64 `json:"cost_usd,omitempty"` // at the configured price
}

// Mirror is the response to a copy of a request, compared with the one that the client received.
type Mirror struct {
	Model string `json:"model"`
	// answered, failed or dropped; other fields are set for answered only
	Result  string  `json:"result"`
	Finish  string  `json:"finish,omitempty"`
	Same    bool    `json:"same_finish,omitempty"`   // both ended for the same reason
	Bytes   int     `json:"bytes,omitempty"`         // length of its text
	Against int     `json:"against_bytes,omitempty"` // length of the client's text
	Tokens  *Tokens `json:"tokens,omitempty"`
	Cost    float64 `json:"cost_usd,omitempty"`
	// share of the words that occur in both, in [0,1]
	Similarity float64 `json:"similarity,omitempty"`
	Ms         float64 `json:"ms,omitempty"` // time to its end
}

// Facts is what rules can read about a request without its text.
type Facts struct {
	Model    string   `json:"model"` // as named by the client
	Role     string   `json:"role,omitempty"`
	Tenant   string   `json:"tenant,omitempty"`
	Tokens   int      `json:"tokens"`                   // estimated length of the prompt
	Context  int      `json:"context_tokens,omitempty"` // in the contexts that it names
	Contexts []string `json:"contexts,omitempty"`       // those contexts, as ID@VERSION
	Features []string `json:"features,omitempty"`       // tools, images, context, facts
	Session  bool     `json:"session,omitempty"`        // a session is named
	// user messages, except those next to tool results
	Turns int `json:"turns,omitempty"`
	// tool results after the last of them
	Results int `json:"tool_results,omitempty"`
	// the model is called again with a tool result
	ToolLoop bool `json:"tool_loop,omitempty"`
	// headers that the rules name; empty if the request does not have the header
	Headers map[string]Header `json:"headers,omitempty"`
}

// Header holds the values of one request header.
type Header struct {
	Literal []string `json:"literal,omitempty"`
	Hashed  []string `json:"sha256,omitempty"` // see HashHeader
}

// Signal is one computed signal.
type Signal struct {
	State string `json:"state"` // evaluated or unknown
	Label string `json:"label,omitempty"`
	// of the label, in [0,1]; for jailbreak and injection always that of an attack
	Score float64 `json:"score,omitempty"`
	// for keyword: sets that matched; for pii: types found
	Labels []string  `json:"labels,omitempty"`
	Probs  []float32 `json:"probs,omitempty"`  // of Labels
	Reason string    `json:"reason,omitempty"` // why it is unknown
	Source string    `json:"source,omitempty"`
	// fingerprint of the model or examples behind it
	Definition string `json:"definition,omitempty"`
	// for keyword: fingerprint of every set searched
	Sets    map[string]string `json:"sets,omitempty"`
	Windows int               `json:"windows,omitempty"`
	Read    int               `json:"read,omitempty"`
	// covers a part of the request only: a stored context could not be read
	Partial bool `json:"partial,omitempty"`
	// classify.windows, for a signal that it may limit
	Limit int     `json:"limit,omitempty"`
	Ms    float64 `json:"ms,omitempty"`

	// for jailbreak and injection: origins that the score refers to, if not the default
	Origins []string `json:"origins,omitempty"`
	Reads   []string `json:"reads,omitempty"` // origins read, if more
	// by origin; an origin that was read and has no verdict had no text
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Action is what a route requests. Texts are fingerprints.
type Action struct {
	Verb      string   `json:"verb"` // use, block or answer
	Text      string   `json:"text,omitempty"`
	Models    []Choice `json:"models,omitempty"`
	By        string   `json:"by,omitempty"`
	Margin    float64  `json:"quality_margin,omitempty"`
	Reasoning string   `json:"reasoning,omitempty"`
	Override  bool     `json:"override,omitempty"`
	Prompt    string   `json:"prompt,omitempty"`      // its name
	Mode      string   `json:"prompt_mode,omitempty"` // how it is added
	// before; empty for the default position
	Position     string   `json:"prompt_position,omitempty"`
	Wording      string   `json:"prompt_text,omitempty"`
	MaxTokens    string   `json:"max_tokens,omitempty"` // auto or a number
	Guard        string   `json:"guard,omitempty"`
	Cache        string   `json:"cache,omitempty"`
	Windows      string   `json:"windows,omitempty"`
	Redact       bool     `json:"redact,omitempty"`
	RedactTypes  []string `json:"redact_types,omitempty"` // none: every type
	RedactExcept []string `json:"redact_except,omitempty"`
	Mirror       string   `json:"mirror,omitempty"` // model and share
	// number kept, names always kept, and share of brief ones
	Tools string `json:"tools,omitempty"`
	// total budget, and the budget of each result
	Results  string `json:"tool_results,omitempty"`
	Canary   string `json:"canary,omitempty"`   // model and share
	Escalate string `json:"escalate,omitempty"` // which responses are discarded
	Set      string `json:"set,omitempty"`      // fields and headers
}

// Choice is a candidate model.
type Choice struct {
	Name   string `json:"name"`
	Weight int    `json:"weight,omitempty"`
}

// Placed is how an endpoint was chosen by the prompt in its cache.
type Placed struct {
	// what the request belongs to: contexts, session, prompt_cache_key, ..., prefix
	By   string `json:"by"`
	Home bool   `json:"home"` // the endpoint is the home of that
	// prompt tokens that the endpoint should have cached
	Predicted int `json:"predicted_tokens,omitempty"`
}

// Tokens is the usage reported by a response, or an estimate.
type Tokens struct {
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached,omitempty"`
	Completion int64 `json:"completion"`
	Reasoning  int64 `json:"reasoning,omitempty"` // part of Completion, if reported
	// Estimated means that the response ended before it reported its usage (the client left, or the
	// guard cut it), or reported an impossible one.
	Estimated bool `json:"estimated,omitempty"`
}

// Guard is the result of checking a response. It contains no text of the response.
type Guard struct {
	Mode    string `json:"mode"`             // as it applied
	Verdict string `json:"verdict"`          // supported, unsupported or unchecked
	Claims  int    `json:"claims"`           // claims checked
	Failed  int    `json:"failed,omitempty"` // failed claims
	Shed    int    `json:"shed,omitempty"`   // claims that were not checked in time
	// claims whose verdict was open when the line was written
	Pending int  `json:"pending,omitempty"`
	Cut     bool `json:"cut,omitempty"` // the guard ended the response early
}

// Text is the text of a request in the views that signals are computed from.
type Text struct {
	LastUser string    `json:"last_user"`
	Before   []string  `json:"before,omitempty"` // earlier turns of the user
	Segments []Segment `json:"segments"`
}

// Segment is one run of text with its role and origin.
type Segment struct {
	Role   string `json:"role"`
	Text   string `json:"text"`
	Origin string `json:"origin,omitempty"` // any, instructions, user, model or data
}

// ErrRefusal reports a line about requests that a limit refused before a decision; see Refusal.
var ErrRefusal = errors.New("a line of requests that a limit has refused")

// ErrNotADecision reports a line that is not an entry of a decision log in a readable version.
var ErrNotADecision = errors.New("not a line of a decision log")

// Parse parses one line of a decision log. It ignores unknown members, which a later version may
// add. Errors wrap ErrNotADecision, or are ErrRefusal.
func Parse(line []byte) (*Entry, error) {
	var l Entry
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, Misread(err)
	}
	switch {
	case l.Version != Version:
		return nil, fmt.Errorf("%w: its version is %d, expected %d", ErrNotADecision, l.Version, Version)
	case l.Outcome == outcomeRefused:
		return nil, ErrRefusal
	case l.Route == "" || l.Outcome == "" || l.Action.Verb == "":
		return nil, fmt.Errorf("%w: route, outcome or action is missing", ErrNotADecision)
	case l.Request.Model == "":
		return nil, fmt.Errorf("%w: request.model is missing", ErrNotADecision)
	}
	for name, s := range l.Signals {
		switch {
		case s.State != "evaluated" && s.State != "unknown":
			return nil, fmt.Errorf("%w: signals.%s.state is %q", ErrNotADecision, name, s.State)
		case !finite(s.Score, s.Probs), !finiteVerdicts(s.verdicts()):
			return nil, fmt.Errorf("%w: signals.%s holds a number out of range", ErrNotADecision, name)
		case slices.ContainsFunc(s.Verdicts, func(v Verdict) bool { return !isOrigin(v.Origin) }):
			return nil, fmt.Errorf("%w: signals.%s.verdicts names an unknown origin",
				ErrNotADecision, name)
		}
	}
	return &l, nil
}
