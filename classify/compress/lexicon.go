package compress

import (
	"math/bits"
	"strings"
	"sync"
)

// entry is the lexicon entry of a word or a phrase.
type entry struct {
	key   uint32
	tongs uint32 // bit i: a function word of languages[i]
	cues  cueSet
	next  bool // longer phrases begin with it
}

// lexicon finds words, stems and phrases by hash, with open addressing: at most half of a power of
// two of slots is used. Phrases form a trie by combined hashes. Two words with the same hash would
// share their entries; tests ensure that the words of the lists do not.
type lexicon struct {
	slots []entry
	mask  uint32
}

// words builds the lexicon of the lists once.
//
//nolint:gochecknoglobals // constant table
var words = sync.OnceValue(func() *lexicon {
	l := &lexicon{slots: make([]entry, lexiconSlots), mask: lexiconSlots - 1}
	for i := range languages {
		for w := range strings.FieldsSeq(languages[i].words) {
			l.slot(hashWord(w)).tongs |= 1 << i
		}
	}
	phrases(l.addPhrase)
	return l
})

// lexiconSlots is more than twice the entries of the lists.
const lexiconSlots = 1 << 13

// addPhrase adds the words of phrase, one after the other.
func (l *lexicon) addPhrase(phrase string, cue cueSet) {
	text, stem := strings.CutSuffix(phrase, "*")
	chain := uint32(0)
	var last *entry
	for at := 0; ; {
		w, ok := nextWord(text, at, len(text))
		if !ok {
			break
		}
		at = w.end
		if w.kind == mark {
			continue
		}
		if last != nil {
			last.next = true
		}
		key := w.hash
		if stem {
			key = w.stem ^ stemSalt
		}
		chain = link(chain, key)
		last = l.slot(chain)
	}
	if last != nil {
		last.cues |= cue
	}
}

// stemSalt distinguishes stems from words of the same length.
const stemSalt uint32 = 0x5bd1e995

// link returns the key of the phrase made of the phrase with key chain, 0 for none, and the word
// with hash h.
func link(chain, h uint32) uint32 {
	if chain == 0 {
		return h | 1
	}
	return mix(bits.RotateLeft32(chain, 5)^h) | 1
}

// mix spreads h over all bits: the finaliser of MurmurHash3.
func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// hashWord returns the hash of a text that is one word.
func hashWord(text string) uint32 {
	w, _ := nextWord(text, 0, len(text))
	return w.hash | 1
}

// slot returns the entry of key, which must not be 0, and adds it if necessary.
func (l *lexicon) slot(key uint32) *entry {
	for i := mix(key) & l.mask; ; i = (i + 1) & l.mask {
		if e := &l.slots[i]; e.key == key || e.key == 0 {
			e.key = key
			return e
		}
	}
}

// find returns the entry of key, or nil.
func (l *lexicon) find(key uint32) *entry {
	for i := mix(key) & l.mask; ; i = (i + 1) & l.mask {
		e := &l.slots[i]
		if e.key == key {
			return e
		}
		if e.key == 0 {
			return nil
		}
	}
}
