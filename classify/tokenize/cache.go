package tokenize

import (
	"hash/maphash"
	"sync/atomic"
)

// cacheSlots bounds the memory of a word cache to some megabytes.
const cacheSlots = 1 << 14

// wordCache remembers the tokens of words. It is direct-mapped and lock-free: a word replaces
// whatever shares its slot, so hostile text costs speed, never memory. The hash is seeded.
type wordCache struct {
	seed  maphash.Seed
	slots []cacheSlot
}

type cacheSlot struct{ p atomic.Pointer[cachedPieces] }

// cachedPieces are the tokens of word, with offsets in word. It is immutable.
type cachedPieces struct {
	word   string
	pieces []piece
}

func (c *wordCache) init() {
	c.seed = maphash.MakeSeed()
	c.slots = make([]cacheSlot, cacheSlots)
}

// get returns what is known about word, or nil, and the slot to put it.
func (c *wordCache) get(word []byte) (*cachedPieces, *cacheSlot) {
	slot := &c.slots[maphash.Bytes(c.seed, word)%cacheSlots]
	if k := slot.p.Load(); k != nil && k.word == string(word) {
		return k, slot
	}
	return nil, slot
}

func (s *cacheSlot) put(word []byte, pieces []piece) *cachedPieces {
	k := &cachedPieces{word: string(word), pieces: append([]piece(nil), pieces...)}
	s.p.Store(k)
	return k
}
