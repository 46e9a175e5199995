package proxy

import (
	"context"
	"strings"
	"time"

	"signalbox/proxy/auth"
	"signalbox/proxy/keyring"
	"signalbox/proxy/rate"
)

// UsageOf reports the use of every budget and per-minute limit that applies to a virtual key: those
// of the key and those of its tenant. It counts nothing itself.
func (p *Proxy) UsageOf(ctx context.Context, k *auth.KeyOptions) []keyring.Usage {
	st := p.acquire()
	defer st.release()
	who := st.auth.Caller(k)
	now := time.Now()
	out := make([]keyring.Usage, 0, len(who.Budgets)+2*len(who.Limits))
	accounts, shared := p.spending.Look(ctx, who.Tenant, who.Budgets)
	for i, a := range accounts {
		b := &who.Budgets[i]
		_, end := b.Period.Bounds(now)
		out = append(out, keyring.Usage{
			Of: kindOf(b.Name), What: "usd", Per: string(b.Period), Limit: b.USD, Used: a, Left: max(b.USD-a, 0),
			Resets: end, Alone: !shared,
		})
	}
	for _, l := range who.Limits {
		limit := []rate.Limit{{Scope: l.Scope, Requests: l.Rate.RPM, Tokens: l.Rate.TPM}}
		for _, kind := range [...]rate.Kind{rate.Requests, rate.Tokens} {
			room, shared := p.limiter.Look(ctx, who.Tenant, limit, kind)
			if room.Limit == 0 {
				continue
			}
			out = append(out, keyring.Usage{
				Of: kindOf(l.Scope), What: string(kind), Per: "minute", Limit: float64(room.Limit),
				Used: float64(room.Limit - room.Left), Left: float64(room.Left),
				Resets: now.Add(room.Reset).UTC().Truncate(time.Second), Alone: !shared,
			})
		}
	}
	return out
}

// kindOf returns the owner of a scope or budget: "key" or "tenant".
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}
