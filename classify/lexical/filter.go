package lexical

import "unicode/utf8"

// filter finds the positions in a text where a phrase may begin, by the beginning of the word
// there. It is used before the automaton, which takes several times as long per byte and then reads
// little of a text without phrases. It has no false negatives: a phrase begins and ends at word
// boundaries, and its words are folded like those of the text.
type filter struct {
	fronts [1 << 16 / 64]uint64 // bit set, by hash, of the beginnings of first words
	signs  [256]bool            // first bytes of phrases that do not begin with a word
}

// frontLen is the number of initial bytes of a word that are hashed.
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

// hashFront hashes the beginning of the word at the start of b: up to frontLen bytes of ASCII,
// fewer if the word, or ASCII, ends before.
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

// next returns the first position in text[from:to] where a phrase may begin, or to.
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
