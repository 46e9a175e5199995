// Package exchange is all that is known of one request: what each stage of the pipeline makes, for
// those that follow and for its record.
//
// It does nothing by itself, and knows neither the configuration nor the client. An Exchange
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

// Exchange is what the stages of one request make.
type Exchange struct {
	*decide.Decision // nil until the request was decided

	Surface        *Surface
	Req            *openai.Request   // nil until it was decoded
	Lookup         *recall.Lookup    // of the cache; nil where it is off everywhere
	Resolved       *resolve.Contexts // what its pointers lead to; nil without any
	Mirror         *mirror.Copy      // the copy that another model gets; nil for none
	Escalation     *trial.Course     // of its responses; nil where the first one stands
	HideAll        bool              // personal data is replaced once the contexts are in the body
	Tools          *tools.Choice     // that the model is offered; nil for all of them
	Results        *tools.Results    // results of tools that are sent in short; nil for none
	Vault          *redact.Vault     // nil when nothing was hidden from the model
	Model          *backend.Model    // of the last attempt; nil when there was none
	Endpoint       *pool.Endpoint
	Wanted         *backend.Model   // that the attempts began with
	rewrite.Params                  // of the last attempt
	Tally          response.Tally   // by its response
	Estimated      bool             // its usage is, since the response was cut before it told, or told what cannot be
	Guarding       *guardrail.Check // nil when the answer is not checked
	Guarded        guard.Outcome    // what the check found; Mode is off when there was none
	Sent           time.Time        // when the last attempt was
	First          time.Time        // when its response began, or the first text of it
	Queue          time.Duration
	Where          *placement.Plan  // nil until the request was sent
	Placed         placement.Placed // how its endpoint was picked
	Unsaved        error            // why the response was not stored as a context; nil when it was, or was not to be
	Took, TTFT     time.Duration    // of the whole request, and until its stream began
	Silent         bool             // no response began, though a comment has sent the head
	Failure        string           // code or type of the error that the client got
	Who            auth.Principal   // the zero value until it was identified
	Upstream       trace.Span       // of the attempt that is answered; nil without one
}

// PromptTokens estimates what the prompt takes, with the contexts that it names: nothing where no
// model reads it.
func (o *Exchange) PromptTokens() int {
	if o.Surface.Operation == Tokenize {
		return 0
	}
	return o.Resolved.PromptTokens(o.Req)
}

// Saves reports whether the response is to be stored as a context.
func (o *Exchange) Saves() bool { return o.Contexts != nil && o.Req.Extras.SaveContext != nil }

// Rewriter prepares the changes that the decision asks for in req, with what was chosen for it.
func (o *Exchange) Rewriter(edits *rewrite.Options, req *openai.Request) rewrite.Change {
	rw := rewrite.New(edits, req, o.Decision)
	rw.Tools, rw.Results, rw.HideAll = o.Tools, o.Results, o.HideAll
	return rw
}

// Surface is one endpoint of the API whose requests are forwarded.
type Surface struct {
	Path string // of the client's URL; behind the base of an endpoint it is the same without /v1
	API  openai.API
	// Operation names the span, and is gen_ai.operation.name: chat, text_completion and embeddings
	// are the words of the OTel GenAI conventions, which call a request to the Responses API chat
	// as well.
	Operation string
	Form      bool // the body is multipart/form-data
	// Messages: requests are those of Anthropic's Messages API, and are worked on as chat
	// completions.
	Messages bool
}

// UpstreamPath is the path below the base of an endpoint, without a slash in front. direct: the
// body is one of the Messages API.
func (s *Surface) UpstreamPath(direct bool) string { //nolint:revive // what the body is
	path := s.Path
	if s.Messages && !direct {
		path = ChatPath
	}
	return strings.TrimPrefix(path, "/v1/")
}

// Tokenize is the operation of the API that counts tokens and asks no model.
const Tokenize = "tokenize"

// Embeddings is the operation of the only API beside those of completions whose answers tell their
// usage everywhere.
const Embeddings = "embeddings"

// ChatPath is the path that most requests come to.
const ChatPath = "/v1/chat/completions"
