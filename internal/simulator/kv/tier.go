package kv

import (
	"container/list"
	"slices"
	"sync"
)

// Tier is a copy of computed blocks in a server's main memory, as vLLM's offloading connector keeps
// them. The blocks that were not asked for the longest are given up first. It is safe for
// concurrent use, so that other servers can read it: what a request calls its remote_kv_source.
type Tier struct {
	mu    sync.Mutex // guards what follows
	size  int
	order *list.List // of Hash, the one used last in front
	at    map[Hash]*list.Element
}

// NewTier returns an empty tier of n blocks, at least 1.
func NewTier(n int) *Tier {
	return &Tier{size: n, order: list.New(), at: make(map[Hash]*list.Element, n)}
}

// Match returns how many leading blocks of chain the tier holds, and counts them as used: the first
// of them last, so that what stays of a chain is its beginning.
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

// Store puts in the blocks of chain.
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

// Len is how many blocks the tier holds.
func (t *Tier) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Len()
}
