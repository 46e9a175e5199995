package compress

import _ "embed" // the table

// background is what is known of words in ordinary text, made by training/fixtures/background.py.
// Three parts, sizes in bytes:
//
//   - backgroundHeader: magic, sizes of the parts, probes of the filter, as little-endian 32-bit
//     numbers;
//   - backgroundSlots: a frequency table by hash. A slot holds -8 log2 of the relative frequency of
//     the most frequent word with that slot, in the language where it is most frequent; 0 where no
//     word has it;
//   - backgroundFilter: a Bloom filter of the words that are one token in the vocabulary of BERT.
//
//go:embed background.bin
var background string

// Layout of the file.
const (
	backgroundMagic  = 0x31474253 // "SBG1"
	backgroundHeader = 16
	backgroundFilter = 1 << 15
	backgroundSlots  = 1<<17 - backgroundHeader - backgroundFilter
	filterProbes     = 3
)

// unseenBits is the self-information of a word that is not in the table: it is rarer than the words
// in it, of which the rarest have 19.3 bits.
const unseenBits = 21

// backgroundBits returns the self-information of the word with hash h in ordinary text, in bits.
func backgroundBits(h uint32) float32 {
	c := background[backgroundHeader+(uint64(mix(h))*backgroundSlots)>>32]
	if c == 0 {
		return unseenBits
	}
	return float32(c) / 8
}

// oneToken reports whether the ASCII word with hash h is in the vocabulary; it is true for an
// unknown word with a probability of about 1 %.
func oneToken(h uint32) bool {
	at, step := mix(h), mix(h^backgroundMagic)
	for range filterProbes {
		bit := at % (8 * backgroundFilter)
		if background[backgroundHeader+backgroundSlots+bit>>3]>>(bit&7)&1 == 0 {
			return false
		}
		at += step
	}
	return true
}
