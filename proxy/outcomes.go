package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/internal/signal"
	"signalbox/memory/outcomes"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/rules"
)

// OutcomeOptions is the section `outcomes`: how good answers were is remembered, by tenant, and
// decides among the models of a route.
type OutcomeOptions struct {
	// Learn says from what: off, feedback, what callers say by POST /signalbox/v1/feedback, or all,
	// from signs besides. Default off. Reloadable.
	Learn string `yaml:"learn" words:"off feedback all"`
	// Signs says how far signs are to be trusted, with learn: all.
	Signs SignOptions `yaml:"signs"`
	// Path is the file that outcomes are kept in over restarts; one process writes it. It holds no
	// text, but embeddings of what users asked. Default: they are kept in memory alone. Restart
	// needed.
	Path string `yaml:"path" path:"true"`
	// MaxPerTenant is how many outcomes are kept of a tenant, the newest, 900 bytes each. 1 to
	// 100000. Default 10000. Restart needed.
	MaxPerTenant int `yaml:"max_per_tenant"`
	// MaxTenants is of how many tenants, those that gave feedback last. 1 to 10000. Default 100.
	// Restart needed.
	MaxTenants int `yaml:"max_tenants"`
	// MaxWaiting is how many answers wait for feedback, of all tenants; the oldest goes first. 1 to
	// 1000000. Default 10000. Restart needed.
	MaxWaiting int `yaml:"max_waiting"`
	// Shared tells replicas of outcomes over memory.redis, in a stream a tenant of about
	// max_per_tenant lines; the decisions that wait are told as well, so that feedback may come to any
	// replica. Default false. Restart needed.
	Shared bool `yaml:"shared"`
	// MinNeighbours is how many outcomes of near requests, counted by how near they are, have to be
	// known of an effort before `reasoning: auto` chooses it by outcomes, and of a model before
	// `max_tokens: auto` goes by them. Below it both do as without outcomes. More than 0, up to 1000.
	// Default 5. Reloadable.
	MinNeighbours float64 `yaml:"min_neighbours"`
	// MaxQualityLoss is what `reasoning: auto` may lose, on the mean over requests, of the quality
	// that is expected of the best effort, in [0,1]. Default 0.005. Reloadable.
	MaxQualityLoss float64 `yaml:"max_quality_loss"`
	// Explore sends some requests to another model than the best, so that outcomes of it become
	// known.
	Explore ExploreOptions `yaml:"explore"`
}

// The words of OutcomeOptions.Learn.
const (
	learnOff      = "off"
	learnFeedback = "feedback"
	learnAll      = "all"
)

const (
	defaultQualityLoss = 0.005
	defaultNeighbours  = 5
	maxNeighbours      = 1000
)

// DefaultOutcomeOptions returns the options of an empty section.
func DefaultOutcomeOptions() OutcomeOptions {
	return OutcomeOptions{
		Learn: learnOff, MaxPerTenant: 10_000, MaxTenants: 100, MaxWaiting: 10_000,
		MinNeighbours: defaultNeighbours, MaxQualityLoss: defaultQualityLoss,
		Explore: ExploreOptions{MaxQualityLoss: defaultQualityLoss}, Signs: DefaultSignOptions(),
	}
}

// Validate reports every bad option, one "field: problem" a line.
func (o OutcomeOptions) Validate() error {
	var p option.Problems
	if words := []string{learnOff, learnFeedback, learnAll}; !slices.Contains(words, o.Learn) {
		p.Addf("learn", "%q is none of off, feedback and all", o.Learn)
	}
	for _, c := range []struct {
		field  string
		n, max int
	}{
		{"max_per_tenant", o.MaxPerTenant, 100_000},
		{"max_tenants", o.MaxTenants, 10_000},
		{"max_waiting", o.MaxWaiting, 1_000_000},
	} {
		if c.n < 1 || c.n > c.max {
			p.Addf(c.field, "%d is not between 1 and %d", c.n, c.max)
		}
	}
	if n := o.MinNeighbours; !(n > 0 && n <= maxNeighbours) {
		p.Addf("min_neighbours", "%v is not more than 0 and at most %d", n, maxNeighbours)
	}
	for _, c := range []struct {
		field string
		x     float64
	}{
		{"max_quality_loss", o.MaxQualityLoss},
		{"explore.share", o.Explore.Share},
		{"explore.max_quality_loss", o.Explore.MaxQualityLoss},
	} {
		if !(c.x >= 0 && c.x <= 1) {
			p.Addf(c.field, "%v is not between 0 and 1", c.x)
		}
	}
	o.Signs.validate(&p)
	return p.Err()
}

// On reports whether outcomes are learnt from.
func (o OutcomeOptions) On() bool { return o.Learn != learnOff }

// choosesByOutcome reports whether outcomes are learnt from a decision: it leaves several models to
// choose from, or the effort of one.
func (d *decision) choosesByOutcome() bool {
	if d.state == nil || d.state.outcomes == nil || d.Action.Verb != rules.Use {
		return false
	}
	return d.choosesModel() || d.drawsModel() || d.choosesEffort()
}

// choosesModel reports whether the model is chosen by what is expected of it.
func (d *decision) choosesModel() bool {
	if len(d.Action.Models) < 2 {
		return false
	}
	switch d.Action.By {
	case byQuality, byCost, byLatency:
		return true
	}
	return false
}

// drawsModel reports whether the model is drawn by weight.
func (d *decision) drawsModel() bool {
	return d.Action.By == byWeight && len(d.Action.Models) > 1
}

// The words of rules.Action.By that outcomes have to do with.
const (
	byQuality = "quality"
	byCost    = "cost"
	byLatency = "latency"
	byWeight  = "weight"
)

// choosesEffort reports whether outcomes tell how much a model should reason, be it for requests
// that say it themselves.
func (d *decision) choosesEffort() bool {
	return d.Action.Reasoning == reasoningAuto &&
		slices.ContainsFunc(d.Action.Models, func(c rules.Choice) bool {
			m := d.state.byName[c.Name]
			return m != nil && len(m.Dialect.Efforts()) > 1
		})
}

// effortsOf are the efforts of a model that are to be chosen from, the least first; none where that
// is not for the proxy to say.
func (d *decision) effortsOf(m *backend.Model) []string {
	if d.Action.Reasoning != reasoningAuto || m == nil || d.request == nil {
		return nil
	}
	if es := m.Dialect.Efforts(); len(es) > 1 && m.Dialect.Leaves(d.request, d.Action.Override) {
		return es
	}
	return nil
}

// expect fills in what the outcomes of the tenant let one expect of the candidates.
func (d *decision) expect(ctx context.Context, req *openai.Request) {
	if d.expected = nil; !d.choosesByOutcome() || req.OpaquePrompt {
		return
	}
	v := d.set.Value(signal.Embedding)
	if v.State == signal.NotExtracted && d.state.signals.Signals().Has(signal.Embedding) {
		if d.text.Segments == nil {
			d.text = req.Text()
			d.talk.addEarlierTurns(&d.text)
		}
		d.state.signals.Extract(ctx, &d.text, signal.MaskOf(signal.Embedding), d.set)
	}
	if v.State != signal.Known || !d.choosesModel() && !d.choosesEffort() {
		return
	}
	ps := d.toPredict()
	if !d.state.outcomes.Predict(d.who.Tenant, v.Vector, ps) {
		return
	}
	d.expected = make([]choose.Expected, 0, len(d.Action.Models))
	for len(ps) > 0 {
		n := 1
		for n < len(ps) && ps[n].Model == ps[0].Model {
			n++
		}
		d.expected = append(d.expected, d.expectOf(ps[:n]))
		ps = ps[n:]
	}
}

// toPredict lists what is predicted: of each candidate itself, and behind it at each effort that
// outcomes may choose.
func (d *decision) toPredict() []outcomes.Prediction {
	ps := make([]outcomes.Prediction, 0, 2*len(d.Action.Models))
	for _, c := range d.Action.Models {
		m := d.state.byName[c.Name]
		if m == nil || slices.ContainsFunc(ps, func(p outcomes.Prediction) bool { return p.Model == c.Name }) {
			continue
		}
		own := outcomes.Prediction{Model: c.Name, Prior: d.prior(c.Name)}
		efforts := d.effortsOf(m)
		if effort := d.Action.Reasoning; len(efforts) == 0 && effort != "" && effort != reasoningAuto &&
			m.Dialect.Leaves(d.request, d.Action.Override) {
			own.Effort = armEffort(m, effort)
		}
		ps = append(ps, own)
		for _, e := range efforts {
			ps = append(ps, outcomes.Prediction{Model: c.Name, Effort: e, Prior: own.Prior})
		}
	}
	return ps
}

// expectOf makes of the predictions of a model what the choice looks at, and chooses its effort.
func (d *decision) expectOf(ps []outcomes.Prediction) choose.Expected {
	p := &ps[0]
	e := choose.Expected{
		Model: p.Model, Prior: p.Prior, Everywhere: p.Everywhere, Quality: p.Mean, Sure: p.Sure,
		Deviation: p.Deviation, Overall: p.Overall,
		Tokens: p.Tokens, Longest: p.Longest, Outcomes: p.Outcomes, Near: p.Near,
	}
	if len(ps) == 1 {
		return e
	}
	e.AtEfforts = make([]choose.AtEffort, len(ps)-1)
	for i := range e.AtEfforts {
		x := &ps[i+1]
		e.AtEfforts[i] = choose.AtEffort{
			Effort: x.Effort, Quality: x.Mean, Sure: x.Sure, Deviation: x.Deviation, Tokens: x.Tokens, Longest: x.Longest,
			Near: x.AtEffort, Calibrated: x.Calibrated, Doubt: x.Doubt,
		}
		if x.AtEffort > 0 {
			e.AtEfforts[i].Judged = x.Outcomes
		}
	}
	l := &d.state.learning
	at := d.state.chooser.Spent.Least(d.effortKey(p.Model), e.AtEfforts, l.MinNeighbours, l.MaxQualityLoss)
	if e.ByOutcomes = at >= 0; !e.ByOutcomes {
		effort := armEffort(d.state.byName[p.Model], d.byComplexity())
		at = slices.IndexFunc(e.AtEfforts, func(x choose.AtEffort) bool { return x.Effort == effort })
	}
	if at >= 0 {
		e.Reason(at)
	}
	return e
}

// effortKey names the account of what a tenant's requests to a model lost by less reasoning.
func (d *decision) effortKey(model string) string { return d.who.Tenant + "\x00" + model }

// expectedOf is what is expected of a model; nil without outcomes, and without a decision.
func (d *decision) expectedOf(model string) *choose.Expected {
	if d == nil { // what is asked is no request, but where a context is
		return nil
	}
	for i := range d.expected {
		if e := &d.expected[i]; e.Model == model {
			return e
		}
	}
	return nil
}

// effortUnset is the effort of responses of a model that could have been told and was not.
const effortUnset = "default"

// armEffort is the effort that outcomes of m are kept under, for one that a body asks for.
func armEffort(m *backend.Model, effort string) string {
	switch {
	case len(m.Dialect.Efforts()) == 0:
		return ""
	case effort == "":
		return effortUnset
	}
	return m.Dialect.Standing(effort)
}

// unknownPrior is what is expected of a model of which the configuration says nothing.
const unknownPrior = 0.5

// prior is the quality that the configuration expects of a model for this request, in [0,1].
func (d *decision) prior(model string) float64 {
	m := d.state.byName[model]
	if m == nil {
		return unknownPrior
	}
	if q := m.Skills.Quality(d.set.Value(signal.Domain)); q >= 0 {
		return q
	}
	return unknownPrior
}

// awaitOutcome notes that a request is answered by m, so that it can be judged: before the client sees any
// of the response, so that its judgement cannot come first. effort is that of the dialect.
func (st *State) awaitOutcome(d *decision, id string, m *backend.Model, effort string) {
	v := d.set.Value(signal.Embedding)
	if !d.choosesByOutcome() || v.State != signal.Known {
		return
	}
	domain := ""
	if x := d.set.Value(signal.Domain); x.State == signal.Known {
		domain = x.Label
	}
	effort = armEffort(m, effort)
	st.outcomes.Decided(outcomes.Outcome{
		Tenant: d.who.Tenant, ID: id, Model: m.Name, Effort: effort, Domain: domain,
		Prior: d.prior(m.Name), Chance: d.chanceOf(m, effort),
	}, v.Vector)
}

// chanceOf is the chance with which m was chosen, at an effort; 0 where it is not known, as after a
// fallback.
func (d *decision) chanceOf(m *backend.Model, effort string) float64 {
	if m.Name != d.drawn || d.drawnEffort != "" && effort != d.drawnEffort {
		return 0
	}
	return d.chance
}

// exploration is how much a request may give up.
func (st *State) exploration() choose.Exploration {
	e := st.learning.Explore
	return choose.Exploration{Share: e.Share, MaxQualityLoss: e.MaxQualityLoss}
}

// explore lets a request explore: before its conversation has a say, which may take the draw back.
func (st *State) explore(d *decision, cs []choose.Candidate) {
	if !d.choosesByOutcome() || len(cs) == 0 {
		return
	}
	if d.placings++; d.placings > 1 { // as a soft budget was reached: the account was charged before
		d.drawn, d.chance, d.chances = "", 0, nil
		return
	}
	if d.continues() {
		d.chance = 0 // of a conversation that goes on there is none
		return
	}
	explore := st.exploration()
	switch {
	case d.choosesModel():
		d.chance = st.chooser.Spent.Explore(d.who.Tenant, cs, d.Action, explore, choose.Normal, choose.Uniform)
	case d.drawsModel():
		d.chance = choose.Weighted(cs)
	default:
		d.chance = 1
	}
	d.drawn, d.drawnEffort = cs[0].Name, ""
	d.noteChances(cs)
}

// exploreEffort counts a request for what less reasoning may cost, and lets its effort explore, once
// it is known which model comes first.
func (st *State) exploreEffort(d *decision, first string) {
	e := d.expectedOf(first)
	if e == nil || len(e.AtEfforts) == 0 || d.placings > 1 {
		return
	}
	st.chooser.Spent.Count(d.effortKey(first), e.AtEfforts, st.learning.MinNeighbours)
	at := slices.IndexFunc(e.AtEfforts, func(x choose.AtEffort) bool { return x.Effort == e.Effort })
	if d.continues() || d.drawn != first || at < 0 {
		return
	}
	explore := st.exploration()
	explore.Credited = d.choosesModel() // as Explore has done
	drawn, chance := st.chooser.Spent.ExploreEffort(
		d.who.Tenant, e.AtEfforts, at, explore, choose.Normal, choose.Uniform,
	)
	if drawn != at {
		e.Reason(drawn)
		e.Drawn = true
	}
	d.chance *= chance
	d.drawnEffort = e.Effort
}

// continues reports that the conversation of a request has had a turn before.
func (d *decision) continues() bool { return d.talk != nil && d.talk.before != nil }

// noteChances keeps the chances of all candidates, for the log, where more than one had some.
func (d *decision) noteChances(cs []choose.Candidate) {
	if d.chances = nil; d.chance >= 1 {
		return
	}
	d.chances = make(map[string]float64, len(cs))
	for i := range cs {
		if cs[i].Chance > 0 {
			d.chances[cs[i].Name] = cs[i].Chance
		}
	}
}

// noteLength notes how long a response was that waits for its judgement.
func (st *State) noteLength(o *exchange, id string) {
	if st.outcomes != nil && o.decision != nil && o.choosesByOutcome() {
		st.outcomes.Answered(o.who.Tenant, id, o.tally.Usage.Output)
	}
}

// The bounds of feedback.
const maxFeedbackLabel = 128 // bytes

// feedbackBody is the body of POST /signalbox/v1/feedback.
type feedbackBody struct {
	RequestID string `json:"request_id"` // x-request-id of the answer
	// how good the response was, in [0,1]
	Outcome *float64 `json:"outcome,omitempty"`
	Rating  string   `json:"rating,omitempty"` // in place of outcome: up is 1, down 0
	Label   string   `json:"label,omitempty"`  // at most 128 bytes, exported with the outcome
}

// Judged is the response to feedback.
type Judged struct {
	RequestID string  `json:"request_id"`
	Model     string  `json:"model"` // that answered
	Outcome   float64 `json:"outcome"`
	Label     string  `json:"label,omitempty"`
	Outcomes  int     `json:"outcomes"` // that are kept of the tenant
}

// score is the outcome that a body tells.
func (b *feedbackBody) score() (float64, error) {
	invalid := func(param, msg string) error {
		return &openai.Error{
			Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: param, Message: msg,
		}
	}
	switch {
	case b.RequestID == "":
		return 0, invalid("request_id", "the x-request-id of the answer is required")
	case len(b.Label) > maxFeedbackLabel:
		return 0, invalid("label", "it has more than 128 bytes")
	case b.Outcome != nil && b.Rating != "":
		return 0, invalid("rating", "outcome and rating are both given: send one of them")
	case b.Outcome != nil && !(*b.Outcome >= 0 && *b.Outcome <= 1):
		return 0, invalid("outcome", "a number between 0 and 1 is required")
	case b.Outcome != nil:
		return *b.Outcome, nil
	case b.Rating == "up":
		return 1, nil
	case b.Rating == "down":
		return 0, nil
	case b.Rating != "":
		return 0, invalid("rating", "it is up or down")
	}
	return 0, invalid("outcome", "outcome, a number between 0 and 1, or rating, up or down, is required")
}

// feedbackRequest serves POST /signalbox/v1/feedback: who may send requests may judge those of its
// tenant.
func (*Proxy) feedbackRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if st.outcomes == nil {
		return &openai.Error{
			Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Code: "feedback_off",
			Message: "no feedback is kept here: outcomes.learn is off",
		}
	}
	var in feedbackBody
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err = dec.Decode(&in)
	if _, end := dec.Token(); err != nil || !errors.Is(end, io.EOF) {
		return &openai.Error{
			Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest,
			Message: "the body must be an object with request_id, outcome or rating, and optionally label",
		}
	}
	score, err := in.score()
	if err != nil {
		return err
	}
	o, err := st.outcomes.Judge(who.Tenant, in.RequestID, score, 1, in.Label, learnFeedback)
	switch {
	case errors.Is(err, outcomes.ErrUnknown):
		return &openai.Error{
			Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Code: "request_not_found",
			Param:   "request_id",
			Message: "no answer waits for feedback under this id: it was not chosen among models, or too long ago",
		}
	case err != nil:
		return err
	}
	return downstream.WriteJSON(w, http.StatusOK, Judged{
		RequestID: in.RequestID, Model: o.Model, Outcome: o.Score, Label: o.Label,
		Outcomes: st.outcomes.Len(who.Tenant),
	})
}
