package proxy

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/memory/conversation"
	"signalbox/memory/prefix"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/escalate"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/lengths"
	"signalbox/proxy/pool"
	"signalbox/proxy/recall"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
	"signalbox/proxy/tools"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// exchange is what the stages of one request make, for those that follow and for its record.
type exchange struct {
	*decision // nil until the request was decided

	surface    *surface
	req        *openai.Request   // nil until it was decoded
	lookup     *recall.Lookup    // of the cache; nil where it is off everywhere
	resolved   *resolve.Contexts // what its pointers lead to; nil without any
	mirror     *mirrored         // the copy that another model gets; nil for none
	escalation *escalation       // of its responses; nil where the first one stands
	vault      *redact.Vault     // nil when nothing was hidden from the model
	model      *backend.Model    // of the last attempt; nil when there was none
	endpoint   *pool.Endpoint
	wanted     *backend.Model   // that the attempts began with
	params                      // of the last attempt
	tally      response.Tally   // by its response
	guarding   *guardrail.Check // nil when the answer is not checked
	guarded    guard.Outcome    // what the check found; Mode is off when there was none
	sent       time.Time        // when the last attempt was
	first      time.Time        // when its response began, or the first text of it
	queue      time.Duration
	where      *plan         // nil until the request was sent
	placed     placed        // how its endpoint was picked
	unsaved    error         // why the response was not stored as a context; nil when it was, or was not to be
	took, ttft time.Duration // of the whole request, and until its stream began
	failure    string        // code or type of the error that the client got

	who      Principal  // the zero value until it was identified
	upstream trace.Span // of the attempt that is answered; nil without one
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

	params params
}

// trial is the judgement of one response.
type trial struct {
	*escalation

	answer   *escalate.Answer
	response *upstream.Response // that is held
	sign     rules.Sign
	result   string
}

// decision is where a request goes and what it was based on.
type decision struct {
	rules.Decision
	set         *signal.Set
	state       *State             // that requests are decided by
	who         Principal          // that makes the request
	request     *openai.Request    // what was decided; nil where only its signals are known
	contexts    *resolve.Contexts  // that it names; nil without any
	text        signal.Text        // what signals were read from; empty when none was
	program     *rules.Program     // that made it
	lookup      *recall.Lookup     // of the cache; nil where it is off everywhere
	talk        *talk              // the conversation that it belongs to; nil for none
	hideAll     bool               // personal data is replaced once the contexts are in the body
	tools       *tools.Choice      // that the model is offered; nil for all of them
	results     *tools.Results     // results of tools that are sent in short; nil for none
	lacking     []string           // what the check of the response has to do without
	dropped     signal.Mask        // signals whose extraction was cancelled because the others settled it
	model       string             // the configured model that the client named; empty when it asked for routing
	elapsed     time.Duration      // from the first step to the last, extraction included
	classified  time.Duration      // of it, waiting for signals
	drawn       string             // the model that came first; empty where outcomes chose none
	drawnEffort string             // at which it was drawn to reason; empty where that was not chosen by outcomes
	chance      float64            // with which it was
	chances     map[string]float64 // of all candidates; nil where there was no choice
	expected    []choose.Expected  // of the candidates, by outcomes; nil without any
	placings    int                // times that its models were put in order to be tried
	inArm       string             // of a route that tries a model out; empty for none
	seed        uint64             // of the conversation; 0 where no route asked
	decided     time.Time
	saving      budget.Saving // what is saved with, as a budget is nearly used up
}

// caches is the mode of the cache for a decided request: as its route says, or the section where it
// says nothing. What was hidden from the model differs from request to request, so a response to
// that is never kept.
func (d *decision) caches() string {
	c := d.state.caching
	if c == nil || d.Action == nil || d.Action.Verb != rules.Use || d.Action.Redact {
		return recall.ModeOff
	}
	if d.Action.Cache != "" {
		return d.Action.Cache
	}
	return c.Opts.Mode
}

// vector is the embedding of the last question, nil without one.
func (d *decision) vector() []float32 { return d.set.Value(signal.Embedding).Vector }

// talk is what is known of the conversation that a request belongs to. It belongs to the request's
// goroutine. Nil stands for a request that belongs to none, as where stickiness is off.
type talk struct {
	keys           []conversation.Key             // under which the next turn will look
	found          []conversation.Key             // under one of which the turn before was found
	before         *conversation.State            // nil where nothing is known
	named          bool                           // the client names it, so that requests may leave out what was said
	short          bool                           // this one does
	tool           bool                           // the request brings results of tools to the model that asked for them
	price          float64                        // the gain that a move has to bring, in [0,1]
	gain           float64                        // the greatest of a topic that was kept
	inherited      *[signal.NumKinds]signal.Value // topics that stay what they were; nil where none does
	inheritedKinds signal.Mask                    // the kinds of inherited
	moved          bool                           // the subject did
	result         string
	why            string
	final          bool // a model was asked: result holds
}

// rewriter makes the body that a model receives from the one that the client sent. It depends on
// the model, so a request that falls back to another one is rewritten again, from the original.
type rewriter struct {
	st  *State
	req *openai.Request
	d   *decision
	endpointFields

	counted bool // a limit of the caller is settled by the tokens of the answer
	paid    bool // a budget of the caller is settled by what the answer costs
}

// params is what a body asks of the model beyond its text.
type params struct {
	effort   string       // of reasoning, as the header reports it
	kind     lengths.Kind // of answers that it is like
	limit    tokenLimit   // that the proxy set
	logprobs bool         // the proxy asked for log-probabilities, and the client did not
	usage    bool         // the proxy asked how many tokens the stream takes, and the client did not
}

// endpointFields is what an endpoint takes in a body beyond the API; zero for nothing.
type endpointFields struct {
	salt   string
	member string // of kv_transfer_params
	value  string
}

// tokenLimit is the limit on a response that the proxy put into a request; zero when it put none.
type tokenLimit struct {
	n     int // in tokens; 0 with given when its value is no number of tokens
	auto  bool
	near  bool // by outcomes of near requests
	given bool // by a field that the route sets
}

// payload is the body that a model receives, which every attempt reads anew. The zero value is
// empty.
type payload struct {
	whole  []byte
	pieces prefix.Body   // in place of whole, where stored contexts are part of it: their bytes are not copied
	vault  *redact.Vault // of what was hidden in the pieces; nil when nothing was
}

// named reports that the client asked for this very model, and so knows how to speak to it. One
// that named a model and was routed to another knows as little as one that asked for routing, or in
// another API.
func (rw rewriter) named(m *backend.Model) bool {
	return rw.d.model == m.Name && !rw.req.Translated
}

// plan is the order in which a request meets models and endpoints: every endpoint of the first
// model, then those of the next. It belongs to one request.
type plan struct {
	models  []*backend.Model
	tried   []*pool.Endpoint
	intn    func(n int) int
	metrics *telemetry.Metrics
	lease   *pool.Lease                                       // of the last attempt; nil before the first
	afford  func(ctx context.Context, m *backend.Model) error // nil where no model has a budget
	prefixPlacement
}
