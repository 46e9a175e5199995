package check

import (
	_ "embed" // of the table of rivals
	"slices"
	"strings"
	"sync"

	"signalbox/stream/evidence/words"
)

// loosely are words, by hash, whose antonym may be used for them: a house that stands on a hill
// sits there.
//
//nolint:gochecknoglobals // constant table
var loosely = hashes("sit sits stand stands standing lie come go evening night in out")

//go:embed rivals.txt
var rivalList string

// rivals returns, for each word by hash, the words that exclude it in the same position of a
// sentence: those of rivals.txt and those of opposite meaning.
//
//nolint:gochecknoglobals // constant table
var rivals = sync.OnceValue(func() map[uint64][]uint64 {
	m := map[uint64][]uint64{}
	for word, others := range contraries() {
		if !loosely[word] {
			m[word] = slices.DeleteFunc(slices.Clone(others), func(h uint64) bool { return loosely[h] })
		}
	}
	for line := range strings.Lines(rivalList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		groups := strings.Split(strings.TrimSpace(line), " / ")
		for i, group := range groups {
			for k, other := range groups {
				if i != k {
					exclude(m, group, other)
				}
			}
		}
	}
	return m
})

// exclude records that the words of one group exclude those of another.
func exclude(m map[uint64][]uint64, group, other string) {
	for word := range strings.SplitSeq(group, "|") {
		for rival := range strings.SplitSeq(other, "|") {
			if a, b := hashOf(word), hashOf(rival); a != 0 && b != 0 && a != b && !slices.Contains(m[a], b) {
				m[a] = append(m[a], b)
			}
		}
	}
}

// rival returns the index of the only word of the claim that differs from an aligned sentence: a
// word that excludes it is in its position, or it is a superlative where the sentence has a rank.
// It returns -1 if there is none.
func (m *matcher) rival(sentence []words.Word) int {
	found := -1
	m.eachGap(len(sentence), func(from, to, at, end int) bool {
		w, ok := m.inPlace(from, to, sentence, at, end)
		if !ok || w >= 0 && found >= 0 {
			found = -1
			return false
		}
		found = max(found, w)
		return true
	})
	return found
}

// inPlace compares words [from, to) of the claim with words [at, end) of the sentence. It returns
// the index of the claim's word that is excluded there, or -1 if both say the same. ok is false if
// they differ in another way.
func (m *matcher) inPlace(from, to int, sentence []words.Word, at, end int) (found int, ok bool) {
	found = -1
	for k := from; k < to; k++ {
		w := &m.claim[k]
		there := slices.ContainsFunc(sentence[at:end], func(s words.Word) bool { return m.excludes(k, s) })
		switch {
		case !there && (fillers[w.Hash] || w.Has(words.Negation) || w.Has(words.Stop) && terms[w.Hash] == 0):
		case !there, found >= 0 && (found != k-1 || !m.called(found) || !m.called(k)), indexOf(sentence, w.Hash) >= 0,
			m.saidApart(k):
			return -1, false
		case found >= 0: // a name of several words
		default:
			found = k
		}
	}
	if found < 0 && from == to && to < len(m.claim) && end > at && ranks[sentence[end-1].Hash] &&
		superlatives[m.claim[to].Hash] {
		return to, true
	}
	left := slices.ContainsFunc(sentence[at:end], func(s words.Word) bool {
		return terms[s.Hash] == binding && (found < 0 || !m.excludes(found, s))
	})
	return found, !left
}

// excludes reports whether a word of the sentence excludes word k of the claim in its position: it
// is one of its rivals, both are distinguishing letters such as block A and block B, or both are
// names that the evidence distinguishes.
func (m *matcher) excludes(k int, s words.Word) bool {
	w := &m.claim[k]
	letters := m.letter(k) && s.Has(words.Capital) && s.End-s.Start == 1
	return letters && w.Hash != s.Hash || slices.Contains(rivals()[w.Hash], s.Hash) || m.otherName(k, s)
}

// letter reports whether word k of the claim is a single letter after a word, and not the initial
// of a name.
func (m *matcher) letter(k int) bool {
	length := func(i int) int { return m.claim[i].End - m.claim[i].Start }
	return length(k) == 1 && m.claim[k].Has(words.Capital) && k > 0 && length(k-1) > 1 &&
		(k+1 == len(m.claim) || length(k+1) > 1)
}

// maxNamed is the maximum number of premise words in which names are searched; our choice.
const maxNamed = 1000

// otherName reports whether word k of the claim and a word of the evidence are names of two
// different things: the evidence contains both, never next to each other.
func (m *matcher) otherName(k int, s words.Word) bool {
	w := &m.claim[k]
	if !m.found[k] || w.Hash == s.Hash || len(m.premise) > maxNamed || !m.called(k) || !m.calledSo(s.Hash) {
		return false
	}
	for i := 1; i < len(m.premise); i++ {
		a, b := m.premise[i-1].Hash, m.premise[i].Hash
		if a == w.Hash && b == s.Hash || a == s.Hash && b == w.Hash {
			return false
		}
	}
	return true
}

// called reports whether word k of the claim is capitalised and a name in the evidence.
func (m *matcher) called(k int) bool {
	w := &m.claim[k]
	return w.Has(words.Capital) && !w.Has(words.Stop) && !w.Has(words.Number) && w.End-w.Start > 1 && m.calledSo(w.Hash)
}

// calledSo reports whether a word is a name in the evidence: it occurs inside a sentence and is
// always capitalised.
func (m *matcher) calledSo(hash uint64) bool {
	inner := false
	for _, p := range m.parts {
		for i := p.from; i < p.to; i++ {
			switch w := &m.premise[i]; {
			case w.Hash != hash:
			case !w.Has(words.Capital) || w.Has(words.Stop):
				return false
			default:
				inner = inner || i > p.from
			}
		}
	}
	return inner
}

// rivalOf returns the index of the only word of the claim that differs from a sentence containing
// the other words in any order, apart from words of other sentences. A word that excludes it must
// be next to the same word. It returns -1 if there is none.
func (m *matcher) rivalOf(sentence []words.Word) int {
	found, shared, named := -1, 0, 0
	for i := range m.claim {
		w := &m.claim[i]
		switch {
		case fillers[w.Hash]:
		case (w.Has(words.Number) || w.Has(words.Stop) && terms[w.Hash] != 0) && indexOf(sentence, w.Hash) < 0:
			return -1
		case !m.content[i]:
		case indexOf(sentence, w.Hash) >= 0:
			shared++
		case m.beside(i, sentence):
			if found >= 0 || m.saidApart(i) {
				return -1
			}
			found = i
		case m.found[i]:
			named++
		default:
			return -1
		}
	}
	if shared < 2 || named > shared || found < 0 || named > 0 && m.namesOther(found, sentence) ||
		m.conditional(sentence) || m.converse(found, sentence) {
		return -1
	}
	return found
}

// beside reports whether the sentence has a word that excludes word i of the claim, is not in the
// claim, and has the same neighbour as word i, with or without function words in between.
func (m *matcher) beside(i int, sentence []words.Word) bool {
	for _, other := range rivals()[m.claim[i].Hash] {
		at := indexOf(sentence, other)
		if at < 0 || indexOf(m.claim, other) >= 0 {
			continue
		}
		if i > 0 && at > 0 && m.claim[i-1].Hash == sentence[at-1].Hash ||
			i+1 < len(m.claim) && at+1 < len(sentence) && m.claim[i+1].Hash == sentence[at+1].Hash ||
			same(next(m.claim, i, -1), next(sentence, at, -1)) || same(next(m.claim, i, 1), next(sentence, at, 1)) {
			return true
		}
	}
	return false
}

func same(a, b uint64) bool { return a != 0 && a == b }

// next returns the first content word after index i in steps of step, or 0.
func next(list []words.Word, i, step int) uint64 {
	for i += step; i >= 0 && i < len(list); i += step {
		if !list[i].Has(words.Stop) {
			return list[i].Hash
		}
	}
	return 0
}

// namesOther reports whether the sentence has a name that the claim lacks, so that it may be about
// something else. A name that word k of the claim excludes does not count.
func (m *matcher) namesOther(k int, sentence []words.Word) bool {
	return slices.ContainsFunc(sentence[1:], func(s words.Word) bool {
		return s.Has(words.Name) && !s.Has(words.Stop) && indexOf(m.claim, s.Hash) < 0 && !m.excludes(k, s)
	})
}

// converse reports whether the words around word k of the claim are around its opposite in reverse
// order: "Seville is smaller than Madrid" for "Madrid is larger than Seville".
func (m *matcher) converse(k int, sentence []words.Word) bool {
	others := rivals()[m.claim[k].Hash]
	at := slices.IndexFunc(sentence, func(s words.Word) bool { return slices.Contains(others, s.Hash) })
	// before: a word before k follows its opposite; after: a word after k precedes it.
	before, after := false, false
	for i := range m.claim {
		place := indexOf(sentence, m.claim[i].Hash)
		if !m.content[i] || place < 0 {
			continue
		}
		before = before || i < k && place > at
		after = after || i > k && place < at
	}
	return before && after
}

// amongDays reports whether word k of the claim names a weekday and the text covers days without
// naming each, by a range or by "weekend".
func (m *matcher) amongDays(claim string, k int, text string) bool {
	if _, day := weekdayWords[strings.ToLower(claim[m.claim[k].Start:m.claim[k].End])]; !day {
		return false
	}
	_, ranges := weekOf(daysIn(text), text)
	return ranges || containsAny(text, dayGroups)
}

// conditional reports whether the sentence has a binding condition that the claim does not.
func (m *matcher) conditional(sentence []words.Word) bool {
	return slices.ContainsFunc(sentence, func(w words.Word) bool {
		return terms[w.Hash] == binding && indexOf(m.claim, w.Hash) < 0
	})
}

// saidApart reports whether word k of the claim is in another sentence together with most of its
// other content words. It may be true there.
func (m *matcher) saidApart(k int) bool {
	for _, p := range m.parts {
		if p.from == m.best.from || indexOf(m.premise[p.from:p.to], m.claim[k].Hash) < 0 {
			continue
		}
		shared, others := 0, 0
		for i := range m.claim {
			if i == k || !m.content[i] {
				continue
			}
			if others++; indexOf(m.premise[p.from:p.to], m.claim[i].Hash) >= 0 {
				shared++
			}
		}
		if 2*shared > others {
			return true
		}
	}
	return false
}
