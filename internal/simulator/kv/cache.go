package kv

import "slices"

// Cache holds the blocks of one server and the names of those that can be reused.
type Cache struct {
	blocks []block
	index  map[Hash]int32 // computed blocks by name
	first  int32          // first of the idle blocks: the next to be taken
	last   int32
	idle   int // number of idle blocks
}

// block is one block of memory. prev and next belong to the list of idle blocks.
type block struct {
	name       Hash
	named      bool // it is in the index
	refs       int32
	prev, next int32
}

const none = int32(-1)

// Lease holds the blocks that a request uses, in the order of its tokens.
type Lease struct {
	chain    []Hash
	blocks   []int32
	hits     int // leading blocks found in the cache
	computed int // leading computed blocks, including hits
}

// Hits returns the number of leading blocks that were in the cache when the lease was taken.
func (l *Lease) Hits() int { return l.hits }

// NewCache returns an empty cache of n blocks, at least 1.
func NewCache(n int) *Cache {
	c := &Cache{blocks: make([]block, n), first: none, last: none}
	c.clear()
	return c
}

// clear makes every block idle and unnamed.
func (c *Cache) clear() {
	c.index = make(map[Hash]int32, len(c.blocks))
	c.first, c.last, c.idle = none, none, 0
	for i := range c.blocks {
		c.blocks[i] = block{}
		c.park(int32(i))
	}
}

// Match returns the number of leading blocks of chain in the cache. It does not change their order
// of eviction.
func (c *Cache) Match(chain []Hash) int {
	for i, h := range chain {
		if _, ok := c.index[h]; !ok {
			return i
		}
	}
	return len(chain)
}

// Take gives a request total blocks. The first ones are those of chain that are in the cache, at
// most reuse of them. The others are new and count as computed only after Compute. It takes nothing
// and returns false if too few blocks are idle. chain may be shorter than total, and must not
// change while the lease is in use.
func (c *Cache) Take(chain []Hash, reuse, total int) (*Lease, bool) {
	hits := c.Match(chain[:min(reuse, len(chain), total)])
	asleep := 0 // hits that are idle, so they are not available for other blocks
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

// Compute marks the first n blocks of a lease as computed: from now on they can be found.
func (c *Cache) Compute(l *Lease, n int) {
	for n = min(n, len(l.chain), len(l.blocks)); l.computed < n; l.computed++ {
		name, i := l.chain[l.computed], l.blocks[l.computed]
		if _, taken := c.index[name]; taken {
			continue // another request computed the same block; this copy stays unnamed
		}
		c.index[name] = i
		c.blocks[i].name, c.blocks[i].named = name, true
	}
}

// Release ends a lease. Its last blocks are evicted first.
func (c *Cache) Release(l *Lease) {
	for _, i := range slices.Backward(l.blocks) {
		if c.blocks[i].refs--; c.blocks[i].refs == 0 {
			c.park(i)
		}
	}
	l.blocks = nil
}

// Reset removes all names. Like vLLM's /reset_prefix_cache it does nothing and returns false while
// blocks are in use.
func (c *Cache) Reset() bool {
	if c.InUse() > 0 {
		return false
	}
	c.clear()
	return true
}

// Size returns the number of blocks.
func (c *Cache) Size() int { return len(c.blocks) }

// InUse returns the number of blocks in use by requests.
func (c *Cache) InUse() int { return len(c.blocks) - c.idle }

// Named returns the number of blocks that can be found.
func (c *Cache) Named() int { return len(c.index) }

// fresh takes the block that was released first and removes its name.
func (c *Cache) fresh() int32 {
	i := c.wake(c.first)
	if b := &c.blocks[i]; b.named {
		delete(c.index, b.name)
		b.named = false
	}
	return i
}

// wake counts a user of block i and removes it from the list of idle blocks.
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

// park puts block i at the end of the list of idle blocks, or at its beginning if it holds nothing
// reusable.
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
