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

// Explanation is a decision with its reasons. It is what the explain endpoint, the CLI and
// x_signalbox.decision show.
type Explanation struct {
	Route     string                   `json:"route"`
	Blocked   bool                     `json:"blocked"`
	Models    []string                 `json:"models"`     // candidates in the order they would be tried
	Model     string                   `json:"model"`      // the first of them; empty when nothing would be forwarded
	Reasoning string                   `json:"reasoning"`  // as the route says: none, low, medium, high, auto or empty
	MaxTokens any                      `json:"max_tokens"` // a number, "auto" or null
	Prompt    string                   `json:"prompt"`     // name of the system prompt; empty without one
	Guard     string                   `json:"guard"`
	Cache     string                   `json:"cache"`
	Signals   map[string]signals.Trace `json:"signals"` // every signal that the rules mention
	Routes    []rules.RouteTrace       `json:"routes"`

	Outcome string `json:"outcome"` // matched, fail_closed, unavailable or default
	// signals that the decision had to do without; a route that blocks for want of them answers 503
	Failed     []string    `json:"failed,omitempty"`
	By         string      `json:"by,omitempty"`         // how one of several models is chosen
	Candidates []Candidate `json:"candidates,omitempty"` // in the order to try them, those that are left out last; weighted ones, which are drawn for each request, in the order of the file
	Recall     *Recall     `json:"recall,omitempty"`     // what the cache would do; absent where it is off
	// which answers are thrown away, and what became of this one; absent where the first stands
	Escalation   *trial.Escalation    `json:"escalation,omitempty"`
	Canary       *decide.Canary       `json:"canary,omitempty"`       // absent where no model is tried out
	Conversation *decide.Conversation `json:"conversation,omitempty"` // absent where nothing sticks
	Budget       string               `json:"budget,omitempty"`       // what is saved with, as a budget is nearly used up: cheaper, less_effort or both; absent where nothing is
	Contexts     []string             `json:"contexts,omitempty"`     // that the request names, each as ID@VERSION
	Evidence     *guardrail.Evidence  `json:"evidence,omitempty"`     // what the guard has to check the response against; absent when it is off or has nothing
	Sent         *Sent                `json:"sent,omitempty"`         // what the model is asked for; absent when nothing would be forwarded
}

// Candidate is a model that a route names, with what the choice looks at. What is not known is
// absent.
type Candidate struct {
	Name    string   `json:"name"`
	Quality *float64 `json:"quality,omitempty"`   // expected share of right answers, in [0,1]
	Cost    *float64 `json:"cost_usd,omitempty"`  // expected, of prompt and answer
	Seconds *float64 `json:"latency_s,omitempty"` // expected, to the end of the answer
	Left    string   `json:"note,omitempty"`      // why it stands behind others or is left out
	Out     bool     `json:"left_out,omitempty"`  // it is not tried
	// what quality was made of; absent where no outcome is known
	Outcomes *Outcomes `json:"outcomes,omitempty"`
}

// Outcomes is what the outcomes of earlier requests let one expect of a model.
type Outcomes struct {
	Configured float64 `json:"configured"`         // quality by skills alone, in [0,1]; 0.5 without any
	Deviation  float64 `json:"standard_deviation"` // of quality
	Sure       float64 `json:"sure"`               // quality without what is in doubt: the best by it is chosen
	Judged     float64 `json:"judged"`             // outcomes of the model
	Near       float64 `json:"near"`               // those of near requests, by how near they are
	Tokens     float64 `json:"tokens,omitempty"`   // expected length of the response
	// by effort of reasoning, from the least; absent where outcomes do not choose it
	Efforts []EffortOutcomes `json:"efforts,omitempty"`
}

// EffortOutcomes is the same at one effort of reasoning.
type EffortOutcomes struct {
	Effort    string  `json:"effort"`
	Quality   float64 `json:"quality"`            // expected share of right answers, in [0,1]
	Deviation float64 `json:"standard_deviation"` // of quality
	Judged    float64 `json:"judged"`
	Near      float64 `json:"near"`
	Tokens    float64 `json:"tokens,omitempty"`
	// by how much the quality differs from that of other calibrated efforts was measured on the outcomes
	Calibrated bool    `json:"calibrated,omitempty"`
	Doubt      float64 `json:"doubt,omitempty"` // standard error of that difference, of quality
}

// Sent is how a request is rewritten for the model that is tried first, or that has answered.
type Sent struct {
	Model string `json:"model"`
	// the effort that is sent: none, low, medium, high or another of the model's; none where thinking
	// is switched off, empty where nothing is sent
	Reasoning string `json:"reasoning"`
	// what `reasoning: auto` went by: outcomes, complexity, or exploring, where it was drawn to
	// learn; absent where the route or the client says the effort
	ReasoningBy string `json:"reasoning_by,omitempty"`
	MaxTokens   int    `json:"max_tokens,omitempty"` // 0: no limit is sent
	// client, route, auto: from the lengths of earlier answers, or outcomes: from those to near
	// requests
	Limit   string `json:"max_tokens_from,omitempty"`
	Tools   string `json:"tools,omitempty"`        // how many of those that the client names, as 8/60; absent for all
	Results string `json:"tool_results,omitempty"` // how many results of tools are shortened, as 3/12; absent for none
	Prompt  string `json:"prompt,omitempty"`       // what became of the system prompt: inserted, replaced, prefixed or kept; absent where the route has none
}

// Explain builds the explanation of a decision; offered are the tools that the model is offered,
// nil for all of them. It runs the trace, which costs more than the decision did.
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

// explainModels lists the candidates and says how the first one is asked.
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

// explainOutcomes tells what the quality of a candidate was made of.
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

// known is nil for a figure that is not.
func known(x float64) *float64 {
	if x < 0 {
		return nil
	}
	return &x
}

// sentTo rewrites the request for m, as forward does, and says what became of it.
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

// reasoningBy tells what the effort that m is asked at rests on; empty where it was given.
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

// Answered tells how the request was rewritten, by rw, for m, which has answered, and what became
// of its responses.
func (e *Explanation) Answered(rw *rewrite.Change, m *backend.Model, params rewrite.Params, judged *trial.Course) {
	if m != nil {
		e.Sent = sentOf(rw, m, params)
	}
	e.Escalation.Found(judged)
}

// AddTo adds x_signalbox.decision to a response, beside the summary of the guard, check, which is
// nil without one. What else a model server put there is replaced: it speaks for nobody here. What
// is no object stays as it is, and so does one that has the member twice.
func (e *Explanation) AddTo(body []byte, check *guardrail.Check) []byte {
	at, ok := response.ExtensionOf(body)
	if !ok {
		return body
	}
	b, err := downstream.Encode(e)
	if err != nil {
		return body // numbers of a trace are finite; an explanation is not worth the answer
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
