package proxy

import (
	"context"

	"signalbox/internal/openai"
	"signalbox/proxy/budget"
	"signalbox/proxy/downstream"
	"signalbox/proxy/resolve"
)

// ShareBudgets lets budgets be kept by remote, for all replicas. Call it once, before the first
// request.
func (p *Proxy) ShareBudgets(remote budget.Remote) { p.spending.Share(remote) }

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
