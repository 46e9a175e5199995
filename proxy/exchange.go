package proxy

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/escalate"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/placement"
	"signalbox/proxy/pool"
	"signalbox/proxy/recall"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/tools"
	"signalbox/proxy/upstream"
	"signalbox/rules"
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
	mirror         *mirrored         // the copy that another model gets; nil for none
	escalation     *escalation       // of its responses; nil where the first one stands
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

// escalation is what becomes of the responses to one request of a route that escalates. It belongs
// to the request's goroutine. nil stands for a request whose first response stands.
type escalation struct {
	look     *rules.Escalate
	sent     *openai.Request // to the models; values may be hidden in it
	expected *escalate.Expected
	order    []rules.Choice // of the models, from the first to ask
	trial    *trial         // of the attempt under way; nil where its response stands as it is
	result   string         // empty until a response was judged
	why      rules.Sign     // that a response was, or was to be, thrown away for; empty for none
	from     []discarded    // the responses that were, in order
	spare    *spare         // the last of them
}

// discarded is a response that nobody gets.
type discarded struct {
	model *backend.Model
	sign  rules.Sign
	tally response.Tally
}

// spare is a response that was thrown away, as it can be given after all.
type spare struct {
	*upstream.Kept

	params rewrite.Params
}

// trial is the judgement of one response.
type trial struct {
	*escalation

	answer   *escalate.Answer
	response *upstream.Response // that is held
	sign     rules.Sign
	result   string
}
