package record

import (
	"encoding/json"
	"net/http"
	"strings"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/affinity"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/exchange"
	"signalbox/proxy/recent"
	"signalbox/proxy/signals"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// decided is a decision to be logged. It does not change once the request has ended.
type decided struct {
	b          *Book
	o          exchange.Exchange
	id         string
	status     int
	headers    http.Header          // the client's headers, if rules read any
	prompts    bool                 // its text was kept; the log may forbid it by now
	log        *telemetry.Decisions // log that it waits for; nil if there is none
	literal    bool
	contexts   []string // that it named
	cache      string   // cache result of the request
	gave       string   // model of the cached response
	talk       *decisionlog.Conversation
	escalation *decisionlog.Escalation
	mirror     *decisionlog.Mirror // result of the copy; nil if there is none
	size       int64               // approximate bytes kept until it is written
}

// logDecision passes the decision of an ended request to the decision log.
func (b *Book) logDecision(log *telemetry.Decisions, id string, o *exchange.Exchange, status int) {
	if l := b.line(log, id, o, status); l != nil {
		log.Offer(l)
	}
}

// line returns the log line of an ended request; nil if none is wanted.
func (b *Book) line(log *telemetry.Decisions, id string, o *exchange.Exchange, status int) *decided {
	if o.Decision == nil || o.Action == nil || !log.Wanted() {
		return nil
	}
	l := b.snapshotOf(o, id, status, log.Prompts())
	l.log, l.literal = log, log.LiteralHeaders()
	return l
}

// snapshotOf returns what is kept of a decided request, its text only if prompts is true.
func (b *Book) snapshotOf(o *exchange.Exchange, id string, status int, prompts bool) *decided {
	l := &decided{b: b, o: *o, id: id, status: status, prompts: prompts}
	l.detach()
	if len(b.ReadHeaders) > 0 && o.Set.Facts.Header != nil {
		l.headers = make(http.Header, len(b.ReadHeaders))
		for _, name := range b.ReadHeaders {
			l.headers[name] = o.Set.Facts.Header(name)
		}
	}
	return l
}

// detach drops what a line does not contain, so that a waiting line does not keep a request's body
// in memory.
func (l *decided) detach() {
	d, set := *l.o.Decision, *l.o.Set
	set.Facts.Header, set.Facts.Model = nil, strings.Clone(set.Facts.Model)
	if set.Facts.Session != "" {
		set.Facts.Session = "named"
	}
	for _, k := range (set.Have() & signal.MaskOf(signal.PII, signal.Embedding)).Kinds() {
		v := *set.Value(k)
		v.Spans, v.Vector = nil, nil
		set.Put(k, v)
	}
	l.size = lineSize
	if l.prompts && l.o.Req != nil {
		l.size += int64(cap(l.o.Req.Raw)) // its strings may refer to it
		if d.Text.Segments == nil {
			d.Text = l.o.Req.Text()
		}
		for i := range d.Text.Segments {
			l.size += int64(len(d.Text.Segments[i].Text))
		}
	} else {
		d.Text = signal.Text{}
	}
	if a := l.o.Lookup.Given(); a != nil {
		l.gave = a.Model
	}
	l.cache = l.o.Lookup.Found()
	if c := d.Talk.Explain(); c != nil {
		l.talk = &decisionlog.Conversation{State: c.State, Reason: c.Reason, Model: c.Model, Kept: c.Kept}
	}
	l.escalation = l.o.Escalation.Logged()
	l.o.Mirror = nil
	l.o.Escalation, d.Talk = nil, nil
	l.o.Req, l.o.Guarding, l.o.Where, l.o.Lookup, d.Lookup = nil, nil, nil, nil, nil
	l.contexts, d.Contexts, l.o.Resolved = d.Contexts.Pointers(), nil, nil
	d.Set, d.Request, l.o.Decision, l.o.Vault = &set, nil, &d, nil
}

// lineSize is the approximate memory of a line without the text of its request, in bytes.
const lineSize = 4 << 10

// Held implements telemetry.Line.
func (l *decided) Held() int64 { return l.size }

// AppendLine implements telemetry.Line.
func (l *decided) AppendLine(b []byte) ([]byte, error) {
	e := l.Entry()
	if l.log.Prompts() {
		l.Quote(e)
	}
	line, err := json.Marshal(e)
	return append(b, line...), err
}

// Entry implements recent.Line.
func (l *decided) Entry() *decisionlog.Entry {
	o := &l.o
	e := &decisionlog.Entry{
		Version: decisionlog.Version, Time: o.Decided.UTC(), ID: l.id,
		Generation: l.b.Generation, Config: l.b.Signals.Identity.Config,
		Request: l.facts(), Route: o.Route, Outcome: decisionlog.OutcomeOf(o.Outcome), Failed: o.Degraded(),
		Action:  decisionlog.ActionOf(o.Action, l.b.Prompts),
		Signals: make(map[string]decisionlog.Signal), DecideMs: decisionlog.Milliseconds(o.Elapsed), Status: l.status,
		Error: o.Failure, Key: l.o.Who.Name, Finish: o.Tally.Finish,
		TookMs: decisionlog.Milliseconds(o.Took), TTFTMs: decisionlog.Milliseconds(o.TTFT),
	}
	for _, k := range o.Set.Have().Kinds() {
		v := *o.Set.Value(k)
		// by the configured threshold, as in rules and explanations
		v.Label = l.b.Signals.Label(k, &v)
		e.Signals[l.b.Signals.Identity.Names.Of(k)] = l.b.Signals.Identity.SignalOf(k, &v)
	}
	e.Cache, e.Model, e.Conversation, e.Escalation = l.cache, l.gave, l.talk, l.escalation
	if o.Surface.API == openai.Other {
		e.Operation = o.Surface.Operation
	}
	e.Mirror, e.Budget = l.mirror, o.Saving.String()
	if l.gave == "" {
		e.Arm = o.Arm
	}
	if o.Wanted != nil {
		effort := o.DrawnEffort
		if o.Model == o.Wanted {
			effort = decide.ArmEffort(o.Model, o.Params.Kind.Effort)
		}
		e.Chosen, e.Chance, e.Chances = o.Wanted.Name, o.ChanceOf(o.Wanted, effort), o.Chances
	}
	if x := l.escalation; x != nil && len(x.From) > 0 {
		e.Chosen = x.From[0].Model
	}
	if o.Model != nil {
		e.Model, e.Endpoint, e.Reasoning, e.MaxTokens = o.Model.Name, o.Endpoint.Name, o.Effort, o.Limit.Tokens
	}
	if by := o.Placed.By; by != affinity.NoSource {
		e.Placed = &decisionlog.Placed{By: by.String(), Home: o.Placed.Home, Predicted: o.Placed.Predicted}
	}
	if t := o.Tally.Usage; t != (response.Usage{}) {
		e.Tokens = decisionlog.TokensOf(t)
		e.Tokens.Estimated = o.Estimated
		if o.Model != nil {
			prompt, completion := float64(t.Input), float64(t.Output)
			e.Cost, e.Baseline = o.Model.Price.Of(prompt, completion), l.b.Priciest.Of(prompt, completion)
		}
	}
	if g := &o.Guarded; g.Mode != guard.Off {
		e.Guard = &decisionlog.Guard{
			Mode: g.Mode.String(), Verdict: g.Verdict.String(), Claims: g.Claims, Failed: g.Failed, Shed: g.Shed, Pending: g.Pending, Cut: g.Cut,
		}
	}
	return e
}

// Quote adds the text of the request, if it was kept.
func (l *decided) Quote(e *decisionlog.Entry) {
	if l.prompts {
		e.Prompt = decisionlog.TextOf(&l.o.Text)
	}
}

func (l *decided) facts() decisionlog.Facts {
	f := &l.o.Set.Facts
	out := decisionlog.Facts{
		Model: f.Model, Role: f.Role, Tenant: f.Tenant, Tokens: f.Tokens, Context: f.Context, Contexts: l.contexts, Features: decisionlog.FeaturesOf(f.Features), Session: f.Session != "",
		Turns: f.Turns, Results: f.Results, ToolLoop: f.ToolLoop,
	}
	if len(l.headers) > 0 {
		out.Headers = make(map[string]decisionlog.Header, len(l.headers))
	}
	for name, values := range l.headers {
		out.Headers[name] = decisionlog.HeaderOf(name, values, l.literal)
	}
	return out
}

// Reasons implements recent.Line. It returns the signals that the rules mention and how each route
// was evaluated.
func (l *decided) Reasons() (map[string]signals.Trace, []recent.Route) {
	d, set := *l.o.Decision, *l.o.Set
	set.Facts.Header = func(name string) []string { return l.headers[http.CanonicalHeaderKey(name)] }
	told := make(map[string]signals.Trace)
	for _, k := range d.Program.Kinds().Kinds() {
		t := l.b.Signals.Trace(k, set.Value(k), &signal.Text{})
		t.Entities = nil // the text that they refer to was dropped
		if set.Value(k).State == signal.NotExtracted {
			t.Reason = d.WhySkipped(k)
		}
		told[l.b.Signals.Identity.Names.Of(k)] = t
	}
	traces := d.Program.Trace(&set)
	routes := make([]recent.Route, len(traces))
	for i := range traces {
		t := &traces[i]
		routes[i] = recent.Route{Name: t.Name, Value: t.Value, Tree: t.Tree(), Blockers: t.Blockers}
	}
	return told, routes
}
