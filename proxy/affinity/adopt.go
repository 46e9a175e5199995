package affinity

// Adopt takes over what an older Placer has learned about the endpoints that both have, by name and
// address. Requests placed by the older one count for both until they end. Adopt must be called
// before p is used.
func (p *Placer) Adopt(old *Placer) {
	p.epoch, p.heat = old.epoch, old.heat
	from := make([]int, len(p.endpoints)) // index of the endpoint in old; -1 for a new one
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

// Resize sets the cache size of endpoint i, in tokens, when it becomes known after New.
func (p *Placer) Resize(i, tokens int) {
	if tokens > 0 {
		p.endpoints[i].table.resize(blocksOf(tokens))
	}
}

// BlockSize sets the number of tokens in a cache block of endpoint i. The server reuses whole
// blocks only. 0 changes nothing.
func (p *Placer) BlockSize(i, tokens int) {
	if tokens > 0 {
		p.endpoints[i].block.Store(int64(tokens))
	}
}
