package tokenize

import (
	"hash/maphash"
	"sync/atomic"
)

// cacheSlots limits the memory of a word cache to some megabytes.
const cacheSlots = 1 << 14

// wordCache caches the tokens of words. It is direct-mapped and lock-free: a word replaces the
// previous one in its slot, so adversarial text costs speed, never memory. The hash is seeded.
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

// cachedWord is the maximum length of a word, in bytes, whose tokens are cached.
const cachedWord = 64

// split appends the tokens of a word of w's text to w.pieces. If the word is not cached, it calls
// tokens, which appends the tokens of a word that begins at byte base.
func (c *wordCache) split(w *work, s span, tokens func(w *work, word []byte, base int32)) {
	word := w.text.b[s.from:s.to]
	if len(word) > cachedWord {
		tokens(w, word, int32(s.from))
		return
	}
	known, slot := c.get(word)
	if known == nil {
		start := len(w.pieces)
		tokens(w, word, 0)
		known = slot.put(word, w.pieces[start:])
		w.pieces = w.pieces[:start]
	}
	for _, p := range known.pieces {
		w.pieces = append(w.pieces, piece{p.id, p.from + int32(s.from), p.to + int32(s.from)})
	}
}

// get returns the cached tokens of word, or nil, and its slot.
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
