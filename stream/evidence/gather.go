package evidence

import (
	"math"
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
)

// What is gathered from a long source, in words where nothing else is said. Chosen on training rows
// of claims about pages (training/RESULTS.md); the training reads pages much the same
// (nli_data.gathered).
const (
	gatherWords    = 72   // of the sentences together
	gatherSentence = 48   // a longer sentence counts as so many of them
	gatherAgain    = 0.15 // of the weight of a word that the picked sentences hold already, beside what it still lacks
	gatherLeft     = 0.2  // of what a word lacks, after a sentence that holds it
	gatherPad      = 15   // added to the length of a sentence, so that very short ones do not win by that
	gatherLength   = 0.3  // power of the length that divides what a sentence brings
	gatherFrom     = 256  // sentences that share most with the claim, from which is picked: bounds the work on large sources
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

// term is a word of the claim that the source holds.
type term struct {
	hash      uint64
	weight    float64
	left      float64 // of the weight, which no picked sentence holds
	sentences []int32 // of the source, ascending
}

// Gather is the text of the sentences of a source that hold most of a claim between them: what a
// claim states may stand in several places of a page, where no window around one sentence holds all
// of it. They come in their order, as one premise without Score whose Sentence is the first of
// them; each is picked for the words that those before it lack, rare ones counting more. They are
// 72 words together at most, of which a sentence of more than 48 takes no more than 48. Where no
// word is shared, the Text is empty and the Sentence -1. Source is an index into the sources of
// New, and e not empty. Safe for concurrent use; takes about as long as For.
func (e *Evidence) Gather(claim string, source int) Premise {
	r := rankers.Get().(*ranker) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer rankers.Put(r)
	g := &r.gather
	defer func() { clear(g.terms) }() // they hold on to the evidence
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

// span is where the sentences of a source begin and end.
func (e *Evidence) span(source int) (first, last int) {
	of := func(s sentence, source int) int { return s.source - source }
	first, _ = slices.BinarySearchFunc(e.sentences, source, of)
	last, _ = slices.BinarySearchFunc(e.sentences, source+1, of)
	return first, last
}

// begin finds the words of the claim that the source holds, and how rare they are in it.
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

// narrow finds the sentences to pick from, and which words each of them holds. It uses the scores
// of r.
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

// next is the sentence of from that brings most for its length, of those that fit into so many
// words.
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

// gain is what sentence i of from brings for its length.
func (g *gatherer) gain(i int) float64 {
	gain := 0.0
	for k, ok := range g.holds[i*len(g.terms) : (i+1)*len(g.terms)] {
		if ok {
			gain += g.terms[k].left + gatherAgain*g.terms[k].weight
		}
	}
	return gain / g.shrink[i]
}

// has reports whether a sentence, or one of the same text, was picked: pages say some things twice.
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
