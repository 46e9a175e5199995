package affinity

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Basis is why a block should be in an endpoint's cache. Later ones are better.
type Basis uint8

// The bases.
const (
	Unknown     Basis = iota // nothing speaks for it
	Speculative              // a request with it is on its way
	Predicted                // a request with it was answered
	Confirmed                // an answer reported it as cached, or was the one that put it there
)

// String returns the basis in lower case.
func (b Basis) String() string {
	switch b {
	case Unknown:
		return "unknown"
	case Speculative:
		return "speculative"
	case Predicted:
		return "predicted"
	case Confirmed:
	}
	return "confirmed"
}

// tick is the unit of expiry. 32 bits of it last for 13 years.
const tick = 100 * time.Millisecond

// table is the blocks that one endpoint should have: as many as its cache holds, those used last.
// Of blocks that were used together the last one goes first, as in vLLM, so that what is there of a
// chain is its beginning.
type table struct {
	mu       sync.RWMutex     // guards what follows
	capacity int              // blocks; at least 1
	at       map[uint64]int32 // block -> slot
	slots    []slot
	oldest   int32
	newest   int32
	free     int32 // list of unused slots, linked by next
}

// slot is a block with its neighbours in order of use.
type slot struct {
	block        uint64
	older, newer int32
	expires      uint32 // in ticks since the placer's epoch
	tokens       uint32 // of the prompt up to the end of the block, as answers told; 0 for not told
	basis        Basis
}

const none = int32(-1)

func newTable(capacity int) *table {
	t := &table{capacity: capacity}
	t.clear()
	return t
}

// clear forgets everything.
func (t *table) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.slots = make(map[uint64]int32), nil
	t.oldest, t.newest, t.free = none, none, none
}

// len is how many blocks there are, expired ones included.
func (t *table) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.at)
}

// match returns how many leading blocks are there at a time, the basis of the last of them, and how
// many tokens a prompt has up to its end, 0 where no answer told. It relies on what is there being
// a beginning, and so looks at the logarithm of the length only.
func (t *table) match(class Class, blocks []uint64, now uint32) (n int, basis Basis, tokens int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	low, high := 0, len(blocks) // blocks before low are there, high and after are not
	for low < high {
		middle := int(uint(low+high) >> 1)
		i, ok := t.at[class.block(blocks[middle])]
		if !ok || t.slots[i].expires <= now {
			high = middle
			continue
		}
		low, basis, tokens = middle+1, t.slots[i].basis, int(t.slots[i].tokens)
	}
	return low, basis, tokens
}

// measured notes how many tokens a prompt of so many bytes has whose first blocks these are. Blocks
// whose place is known already, from a shorter prompt, keep it; the others lie evenly between. A
// length that contradicts that of the same blocks before replaces all of it.
func (t *table) measured(class Class, blocks []uint64, bytes, tokens int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	span := float64(max(bytes, len(blocks)*BlockBytes))
	last := t.tokens(class, blocks[len(blocks)-1])
	told := float64(tokens) * float64(len(blocks)*BlockBytes) / span
	anew := last > 0 && math.Abs(told-float64(last)) > told/16
	from, at := 0, 0.0 // the blocks before, and the tokens up to there
	i := none
	for n, text := range blocks {
		next, ok := t.before(i, class.block(text))
		if !ok {
			return
		}
		i = next
		s := &t.slots[i]
		if s.tokens > 0 && int(s.tokens) < tokens && !anew {
			from, at = n+1, float64(s.tokens)
			continue
		}
		part := float64((n+1-from)*BlockBytes) / (span - float64(from*BlockBytes))
		s.tokens = uint32(at + part*(float64(tokens)-at))
	}
}

// tokens is what is known of the length of prompts up to the end of a block, 0 for nothing.
func (t *table) tokens(class Class, block uint64) uint32 {
	if i, ok := t.at[class.block(block)]; ok {
		return t.slots[i].tokens
	}
	return 0
}

// end is until when a block is there; 0 when it is not.
func (t *table) end(class Class, block uint64) uint32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if i, ok := t.at[class.block(block)]; ok {
		return t.slots[i].expires
	}
	return 0
}

// touch notes that the blocks are used, with a basis that holds until expires. What is known
// better, or for longer, stays so; what has expired does not count. Blocks that lie in the order of
// use as a touch before has left them are found by their neighbours, and move together.
func (t *table) touch(class Class, blocks []uint64, basis Basis, now, expires uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, last := none, none // of the slots that move together
	for _, text := range slices.Backward(blocks[:min(len(blocks), t.capacity)]) {
		block := class.block(text)
		i, ok := t.after(last, block)
		if !ok {
			t.renew(first, last)
			if i, ok = t.at[block]; !ok {
				i = t.take()
				t.at[block] = i
				t.slots[i] = slot{block: block}
				t.append(i, i)
			}
			first = i
		}
		last = i
		s := &t.slots[i]
		if s.expires <= now {
			s.basis = Unknown
		}
		s.basis, s.expires = max(s.basis, basis), max(s.expires, expires)
	}
	t.renew(first, last)
}

// after is the slot that was used next after slot i, if that holds the block.
func (t *table) after(i int32, block uint64) (int32, bool) {
	if i == none || t.slots[i].newer == none {
		return none, false
	}
	i = t.slots[i].newer
	return i, t.slots[i].block == block
}

// before is the slot of the block, where the one that was used next after it is slot i as a rule.
func (t *table) before(i int32, block uint64) (int32, bool) {
	if i != none {
		if o := t.slots[i].older; o != none && t.slots[o].block == block {
			return o, true
		}
	}
	i, ok := t.at[block]
	return i, ok
}

// renew makes slots that follow each other the newest ones; none for no slots.
func (t *table) renew(first, last int32) {
	if last != none && last != t.newest {
		t.unlink(first, last)
		t.append(first, last)
	}
}

// cut forgets the blocks.
func (t *table) cut(class Class, blocks []uint64) { t.forget(class, blocks, Confirmed) }

// withdraw forgets those of the blocks that are there on the word of a request under way alone.
func (t *table) withdraw(class Class, blocks []uint64) { t.forget(class, blocks, Speculative) }

// forget forgets those of the blocks whose basis is at most the given one.
func (t *table) forget(class Class, blocks []uint64, most Basis) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range blocks {
		i, ok := t.at[class.block(text)]
		if !ok || t.slots[i].basis > most {
			continue
		}
		t.unlink(i, i)
		delete(t.at, t.slots[i].block)
		t.slots[i].newer, t.free = t.free, i
	}
}

// take returns a slot to be filled, the oldest one when there is no room for more.
func (t *table) take() int32 {
	if len(t.at) >= t.capacity {
		return t.evict()
	}
	if i := t.free; i != none {
		t.free = t.slots[i].newer
		return i
	}
	t.slots = append(t.slots, slot{})
	return int32(len(t.slots) - 1)
}

// evict forgets the block that was not used for longest and returns its slot.
func (t *table) evict() int32 {
	i := t.oldest
	t.unlink(i, i)
	delete(t.at, t.slots[i].block)
	return i
}

// resize changes how many blocks there can be, at least 1.
func (t *table) resize(capacity int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.capacity = capacity; len(t.at) > capacity; {
		i := t.evict()
		t.slots[i].newer, t.free = t.free, i
	}
}

// unlink takes the slots from first to last, which follow each other, out of the order.
func (t *table) unlink(first, last int32) {
	older, newer := t.slots[first].older, t.slots[last].newer
	if older == none {
		t.oldest = newer
	} else {
		t.slots[older].newer = newer
	}
	if newer == none {
		t.newest = older
	} else {
		t.slots[newer].older = older
	}
}

// append makes slots that follow each other the newest ones.
func (t *table) append(first, last int32) {
	t.slots[first].older, t.slots[last].newer = t.newest, none
	if t.newest == none {
		t.oldest = first
	} else {
		t.slots[t.newest].newer = first
	}
	t.newest = last
}
