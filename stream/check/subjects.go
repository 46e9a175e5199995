package check

import (
	"slices"

	"signalbox/stream/evidence/words"
)

// maxSentences bounds the sentences of the premises that are told apart.
const maxSentences = 64

// back are words that a sentence begins with which goes on about what another one spoke of.
//
//nolint:gochecknoglobals // constant table
var back = hashes(`it he she they this that these those its his her their there both each here`)

// crossed reports whether the claim says of its first word what a sentence that does not have this
// word says of another ("Osei treats adults" of "Kim treats adults. Osei treats children").
func (m *matcher) crossed() bool {
	subject := slices.Index(m.content, true)
	if subject < 0 || len(m.parts) < 2 || len(m.parts) > maxSentences {
		return false
	}
	about := m.about(subject)
	if about == 0 {
		return false
	}
	for p, in := range m.parts {
		sentence := m.premise[in.from:in.to]
		head := headOf(sentence)
		if about>>p&1 != 0 || head == 0 || kinds[head] || back[sentence[0].Hash] {
			continue
		}
		if head != m.claim[subject].Hash && indexOf(m.claim, head) >= 0 {
			continue
		}
		for i := range m.claim {
			if h := m.claim[i].Hash; m.content[i] && indexOf(sentence, h) >= 0 && m.holding(h)&about == 0 {
				return true
			}
		}
	}
	return false
}

// about is the set of sentences, a bit each, that hold the first word of the claim, at place i, and
// what tells it from others of its kind: the letter, number or name right behind it ("Plan B",
// "Version 3.1").
func (m *matcher) about(i int) uint64 {
	set := m.holding(m.claim[i].Hash)
	for k := i + 1; k < len(m.claim); k++ {
		w := &m.claim[k]
		if !w.Has(words.Number) && !w.Has(words.Name) && w.End-w.Start > 1 {
			break
		}
		narrow := set & m.holding(w.Hash)
		if narrow == 0 {
			break
		}
		set = narrow
	}
	return set
}

// holding is the set of sentences that have a word, a bit each.
func (m *matcher) holding(hash uint64) (set uint64) {
	for p, in := range m.parts {
		if indexOf(m.premise[in.from:in.to], hash) >= 0 {
			set |= 1 << p
		}
	}
	return set
}

// headOf is the first content word of a sentence, 0 for none.
func headOf(sentence []words.Word) uint64 {
	for i := range sentence {
		if !sentence[i].Has(words.Stop) && !sentence[i].Has(words.Negation) {
			return sentence[i].Hash
		}
	}
	return 0
}
