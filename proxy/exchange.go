package proxy

import (
	"bytes"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/escalate"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/pool"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/upstream"
	"signalbox/rules"
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

// mirrored is the copy of one request. nil stands for none.
type mirrored struct {
	model *backend.Model
	api   openai.API
	body  payload
	got   *escalate.Answer // what the client gets
	whole *capped          // the body that it gets, where it is no stream
}

// placed is how the endpoint of a request was picked; zero when any would have done.
type placed struct {
	by        affinity.Source
	home      bool
	predicted int
}

func (x *placed) attrs() []slog.Attr {
	if x.by == affinity.NoSource {
		return nil
	}
	return []slog.Attr{slog.String("placed_by", x.by.String()), slog.Bool("home", x.home), slog.Int("predicted_tokens", x.predicted)}
}

// escalation is what becomes of the answers to one request of a route that escalates. It belongs to
// the request's goroutine. nil stands for a request whose first answer stands.
type escalation struct {
	look     *rules.Escalate
	sent     *openai.Request // to the models; values may be hidden in it
	expected *escalate.Expected
	order    []rules.Choice // of the models, from the first to ask
	trial    *trial         // of the attempt under way; nil where its answer stands as it is
	result   string         // empty until an answer was judged
	why      rules.Sign     // that an answer was, or was to be, thrown away for; empty for none
	from     []discarded    // the answers that were, in order
	spare    *spare         // the last of them
}

// discarded is an answer that nobody gets.
type discarded struct {
	model *backend.Model
	why   rules.Sign
	told  response.Tally
}

// spare is a response that was thrown away, as it can be given after all.
type spare struct {
	*upstream.Kept

	asked asked
}

// trial is the judgement of one answer.
type trial struct {
	*escalation

	answer   *escalate.Answer
	response *upstream.Response // that is held
	sign     rules.Sign
	result   string
}

// capped keeps what is written to it, up to about upstream.MaxWhole bytes.
type capped struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *capped) Write(p []byte) (int, error) {
	if b.Len() >= upstream.MaxWhole {
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
