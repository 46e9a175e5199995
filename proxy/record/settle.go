package record

import (
	"context"
	"math"
	"net/http"

	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
	"signalbox/proxy/fault"
)

// settleBudgets replaces what was reserved with what the request cost: by the usage that the
// response tells, or an estimate where it tells none, up to where it was cut. Responses that were
// thrown away for a better one are paid as well. Each model's budget pays for what that model
// answered.
func settleBudgets(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, status int) {
	if w.Cost == nil && len(w.Shares) == 0 {
		return
	}
	last := 0.0
	switch u := o.Tally.Usage; {
	case o.Model == nil, status >= http.StatusBadRequest && status != fault.StatusClientGone && w.Status != http.StatusOK:
	case u.Input+u.Output > 0:
		last = o.Model.Price.Of(float64(u.Input), float64(u.Output))
	default:
		last = o.Model.Price.Of(float64(o.Req.EstimateTokens()), float64(max(o.Tally.Length(), 0)))
	}
	ctx = context.WithoutCancel(ctx)
	usd, thrown := last, o.Escalation.Thrown()
	for i := range thrown {
		usd += thrown[i].Price(o.Req)
	}
	w.Cost.Settle(ctx, usd)
	for _, s := range w.Shares {
		usd = 0
		if s.Of == o.Model {
			usd = last
		}
		for i := range thrown {
			if thrown[i].Model == s.Of {
				usd += thrown[i].Price(o.Req)
			}
		}
		s.Cost.Settle(ctx, usd)
	}
}

// settleLimits counts what a request really used: what the response says, or an estimate where it
// does not say, up to where it was cut. A request that no model saw used nothing.
func settleLimits(ctx context.Context, w *downstream.Writer, o *exchange.Exchange, status int) {
	if w.Lease == nil || o.Req == nil {
		return
	}
	used := 0
	switch u := o.Tally.Usage; {
	case o.Model == nil, status >= http.StatusBadRequest && status != fault.StatusClientGone && w.Status != http.StatusOK:
	case u.Input+u.Output > 0:
		used = min(u.Input+u.Output, math.MaxInt32)
	default:
		used = o.Req.EstimateTokens() + int(max(o.Tally.Length(), 0))
	}
	thrown := o.Escalation.Used(o.Req)
	used = min(used+thrown.Input+thrown.Output, math.MaxInt32)
	w.Lease.Settle(context.WithoutCancel(ctx), used)
}
