package proxy

import (
	"sync"

	"signalbox/memory"
	"signalbox/proxy/affinity"
)

// chains remembers the chains of stored contexts, so that their text is not read for each request that names them. When
// the young ones are many, the old ones go. It is safe for concurrent use.
type chains struct {
	mu         sync.Mutex // guards what follows
	young, old map[string]*affinity.Chain
}

// manyChains is how many are remembered at least, twice as many at most. One of a context of 600 KiB has 5 KiB.
const manyChains = 1024

// of is the chain of contexts that follow each other. It must not be changed.
func (c *chains) of(snaps []*memory.Snapshot) *affinity.Chain {
	var space [256]byte
	name := space[:0]
	for _, s := range snaps {
		name = append(name, s.Sum[:]...)
	}
	c.mu.Lock()
	known := c.young[string(name)]
	if known == nil {
		known = c.old[string(name)]
	}
	c.mu.Unlock()
	if known != nil {
		return known
	}
	chain := new(affinity.Chain)
	for _, s := range snaps {
		chain.Message("context", "")
		for _, f := range s.Fragments {
			chain.WriteBytes(f)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= manyChains || c.young == nil {
		c.old, c.young = c.young, make(map[string]*affinity.Chain)
	}
	c.young[string(name)] = chain
	return chain
}
