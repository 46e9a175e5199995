package proxy

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/pool"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// exchange is what the stages of one request made, for its record.
type exchange struct {
	*decision // nil until the request was decided

	surface    *surface
	req        *openai.Request   // nil until it was decoded
	memo       *memo             // of the cache; nil where it is off everywhere
	held       *resolve.Contexts // what its pointers lead to; nil without any
	mirror     *mirrored         // the copy that another model gets; nil for none
	escalation *escalation       // of its answers; nil where the first one stands
	vault      *redact.Vault     // nil when nothing was hidden from the model
	model      *backend.Model    // of the last attempt; nil when there was none
	endpoint   *pool.Endpoint
	wanted     *backend.Model   // that the attempts began with
	asked                       // of the last attempt
	told       response.Tally   // by its answer
	guarding   *guardrail.Check // nil when the answer is not checked
	guarded    guard.Outcome    // what the check found; Mode is off when there was none
	sent       time.Time        // when the last attempt was
	first      time.Time        // when its answer began
	queue      time.Duration
	where      *plan         // nil until the request was sent
	placed     placed        // how its endpoint was picked
	unsaved    error         // why the answer was not stored as a context; nil when it was, or was not to be
	took, ttft time.Duration // of the whole request, and until its stream began
	failure    string        // code or type of the error that the client got

	who      Principal  // the zero value until it was identified
	upstream trace.Span // of the attempt that is answered; nil without one
}
