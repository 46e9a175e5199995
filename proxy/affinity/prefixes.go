package affinity

import (
	"slices"
	"sync"
	"time"
)

// maxPrefixes is of how many keys an endpoint keeps what its prompts were, for people to look at.
const maxPrefixes = 64

// CachedPrefix is what requests that belong to the same have left in the cache of an endpoint.
type CachedPrefix struct {
	Key      uint64 // that they have, see Hints.Key
	Source   Source // of the key
	Tokens   int    // of the last one's prompt, estimated where the answer did not tell
	Blocks   int    // of it, of BlockBytes
	Requests int64  // that were answered, while the key was among the last ones
	Cached   int64  // tokens of their prompts that the endpoint said it had
	Last     time.Time
	Of       string // the last request, as Usage.Of named it
	Held     bool   // all blocks of the last prompt should still be there
}

// prefixes are those of an endpoint, the one used last at the end.
type prefixes struct {
	mu   sync.Mutex // guards list; a leaf
	list []prefix
}

type prefix struct {
	CachedPrefix

	class Class
	last  uint64 // block of the prompt
}

// note takes in a request that was answered. It allocates while the list grows.
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

// Prefixes lists what was sent to endpoint i lately, by what it belongs to, the last one first, and
// whether it should still be there: blocks that were not used for longest go first.
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
