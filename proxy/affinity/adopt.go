package affinity

// Adopt takes over what an older Placer has learnt of endpoints that both have: those of the same
// name and address. Requests that the older one has placed count for both until they end. It must
// be called before p is used.
func (p *Placer) Adopt(old *Placer) {
	p.epoch, p.heat = old.epoch, old.heat
	from := make([]int, len(p.endpoints)) // index among the old ones, -1 for a new one
	for i := range p.endpoints {
		from[i] = -1
		e := &p.endpoints[i]
		for j := range old.endpoints {
			if b := &old.endpoints[j]; b.Name == e.Name && b.Address == e.Address {
				e.server, from[i] = b.server, j
				if e.Tokens > 0 && e.Tokens != b.Tokens {
					e.table.resize(blocksOf(e.Tokens))
				}
			}
		}
	}
	old.residences.moveTo(&p.residences, from)
	old.left.moveTo(&p.left, from)
}

// Resize notes how many tokens the cache of endpoint i holds, when that is told later than to New.
func (p *Placer) Resize(i, tokens int) {
	if tokens > 0 {
		p.endpoints[i].table.resize(blocksOf(tokens))
	}
}

// BlockSize notes how many tokens a block of the cache of endpoint i has: what is less than a block
// is not taken from a cache. 0 changes nothing.
func (p *Placer) BlockSize(i, tokens int) {
	if tokens > 0 {
		p.endpoints[i].block.Store(int64(tokens))
	}
}
