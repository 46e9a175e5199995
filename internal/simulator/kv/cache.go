package kv

import "slices"

// Cache is the blocks of one server and the names of those that can be used again.
type Cache struct {
	blocks []block
	index  map[Hash]int32 // computed blocks by name
	first  int32          // of the blocks that nobody uses: the next to be taken
	last   int32
	idle   int // how many those are
}

// block is one block of memory. prev and next are of the list of idle blocks.
type block struct {
	name       Hash
	named      bool // it is in the index
	refs       int32
	prev, next int32
}

const none = int32(-1)

// Lease is the blocks that a request uses, in the order of its tokens.
type Lease struct {
	chain    []Hash
	blocks   []int32
	hits     int // leading blocks that were found
	computed int // leading blocks that are computed, hits included
}

// Hits is how many leading blocks were in the cache when the lease was taken.
func (l *Lease) Hits() int { return l.hits }

// NewCache returns an empty cache of n blocks, at least 1.
func NewCache(n int) *Cache {
	c := &Cache{blocks: make([]block, n), first: none, last: none}
	c.clear()
	return c
}

// clear makes every block idle and nameless.
func (c *Cache) clear() {
	c.index = make(map[Hash]int32, len(c.blocks))
	c.first, c.last, c.idle = none, none, 0
	for i := range c.blocks {
		c.blocks[i] = block{}
		c.park(int32(i))
	}
}

// Match returns how many leading blocks of chain are in the cache. It touches nothing.
func (c *Cache) Match(chain []Hash) int {
	for i, h := range chain {
		if _, ok := c.index[h]; !ok {
			return i
		}
	}
	return len(chain)
}

// Take gives a request total blocks. The first ones are those of chain that are in the cache, at
// most reuse of them; the others are new, and computed only when Compute says so. It takes nothing
// and reports false when too few blocks are idle. chain may be shorter than total, and must not
// change as long as the lease is used.
func (c *Cache) Take(chain []Hash, reuse, total int) (*Lease, bool) {
	hits := c.Match(chain[:min(reuse, len(chain), total)])
	asleep := 0 // hits that are idle, and so no room for others
	for _, h := range chain[:hits] {
		if c.blocks[c.index[h]].refs == 0 {
			asleep++
		}
	}
	if total-hits > c.idle-asleep {
		return nil, false
	}
	l := &Lease{chain: chain, blocks: make([]int32, 0, total), hits: hits, computed: hits}
	for _, h := range chain[:hits] {
		l.blocks = append(l.blocks, c.wake(c.index[h]))
	}
	for len(l.blocks) < total {
		l.blocks = append(l.blocks, c.fresh())
	}
	return l, true
}

// Compute notes that the first n blocks of a lease are computed now: from now on they are found.
func (c *Cache) Compute(l *Lease, n int) {
	for n = min(n, len(l.chain), len(l.blocks)); l.computed < n; l.computed++ {
		name, i := l.chain[l.computed], l.blocks[l.computed]
		if _, taken := c.index[name]; taken {
			continue // someone else computed the same; this copy stays nameless
		}
		c.index[name] = i
		c.blocks[i].name, c.blocks[i].named = name, true
	}
}

// Release ends a lease. Its last blocks are the first to be given up.
func (c *Cache) Release(l *Lease) {
	for _, i := range slices.Backward(l.blocks) {
		if c.blocks[i].refs--; c.blocks[i].refs == 0 {
			c.park(i)
		}
	}
	l.blocks = nil
}

// Reset forgets every name. Like vLLM's /reset_prefix_cache it does nothing and reports false while
// blocks are in use.
func (c *Cache) Reset() bool {
	if c.InUse() > 0 {
		return false
	}
	c.clear()
	return true
}

// Size is how many blocks there are.
func (c *Cache) Size() int { return len(c.blocks) }

// InUse is how many blocks requests use.
func (c *Cache) InUse() int { return len(c.blocks) - c.idle }

// Named is how many blocks can be found.
func (c *Cache) Named() int { return len(c.index) }

// fresh takes the block that was let go first and forgets what it held.
func (c *Cache) fresh() int32 {
	i := c.wake(c.first)
	if b := &c.blocks[i]; b.named {
		delete(c.index, b.name)
		b.named = false
	}
	return i
}

// wake counts a user of block i and takes it off the list of idle blocks.
func (c *Cache) wake(i int32) int32 {
	b := &c.blocks[i]
	if b.refs++; b.refs > 1 {
		return i
	}
	if b.prev == none {
		c.first = b.next
	} else {
		c.blocks[b.prev].next = b.next
	}
	if b.next == none {
		c.last = b.prev
	} else {
		c.blocks[b.next].prev = b.prev
	}
	c.idle--
	return i
}

// park puts block i at the end of the list of idle blocks, or at its beginning when it holds
// nothing of use.
func (c *Cache) park(i int32) {
	b := &c.blocks[i]
	c.idle++
	if !b.named && c.first != none {
		b.prev, b.next = none, c.first
		c.blocks[c.first].prev, c.first = i, i
		return
	}
	b.prev, b.next = c.last, none
	if c.last == none {
		c.first = i
	} else {
		c.blocks[c.last].next = i
	}
	c.last = i
}
