package affinity

import (
	"slices"
	"sync"
	"time"
)

// maxPrefixes is the number of keys per endpoint whose prompts are listed for operators.
const maxPrefixes = 64

// CachedPrefix is what requests with the same key have left in the cache of an endpoint.
type CachedPrefix struct {
	Key      uint64 // see Hints.Key
	Source   Source // what the key was derived from
	Tokens   int    // length of the last prompt, estimated unless the response reported it
	Blocks   int    // its length in blocks of BlockBytes
	Requests int64  // answered requests since the key entered the list
	Cached   int64  // prompt tokens that the endpoint reported as cached
	Last     time.Time
	Of       string // the last request, as named by Usage.Of
	Held     bool   // all blocks of the last prompt should still be cached
}

// prefixes are the prefixes of an endpoint, the most recently used last.
type prefixes struct {
	mu   sync.Mutex // guards list; a leaf lock
	list []prefix
}

type prefix struct {
	CachedPrefix

	class Class
	last  uint64 // last block of the prompt
}

// note records an answered request. It allocates only while the list grows.
func (l *prefixes) note(now time.Time, t *Ticket, u Usage) {
	if t.key == 0 || len(t.blocks) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.list, func(x prefix) bool { return x.Key == t.key })
	x := prefix{CachedPrefix: CachedPrefix{Key: t.key}}
	switch {
	case i >= 0:
		x = l.list[i]
		l.list = slices.Delete(l.list, i, i+1)
	case len(l.list) == maxPrefixes:
		l.list = slices.Delete(l.list, 0, 1)
	}
	x.Source, x.class, x.last, x.Blocks = t.source, t.class, t.blocks[len(t.blocks)-1], len(t.blocks)
	if x.Tokens = u.Prompt; u.Prompt == 0 {
		x.Tokens = t.tokens
	}
	x.Requests++
	x.Cached += int64(max(t.Cached, 0))
	x.Last, x.Of = now, u.Of
	l.list = append(l.list, x)
}

// Prefixes lists the prefixes recently sent to endpoint i, most recent first, and whether each
// should still be cached. Blocks that were not used for longest are evicted first.
func (p *Placer) Prefixes(now time.Time, i int) []CachedPrefix {
	e := &p.endpoints[i]
	e.prefixes.mu.Lock()
	list := slices.Clone(e.prefixes.list)
	e.prefixes.mu.Unlock()
	slices.Reverse(list)
	out := make([]CachedPrefix, len(list))
	for j := range list {
		out[j] = list[j].CachedPrefix
		out[j].Held = e.table.end(list[j].class, list[j].last) > p.ticks(now)
	}
	return out
}
