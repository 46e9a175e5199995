package placement

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/contexts"
)

// Residency lists the endpoints that should have a tenant's stored context cached for requests that
// begin with it, without template parameters. What was never sent by this replica is known only
// from other replicas.
func (b *Places) Residency(models []*backend.Model, tenant string, c *memory.Context) []contexts.Residence {
	x := prompt{hints: affinity.Hints{Contexts: []string{c.ID + "@" + strconv.Itoa(c.Version)}}, salt: b.Salts.Of(tenant)}
	var blocks []uint64
	bytes := int(c.Bytes)
	if chain := b.Chains.Known(c.Sum); chain != nil {
		blocks, bytes = chain.Blocks(), chain.Bytes()
	}
	now := time.Now()
	out := []contexts.Residence{}
	for _, m := range models {
		if m.Servers.Placer == nil {
			continue
		}
		r := affinity.Request{Class: x.class(m), Blocks: blocks, Bytes: bytes}
		r.Tokens = cmp.Or(c.Tokens[m.Name], m.Servers.Correct(int(c.Bytes/openai.BytesPerToken)))
		r.Key, _ = x.hints.Key(r.Class, blocks, r.Tokens)
		for _, h := range m.Servers.Held(now, &r) {
			basis := contexts.BasisPredicted
			if h.Basis == affinity.Confirmed {
				basis = contexts.BasisUsage
			}
			out = append(out, contexts.Residence{
				Endpoint: m.Servers.All[h.Endpoint].Endpoint.Name, Model: m.Name, Tokens: h.Tokens, Basis: basis, Age: int64(h.Age / time.Second),
			})
		}
	}
	slices.SortFunc(out, func(a, b contexts.Residence) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), -cmp.Compare(a.Tokens, b.Tokens), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return out
}

// parts reports whether a request shares no prefix with the last one of its session or context,
// because the model's template begins differently, for example with another effort or other tools.
func (p *prompt) parts(m *backend.Model, class affinity.Class) bool {
	if !m.Servers.KV.EffortLeadsPrompt && !m.Servers.KV.ToolsLeadPrompt || p.hints.Empty() {
		return false
	}
	plain := affinity.Traits{Model: m.ServedAs, Salt: p.salt}
	key, _ := p.hints.Key(plain.Class(), nil, 0)
	return m.Servers.Splits.Parted(key, class)
}
