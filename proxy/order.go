package proxy

import (
	"context"
	"math"
	"net/http"
	"slices"

	"signalbox/internal/openai"
	"signalbox/proxy/backend"
	"signalbox/proxy/budget"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/placement"
	"signalbox/proxy/rewrite"
)

// orderModels lists the models of a decision in the order to try them and reserves the cost of the
// request. When the reservation shows that a soft limit was reached after the models had been
// ordered, they are ordered again as beyond that limit. Over all replicas, at most one request
// beyond the limit goes to a model at full price.
func (p *Proxy) orderModels(
	ctx context.Context, st *State, w *downstream.Writer, h http.Header, change *rewrite.Change, o *exchange.Exchange,
) (*placement.Plan, error) {
	counted := p.measure(ctx, st, change)
	where, err := st.place(change, h, w.ID, counted)
	if err != nil {
		return nil, err
	}
	if err = p.reserve(ctx, w, o, where); err != nil {
		return nil, err
	}
	how := o.Saving.And(w.Cost.Saving())
	if how == o.Saving {
		return where, nil
	}
	o.Save(how)
	o.DescribeSaving(w.Header())
	again, err := st.place(change, h, w.ID, counted)
	if err == nil {
		again.Afford = where.Afford
	}
	return again, err
}

// place lists the models that the decision leads to and that the caller may use, in the order to
// try them, and looks up which endpoints hold the prompt. change is the pending rewrite of the
// request, h the client's headers, id the request id, and counted the prompt tokens by model where
// a server counted them.
func (st *State) place(change *rewrite.Change, h http.Header, id string, counted map[string]int) (*placement.Plan, error) {
	models, err := st.Order(change.Decision, counted)
	if err != nil {
		return nil, err
	}
	return st.places.Plan(models, change, h, id, st.Chooser.Intn, st.metrics), nil
}

// modelBudgets is the group for model budgets. It cannot collide with a tenant, whose name has
// printable characters only.
const modelBudgets = "\x00models"

// reserve reserves the maximum cost of a request in the caller's budgets: the estimated prompt
// tokens and the maximum response tokens, at the price of the dearest model in the plan. With
// escalation, where several models may be asked, it reserves the sum over all models. The budgets
// of models are charged later, when a model is about to be asked. When no model has a price,
// nothing is reserved and an exhausted budget does not block the request.
func (p *Proxy) reserve(
	ctx context.Context, w *downstream.Writer, o *exchange.Exchange, where *placement.Plan,
) (err error) {
	ofModels := slices.ContainsFunc(where.Models, func(m *backend.Model) bool { return m.Budget.USD > 0 })
	priced := slices.ContainsFunc(where.Models, func(m *backend.Model) bool { return m.Price.Known() })
	if !priced || len(o.Who.Budgets) == 0 && !ofModels {
		return nil
	}
	prompt := float64(o.PromptTokens())
	price := func(m *backend.Model) float64 {
		if o.Req.API == openai.Other {
			return m.Price.Of(prompt, 0)
		}
		return m.Price.Of(prompt, float64(o.MaxOutputTokens(m.Window)))
	}
	if ofModels {
		where.Afford = func(ctx context.Context, m *backend.Model) error { return p.share(ctx, w, m, price(m)) }
	}
	usd := 0.0
	for _, m := range where.Models {
		if o.Action.Escalate != nil {
			usd += price(m)
		} else {
			usd = math.Max(usd, price(m))
		}
	}
	w.Cost, err = p.spending.Reserve(ctx, o.Who.Tenant, o.Who.Budgets, usd)
	return err
}

// share reserves the cost of a request at model m in the budget of m, once per request.
func (p *Proxy) share(ctx context.Context, w *downstream.Writer, m *backend.Model, usd float64) error {
	if m.Budget.USD == 0 || slices.ContainsFunc(w.Shares, func(s downstream.ModelShare) bool { return s.Of == m }) {
		return nil
	}
	r, err := p.spending.Reserve(ctx, modelBudgets, []budget.Budget{m.Budget}, usd)
	if err == nil {
		w.Shares = append(w.Shares, downstream.ModelShare{Of: m, Cost: r})
	}
	return err
}
