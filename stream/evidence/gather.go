package evidence

import (
	"math"
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
)

// What is gathered from a long source. Chosen on training rows of claims about pages (training/RESULTS.md); the training reads
// pages in the same way (nli_data.gathered).
const (
	gatherWords    = 72   // of the sentences together
	gatherSentence = 48   // a longer sentence counts as so many of them
	gatherAgain    = 0.15 // of the weight of a word that the picked sentences hold already, beside what it still lacks
	gatherLeft     = 0.2  // of what a word lacks, after a sentence that holds it
	gatherPad      = 15   // words added to the length of a sentence, so that very short ones do not win by that
	gatherLength   = 0.3  // power of the length that divides what a sentence brings
)

// gatherer is the scratch space of Gather.
type gatherer struct {
	words  []words.Word
	terms  []term
	gains  []float64 // of the sentences of the source
	picked []int32
}

// term is a word of the claim that the source holds.
type term struct {
	hash     uint64
	weight   float64
	left     float64 // of the weight, which no picked sentence holds
	from, to int     // sentences of the source in the posting
}

// Gather is the text of the sentences of a source that hold most of a claim between them: what a claim states may stand in several
// places of a page, where no window around one sentence holds all of it. They come in their order, about 72 words together, as one
// premise whose Sentence is the first of them; each is picked for the words that those before it lack, rare ones counting more. Without
// a shared word, the Text is empty. Source is an index of New. Safe for concurrent use.
func (e *Evidence) Gather(claim string, source int) Premise {
	r := rankers.Get().(*ranker) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer rankers.Put(r)
	g := &r.gather
	first, last := e.span(source)
	g.begin(e, claim, int32(first), int32(last))
	for used := 0; ; {
		best, ok := g.next(e, first, gatherWords-used)
		if !ok {
			break
		}
		used += min(e.sentences[best].words, gatherSentence)
		g.pick(e, int32(best))
	}
	p := Premise{Source: source, ID: e.sources[source].ID, Sentence: -1, Page: e.lengths[source]}
	if len(g.picked) == 0 {
		return p
	}
	slices.Sort(g.picked)
	p.Sentence = int(g.picked[0])
	texts := make([]string, len(g.picked))
	for i, s := range g.picked {
		texts[i] = strings.TrimSpace(e.sentences[s].text)
	}
	p.Text = strings.Join(texts, " ")
	return p
}

// span is where the sentences of a source begin and end.
func (e *Evidence) span(source int) (first, last int) {
	of := func(s sentence, source int) int { return s.source - source }
	first, _ = slices.BinarySearchFunc(e.sentences, source, of)
	last, _ = slices.BinarySearchFunc(e.sentences, source+1, of)
	return first, last
}

// begin finds the words of the claim that the sentences [first,last) hold, and how rare they are among these.
func (g *gatherer) begin(e *Evidence, claim string, first, last int32) {
	g.words = words.Scan(g.words[:0], claim)
	g.terms, g.picked = g.terms[:0], g.picked[:0]
	g.gains = slices.Grow(g.gains[:0], int(last-first))[:last-first]
	for _, w := range g.words {
		if w.Has(words.Stop) || slices.ContainsFunc(g.terms, func(t term) bool { return t.hash == w.Hash }) {
			continue
		}
		list := e.words.postings[w.Hash].sentences
		from, _ := slices.BinarySearch(list, first)
		to, _ := slices.BinarySearch(list, last)
		if from == to {
			continue
		}
		weight := float64(rarity(float64(last-first), float64(to-from)))
		g.terms = append(g.terms, term{hash: w.Hash, weight: weight, left: weight, from: from, to: to})
	}
}

// next is the sentence that brings most for its length, of those that fit into so many words; first is the first of the source.
func (g *gatherer) next(e *Evidence, first, room int) (best int, ok bool) {
	clear(g.gains)
	for _, t := range g.terms {
		for _, s := range e.words.postings[t.hash].sentences[t.from:t.to] {
			g.gains[int(s)-first] += t.left + gatherAgain*t.weight
		}
	}
	most := 0.0
	for i, gain := range g.gains {
		s := &e.sentences[first+i]
		if gain == 0 || min(s.words, gatherSentence) > room {
			continue
		}
		if gain /= math.Pow(float64(s.words+gatherPad), gatherLength); gain > most && !g.has(e, s.text) {
			best, most, ok = first+i, gain, true
		}
	}
	return best, ok
}

// has reports whether a sentence of the same text was picked: pages say some things twice.
func (g *gatherer) has(e *Evidence, text string) bool {
	return slices.ContainsFunc(g.picked, func(s int32) bool { return e.sentences[s].text == text })
}

func (g *gatherer) pick(e *Evidence, s int32) {
	g.picked = append(g.picked, s)
	for i := range g.terms {
		t := &g.terms[i]
		if _, ok := slices.BinarySearch(e.words.postings[t.hash].sentences[t.from:t.to], s); ok {
			t.left *= gatherLeft
		}
	}
}
