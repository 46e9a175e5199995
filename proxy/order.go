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

// orderModels puts the models of a decision in the order to try them and reserves what the request
// may cost. Where that reservation finds a soft bound reached, which other requests have reached
// since the models were ordered, they are ordered again as behind the bound: over all replicas, at
// most one request beyond it goes to a model at full price.
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

// place lists the models that a decision leads to and the caller may use, in the order to try them,
// and looks at where the prompt is. change is how the request is put to them, h the client's
// headers, and counted the tokens of the prompt by model, where they were counted.
func (st *State) place(change *rewrite.Change, h http.Header, id string, counted map[string]int) (*placement.Plan, error) {
	models, err := st.Order(change.Decision, counted)
	if err != nil {
		return nil, err
	}
	return st.places.Plan(models, change, h, id, st.Chooser.Intn, st.metrics), nil
}

// modelBudgets is the group of the budgets of models. No tenant is called so: their names can be
// printed.
const modelBudgets = "\x00models"

// reserve takes what a request may cost from the budgets of its caller: its prompt, estimated, and
// the most that it or the route allows for the response, by the price of the dearest model that it
// may go to, or, where the next model is asked when a response is not good enough, of all of them.
// What it takes from the budgets of models is taken when it comes to them. Where no model has a
// price nothing is spent, and a budget that is used up is no obstacle.
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

// share takes what a request may cost at a model from the budget of that, once.
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
