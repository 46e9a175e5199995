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
	"signalbox/rules"
)

// OutcomeOptions is the section `outcomes`: how good answers were is remembered, by tenant, and
// decides among the models of a route.
type OutcomeOptions struct {
	// Learn says from what: off, or feedback, what callers say by POST /signalbox/v1/feedback.
	// Default off. Reloadable.
	Learn string `yaml:"learn" words:"off feedback"`
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
	// Explore sends some requests to another model than the best, so that outcomes of it become
	// known.
	Explore ExploreOptions `yaml:"explore"`
}

// The words of OutcomeOptions.Learn.
const (
	learnOff      = "off"
	learnFeedback = "feedback"
)

const (
	defaultQualityLoss = 0.005
	maxExplored        = 0.5
)

// DefaultOutcomeOptions returns the options of an empty section.
func DefaultOutcomeOptions() OutcomeOptions {
	return OutcomeOptions{
		Learn: learnOff, MaxPerTenant: 10_000, MaxTenants: 100, MaxWaiting: 10_000,
		Explore: ExploreOptions{MaxQualityLoss: defaultQualityLoss},
	}
}

// Validate reports every bad option, one "field: problem" a line.
func (o OutcomeOptions) Validate() error {
	var p option.Problems
	if words := []string{learnOff, learnFeedback}; !slices.Contains(words, o.Learn) {
		p.Addf("learn", "%q is neither off nor feedback", o.Learn)
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
	if e := o.Explore; !(e.Share >= 0 && e.Share <= maxExplored) {
		p.Addf("explore.share", "%v is not between 0 and %v", e.Share, maxExplored)
	}
	if e := o.Explore; !(e.MaxQualityLoss >= 0 && e.MaxQualityLoss <= 1) {
		p.Addf("explore.max_quality_loss", "%v is not between 0 and 1", e.MaxQualityLoss)
	}
	return p.Err()
}

// On reports whether outcomes are learnt from.
func (o OutcomeOptions) On() bool { return o.Learn != learnOff }

// choosesByOutcome reports whether outcomes have a say in a decision: it leaves several models to
// choose from by what is expected of them.
func (d *decision) choosesByOutcome() bool {
	if d.state == nil || d.state.outcomes == nil || d.Action.Verb != rules.Use || len(d.Action.Models) < 2 {
		return false
	}
	switch d.Action.By {
	case "quality", "cost", "latency":
		return true
	}
	return false
}

// alongside are the signals that are extracted beside those of need: what outcomes are found by
// comes from the same pass.
func (d *decision) alongside(need signal.Mask) signal.Mask {
	if d.state == nil || d.state.outcomes == nil || need.Tier(signal.TierNeural) == 0 {
		return 0
	}
	return signal.MaskOf(signal.Embedding) & d.state.classifier.Signals() &^ d.set.Have()
}

// expect fills in what the outcomes of the tenant let one expect of the candidates.
func (d *decision) expect(ctx context.Context, req *openai.Request) {
	if d.expected = nil; !d.choosesByOutcome() || req.OpaquePrompt {
		return
	}
	v := &d.set.Values[signal.Embedding]
	if v.State == signal.NotExtracted && d.state.classifier.Signals().Has(signal.Embedding) {
		if d.text.Segments == nil {
			d.text = req.Text()
			d.talk.lend(&d.text)
		}
		d.state.classifier.Extract(ctx, &d.text, signal.MaskOf(signal.Embedding), d.set)
	}
	if v.State != signal.Known {
		return
	}
	ps := make([]outcomes.Prediction, 0, len(d.Action.Models))
	for _, c := range d.Action.Models {
		ps = append(ps, outcomes.Prediction{Model: c.Name, Prior: d.prior(c.Name)})
	}
	if !d.state.outcomes.Predict(d.who.Tenant, v.Vector, ps) {
		return
	}
	d.expected = make([]choose.Expected, len(ps))
	for i, p := range ps {
		d.expected[i] = choose.Expected{
			Model: p.Model, Quality: p.Mean, Deviation: p.Deviation, Tokens: p.Tokens,
			Outcomes: p.Outcomes, Near: p.Near,
		}
	}
}

// unknownPrior is what is expected of a model of which the configuration says nothing.
const unknownPrior = 0.5

// prior is the quality that the configuration expects of a model for this request, in [0,1].
func (d *decision) prior(model string) float64 {
	m := d.state.byName[model]
	if m == nil {
		return unknownPrior
	}
	if q := m.Skills.Quality(&d.set.Values[signal.Domain]); q >= 0 {
		return q
	}
	return unknownPrior
}

// await notes that a request is answered by m, so that it can be judged: before the client sees any
// of the answer, so that its judgement cannot come first.
func (st *State) await(d *decision, id string, m *backend.Model, effort string) {
	v := &d.set.Values[signal.Embedding]
	if !d.choosesByOutcome() || v.State != signal.Known {
		return
	}
	domain := ""
	if x := &d.set.Values[signal.Domain]; x.State == signal.Known {
		domain = x.Label
	}
	st.outcomes.Decided(outcomes.Outcome{
		Tenant: d.who.Tenant, ID: id, Model: m.Name, Effort: effort, Domain: domain,
		Prior: d.prior(m.Name), Chance: d.chanceOf(m),
	}, v.Vector)
}

// chanceOf is the chance with which m was chosen; 0 where it is not known, as after a fallback.
func (d *decision) chanceOf(m *backend.Model) float64 {
	if m.Name != d.drawn {
		return 0
	}
	return d.chance
}

// draw lets a request explore: before its conversation has a say, which may take the draw back.
func (st *State) draw(d *decision, cs []choose.Candidate) {
	if !d.choosesByOutcome() || len(cs) == 0 {
		return
	}
	if d.talk != nil && d.talk.before != nil {
		d.chance = 0 // of a conversation that goes on there is none
		return
	}
	d.chance = st.exploring.explore(cs, st.chooser.Intn)
	d.drawn = cs[0].Name
}

// measured notes how long an answer was that waits for its judgement.
func (st *State) measured(o *exchange, id string) {
	if st.outcomes != nil && o.decision != nil && o.choosesByOutcome() {
		st.outcomes.Answered(o.who.Tenant, id, o.told.Usage.Output)
	}
}

// The bounds of feedback.
const maxFeedbackLabel = 128 // bytes

// feedbackBody is the body of POST /signalbox/v1/feedback.
type feedbackBody struct {
	RequestID string `json:"request_id"` // x-request-id of the answer
	// how good the answer was, in [0,1]
	Outcome *float64 `json:"outcome,omitempty"`
	Rating  string   `json:"rating,omitempty"` // in place of outcome: up is 1, down 0
	Label   string   `json:"label,omitempty"`  // at most 128 bytes, exported with the outcome
}

// Judged is the answer to feedback.
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
func (*Proxy) feedbackRequest(st *State, w *reply, r *http.Request) error {
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
	return writeJSON(w, http.StatusOK, Judged{
		RequestID: in.RequestID, Model: o.Model, Outcome: o.Score, Label: o.Label,
		Outcomes: st.outcomes.Len(who.Tenant),
	})
}
