package explain

import (
	"bytes"
	"slices"
	"strconv"

	"signalbox/internal/signal"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/downstream"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/signals"
	"signalbox/proxy/tools"
	"signalbox/proxy/trial"
	"signalbox/rules"
	"signalbox/stream/response"
)

// Explanation is a decision with its reasons, as shown by the explain endpoint, the CLI and
// x_signalbox.decision.
type Explanation struct {
	Route   string   `json:"route"`
	Blocked bool     `json:"blocked"`
	Models  []string `json:"models"` // candidates in the order to try them
	// the first candidate; empty if nothing would be forwarded
	Model string `json:"model"`
	// as set by the route: none, low, medium, high, auto or empty
	Reasoning string `json:"reasoning"`
	MaxTokens any    `json:"max_tokens"` // a number, "auto" or null
	// name of the system prompt; empty if there is none
	Prompt  string                   `json:"prompt"`
	Guard   string                   `json:"guard"`
	Cache   string                   `json:"cache"`
	Signals map[string]signals.Trace `json:"signals"` // every signal that the rules mention
	Routes  []rules.RouteTrace       `json:"routes"`

	Outcome string `json:"outcome"` // matched, fail_closed, unavailable or default
	// signals missing in the decision; a route that blocks because of them responds with 503
	Failed []string `json:"failed,omitempty"`
	By     string   `json:"by,omitempty"` // the criterion of the choice among models
	// in the order to try them, those left out last; weighted ones, drawn per request, in the order
	// of the file
	Candidates []Candidate `json:"candidates,omitempty"`
	// what the cache would do; absent if caching is off
	Recall *Recall `json:"recall,omitempty"`
	// which responses are discarded, and what happened to this one; absent without escalation
	Escalation   *trial.Escalation    `json:"escalation,omitempty"`
	Canary       *decide.Canary       `json:"canary,omitempty"`       // absent without a canary
	Conversation *decide.Conversation `json:"conversation,omitempty"` // absent if stickiness is off
	// savings because a budget is nearly exhausted: cheaper, less_effort or both; absent if there
	// are none
	Budget string `json:"budget,omitempty"`
	// contexts that the request names, as ID@VERSION
	Contexts []string `json:"contexts,omitempty"`
	// what the guard has to check the response against; absent if it is off or has nothing
	Evidence *guardrail.Evidence `json:"evidence,omitempty"`
	// what is sent to the model; absent if nothing would be forwarded
	Sent *Sent `json:"sent,omitempty"`
}

// Candidate is a model that a route lists, with the figures for the choice. Unknown figures are
// absent.
type Candidate struct {
	Name    string   `json:"name"`
	Quality *float64 `json:"quality,omitempty"`   // expected share of correct responses, in [0,1]
	Cost    *float64 `json:"cost_usd,omitempty"`  // expected, for prompt and response
	Seconds *float64 `json:"latency_s,omitempty"` // expected, to the end of the response
	Left    string   `json:"note,omitempty"`      // why it is ranked lower or left out
	Out     bool     `json:"left_out,omitempty"`  // not tried
	// basis of the quality; absent if no outcome is known
	Outcomes *Outcomes `json:"outcomes,omitempty"`
}

// Outcomes is what the outcomes of earlier requests predict for a model.
type Outcomes struct {
	// quality according to the skills alone, in [0,1]; 0.5 without skills
	Configured float64 `json:"configured"`
	Deviation  float64 `json:"standard_deviation"` // standard deviation of the quality
	// quality without what is uncertain; compared when choosing by quality
	Sure   float64 `json:"sure"`
	Judged float64 `json:"judged"`           // weight of the model's outcomes
	Near   float64 `json:"near"`             // weight of similar requests, by similarity
	Tokens float64 `json:"tokens,omitempty"` // expected length of the response
	// by effort, lowest first; absent if outcomes do not choose the effort
	Efforts []EffortOutcomes `json:"efforts,omitempty"`
}

// EffortOutcomes holds the same for one effort.
type EffortOutcomes struct {
	Effort    string  `json:"effort"`
	Quality   float64 `json:"quality"`            // expected share of correct responses, in [0,1]
	Deviation float64 `json:"standard_deviation"` // standard deviation of the quality
	Judged    float64 `json:"judged"`
	Near      float64 `json:"near"`
	Tokens    float64 `json:"tokens,omitempty"`
	// the difference from the quality of other calibrated efforts was measured on the outcomes
	Calibrated bool    `json:"calibrated,omitempty"`
	Doubt      float64 `json:"doubt,omitempty"` // standard error of that difference
}

// Sent is how a request is rewritten for the first model, or for the model that answered.
type Sent struct {
	Model string `json:"model"`
	// the effort sent: none, low, medium, high or another value of the model; none if thinking is
	// turned off, empty if nothing is sent
	Reasoning string `json:"reasoning"`
	// basis of `reasoning: auto`: outcomes, complexity, or exploring if it was drawn to learn;
	// absent if the route or the client sets the effort
	ReasoningBy string `json:"reasoning_by,omitempty"`
	MaxTokens   int    `json:"max_tokens,omitempty"` // 0 if no limit is sent
	// client, route, auto (from the lengths of earlier responses) or outcomes (from those of
	// similar requests)
	Limit string `json:"max_tokens_from,omitempty"`
	// number offered of those in the request, such as 8/60; absent for all
	Tools string `json:"tools,omitempty"`
	// number of shortened tool results, such as 3/12; absent for none
	Results string `json:"tool_results,omitempty"`
	// what happened to the system prompt: inserted, replaced, prefixed or kept; absent if the route
	// has none
	Prompt string `json:"prompt,omitempty"`
}

// Explain returns the explanation of a decision; offered holds the tools offered to the model, nil
// for all. It runs the trace, which costs more than the decision.
func (x *Explainer) Explain(d *decide.Decision, offered *tools.Choice) *Explanation {
	e := &Explanation{
		Route: d.Route, Failed: d.Degraded(), Models: []string{}, Guard: "off", Cache: "off",
		Outcome: decisionlog.OutcomeOf(d.Outcome), Contexts: d.Contexts.Pointers(),
		Signals: map[string]signals.Trace{}, Routes: d.Program.Trace(d.Set),
	}
	for _, k := range d.Program.Kinds().Kinds() {
		t := d.Base.Signals.Explain(k, d.Set.Value(k), &d.Text, d.Contexts)
		if d.Set.Value(k).State == signal.NotExtracted {
			t.Reason = d.WhySkipped(k)
		}
		e.Signals[d.Base.Signals.Identity.Names.Of(k)] = t
	}
	if d.Outcome == rules.Unavailable {
		return e
	}
	a := d.Action
	e.Blocked = a.Verb == rules.Block
	e.Reasoning, e.Prompt = a.Reasoning, a.Prompt.Name
	e.Cache, e.Recall = d.Caches(), explainRecall(d)
	e.Guard, e.Evidence = x.Guard.Evidence(d.Ask())
	if a.MaxTokens.Auto {
		e.MaxTokens = "auto"
	} else if a.MaxTokens.Limit > 0 {
		e.MaxTokens = a.MaxTokens.Limit
	}
	if a.Verb == rules.Use {
		x.explainModels(d, offered, e)
	}
	return e
}

// explainModels lists the candidates and describes the request to the first one.
func (x *Explainer) explainModels(d *decide.Decision, offered *tools.Choice, e *Explanation) {
	e.By, e.Escalation = d.Action.By, trial.Explain(d.Action)
	ranked := d.Base.Chooser.Rank(d.ChoiceRequest())
	ranked = d.Base.Arrange(d, ranked)
	e.Canary = d.ExplainCanary()
	e.Budget = d.Saving.String()
	e.Conversation = d.Talk.Explain()
	for i := range ranked {
		c := &ranked[i]
		e.Candidates = append(e.Candidates, Candidate{
			Name: c.Name, Quality: known(c.Quality), Cost: known(c.Cost), Seconds: known(c.Latency),
			Left: c.Left, Out: c.Out, Outcomes: explainOutcomes(c),
		})
		if !c.Out {
			e.Models = append(e.Models, c.Name)
		}
	}
	if len(e.Models) > 0 {
		e.Model = e.Models[0]
		e.Sent = x.sentTo(d, offered, d.Base.ByName[e.Model])
	}
}

// explainOutcomes describes the basis of a candidate's quality.
func explainOutcomes(c *choose.Candidate) *Outcomes {
	e := c.Expected
	if e == nil {
		return nil
	}
	out := &Outcomes{
		Configured: decide.Round(e.Prior), Sure: decide.Round(e.Sure), Deviation: decide.Round(e.Deviation), Judged: decide.Round(e.Outcomes),
		Near: decide.Round(e.Near), Tokens: decide.Round(e.Tokens),
	}
	for i := range e.AtEfforts {
		x := &e.AtEfforts[i]
		out.Efforts = append(out.Efforts, EffortOutcomes{
			Effort: x.Effort, Quality: decide.Round(x.Quality), Deviation: decide.Round(x.Deviation), Judged: decide.Round(x.Judged),
			Near: decide.Round(x.Near), Tokens: decide.Round(x.Tokens),
			Calibrated: x.Calibrated, Doubt: decide.Round(x.Doubt),
		})
	}
	return out
}

// known returns nil for an unknown figure.
func known(x float64) *float64 {
	if x < 0 {
		return nil
	}
	return &x
}

// sentTo rewrites the request for m, as forward does, and describes the result.
func (x *Explainer) sentTo(d *decide.Decision, offered *tools.Choice, m *backend.Model) *Sent {
	rw := rewrite.New(x.Edits, d.Request, d)
	rw.Tools = offered
	_, params := rw.Body(m)
	return sentOf(&rw, m, params)
}

func sentOf(rw *rewrite.Change, m *backend.Model, params rewrite.Params) *Sent {
	out := &Sent{Model: m.Name, Reasoning: params.Effort, Prompt: rw.PromptFate(), Tools: rw.Tools.String(), ReasoningBy: reasoningBy(rw, m)}
	if want := rw.Decision.Action.Results; want != nil {
		if picked, n := tools.Stale(rw.Request, want); len(picked) > 0 {
			out.Results = strconv.Itoa(len(picked)) + "/" + strconv.Itoa(n)
		}
	}
	switch own, ok := rw.Request.AnswerLimit(); {
	case params.Limit.Near:
		out.MaxTokens, out.Limit = params.Limit.Tokens, "outcomes"
	case params.Limit.Auto:
		out.MaxTokens, out.Limit = params.Limit.Tokens, "auto"
	case params.Limit.Tokens > 0:
		out.MaxTokens, out.Limit = params.Limit.Tokens, "route"
	case params.Limit.Given:
		out.Limit = "route"
	case ok:
		out.MaxTokens, out.Limit = int(own), "client"
	}
	return out
}

// reasoningBy names the basis of the effort sent to m; empty if it was given.
func reasoningBy(rw *rewrite.Change, m *backend.Model) string {
	if rw.Decision.Action.Reasoning != decide.ReasoningAuto || !m.Dialect.Leaves(rw.Request, rw.Decision.Action.Override) {
		return ""
	}
	switch e := rw.Decision.ExpectedOf(m.Name); {
	case e != nil && e.Drawn:
		return "exploring"
	case e != nil && e.ByOutcomes:
		return "outcomes"
	}
	return "complexity"
}

// Explainer explains decisions of one configuration. It is safe for concurrent use.
type Explainer struct {
	Guard *guardrail.Guard
	Edits *rewrite.Options
}

// Answered records how the request was rewritten for m, the model that answered, and what happened
// to its responses.
func (e *Explanation) Answered(rw *rewrite.Change, m *backend.Model, params rewrite.Params, judged *trial.Course) {
	if m != nil {
		e.Sent = sentOf(rw, m, params)
	}
	e.Escalation.Found(judged)
}

// AddTo adds x_signalbox.decision to a response, next to the summary of the guard's check, which
// may be nil. Anything else that a model server put there is replaced. A body that is not an
// object, or has the member twice, is returned unchanged.
func (e *Explanation) AddTo(body []byte, check *guardrail.Check) []byte {
	at, ok := response.ExtensionOf(body)
	if !ok {
		return body
	}
	b, err := downstream.Encode(e)
	if err != nil {
		return body // numbers in a trace are finite; do not lose the response over an explanation
	}
	decision := append([]byte(`{"decision":`), b...)
	own := body[at.Value.Start:at.Value.End]
	switch {
	case len(own) == 0:
		decision = append(append([]byte(at.Lead), decision...), '}')
	case check.Summarises() && bytes.HasPrefix(own, []byte(`{"`)):
		decision = append(append(decision, ','), own[1:]...)
	default:
		decision = append(decision, '}')
	}
	return slices.Concat(body[:at.Value.Start], decision, body[at.Value.End:])
}
