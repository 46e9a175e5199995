// Package exchange holds everything known about one request: what each stage of the pipeline
// produces, for later stages and for the record.
//
// It has no behaviour of its own, and knows neither the configuration nor the client. An Exchange
// belongs to the goroutine of its request.
package exchange

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/proxy/auth"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/mirror"
	"signalbox/proxy/placement"
	"signalbox/proxy/pool"
	"signalbox/proxy/recall"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/tools"
	"signalbox/proxy/trial"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// Exchange is what the stages of one request produce.
type Exchange struct {
	*decide.Decision // nil until the request is decided

	Surface        *Surface
	Req            *openai.Request   // nil until the body is decoded
	Lookup         *recall.Lookup    // in the cache; nil if caching is off everywhere
	Resolved       *resolve.Contexts // contexts that the request refers to; nil if there are none
	Mirror         *mirror.Copy      // copy sent to another model; nil if there is none
	Escalation     *trial.Course     // of its responses; nil without escalation
	HideAll        bool              // redact after the contexts have been added to the body
	Tools          *tools.Choice     // tools offered to the model; nil for all
	Results        *tools.Results    // shortened tool results; nil if there are none
	Vault          *redact.Vault     // redacted values; nil if nothing was redacted
	Model          *backend.Model    // of the last attempt; nil if there was none
	Endpoint       *pool.Endpoint
	Wanted         *backend.Model // the first model in the plan
	rewrite.Params                // of the last attempt
	Tally          response.Tally // from its response
	// its usage is estimated: the response was cut before it reported usage, or reported an
	// impossible one
	Estimated bool
	Guarding  *guardrail.Check // nil if the response is not checked
	Guarded   guard.Outcome    // result of the check; Mode is off if there was none
	Sent      time.Time        // when the last attempt was sent
	First     time.Time        // when its response, or the response's first text, arrived
	Queue     time.Duration
	Where     *placement.Plan  // nil until the request is forwarded
	Placed    placement.Placed // how its endpoint was chosen
	// why the response was not stored as a context; nil if it was, or was not requested
	Unsaved    error
	Took, TTFT time.Duration  // duration of the whole request, and until its stream began
	Silent     bool           // no response began, although a comment has sent the head
	Failure    string         // code or type of the error that the client received
	Who        auth.Principal // zero until the caller is identified
	Upstream   trace.Span     // span of the answered attempt; nil if there is none
}

// PromptTokens estimates the tokens of the prompt, including the contexts that it names. It is 0
// when no model reads it.
func (o *Exchange) PromptTokens() int {
	if o.Surface.Operation == Tokenize {
		return 0
	}
	return o.Resolved.PromptTokens(o.Req)
}

// Saves reports whether the response is to be stored as a context.
func (o *Exchange) Saves() bool { return o.Contexts != nil && o.Req.Extras.SaveContext != nil }

// Rewriter returns the changes to req required by the decision and by what was chosen for the
// request.
func (o *Exchange) Rewriter(edits *rewrite.Options, req *openai.Request) rewrite.Change {
	rw := rewrite.New(edits, req, o.Decision)
	rw.Tools, rw.Results, rw.HideAll = o.Tools, o.Results, o.HideAll
	return rw
}

// Surface is one API endpoint whose requests are forwarded.
type Surface struct {
	// client's path; the upstream path is the same, without /v1, relative to the endpoint's base
	// URL
	Path string
	API  openai.API
	// Operation is the span name and the value of gen_ai.operation.name. chat, text_completion and
	// embeddings are the values of the OTel GenAI conventions, which also use chat for the
	// Responses API.
	Operation string
	Form      bool // the body is multipart/form-data
	// Messages means that requests are those of Anthropic's Messages API, which are processed as
	// chat completions.
	Messages bool
}

// UpstreamPath returns the path relative to an endpoint's base URL, without a leading slash. direct
// means that the body is one of the Messages API.
func (s *Surface) UpstreamPath(direct bool) string { //nolint:revive // a property of the body
	path := s.Path
	if s.Messages && !direct {
		path = ChatPath
	}
	return strings.TrimPrefix(path, "/v1/")
}

// Tokenize is the operation that counts tokens without running a model.
const Tokenize = "tokenize"

// Embeddings is the only operation besides the completions whose responses always report usage.
const Embeddings = "embeddings"

// ChatPath is the path of most requests.
const ChatPath = "/v1/chat/completions"
