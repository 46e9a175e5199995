package kv

import (
	"container/list"
	"slices"
	"sync"
)

// Tier is a copy of computed blocks in a server's main memory, as in vLLM's offloading connector.
// The least recently requested blocks are evicted first. It is safe for concurrent use, so that
// other servers can read it: a request names it in remote_kv_source.
type Tier struct {
	mu    sync.Mutex // guards what follows
	size  int
	order *list.List // of Hash, most recently used first
	at    map[Hash]*list.Element
}

// NewTier returns an empty tier of n blocks, at least 1.
func NewTier(n int) *Tier {
	return &Tier{size: n, order: list.New(), at: make(map[Hash]*list.Element, n)}
}

// Match returns the number of leading blocks of chain in the tier, and marks them as used: the
// first of them last, so that the beginning of a chain remains.
func (t *Tier) Match(chain []Hash) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for n < len(chain) && t.at[chain[n]] != nil {
		n++
	}
	for _, name := range slices.Backward(chain[:n]) {
		t.order.MoveToFront(t.at[name])
	}
	return n
}

// Store adds the blocks of chain.
func (t *Tier) Store(chain []Hash) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Backward(chain) {
		if e := t.at[name]; e != nil {
			t.order.MoveToFront(e)
			continue
		}
		if t.order.Len() >= t.size {
			oldest := t.order.Back()
			delete(t.at, t.order.Remove(oldest).(Hash)) //nolint:errcheck // the list holds nothing else
		}
		t.at[name] = t.order.PushFront(name)
	}
}

// Clear empties the tier.
func (t *Tier) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order.Init()
	clear(t.at)
}

// Len returns the number of blocks in the tier.
func (t *Tier) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Len()
}
