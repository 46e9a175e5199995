package evidence

import (
	"math"
	"slices"
	"sync"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
)

// lexical finds sentences by the words they share with a claim.
type lexical struct {
	postings map[uint64]posting
	idfMax   float32 // of a word that is in no sentence
	avgWords float32
}

type posting struct {
	idf       float32
	sentences []int32 // ascending
}

func newLexical(list []sentence) lexical {
	x := lexical{postings: make(map[uint64]posting)}
	var scan []words.Word
	total := 0
	for i := range list {
		scan = words.Scan(scan[:0], list[i].text)
		list[i].words = len(scan)
		total += len(scan)
		for _, w := range scan {
			if w.Has(words.Stop) {
				continue
			}
			p := x.postings[w.Hash]
			if n := len(p.sentences); n == 0 || p.sentences[n-1] != int32(i) {
				p.sentences = append(p.sentences, int32(i))
				x.postings[w.Hash] = p
			}
		}
	}
	n := float64(len(list))
	for h, p := range x.postings {
		p.idf = rarity(n, float64(len(p.sentences)))
		x.postings[h] = p
	}
	x.idfMax = rarity(n, 0.5)
	x.avgWords = float32(total) / float32(max(1, len(list)))
	return x
}

// rarity returns the inverse document frequency as in Lucene's BM25, which is never negative.
func rarity(n, df float64) float32 {
	return float32(math.Log(1 + (n-df+0.5)/(df+0.5)))
}

// Okapi BM25 with term frequency 1; k1 and b as recommended by Robertson and Zaragoza, "The
// Probabilistic Relevance Framework" (2009), section 4.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// Weights of the ranking; our choice. A contradicting number ranks above all words, and names count
// half as much again as other words.
const (
	nameWeight  = 1.5
	otherNumber = 2.0
	sameNumber  = 1.0
	factBonus   = 0.05
)

// ranker is the scratch space of one query.
type ranker struct {
	words    []words.Word
	seen     []uint64
	scores   []float32
	top      []int32
	findings []numeric.Finding
	gather   gatherer
}

//nolint:gochecknoglobals // scratch space, holds nothing between calls
var rankers = sync.Pool{New: func() any { return new(ranker) }}

// For appends the k best premises for a claim to dst, best first, and returns the extended slice.
// findings are the result of Numbers().Check for the claim; if nil, For computes them. Text that
// shares nothing with the claim is never a premise, so there may be fewer than k. Safe for
// concurrent use; allocates only to grow dst.
func (e *Evidence) For(dst []Premise, claim string, findings []numeric.Finding, k int) []Premise {
	if e.Empty() || k <= 0 {
		return dst
	}
	r := rankers.Get().(*ranker) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer rankers.Put(r)
	if findings == nil {
		_, r.findings = e.numbers.Check(r.findings[:0], claim, "")
		findings = r.findings
	}
	r.score(e, claim, findings)
	want := k
	if e.opts.Rerank != nil {
		want = 4 * k
	}
	r.best(want)
	first := len(dst)
	for _, s := range r.top {
		p := e.Premise(int(s))
		p.Score = float64(r.scores[s])
		p.Why = why(findings, int(s))
		dst = append(dst, p)
	}
	if e.opts.Rerank != nil {
		e.opts.Rerank(claim, dst[first:])
		dst = dst[:min(len(dst), first+k)]
	}
	return dst
}

func why(findings []numeric.Finding, sentence int) Why {
	w := SharedWords
	for _, f := range findings {
		switch {
		case f.Sentence != sentence:
		case f.Verdict == numeric.Contradicted:
			return OtherNumber
		case f.Verdict == numeric.Supported:
			w = SameNumber
		}
	}
	return w
}

// score fills r.scores: the share of the claim's weight in each sentence, with the length factor of
// BM25, in [0,1], plus what facts and numbers add.
func (r *ranker) score(e *Evidence, claim string, findings []numeric.Finding) {
	r.scores = slices.Grow(r.scores[:0], len(e.sentences))[:len(e.sentences)]
	clear(r.scores)
	r.words = words.Scan(r.words[:0], claim)
	r.seen = r.seen[:0]
	var all float32
	for _, w := range r.words {
		if w.Has(words.Stop) || slices.Contains(r.seen, w.Hash) {
			continue
		}
		r.seen = append(r.seen, w.Hash)
		weight := float32(1)
		if w.Has(words.Name) {
			weight = nameWeight
		}
		p, ok := e.words.postings[w.Hash]
		if !ok {
			all += weight * e.words.idfMax
			continue
		}
		weight *= p.idf
		all += weight
		for _, s := range p.sentences {
			length := float32(e.sentences[s].words) / e.words.avgWords
			r.scores[s] += weight * min(1, (bm25K1+1)/(1+bm25K1*(1-bm25B+bm25B*length)))
		}
	}
	for s := range r.scores {
		if r.scores[s] > 0 {
			r.scores[s] /= all
			if e.sources[e.sentences[s].source].Fact {
				r.scores[s] += factBonus
			}
		}
	}
	for _, f := range findings {
		switch {
		case f.Sentence < 0:
		case f.Verdict == numeric.Contradicted:
			r.scores[f.Sentence] = max(r.scores[f.Sentence], otherNumber+float32(f.Score))
		case f.Verdict == numeric.Supported:
			r.scores[f.Sentence] = max(r.scores[f.Sentence], sameNumber+float32(f.Score)/2)
		}
	}
}

// best puts the k sentences with the highest scores into r.top, best first. Equal scores keep the
// order of the sentences.
func (r *ranker) best(k int) {
	r.top = r.top[:0]
	for s, score := range r.scores {
		if score <= 0 || len(r.top) == k && score <= r.scores[r.top[k-1]] {
			continue
		}
		if len(r.top) == k {
			r.top = r.top[:k-1]
		}
		at := len(r.top)
		for at > 0 && r.scores[r.top[at-1]] < score {
			at--
		}
		r.top = slices.Insert(r.top, at, int32(s))
	}
}
