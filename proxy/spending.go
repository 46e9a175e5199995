package proxy

import (
	"context"
	"math"
	"net/http"
	"slices"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
)

// ShareBudgets lets budgets be kept by remote, for all replicas. Call it once, before the first
// request.
func (p *Proxy) ShareBudgets(remote budget.Remote) { p.spending.Share(remote) }

// modelBudgets is the group of the budgets of models. No tenant is called so: their names can be
// printed.
const modelBudgets = "\x00models"

// planWithinBudget places a request and reserves what it may cost. One that finds a soft bound reached only
// then, for others were let in between, is placed again, so that no more than one of all replicas is
// dear beyond the bound.
func (p *Proxy) planWithinBudget(
	ctx context.Context, st *State, w *reply, h http.Header, change *rewriter, o *exchange,
) (*plan, error) {
	counted := p.measure(ctx, st, change)
	where, err := st.place(change, h, counted)
	if err != nil {
		return nil, err
	}
	where.id = w.id
	if err = p.reserve(ctx, w, o, where); err != nil {
		return nil, err
	}
	how := o.thrift.And(w.cost.Thrift())
	if how == o.thrift {
		return where, nil
	}
	o.save(how)
	o.describeThrift(w.Header())
	again, err := st.place(change, h, counted)
	if err == nil {
		again.id, again.afford = w.id, where.afford
	}
	return again, err
}

// reserve takes what a request may cost from the budgets of its caller: its prompt, estimated, and
// the most that it allows for the answer, by the price of the dearest model that it may go to, or,
// where the next model is asked when an answer is not good enough, of all of them. What it takes
// from the budgets of models is taken when it comes to them.
func (p *Proxy) reserve(ctx context.Context, w *reply, o *exchange, where *plan) (err error) {
	ofModels := slices.ContainsFunc(where.models, func(m *backend.Model) bool { return m.Budget.USD > 0 })
	if len(o.who.Budgets) == 0 && !ofModels {
		return nil
	}
	prompt, answer := float64(o.req.EstimateTokens()), 0.0
	if o.held.Named() {
		prompt += float64(o.held.Tokens)
	}
	if o.req.API != openai.Other {
		answer = float64(o.req.MaxOutputTokens())
	}
	if ofModels {
		where.afford = func(ctx context.Context, m *backend.Model) error {
			return p.share(ctx, w, m, m.Price.Of(prompt, answer))
		}
	}
	usd := 0.0
	for _, m := range where.models {
		if price := m.Price.Of(prompt, answer); o.Action.Escalate != nil {
			usd += price
		} else {
			usd = math.Max(usd, price)
		}
	}
	w.cost, err = p.spending.Reserve(ctx, o.who.Tenant, o.who.Budgets, usd)
	return err
}

// share takes what a request may cost at a model from the budget of that, once.
func (p *Proxy) share(ctx context.Context, w *reply, m *backend.Model, usd float64) error {
	if m.Budget.USD == 0 || slices.ContainsFunc(w.shares, func(s share) bool { return s.of == m }) {
		return nil
	}
	r, err := p.spending.Reserve(ctx, modelBudgets, []budget.Budget{m.Budget}, usd)
	if err == nil {
		w.shares = append(w.shares, share{m, r})
	}
	return err
}

// settleBudgets replaces what was reserved with what the request cost: by the usage that the answer tells, or
// an estimate where it tells none, up to where it was cut. Answers that were thrown away for a
// better one are paid as well. Each model's budget pays for what that model answered.
func (w *reply) settleBudgets(ctx context.Context, o *exchange, status int) {
	if w.cost == nil && len(w.shares) == 0 {
		return
	}
	last := 0.0
	switch u := o.told.Usage; {
	case o.model == nil, status >= http.StatusBadRequest && status != fault.StatusClientGone && w.status != http.StatusOK:
	case u.Input+u.Output > 0:
		last = o.model.Price.Of(float64(u.Input), float64(u.Output))
	default:
		last = o.model.Price.Of(float64(o.req.EstimateTokens()), float64(max(o.told.Length(), 0)))
	}
	ctx = context.WithoutCancel(ctx)
	usd, thrown := last, o.escalation.discarded()
	for i := range thrown {
		usd += thrown[i].price(o.req)
	}
	w.cost.Settle(ctx, usd)
	for _, s := range w.shares {
		usd = 0
		if s.of == o.model {
			usd = last
		}
		for i := range thrown {
			if thrown[i].model == s.of {
				usd += thrown[i].price(o.req)
			}
		}
		s.cost.Settle(ctx, usd)
	}
}

// chargeLimits counts what a request may use in the limits of its caller: its prompt, estimated, and the
// most that it allows for the answer.
func (w *reply) chargeLimits(ctx context.Context, req *openai.Request, held *resolve.Contexts) error {
	if w.lease == nil {
		return nil
	}
	n := req.EstimateTokens()
	if held.Named() {
		n += held.Tokens
	}
	if req.API != openai.Other {
		n += req.MaxOutputTokens()
	}
	err := w.lease.Tokens(ctx, n)
	if err == nil {
		w.lease.Describe(w.Header())
	}
	return err
}

// settleLimits counts what a request really used: what the answer says, or an estimate where it
// does not say, up to where it was cut. A request that no model saw used nothing.
func (w *reply) settleLimits(ctx context.Context, o *exchange, status int) {
	if w.lease == nil || o.req == nil {
		return
	}
	used := 0
	switch u := o.told.Usage; {
	case o.model == nil, status >= http.StatusBadRequest && status != fault.StatusClientGone && w.status != http.StatusOK:
	case u.Input+u.Output > 0:
		used = min(u.Input+u.Output, math.MaxInt32)
	default:
		used = o.req.EstimateTokens() + int(max(o.told.Length(), 0))
	}
	thrown := o.escalation.used(o.req)
	used = min(used+thrown.Input+thrown.Output, math.MaxInt32)
	w.lease.Settle(context.WithoutCancel(ctx), used)
}
