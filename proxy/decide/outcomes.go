package decide

import (
	"context"
	"slices"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/outcomes"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/reasoning"
	"signalbox/rules"
)

// choosesByOutcome reports whether outcomes influence a decision: it has several models to choose
// from, or several efforts of one model, or a canary.
func (d *Decision) choosesByOutcome() bool {
	if d.Base == nil || d.Base.Outcomes == nil || d.Action == nil {
		// the client left before the decision
		return false
	}
	return LearnsFrom(d.Action, d.Base.told)
}

// told reports whether a model has efforts to choose from.
func (b *Base) told(model string) bool {
	m := b.ByName[model]
	return m != nil && len(m.Dialect.Efforts()) > 1
}

// LearnsFrom reports whether outcomes are recorded for the decisions of an action, provided that
// learning is on. told reports whether a model has efforts to choose from.
func LearnsFrom(a *rules.Action, told func(model string) bool) bool {
	return a.Verb == rules.Use &&
		(choosesModel(a) || drawsModel(a) || a.Canary != nil || choosesEffort(a, told))
}

// choosesModel reports whether the expected outcome chooses the model.
func choosesModel(a *rules.Action) bool {
	if len(a.Models) < 2 {
		return false
	}
	switch a.By {
	case byQuality, byCost, byLatency:
		return true
	}
	return false
}

// drawsModel reports whether the model is drawn by weight.
func drawsModel(a *rules.Action) bool { return a.By == byWeight && len(a.Models) > 1 }

// choosesEffort reports whether outcomes choose how much a model reasons, even for requests that
// set an effort themselves.
func choosesEffort(a *rules.Action, told func(model string) bool) bool {
	return a.Reasoning == ReasoningAuto &&
		slices.ContainsFunc(a.Models, func(c rules.Choice) bool { return told(c.Name) })
}

// The values of rules.Action.By that use outcomes.
const (
	byQuality = "quality"
	byCost    = "cost"
	byLatency = "latency"
	byWeight  = "weight"
)

// effortsOf lists the efforts of a model that the proxy may choose from, lowest first. It is empty
// when the effort is not for the proxy to choose.
func (d *Decision) effortsOf(m *backend.Model) []string {
	if d.Action.Reasoning != ReasoningAuto || m == nil || d.Request == nil {
		return nil
	}
	if es := m.Dialect.Efforts(); len(es) > 1 && m.Dialect.Leaves(d.Request, d.Action.Override) {
		return es
	}
	return nil
}

// expect sets what the tenant's outcomes predict for the candidates.
func (d *Decision) expect(ctx context.Context, req *openai.Request) {
	if d.expected = nil; !d.choosesByOutcome() || req.OpaquePrompt {
		return
	}
	v := d.Set.Value(signal.Embedding)
	if v.State == signal.NotExtracted && d.Base.Signals.Signals().Has(signal.Embedding) {
		if d.Text.Segments == nil {
			d.Text = req.Text()
			d.Talk.addEarlierTurns(&d.Text)
		}
		d.Base.Signals.Extract(ctx, &d.Text, signal.MaskOf(signal.Embedding), d.Set)
		v = d.Set.Value(signal.Embedding)
	}
	if v.State != signal.Known || !choosesModel(d.Action) && !choosesEffort(d.Action, d.Base.told) {
		return
	}
	ps := d.toPredict()
	if !d.Base.Outcomes.Predict(d.Who.Tenant, v.Vector, ps) {
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

// toPredict lists the predictions to make: for each candidate, followed by that candidate at each
// effort that outcomes may choose.
func (d *Decision) toPredict() []outcomes.Prediction {
	ps := make([]outcomes.Prediction, 0, 2*len(d.Action.Models))
	for _, c := range d.Action.Models {
		m := d.Base.ByName[c.Name]
		if m == nil || slices.ContainsFunc(ps, func(p outcomes.Prediction) bool { return p.Model == c.Name }) {
			continue
		}
		own := outcomes.Prediction{Model: c.Name, Prior: d.prior(c.Name)}
		efforts := d.effortsOf(m)
		if effort := d.Action.Reasoning; len(efforts) == 0 && effort != "" && effort != ReasoningAuto &&
			m.Dialect.Leaves(d.Request, d.Action.Override) {
			own.Effort = ArmEffort(m, effort)
		}
		ps = append(ps, own)
		for _, e := range efforts {
			ps = append(ps, outcomes.Prediction{Model: c.Name, Effort: e, Prior: own.Prior})
		}
	}
	return ps
}

// expectOf converts the predictions of a model into the input of the choice, and chooses its
// effort.
func (d *Decision) expectOf(ps []outcomes.Prediction) choose.Expected {
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
	l := &d.Base.Learning
	at := d.Base.Chooser.Spent.Least(d.effortKey(p.Model), e.AtEfforts, l.MinNeighbours, l.MaxQualityLoss)
	if e.ByOutcomes = at >= 0; !e.ByOutcomes {
		effort := ArmEffort(d.Base.ByName[p.Model], d.ByComplexity())
		at = slices.IndexFunc(e.AtEfforts, func(x choose.AtEffort) bool { return x.Effort == effort })
	}
	if at >= 0 {
		e.Reason(at)
	}
	return e
}

// effortKey returns the key of the account of what a tenant's requests to a model lost through less
// reasoning.
func (d *Decision) effortKey(model string) string { return d.Who.Tenant + "\x00" + model }

// ExpectedOf returns what is expected of a model; nil without outcomes or without a decision.
func (d *Decision) ExpectedOf(model string) *choose.Expected {
	if d == nil { // ordering the models for a context, not for a request
		return nil
	}
	for i := range d.expected {
		if e := &d.expected[i]; e.Model == model {
			return e
		}
	}
	return nil
}

// effortUnset is the effort recorded when a model with efforts was not sent any.
const effortUnset = "default"

// ArmEffort returns the effort under which outcomes of m are recorded when a body asks for effort.
func ArmEffort(m *backend.Model, effort string) string {
	switch {
	case len(m.Dialect.Efforts()) == 0:
		return ""
	case effort == "":
		return effortUnset
	}
	return m.Dialect.Standing(effort)
}

// unknownPrior is the expected quality of a model that the configuration says nothing about.
const unknownPrior = 0.5

// prior returns the quality that the configuration predicts for a model and this request, in [0,1].
func (d *Decision) prior(model string) float64 {
	m := d.Base.ByName[model]
	if m == nil {
		return unknownPrior
	}
	if q := m.Skills.Quality(d.Set.Value(signal.Domain)); q >= 0 {
		return q
	}
	return unknownPrior
}

// AwaitOutcome records that m answers a request, so that its response can be rated. It is called
// before the client receives any of the response, so that the rating cannot arrive first. effort is
// a value of the model's dialect.
func (b *Base) AwaitOutcome(d *Decision, id string, m *backend.Model, effort string) {
	v := d.Set.Value(signal.Embedding)
	if !d.choosesByOutcome() || v.State != signal.Known {
		return
	}
	domain := ""
	if x := d.Set.Value(signal.Domain); x.State == signal.Known {
		domain = x.Label
	}
	effort = ArmEffort(m, effort)
	b.Outcomes.Decided(outcomes.Outcome{
		Tenant: d.Who.Tenant, ID: id, Model: m.Name, Effort: effort, Domain: domain,
		Prior: d.prior(m.Name), Chance: d.ChanceOf(m, effort),
	}, v.Vector)
}

// ChanceOf returns the probability with which m was chosen at an effort; 0 if unknown, for example
// after a fallback.
func (d *Decision) ChanceOf(m *backend.Model, effort string) float64 {
	if m.Name != d.drawn || d.DrawnEffort != "" && effort != d.DrawnEffort {
		return 0
	}
	return d.chance
}

// exploration returns the limits of how much a request may give up to learn.
func (b *Base) exploration() choose.Exploration {
	e := b.Learning.Explore
	return choose.Exploration{Share: e.Share, MaxQualityLoss: e.MaxQualityLoss}
}

// explore lets a request explore. It runs before the conversation is considered, which may undo the
// draw.
func (b *Base) explore(d *Decision, cs []choose.Candidate) {
	if !d.choosesByOutcome() || len(cs) == 0 {
		return
	}
	if d.placings++; d.placings > 1 {
		// repeated because a soft limit was reached: the account was already charged
		d.drawn, d.chance, d.Chances = "", 0, nil
		return
	}
	if d.continues() {
		d.chance = 0 // a conversation that continues has no draw
		return
	}
	explore := b.exploration()
	switch {
	case choosesModel(d.Action):
		d.chance = b.Chooser.Spent.Explore(d.Who.Tenant, cs, d.Action, explore, choose.Normal, choose.Uniform)
	case drawsModel(d.Action):
		d.chance = choose.Weighted(cs)
	default:
		d.chance = 1
	}
	d.drawn, d.DrawnEffort = cs[0].Name, ""
	d.noteChances(cs)
}

// exploreEffort charges a request to the account for less reasoning and lets its effort explore. It
// runs once the first model is known.
func (b *Base) exploreEffort(d *Decision, first string) {
	e := d.ExpectedOf(first)
	if e == nil || len(e.AtEfforts) == 0 || d.placings > 1 {
		return
	}
	b.Chooser.Spent.Count(d.effortKey(first), e.AtEfforts, b.Learning.MinNeighbours)
	at := slices.IndexFunc(e.AtEfforts, func(x choose.AtEffort) bool { return x.Effort == e.Effort })
	if d.continues() || d.drawn != first || at < 0 {
		return
	}
	explore := b.exploration()
	explore.Credited = choosesModel(d.Action) // explore has already credited it
	drawn, chance := b.Chooser.Spent.ExploreEffort(
		d.Who.Tenant, e.AtEfforts, at, explore, choose.Normal, choose.Uniform,
	)
	if drawn != at {
		e.Reason(drawn)
		e.Drawn = true
	}
	d.chance *= chance
	d.DrawnEffort = e.Effort
}

// continues reports whether the conversation of a request has had an earlier turn.
func (d *Decision) continues() bool { return d.Talk != nil && d.Talk.before != nil }

// noteChances records the probabilities of all candidates for the log when more than one candidate
// had a chance.
func (d *Decision) noteChances(cs []choose.Candidate) {
	if d.Chances = nil; d.chance >= 1 {
		return
	}
	d.Chances = make(map[string]float64, len(cs))
	for i := range cs {
		if cs[i].Chance > 0 {
			d.Chances[cs[i].Name] = cs[i].Chance
		}
	}
}

// NoteLength records the number of tokens of a response that awaits its rating.
func (b *Base) NoteLength(d *Decision, id string, tokens int) {
	if b.Outcomes != nil && d != nil && d.choosesByOutcome() {
		b.Outcomes.Answered(d.Who.Tenant, id, tokens)
	}
}

// ReasoningAuto is the effort of a route that derives the effort from the request.
const ReasoningAuto = "auto"

// ByComplexity returns the effort for the complexity of a request; empty if that is unknown.
func (d *Decision) ByComplexity() string {
	c := d.Set.Value(signal.Complexity)
	if c.State == signal.Known && (c.Label == reasoning.Low || c.Label == reasoning.Medium || c.Label == reasoning.High) {
		return c.Label
	}
	return ""
}
