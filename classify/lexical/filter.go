package lexical

import "unicode/utf8"

// filter tells where in a text a phrase may begin, by how the word there begins. It is looked at
// before the automaton, which takes several times as long for a byte and then sees little of a text
// that holds no phrase. It misses no phrase: a phrase begins and ends at the boundaries of words,
// and its words are written as those of the text are.
type filter struct {
	fronts [1 << 16 / 64]uint64 // bits, by hash, of the fronts of first words
	signs  [256]bool            // first bytes of phrases that do not begin with a word
}

// frontLen is how much of a word is looked at, in bytes.
const frontLen = 4

func newFilter(phrases []string) *filter {
	f := new(filter)
	for _, p := range phrases {
		if !inWord[p[0]] {
			f.signs[p[0]] = true
			continue
		}
		h := hashFront([]byte(p))
		f.fronts[h/64] |= 1 << (h % 64)
	}
	return f
}

// hashFront mixes the front of the word that begins b: up to frontLen bytes of ASCII, less where
// the word, or ASCII, ends before.
func hashFront(b []byte) uint32 {
	key := uint32(0)
	for i := range min(frontLen, len(b)) {
		if !inWord[b[i]] {
			break
		}
		key = key<<8 | uint32(b[i])
	}
	return key * 0x9E3779B1 >> 16 // multiplicative hashing by the golden ratio (Knuth, TAOCP 6.4)
}

// next returns the first place in text[from:to] where a phrase may begin, to without one.
func (f *filter) next(text []byte, from, to int) int {
	for i := from; i < to; i++ {
		if !inWord[text[i]] {
			if f.signs[text[i]] {
				return i
			}
			continue
		}
		if i == 0 || !inWord[text[i-1]] {
			if h := hashFront(text[i:]); f.fronts[h/64]>>(h%64)&1 != 0 {
				return i
			}
		}
		for i+1 < to && inWord[text[i+1]] {
			i++
		}
	}
	return to
}

// inWord marks the bytes that make up words in ASCII.
//
//nolint:gochecknoglobals // constant table
var inWord = func() (t [256]bool) {
	for c := range utf8.RuneSelf {
		t[c] = isWord(rune(c))
	}
	return t
}()
