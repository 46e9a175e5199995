package evidence

import (
	"math"
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
)

// Parameters of Gather, in words unless noted. They were chosen on training rows of claims about
// pages (training/RESULTS.md); the training reads pages in nearly the same way (nli_data.gathered).
const (
	gatherWords    = 72 // maximum length of the sentences together
	gatherSentence = 48 // maximum length that a sentence counts for
	// Share of a word's weight that always counts, even if a picked sentence already has the word.
	gatherAgain = 0.15
	gatherLeft  = 0.2 // share of the missing weight that remains after a sentence with the word
	// Added to the length of a sentence, so that very short ones do not win because of their
	// length.
	gatherPad    = 15
	gatherLength = 0.3 // exponent of the length by which the gain is divided
	// Number of sentences with the best overlap to pick from. It limits the work on large sources.
	gatherFrom = 256
)

// gatherer is the scratch space of Gather.
type gatherer struct {
	words  []words.Word
	terms  []term
	from   []int32 // sentences to pick from, ascending
	holds  []bool  // [sentence of from][term]
	shrink []float64
	picked []int32
}

// term is a word of the claim that the source contains.
type term struct {
	hash      uint64
	weight    float64
	left      float64 // part of the weight that no picked sentence covers
	sentences []int32 // of the source, ascending
}

// Gather returns one premise with the sentences of a source that together contain most of a claim.
// On a page these may be in several places, so that no window around one sentence contains them.
// Each sentence is picked for the words that the earlier ones lack; rare words count more. The text
// has at most 72 words, where a longer sentence counts for at most 48.
//
// The sentences are in the order of the source; Sentence is the index of the first, and Score is
// not set. If no word is shared, Text is empty and Sentence is -1. source is an index into the
// sources of New, and e must not be empty. Safe for concurrent use; takes about as long as For.
func (e *Evidence) Gather(claim string, source int) Premise {
	r := rankers.Get().(*ranker) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer rankers.Put(r)
	g := &r.gather
	defer func() { clear(g.terms) }() // they refer to the evidence
	g.begin(e, claim, source)
	g.narrow(e, r)
	for used := 0; ; {
		best, ok := g.next(e, gatherWords-used)
		if !ok {
			break
		}
		used += min(e.sentences[g.from[best]].words, gatherSentence)
		g.pick(best)
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

// span returns the range of the sentences of a source.
func (e *Evidence) span(source int) (first, last int) {
	of := func(s sentence, source int) int { return s.source - source }
	first, _ = slices.BinarySearchFunc(e.sentences, source, of)
	last, _ = slices.BinarySearchFunc(e.sentences, source+1, of)
	return first, last
}

// begin finds the words of the claim that the source contains, and how rare they are in it.
func (g *gatherer) begin(e *Evidence, claim string, source int) {
	first, last := e.span(source)
	g.words = words.Scan(g.words[:0], claim)
	g.terms, g.picked = g.terms[:0], g.picked[:0]
	for _, w := range g.words {
		if w.Has(words.Stop) || slices.ContainsFunc(g.terms, func(t term) bool { return t.hash == w.Hash }) {
			continue
		}
		list := e.words.postings[w.Hash].sentences
		from, _ := slices.BinarySearch(list, int32(first))
		to, _ := slices.BinarySearch(list, int32(last))
		if from == to {
			continue
		}
		weight := float64(rarity(float64(last-first), float64(to-from)))
		g.terms = append(g.terms, term{hash: w.Hash, weight: weight, left: weight, sentences: list[from:to]})
	}
}

// narrow finds the sentences to pick from, and which words each of them contains. It uses the
// scores of r.
func (g *gatherer) narrow(e *Evidence, r *ranker) {
	r.scores = slices.Grow(r.scores[:0], len(e.sentences))[:len(e.sentences)]
	clear(r.scores)
	for _, t := range g.terms {
		for _, s := range t.sentences {
			r.scores[s] += float32(t.weight)
		}
	}
	r.best(gatherFrom)
	g.from = append(g.from[:0], r.top...)
	slices.Sort(g.from)
	g.holds, g.shrink = g.holds[:0], g.shrink[:0]
	for _, s := range g.from {
		g.shrink = append(g.shrink, math.Pow(float64(e.sentences[s].words+gatherPad), gatherLength))
		for i := range g.terms {
			_, ok := slices.BinarySearch(g.terms[i].sentences, s)
			g.holds = append(g.holds, ok)
		}
	}
}

// next returns the sentence of from with the highest gain, among those that fit into room words. ok
// is false if there is none.
func (g *gatherer) next(e *Evidence, room int) (best int, ok bool) {
	most := 0.0
	for i, s := range g.from {
		if min(e.sentences[s].words, gatherSentence) > room {
			continue
		}
		if gain := g.gain(i); gain > most && !g.has(e, s) {
			best, most, ok = i, gain, true
		}
	}
	return best, ok
}

// gain returns what sentence i of from contributes relative to its length.
func (g *gatherer) gain(i int) float64 {
	gain := 0.0
	for k, ok := range g.holds[i*len(g.terms) : (i+1)*len(g.terms)] {
		if ok {
			gain += g.terms[k].left + gatherAgain*g.terms[k].weight
		}
	}
	return gain / g.shrink[i]
}

// has reports whether a sentence, or one with the same text, was picked. Pages repeat some
// sentences.
func (g *gatherer) has(e *Evidence, sentence int32) bool {
	text := e.sentences[sentence].text
	return slices.ContainsFunc(g.picked, func(s int32) bool { return e.sentences[s].text == text })
}

func (g *gatherer) pick(i int) {
	g.picked = append(g.picked, g.from[i])
	for k, ok := range g.holds[i*len(g.terms) : (i+1)*len(g.terms)] {
		if ok {
			g.terms[k].left *= gatherLeft
		}
	}
}
