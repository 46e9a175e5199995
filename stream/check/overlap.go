package check

import (
	"slices"
	"strings"

	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
)

// overlap describes how the words of a claim occur in its premises. Content words are words other
// than function words, negations and parts of a checked number. The best sentence is the one with
// most of them.
type overlap struct {
	words         int     // of the claim
	content       int     // content words of the claim
	missing       int     // content words that no premise has
	weight        float64 // of the content words, by length and name
	missingWeight float64
	names         int // capitalised words inside the claim
	missingNames  int
	missingTools  int     // missing names that are general terms for programs
	best          float64 // share of the content words in the best sentence; 1 without any
	bigrams       float64 // share of the claim's adjacent pairs that a premise has
	run           float64 // longest common run of words, as a share of the claim
	inverted      float64 // share of word pairs in another order in the best sentence
	negated       int     // negations more than in the matching stretch of the best sentence
	denied        int     // negations fewer
	opposed       int     // words whose opposite is there
	replaced      int     // words in the place of others of the best sentence
	replacedNames int     // names among them
	inserted      int     // words where the best sentence has none
	dropped       int     // omitted words of the best sentence
	amount        float64 // 1: different quantity word; 0.5: only one side has one
}

// matcher compares a claim with premises. It is scratch space, kept in a pool.
type matcher struct {
	claim   []words.Word
	content []bool // claim word i is a content word
	found   []bool // claim word i occurs in a premise
	premise []words.Word
	parts   []part
	run     []int32 // length of the common run that ends at a word of the premise
	at      []int32 // positions of the claim's content words in the best sentence
	grid    []int32 // of align
	clauses []int32 // of the words of the best sentence
	stretch [2]int  // range of its words around those shared with the claim
	best    part    // the sentence that the claim was last compared with
	match   []int32 // aligned position of claim word i in the best sentence, or -1
}

// part is a sentence of a premise.
type part struct {
	from, to int // range of matcher.premise
	hits     int
	of       int // index of the premise
}

// nameWeight is the weight of a missing name relative to another word; the ranking of evidence uses
// the same.
const nameWeight = 1.5

// read compares a claim with its premises and returns the result. The matcher keeps the words,
// parts and alignment for later methods.
func (m *matcher) read(claim string, premises []evidence.Premise, findings []numeric.Finding) overlap {
	m.scanClaim(claim, findings)
	m.premise, m.parts = m.premise[:0], m.parts[:0]
	o := overlap{words: len(m.claim)}
	pairs := 0
	for i := range premises {
		from := len(m.premise)
		m.scanPremise(premises[i].Text, i)
		run := m.longestRun(m.premise[from:])
		o.run = max(o.run, share(run, len(m.claim)))
		n := m.neighbours(m.premise[from:])
		pairs = max(pairs, n)
	}
	o.bigrams = share(pairs, len(m.claim)-1)
	m.count(&o)
	m.best = m.bestPart(&o)
	m.compare(&o, m.best)
	return o
}

func share(n, of int) float64 {
	if of <= 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func (m *matcher) scanClaim(claim string, findings []numeric.Finding) {
	m.claim = words.Scan(m.claim[:0], claim)
	m.content = slices.Grow(m.content[:0], len(m.claim))[:len(m.claim)]
	m.found = slices.Grow(m.found[:0], len(m.claim))[:len(m.claim)]
	clear(m.found)
	for i, w := range m.claim {
		m.content[i] = !w.Has(words.Stop) && !w.Has(words.Negation) && !inNumber(w, findings)
	}
}

func inNumber(w words.Word, findings []numeric.Finding) bool {
	return slices.ContainsFunc(findings, func(f numeric.Finding) bool {
		return w.Start < f.End && f.Start < w.End && f.Verdict != numeric.NotCheckable
	})
}

// scanPremise adds the words of a premise and splits them into sentences.
func (m *matcher) scanPremise(text string, of int) {
	from := len(m.premise)
	m.premise = words.Scan(m.premise, text)
	start := from
	for i := from + 1; i < len(m.premise); i++ {
		if a, b := m.premise[i-1].End, m.premise[i].Start; a < b && strings.ContainsAny(text[a:b], ".!?\n。！？") {
			m.parts = append(m.parts, part{from: start, to: i, of: of})
			start = i
		}
	}
	if start < len(m.premise) {
		m.parts = append(m.parts, part{from: start, to: len(m.premise), of: of})
	}
	for i := range m.claim {
		if !m.found[i] {
			m.found[i] = indexOf(m.premise[from:], m.claim[i].Hash) >= 0
		}
	}
}

func indexOf(list []words.Word, hash uint64) int {
	for i := range list {
		if list[i].Hash == hash {
			return i
		}
	}
	return -1
}

// longestRun returns the length, in words, of the longest run that the claim and the premise share.
func (m *matcher) longestRun(premise []words.Word) int {
	m.run = slices.Grow(m.run[:0], len(premise)+1)[:len(premise)+1]
	clear(m.run)
	best := int32(0)
	for i := range m.claim {
		for j, w := range slices.Backward(premise) {
			if m.claim[i].Hash != w.Hash {
				m.run[j+1] = 0
				continue
			}
			m.run[j+1] = m.run[j] + 1
			best = max(best, m.run[j+1])
		}
	}
	return int(best)
}

// neighbours counts the adjacent word pairs of the claim that are adjacent in the premise.
func (m *matcher) neighbours(premise []words.Word) int {
	n := 0
	for i := 1; i < len(m.claim); i++ {
		for j := 1; j < len(premise); j++ {
			if premise[j-1].Hash == m.claim[i-1].Hash && premise[j].Hash == m.claim[i].Hash {
				n++
				break
			}
		}
	}
	return n
}

// count fills in the fields that depend on all premises together.
func (m *matcher) count(o *overlap) {
	for i, w := range m.claim {
		if !m.content[i] {
			continue
		}
		weight := float64(min(w.End-w.Start, 12))
		o.content++
		if w.Has(words.Name) {
			o.names++
			weight *= nameWeight
		}
		o.weight += weight
		if m.found[i] {
			continue
		}
		o.missing++
		o.missingWeight += weight
		if w.Has(words.Name) {
			o.missingNames++
			if tools[w.Hash] {
				o.missingTools++
			}
		}
	}
}

// tools are capitalised words, by hash, for programs and their parts in general, which name none of
// them.
//
//nolint:gochecknoglobals // constant table
var tools = hashes("API APIs URL URLs HTTP HTTPS UI SDK CLI ID IDs")

// bestPart returns the sentence with most content words of the claim, the first of several equals.
// It is empty if there is no premise.
func (m *matcher) bestPart(o *overlap) part {
	best := part{}
	for _, p := range m.parts {
		for i := range m.claim {
			if m.content[i] && m.found[i] && indexOf(m.premise[p.from:p.to], m.claim[i].Hash) >= 0 {
				p.hits++
			}
		}
		if best.to == 0 || p.hits > best.hits {
			best = p
		}
	}
	if o.best = 1; o.content > 0 {
		o.best = share(best.hits, o.content)
	}
	return best
}

// margin is how many words around the aligned stretch belong to it, to include "not" and "all".
const margin = 3

// compare fills in the fields that depend on the best sentence.
func (m *matcher) compare(o *overlap, best part) {
	sentence := m.premise[best.from:best.to]
	m.stretch = [2]int{}
	m.order(o, sentence)
	first, last := m.align(sentence)
	if first < 0 {
		o.inserted = weighty(m.claim)
		return
	}
	m.stretch = [2]int{max(0, first-margin), min(len(sentence), last+1+margin)}
	stretch := sentence[m.stretch[0]:m.stretch[1]]
	delta := negations(m.claim) - negations(stretch)
	o.negated, o.denied = max(0, delta), max(0, -delta)
	o.amount = amountsDiffer(m.claim, stretch)
	m.gaps(o, sentence)
	if o.opposed == 0 {
		o.opposed = m.opposed(sentence, stretch)
	}
}

// opposed counts the words of the claim that the sentence lacks while the stretch contains their
// opposite, which the claim lacks.
func (m *matcher) opposed(sentence, stretch []words.Word) int {
	n := 0
	for _, w := range m.claim {
		if indexOf(sentence, w.Hash) >= 0 {
			continue
		}
		if other := oppositeIn(stretch, w.Hash); other >= 0 && indexOf(m.claim, stretch[other].Hash) < 0 {
			n++
		}
	}
	return n
}

// oppositeIn returns the index of a word of opposite meaning, or -1.
func oppositeIn(list []words.Word, hash uint64) int {
	for _, other := range opposites[hash] {
		if at := indexOf(list, other); at >= 0 {
			return at
		}
	}
	return -1
}

// order computes the share of content word pairs that are in another order in the sentence.
func (m *matcher) order(o *overlap, sentence []words.Word) {
	m.at = m.at[:0]
	for i, w := range m.claim {
		if m.content[i] {
			if j := indexOf(sentence, w.Hash); j >= 0 {
				m.at = append(m.at, int32(j))
			}
		}
	}
	pairs, inverted := 0, 0
	for i := range m.at {
		for k := i + 1; k < len(m.at); k++ {
			pairs++
			if m.at[k] < m.at[i] {
				inverted++
			}
		}
	}
	o.inverted = share(inverted, pairs)
}

// comparatives are words that turn a preceding negation into a bound if a word of thanWords
// follows: "not more than", "pas plus de".
//
//nolint:gochecknoglobals // constant tables
var (
	comparatives = hashes("more less fewer longer shorter older younger later earlier higher lower larger " +
		"smaller greater mehr weniger länger älter später früher höher plus moins más menos " +
		"mais")
	thanWords = hashes("than als de que d")
)

// negations counts the words that deny something.
func negations(list []words.Word) int {
	n := 0
	for i := range list {
		bounds := i+2 < len(list) && comparatives[list[i+1].Hash] && thanWords[list[i+2].Hash]
		if list[i].Has(words.Negation) && !bounds {
			n++
		}
	}
	return n
}

func amountsDiffer(claim, stretch []words.Word) float64 {
	said, there := amountsOf(claim), amountsOf(stretch)
	switch {
	case said == there:
		return 0
	case said != 0 && there != 0 && said&there == 0:
		return 1
	}
	return 0.5
}

// amountsOf returns the set of quantity kinds in a text, one bit per kind.
func amountsOf(list []words.Word) uint16 {
	var bits uint16
	for i := range list {
		if a := amounts[list[i].Hash]; a != noAmount {
			bits |= 1 << a
		}
	}
	return bits
}
