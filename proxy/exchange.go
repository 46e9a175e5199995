package proxy

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
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

// decision is where a request goes and what it was based on.
type decision = decide.Decision

// exchange is what the stages of one request make, for those that follow and for its record.
type exchange struct {
	*decision // nil until the request was decided

	state          *State
	surface        *surface
	req            *openai.Request   // nil until it was decoded
	lookup         *recall.Lookup    // of the cache; nil where it is off everywhere
	resolved       *resolve.Contexts // what its pointers lead to; nil without any
	mirror         *mirror.Copy      // the copy that another model gets; nil for none
	escalation     *trial.Course     // of its responses; nil where the first one stands
	hideAll        bool              // personal data is replaced once the contexts are in the body
	tools          *tools.Choice     // that the model is offered; nil for all of them
	results        *tools.Results    // results of tools that are sent in short; nil for none
	vault          *redact.Vault     // nil when nothing was hidden from the model
	model          *backend.Model    // of the last attempt; nil when there was none
	endpoint       *pool.Endpoint
	wanted         *backend.Model   // that the attempts began with
	rewrite.Params                  // of the last attempt
	tally          response.Tally   // by its response
	guarding       *guardrail.Check // nil when the answer is not checked
	guarded        guard.Outcome    // what the check found; Mode is off when there was none
	sent           time.Time        // when the last attempt was
	first          time.Time        // when its response began, or the first text of it
	queue          time.Duration
	where          *placement.Plan  // nil until the request was sent
	placed         placement.Placed // how its endpoint was picked
	unsaved        error            // why the response was not stored as a context; nil when it was, or was not to be
	took, ttft     time.Duration    // of the whole request, and until its stream began
	failure        string           // code or type of the error that the client got

	who      Principal  // the zero value until it was identified
	upstream trace.Span // of the attempt that is answered; nil without one
}
