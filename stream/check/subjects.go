package check

import (
	"slices"

	"signalbox/stream/evidence/words"
)

// maxSentences is the maximum number of premise sentences that are distinguished.
const maxSentences = 64

// back are words that begin a sentence about an earlier subject.
//
//nolint:gochecknoglobals // constant table
var back = hashes(`it he she they this that these those its his her their there both each here`)

// crossed reports whether the claim combines its subject with words that the evidence has only in a
// sentence about another subject: "Osei treats adults" for "Kim treats adults. Osei treats
// children".
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

// about returns a bit set of the sentences with word i of the claim, its subject, and with the
// letter, number or name after it that distinguishes it ("Plan B", "Version 3.1").
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

// holding returns a bit set of the sentences with a word.
func (m *matcher) holding(hash uint64) (set uint64) {
	for p, in := range m.parts {
		if indexOf(m.premise[in.from:in.to], hash) >= 0 {
			set |= 1 << p
		}
	}
	return set
}

// headOf returns the first content word of a sentence, or 0.
func headOf(sentence []words.Word) uint64 {
	for i := range sentence {
		if !sentence[i].Has(words.Stop) && !sentence[i].Has(words.Negation) {
			return sentence[i].Hash
		}
	}
	return 0
}
