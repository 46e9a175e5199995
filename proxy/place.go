package proxy

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/telemetry"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/fault"
	"signalbox/proxy/pool"
)

// plan is the order in which a request meets models and endpoints: every endpoint of the first
// model, then those of the next. It belongs to one request.
type plan struct {
	models  []*backend.Model
	tried   []*pool.Endpoint
	intn    func(n int) int
	metrics *telemetry.Metrics
	lease   *pool.Lease                                       // of the last attempt; nil before the first
	afford  func(ctx context.Context, m *backend.Model) error // nil where no model has a budget
	placing
}

// place lists the models that a decision leads to and the caller may use, in the order to try them.
// change is how the request is put to them, h the client's headers, and counted the tokens of the
// prompt by model, where they were counted.
func (st *State) place(change *rewriter, h http.Header, counted map[string]int) (*plan, error) {
	d := change.d
	wants := d.wants()
	wants.Prompt.Counted = counted
	cs := st.chooser.Choose(wants)
	st.draw(d, cs)
	cs = st.arrange(d, cs)
	if len(cs) > 0 {
		st.drawEffort(d, cs[0].Name)
	}
	p := &plan{models: make([]*backend.Model, 0, len(cs)), intn: st.chooser.Intn, metrics: st.metrics}
	denied := false
	for i := range cs {
		switch m, ok := st.byName[cs[i].Name]; {
		case !ok:
			return nil, &fault.UnknownModelError{Model: cs[i].Name}
		case !d.who.May(m.Name):
			denied = true
		case !cs[i].Out:
			p.models = append(p.models, m)
		}
	}
	if len(p.models) == 0 && denied {
		return nil, fault.ErrNoModelAllowed
	}
	if len(p.models) == 0 {
		return nil, d.tooLong(&wants.Prompt, cs)
	}
	p.placing = st.placing(change, h)
	return p, nil
}

// save notes what the request saves with. One that goes to the cheapest model tries none out.
func (d *decision) save(how budget.Thrift) {
	d.thrift = how
	if how.Cheaper && d.inArm != "" && !d.callsOf(d.Action.Canary.Model) {
		d.inArm = ""
	}
}

// cheapen puts the cheapest candidates in front, by what the request may cost there, where a budget
// of the caller is nearly used up; a model without a price costs nothing. What a conversation stays
// for gives way, but a result of a tool goes to the model that asked for it. cs is changed in place.
func (st *State) cheapen(d *decision, cs []choose.Candidate) {
	t := d.talk
	of := t != nil && t.before != nil
	if !d.thrift.Cheaper || of && t.tool && t.why == whyTool {
		return
	}
	answer := openai.AssumedOutputTokens
	if d.request != nil {
		answer = d.request.MaxOutputTokens()
	}
	price := func(c *choose.Candidate) float64 {
		switch m := st.byName[c.Name]; {
		case m == nil, c.Out:
			return math.Inf(1)
		default:
			return m.Price.Of(float64(d.set.Facts.Tokens), float64(answer))
		}
	}
	slices.SortStableFunc(cs, func(a, b choose.Candidate) int { return cmp.Compare(price(&a), price(&b)) })
	if of && !t.told && len(cs) > 0 && cs[0].Name != t.before.Model {
		t.result, t.why = talkMoved, whyBudget
	}
}

// wants is what the choice among models looks at.
func (d *decision) wants() choose.Request {
	r := choose.Request{Action: d.Action, Set: d.set, Named: d.model, Expected: d.expected}
	if d.request == nil {
		return r
	}
	r.Prompt = d.length()
	r.Limit, _ = d.request.AnswerLimit()
	return r
}

// next takes a slot where the request goes now: at an endpoint that was not tried, of the first
// model that has one. A request that was nowhere yet waits for it where all of a model's endpoints
// are full. The lease, which the caller closes, is nil when none is left.
func (p *plan) next(ctx context.Context) (*backend.Model, *pool.Lease, error) {
	p.leave(time.Now())
	crowded, asleep := false, false
	var spent error // of the first model whose budget the request does not fit in
	for len(p.models) > 0 {
		m := p.models[0]
		if p.afford != nil {
			if err := p.afford(ctx, m); err != nil {
				spent, p.models = cmp.Or(spent, err), p.models[1:]
				continue
			}
		}
		lease, err := p.enter(ctx, m)
		switch {
		case lease != nil:
			p.tried, p.lease = append(p.tried, lease.Endpoint()), lease
			return m, lease, nil
		case ctx.Err() != nil:
			return nil, nil, fault.ErrClientGone
		case err != nil:
			crowded = true
			p.shed(m.Name, err)
		}
		asleep = asleep || m.Asleep(time.Now())
		p.models = p.models[1:]
	}
	switch {
	case crowded:
		return nil, nil, fault.ErrEndpointsFull
	case asleep && len(p.tried) == 0:
		return nil, nil, fault.ErrAsleep
	case len(p.tried) == 0:
		return nil, nil, spent
	}
	return nil, nil, nil
}

// enter takes a slot at an endpoint of m, after those who wait for one.
func (p *plan) enter(ctx context.Context, m *backend.Model) (lease *pool.Lease, err error) {
	full := m.Queued() > 0
	if !full {
		if lease, full = p.pick(m, time.Now()); lease != nil {
			return lease, nil
		}
	}
	if !full || len(p.tried) > 0 { // who was refused elsewhere does not wait again
		return nil, nil
	}
	err = m.Wait(ctx, func() bool {
		lease, _ = p.pick(m, time.Now())
		return lease != nil
	})
	return lease, err
}

// shed counts a request that got no place at a model.
func (p *plan) shed(model string, err error) {
	reason := "full"
	if errors.Is(err, pool.ErrQueueLate) {
		reason = "late"
	}
	p.metrics.Shed(model, reason)
}
