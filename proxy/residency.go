package proxy

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"signalbox/memory"
	"signalbox/proxy/affinity"
	"signalbox/proxy/contexts"
)

var _ contexts.Resident = (*Proxy)(nil)

// Residency implements contexts.Resident: what requests that name the context alone, without
// parameters that lead a template, would find. What was never sent from here is known only as far
// as other replicas have told.
func (p *Proxy) Residency(owner memory.Owner, c *memory.Context) []contexts.Residence {
	st := p.acquire()
	defer st.release()
	x := prompt{hints: affinity.Hints{Contexts: []string{c.ID + "@" + strconv.Itoa(c.Version)}}, salt: st.salts.of(owner.Tenant)}
	var blocks []uint64
	bytes := int(c.Bytes)
	if chain := st.chains.known(c.Sum); chain != nil {
		blocks, bytes = chain.Blocks(), chain.Bytes()
	}
	now := time.Now()
	out := []contexts.Residence{}
	for _, m := range st.models {
		if m.where.Placer == nil {
			continue
		}
		r := affinity.Request{Class: x.class(m), Blocks: blocks, Bytes: bytes}
		r.Tokens = cmp.Or(c.Tokens[m.Name], m.where.tokens(int(c.Bytes/bytesPerToken)))
		r.Key, _ = x.hints.Key(r.Class, blocks, r.Tokens)
		for _, h := range m.where.Held(now, &r) {
			basis := contexts.BasisPredicted
			if h.Basis == affinity.Confirmed {
				basis = contexts.BasisUsage
			}
			out = append(out, contexts.Residence{
				Endpoint: m.where.ends[h.Endpoint].end.Name, Model: m.Name, Tokens: h.Tokens, Basis: basis, Age: int64(h.Age / time.Second),
			})
		}
	}
	slices.SortFunc(out, func(a, b contexts.Residence) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), -cmp.Compare(a.Tokens, b.Tokens), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return out
}

// splits remembers under which class what requests belong to was last sent to a model whose
// template puts parameters in front: other parameters part its prompts from what servers have of
// it. Safe for concurrent use.
type splits struct {
	mu         sync.Mutex // guards what follows
	young, old map[uint64]affinity.Class
}

// manySplits is how many are remembered at least, twice as many at most.
const manySplits = 4096

// parted reports whether what a key stands for was last sent under another class.
func (s *splits) parted(key uint64, class affinity.Class) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.young[key]
	if !ok {
		last, ok = s.old[key]
	}
	if _, known := s.young[key]; !known && len(s.young) >= manySplits || s.young == nil {
		s.old, s.young = s.young, make(map[uint64]affinity.Class)
	}
	s.young[key] = class
	return ok && last != class
}

// parts reports whether a request that names what it belongs to is parted from the last one that
// named the same, by what the model's template puts in front.
func (p *prompt) parts(m *model, class affinity.Class) bool {
	if !m.where.kv.EffortLeadsPrompt && !m.where.kv.ToolsLeadPrompt || p.hints.Empty() {
		return false
	}
	plain := affinity.Traits{Model: m.servedAs, Salt: p.salt}
	key, _ := p.hints.Key(plain.Class(), nil, 0)
	return m.where.splits.parted(key, class)
}
