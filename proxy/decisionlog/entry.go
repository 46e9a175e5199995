// Package decisionlog is the form of the decision log: what a line says, how it is made from a
// decision, how it is read, and how a logged request would be decided under another configuration.
//
// It writes no files; package telemetry does. It decides nothing itself: rules do, from what the
// log holds.
//
// Invariants: a line holds no text of a request unless prompts are recorded; texts of the
// configuration and values of headers appear as fingerprints; a request decided again under the
// configuration that logged it ends as it did. Entries are plain values; everything else is safe
// for concurrent use. Nothing here starts a goroutine.
package decisionlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Version is the form of the lines that this version writes; it reads no other.
const Version = 1

// Entry is one line of the decision log: what a request was, as far as rules can see it,
// what was decided and on which signals, and how it ended. It holds no text of the request unless
// prompts are recorded.
type Entry struct {
	Version    int               `json:"v"`
	Time       time.Time         `json:"time"` // of the decision
	ID         string            `json:"id"`   // x-request-id
	Generation uint64            `json:"generation"`
	Config     string            `json:"config,omitempty"` // fingerprint of the configuration file
	Request    Facts             `json:"request"`
	Route      string            `json:"route"`
	Outcome    string            `json:"outcome"`          // matched, fail_closed, unavailable or default
	Failed     []string          `json:"failed,omitempty"` // signals that the decision had to do without
	Action     Action            `json:"action"`
	Signals    map[string]Signal `json:"signals"` // those that were asked for; what is absent was not computed
	DecideMs   float64           `json:"decide_ms"`

	Chosen string `json:"chosen,omitempty"` // the model that the route chose; empty when nothing was to be forwarded
	// the probability with which it did, at the effort that was asked for, where outcomes are learnt
	// from; absent where it is not known
	Chance float64 `json:"chance,omitempty"`
	// of all candidates that could have been chosen, by model; absent where there was no choice
	Chances   map[string]float64 `json:"chances,omitempty"`
	Model     string             `json:"model,omitempty"`      // that answered in the end
	Endpoint  string             `json:"endpoint,omitempty"`   // of it
	Reasoning string             `json:"reasoning,omitempty"`  // the effort that was asked for in the end
	MaxTokens int                `json:"max_tokens,omitempty"` // the limit that was sent in place of the client's; 0 when none was
	// which API was called, where nothing is completed: embeddings, rerank, tokenize, speech,
	// transcription or translation
	Operation string `json:"operation,omitempty"`
	Status    int    `json:"status"`
	// Error is the code of the error that the client got, its type where that has none, upstream_error
	// for one of the server in a response of status 200; empty for an upstream's own status.
	Error string `json:"error,omitempty"`
	Key   string `json:"key,omitempty"` // name of the key that was shown, or who the token is about
	// Finish is why the answer ended: stop, length, tool_calls, function_call, content_filter or
	// other; the last of several choices.
	Finish string  `json:"finish,omitempty"`
	TookMs float64 `json:"took_ms,omitempty"` // all of it, to the end of the answer
	TTFTMs float64 `json:"ttft_ms,omitempty"` // until the answer began, of a stream
	// what the answer cost at the configured prices, in USD; 0 where its tokens or the price are not
	// known. Answers that were thrown away have their own
	Cost float64 `json:"cost_usd,omitempty"`
	// what the same tokens cost at the price of the dearest model of the configuration, in USD
	Baseline float64 `json:"baseline_usd,omitempty"`
	Placed   *Placed `json:"placed,omitempty"` // why that endpoint; absent when any would have done
	Tokens   *Tokens `json:"tokens,omitempty"` // as the answer told them, or estimated; absent where it told none
	Cache    string  `json:"cache,omitempty"`  // what became of it in the cache: exact, semantic, miss, off, ineligible, bypass or error; absent where that is off everywhere. With exact no signal was computed, and Model is who answered then
	// what became of the conversation that it belongs to; absent where nothing sticks
	Conversation *Conversation `json:"conversation,omitempty"`
	// what was saved with, as a budget was nearly used up: cheaper, less_effort or both, with a comma
	Budget string `json:"budget,omitempty"`
	// what became of answers that were judged; absent where none was
	Escalation *Escalation `json:"escalation,omitempty"`
	// control or canary, where the route tries a model out; absent where the request is in no arm
	Arm string `json:"arm,omitempty"`
	// what became of a copy of the request; absent where none was sent
	Mirror *Mirror `json:"mirror,omitempty"`
	// what the check of the answer found; absent when it was not checked
	Guard *Guard `json:"guard,omitempty"`

	Prompt *Text `json:"prompt,omitempty"` // only with telemetry.record_prompts
}

// Conversation is what became of a conversation.
type Conversation struct {
	State  string   `json:"state"`            // new, kept or moved
	Reason string   `json:"reason,omitempty"` // why it was kept or moved
	Model  string   `json:"model,omitempty"`  // that answered the turn before
	Kept   []string `json:"kept,omitempty"`   // signals that stayed what they were
}

// Escalation is what became of the answers of a route that escalates.
type Escalation struct {
	Result string   `json:"result"`           // kept, late, unread, escalated or failed
	Reason string   `json:"reason,omitempty"` // the sign that was found last
	From   []Thrown `json:"from,omitempty"`   // answers that nobody got, in order
}

// Tried is the model that was asked first; empty when none was.
func (e *Entry) Tried() string {
	switch x := e.Escalation; {
	case x == nil:
		return e.Chosen
	case len(x.From) > 0:
		return x.From[0].Model
	case x.Result == "failed": // no other answered, and the first one's answer was given
		return e.Model
	}
	return e.Chosen
}

// Thrown is an answer that nobody got.
type Thrown struct {
	Model  string  `json:"model"`
	Reason string  `json:"reason"`
	Tokens Tokens  `json:"tokens"`             // estimated where the answer does not tell them
	Cost   float64 `json:"cost_usd,omitempty"` // at the configured price
}

// Mirror is the answer to a copy of a request, beside the one that the client got.
type Mirror struct {
	Model      string  `json:"model"`
	Result     string  `json:"result"` // answered, failed or dropped; the rest is there with answered alone
	Finish     string  `json:"finish,omitempty"`
	Same       bool    `json:"same_finish,omitempty"`   // both ended for the same reason
	Bytes      int     `json:"bytes,omitempty"`         // of text
	Against    int     `json:"against_bytes,omitempty"` // of the text that the client got
	Tokens     *Tokens `json:"tokens,omitempty"`
	Cost       float64 `json:"cost_usd,omitempty"`
	Similarity float64 `json:"similarity,omitempty"` // share of the words that both have, in [0,1]
	Ms         float64 `json:"ms,omitempty"`         // to its end
}

// Facts is what rules can read about a request without its text.
type Facts struct {
	Model    string            `json:"model"` // that the client asked for
	Role     string            `json:"role,omitempty"`
	Tenant   string            `json:"tenant,omitempty"`
	Tokens   int               `json:"tokens"`                   // estimated length of the prompt
	Context  int               `json:"context_tokens,omitempty"` // of the contexts that it refers to
	Contexts []string          `json:"contexts,omitempty"`       // those, each as ID@VERSION
	Features []string          `json:"features,omitempty"`       // tools, images, context, facts
	Session  bool              `json:"session,omitempty"`        // one was named
	Turns    int               `json:"turns,omitempty"`          // messages of the user; not those beside results
	Results  int               `json:"tool_results,omitempty"`   // results of tools behind the last of them
	ToolLoop bool              `json:"tool_loop,omitempty"`      // the model is called again with one
	Headers  map[string]Header `json:"headers,omitempty"`        // those that the rules name; empty where the request had none of the name
}

// Header is the values of one request header.
type Header struct {
	Literal []string `json:"literal,omitempty"`
	Hashed  []string `json:"sha256,omitempty"` // see HashHeader
}

// Signal is one signal as it was computed.
type Signal struct {
	State string `json:"state"` // evaluated or unknown
	Label string `json:"label,omitempty"`
	// of the label, in [0,1]; of jailbreak and injection always that of an attack
	Score      float64           `json:"score,omitempty"`
	Labels     []string          `json:"labels,omitempty"` // of keyword the sets that matched, of pii the types found
	Probs      []float32         `json:"probs,omitempty"`  // of Labels
	Reason     string            `json:"reason,omitempty"` // why it is unknown
	Source     string            `json:"source,omitempty"`
	Definition string            `json:"definition,omitempty"` // fingerprint of the model or examples that it comes from
	Sets       map[string]string `json:"sets,omitempty"`       // of keyword: fingerprint of every set that was looked for
	Windows    int               `json:"windows,omitempty"`
	Read       int               `json:"read,omitempty"`
	Partial    bool              `json:"partial,omitempty"` // of a part of the request: a stored context could not be read for it
	Limit      int               `json:"limit,omitempty"`   // classify.windows, of a signal that it can keep from reading them all
	Ms         float64           `json:"ms,omitempty"`

	// of jailbreak and injection: whose text the score speaks for, where that is not the default
	Origins []string `json:"origins,omitempty"`
	Reads   []string `json:"reads,omitempty"` // whose text was read, where that is more
	// by origin; an origin that was read and has none had no text
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Action is what a route asked for. Texts are fingerprints.
type Action struct {
	Verb         string   `json:"verb"` // use, block or answer
	Text         string   `json:"text,omitempty"`
	Models       []Choice `json:"models,omitempty"`
	By           string   `json:"by,omitempty"`
	Margin       float64  `json:"quality_margin,omitempty"`
	Reasoning    string   `json:"reasoning,omitempty"`
	Override     bool     `json:"override,omitempty"`
	Prompt       string   `json:"prompt,omitempty"`          // its name
	Mode         string   `json:"prompt_mode,omitempty"`     // and how it is put in
	Position     string   `json:"prompt_position,omitempty"` // before; empty: where it is by default
	Wording      string   `json:"prompt_text,omitempty"`
	MaxTokens    string   `json:"max_tokens,omitempty"` // auto or a number
	Guard        string   `json:"guard,omitempty"`
	Cache        string   `json:"cache,omitempty"`
	Windows      string   `json:"windows,omitempty"`
	Redact       bool     `json:"redact,omitempty"`
	RedactTypes  []string `json:"redact_types,omitempty"` // none: every type
	RedactExcept []string `json:"redact_except,omitempty"`
	Mirror       string   `json:"mirror,omitempty"`       // the model, and its share
	Tools        string   `json:"tools,omitempty"`        // how many are kept, which always, and the share of brief ones
	Results      string   `json:"tool_results,omitempty"` // their budget, and that of each one
	Canary       string   `json:"canary,omitempty"`       // the model, and its share
	Escalate     string   `json:"escalate,omitempty"`     // which answers are thrown away
	Set          string   `json:"set,omitempty"`          // fields and headers
}

// Choice is a candidate model.
type Choice struct {
	Name   string `json:"name"`
	Weight int    `json:"weight,omitempty"`
}

// Placed is how an endpoint was picked for what it has of a prompt.
type Placed struct {
	By        string `json:"by"`                         // what the request belongs to: contexts, session, prompt_cache_key, ..., prefix
	Home      bool   `json:"home"`                       // the endpoint is the home of that
	Predicted int    `json:"predicted_tokens,omitempty"` // of the prompt that the endpoint should have had
}

// Tokens is what an answer said about its usage, or an estimate of it.
type Tokens struct {
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached,omitempty"`
	Completion int64 `json:"completion"`
	Reasoning  int64 `json:"reasoning,omitempty"` // of Completion, where the answer tells it
	// Estimated: the answer was cut before it told (its client left, or the guard cut), or it told what
	// cannot be.
	Estimated bool `json:"estimated,omitempty"`
}

// Guard is what the check of an answer found. It holds no text of the answer.
type Guard struct {
	Mode    string `json:"mode"`              // as it applied
	Verdict string `json:"verdict"`           // supported, unsupported or unchecked
	Claims  int    `json:"claims"`            // that were looked at
	Failed  int    `json:"failed,omitempty"`  // of them
	Shed    int    `json:"shed,omitempty"`    // of them that got no check in time
	Pending int    `json:"pending,omitempty"` // of them whose verdict came when the line was written
	Cut     bool   `json:"cut,omitempty"`     // the answer was ended before its end
}

// Text is the text of a request in the views that signals are read from.
type Text struct {
	LastUser string    `json:"last_user"`
	Before   []string  `json:"before,omitempty"` // what the user said before it
	Segments []Segment `json:"segments"`
}

// Segment is one run of text, who said it and where it comes from.
type Segment struct {
	Role   string `json:"role"`
	Text   string `json:"text"`
	Origin string `json:"origin,omitempty"` // any, instructions, user, model or data
}

// ErrRefusal reports a line of requests that were refused before they were decided: see Refusal.
var ErrRefusal = errors.New("a line of requests that a limit has refused")

// ErrNotADecision reports a line that is no entry of a decision log that this version can read.
var ErrNotADecision = errors.New("not a line of a decision log")

// Parse reads one line of a decision log. Members that it does not know are skipped: a later
// version may add some. Its errors wrap ErrNotADecision, or are ErrRefusal.
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
