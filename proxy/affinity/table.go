package affinity

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Basis is the reason why a block should be in an endpoint's cache. Higher values are more
// reliable.
type Basis uint8

// The bases.
const (
	Unknown     Basis = iota // no reason
	Speculative              // a request with it is in flight
	Predicted                // a request with it was answered
	Confirmed                // reported as cached by a response, or just put there by a request
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

// tick is the unit of expiry times. 32 bits of it last for 13 years.
const tick = 100 * time.Millisecond

// table holds the blocks that one endpoint should have cached: as many as its cache holds, in order
// of use. Of blocks that were used together the last one is evicted first, as in vLLM, so that what
// remains of a chain is its beginning.
type table struct {
	mu       sync.RWMutex     // guards the fields below
	capacity int              // in blocks; at least 1
	at       map[uint64]int32 // from block to slot
	slots    []slot
	oldest   int32
	newest   int32
	free     int32 // first unused slot, linked by newer
}

// slot is a block with its neighbours in order of use.
type slot struct {
	block        uint64
	older, newer int32
	expires      uint32 // in ticks since the placer's epoch
	// length of the prompt up to the end of the block, as reported; 0 if not reported
	tokens uint32
	basis  Basis
}

const none = int32(-1)

func newTable(capacity int) *table {
	t := &table{capacity: capacity}
	t.clear()
	return t
}

// clear removes all blocks.
func (t *table) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.slots = make(map[uint64]int32), nil
	t.oldest, t.newest, t.free = none, none, none
}

// len returns the number of blocks, including expired ones.
func (t *table) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.at)
}

// match returns the number of leading blocks that are cached at now, the basis of the last of them,
// and the number of prompt tokens up to its end, 0 if not reported. It assumes that the cached
// blocks form a beginning, so a binary search suffices.
func (t *table) match(class Class, blocks []uint64, now uint32) (n int, basis Basis, tokens int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	low, high := 0, len(blocks) // blocks before low are cached, those from high on are not
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

// measured records the length, in tokens, of a prompt of that many bytes with these first blocks.
// Blocks whose position is known from a shorter prompt keep it; the others are interpolated evenly.
// A length that contradicts an earlier one for the same blocks replaces all positions.
func (t *table) measured(class Class, blocks []uint64, bytes, tokens int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	span := float64(max(bytes, len(blocks)*BlockBytes))
	last := t.tokens(class, blocks[len(blocks)-1])
	told := float64(tokens) * float64(len(blocks)*BlockBytes) / span
	anew := last > 0 && math.Abs(told-float64(last)) > told/16
	from, at := 0, 0.0 // blocks done so far, and the tokens up to there
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

// tokens returns the known length of prompts up to the end of a block; 0 if unknown.
func (t *table) tokens(class Class, block uint64) uint32 {
	if i, ok := t.at[class.block(block)]; ok {
		return t.slots[i].tokens
	}
	return 0
}

// end returns when a block expires; 0 when it is not in the table.
func (t *table) end(class Class, block uint64) uint32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if i, ok := t.at[class.block(block)]; ok {
		return t.slots[i].expires
	}
	return 0
}

// touch records that the blocks are used, on a basis that holds until expires. A better basis and a
// later expiry are kept, unless expired. Blocks that are still in the order of an earlier touch are
// found through their neighbours and move together.
func (t *table) touch(class Class, blocks []uint64, basis Basis, now, expires uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, last := none, none // the run of slots that move together
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

// after returns the slot used right after slot i, if it holds the block.
func (t *table) after(i int32, block uint64) (int32, bool) {
	if i == none || t.slots[i].newer == none {
		return none, false
	}
	i = t.slots[i].newer
	return i, t.slots[i].block == block
}

// before returns the slot of the block. Usually it is the one used right before slot i.
func (t *table) before(i int32, block uint64) (int32, bool) {
	if i != none {
		if o := t.slots[i].older; o != none && t.slots[o].block == block {
			return o, true
		}
	}
	i, ok := t.at[block]
	return i, ok
}

// renew makes a run of slots the newest; none means no slots.
func (t *table) renew(first, last int32) {
	if last != none && last != t.newest {
		t.unlink(first, last)
		t.append(first, last)
	}
}

// cut removes the blocks.
func (t *table) cut(class Class, blocks []uint64) { t.forget(class, blocks, Confirmed) }

// withdraw removes those of the blocks that are known only from a request in flight.
func (t *table) withdraw(class Class, blocks []uint64) { t.forget(class, blocks, Speculative) }

// forget removes those of the blocks whose basis is at most most.
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

// take returns a slot to fill, evicting the oldest block when the table is full.
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

// evict removes the least recently used block and returns its slot.
func (t *table) evict() int32 {
	i := t.oldest
	t.unlink(i, i)
	delete(t.at, t.slots[i].block)
	return i
}

// resize changes the capacity in blocks, at least 1.
func (t *table) resize(capacity int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.capacity = capacity; len(t.at) > capacity; {
		i := t.evict()
		t.slots[i].newer, t.free = t.free, i
	}
}

// unlink removes the run of slots from first to last from the order.
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

// append makes a run of slots the newest.
func (t *table) append(first, last int32) {
	t.slots[first].older, t.slots[last].newer = t.newest, none
	if t.newest == none {
		t.oldest = first
	} else {
		t.slots[t.newest].newer = first
	}
	t.newest = last
}
