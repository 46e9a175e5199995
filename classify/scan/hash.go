package scan

import "unicode/utf8"

// Multipliers of the n-gram hashes: odd 64-bit numbers without structure (the outputs of SplitMix64
// from state 0, lowest bit set). A sum of symbols times such numbers, of which the top bits are
// used, is the multiply-shift hash of vectors: M. Dietzfelbinger, "Universal hashing and k-wise
// independent random variables via integer arithmetic without primes", STACS 1996.
const (
	k0 uint64 = 0xe220a8397b1dcdaf
	k1 uint64 = 0x6e789e6aa1b965f5
	k2 uint64 = 0x06c45d188009454f
	k3 uint64 = 0xf88bb8a8724c81ed
	k4 uint64 = 0x1b39896a51a8749b
	k5 uint64 = 0x53cb9f0c747ea2eb
	k6 uint64 = 0x2c829abe1f4532e1
	k7 uint64 = 0xc584133ac916ab3d
	k8 uint64 = 0x3ee5789041c98ac3
	k9 uint64 = 0xf3b8488c368cb0a7
	kw uint64 = 0x657eecdd3cb13d09 // rolls through the characters of a word

	salt4 uint64 = 0xc2d326e0055bdef7
	salt5 uint64 = 0x8621a03fe0bbdb7b
	saltW uint64 = 0x8e1f7555983aa92f
)

// pass is one pass over a text.
type pass struct {
	note

	s    *Scanner
	text string
	// The last four symbols, latest first.
	c1, c2, c3, c4 uint64
	// The hash of the current word (0 outside of words) and of the two words before it.
	word, w1, w2 uint64
}

// reset puts the pass at the start of its text, as if white space preceded it.
func (p *pass) reset() {
	p.c1, p.c2, p.c3, p.c4 = ' ', ' ', ' ', ' '
}

// readTo adds the n-grams that end before byte offset end. The end of the text also ends the last
// word.
func (p *pass) readTo(end int) {
	for p.at < end {
		var sym rune
		if c := p.text[p.at]; c < utf8.RuneSelf {
			sym = rune(asciiSymbols[c])
			p.at++
		} else {
			r, n := utf8.DecodeRuneInString(p.text[p.at:])
			sym = symbol(r)
			p.at += n
		}
		if sym == skip || sym == ' ' && p.c1 == ' ' {
			continue
		}
		p.add(uint64(sym))
	}
	if end == len(p.text) {
		p.endWord()
	}
}

// add processes one symbol: it adds the three character n-grams that end with it, and the word that
// it ends.
func (p *pass) add(c uint64) {
	table, shift := p.s.table, p.s.shift&63
	h3 := c*k0 + p.c1*k1 + p.c2*k2
	h4 := h3 + p.c3*k3 + salt4
	h5 := h4 + p.c4*k4 + salt5
	p.sum += int64(table[h3>>shift]) + int64(table[h4>>shift]) + int64(table[h5>>shift])
	p.count += 3
	p.c4, p.c3, p.c2, p.c1 = p.c3, p.c2, p.c1, c
	switch {
	case ideograph(c):
		p.endWord()
		p.word = (c + saltW) * kw
		p.endWord()
	case inWord(c):
		p.word = (p.word + c + saltW) * kw
	default:
		p.endWord()
	}
}

// endWord adds the n-grams of one, two and three words that end here, if there is a current word.
func (p *pass) endWord() {
	if p.word == 0 {
		return
	}
	table, shift := p.s.table, p.s.shift&63
	w := p.word ^ p.word>>29
	p.sum += int64(table[(w*k5)>>shift]) +
		int64(table[(w*k6+p.w1*k7)>>shift]) +
		int64(table[(w*k8+p.w1*k9+p.w2*k5)>>shift])
	p.count += 3
	p.w2, p.w1, p.word = p.w1, w, 0
}
