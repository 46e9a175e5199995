package proxy

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"

	"signalbox/internal/openai"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
)

// ShareBudgets lets budgets be kept by remote, for all replicas. Call it once, before the first
// request.
func (p *Proxy) ShareBudgets(remote budget.Remote) { p.spending.Share(remote) }

// settleBudgets replaces what was reserved with what the request cost: by the usage that the
// response tells, or an estimate where it tells none, up to where it was cut. Responses that were
// thrown away for a better one are paid as well. Each model's budget pays for what that model
// answered.
func settleBudgets(ctx context.Context, w *downstream.Writer, o *exchange, status int) {
	if w.Cost == nil && len(w.Shares) == 0 {
		return
	}
	last := 0.0
	switch u := o.tally.Usage; {
	case o.model == nil, status >= http.StatusBadRequest && status != fault.StatusClientGone && w.Status != http.StatusOK:
	case u.Input+u.Output > 0:
		last = o.model.Price.Of(float64(u.Input), float64(u.Output))
	default:
		last = o.model.Price.Of(float64(o.req.EstimateTokens()), float64(max(o.tally.Length(), 0)))
	}
	ctx = context.WithoutCancel(ctx)
	usd, thrown := last, o.escalation.discarded()
	for i := range thrown {
		usd += thrown[i].price(o.req)
	}
	w.Cost.Settle(ctx, usd)
	for _, s := range w.Shares {
		usd = 0
		if s.Of == o.model {
			usd = last
		}
		for i := range thrown {
			if thrown[i].model == s.Of {
				usd += thrown[i].price(o.req)
			}
		}
		s.Cost.Settle(ctx, usd)
	}
}

// chargeLimits counts what a request may use in the limits of its caller: its prompt, estimated,
// and the most that it allows for the response.
func chargeLimits(ctx context.Context, w *downstream.Writer, req *openai.Request, held *resolve.Contexts) error {
	if w.Lease == nil {
		return nil
	}
	n := req.EstimateTokens()
	if held.Named() {
		n += held.Tokens
	}
	if req.API != openai.Other {
		n += req.MaxOutputTokens()
	}
	err := w.Lease.Tokens(ctx, n)
	if err == nil {
		w.Lease.Describe(w.Header())
	}
	return err
}

// settleLimits counts what a request really used: what the response says, or an estimate where it
// does not say, up to where it was cut. A request that no model saw used nothing.
func settleLimits(ctx context.Context, w *downstream.Writer, o *exchange, status int) {
	if w.Lease == nil || o.req == nil {
		return
	}
	used := 0
	switch u := o.tally.Usage; {
	case o.model == nil, status >= http.StatusBadRequest && status != fault.StatusClientGone && w.Status != http.StatusOK:
	case u.Input+u.Output > 0:
		used = min(u.Input+u.Output, math.MaxInt32)
	default:
		used = o.req.EstimateTokens() + int(max(o.tally.Length(), 0))
	}
	thrown := o.escalation.used(o.req)
	used = min(used+thrown.Input+thrown.Output, math.MaxInt32)
	w.Lease.Settle(context.WithoutCancel(ctx), used)
}

// cheapen puts the cheapest candidates in front, by what the request may cost there, where a budget
// of the caller is nearly used up; a model without a price costs nothing. What a conversation stays
// for gives way, but a result of a tool goes to the model that asked for it. cs is changed in
// place.
func (st *State) cheapen(d *decision, cs []choose.Candidate) {
	t := d.talk
	of := t != nil && t.before != nil
	if !d.saving.Cheaper || of && t.tool && t.why == whyTool {
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
	if of && !t.final && len(cs) > 0 && cs[0].Name != t.before.Model {
		t.result, t.why = talkMoved, whyBudget
	}
}
