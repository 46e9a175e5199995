package proxy

import (
	"context"
	"math"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/proxy/budget"
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
