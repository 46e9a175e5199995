package check

import (
	"slices"

	"signalbox/stream/evidence/words"
)

// align aligns the claim with a sentence: it pairs as many equal words as possible in the same
// order. This is the longest common subsequence, found by dynamic programming (Wagner and Fischer,
// "The string-to-string correction problem", JACM 21, 1974). align fills m.match and returns the
// first and the last index in the sentence that has a partner, or -1 if none has.
func (m *matcher) align(sentence []words.Word) (first, last int) {
	n, width := len(m.claim), len(sentence)+1
	m.grid = slices.Grow(m.grid[:0], (n+1)*width)[:(n+1)*width]
	clear(m.grid[n*width:])
	// grid[i][j] is the best result for the claim from word i on and the sentence from word j on.
	for i := n - 1; i >= 0; i-- {
		m.grid[i*width+width-1] = 0
		for j := width - 2; j >= 0; j-- {
			if m.claim[i].Hash == sentence[j].Hash {
				m.grid[i*width+j] = m.grid[(i+1)*width+j+1] + 1
			} else {
				m.grid[i*width+j] = max(m.grid[(i+1)*width+j], m.grid[i*width+j+1])
			}
		}
	}
	m.match = slices.Grow(m.match[:0], n)[:n]
	first, last = -1, -1
	j := 0
	for i := range n {
		m.match[i] = -1
		for j < len(sentence) && m.grid[i*width+j] == m.grid[i*width+j+1] {
			j++ // word j is not needed for the best result
		}
		if j == len(sentence) || m.claim[i].Hash != sentence[j].Hash {
			continue
		}
		m.match[i], last = int32(j), j
		if first < 0 {
			first = j
		}
		j++
	}
	return first, last
}

// gaps compares the words between aligned words on both sides. Words before the first and after the
// last aligned one can count as replaced, but not as dropped, because a claim may be part of a
// sentence.
func (m *matcher) gaps(o *overlap, sentence []words.Word) {
	m.eachGap(len(sentence), func(from, to, at, end int) bool {
		left := o.gap(m.claim[from:to], sentence[at:end])
		if from > 0 && to < len(m.claim) {
			o.dropped += left
			o.turned(m.claim[from:to], sentence[at:end])
		}
		return true
	})
}

// eachGap calls gap for each stretch between two aligned words, before the first and after the
// last: words [from, to) of the claim and [at, end) of a sentence of size words. It stops if gap
// returns false.
func (m *matcher) eachGap(size int, gap func(from, to, at, end int) bool) {
	from, at := 0, 0
	for i := 0; i <= len(m.claim); i++ {
		end := size
		if i < len(m.claim) {
			if m.match[i] < 0 {
				continue
			}
			end = int(m.match[i])
		}
		if !gap(from, i, at, end) {
			return
		}
		from, at = i+1, end+1
	}
}

// gap compares one stretch that is not aligned and counts replaced and inserted words. It returns
// how many content words of the sentence are left over.
func (o *overlap) gap(claim, sentence []words.Word) (left int) {
	said, there := weighty(claim), weighty(sentence)
	both := min(said, there)
	o.replaced += both
	o.inserted += said - both
	for _, w := range claim {
		if both > 0 && w.Has(words.Name) {
			o.replacedNames++
		}
	}
	return there - both
}

// turned counts the words of a stretch whose opposite is in the corresponding stretch of the
// sentence.
func (o *overlap) turned(claim, sentence []words.Word) {
	for _, w := range claim {
		if oppositeIn(sentence, w.Hash) >= 0 {
			o.opposed++
		}
	}
}

// weighty returns the number of words other than function words; negations count.
func weighty(list []words.Word) int {
	n := 0
	for i := range list {
		if !list[i].Has(words.Stop) || list[i].Has(words.Negation) {
			n++
		}
	}
	return n
}
