package compress

import (
	"math"
	"math/bits"
)

// Stage 3, information. Two scores per piece, both in bits:
//
//   - topic: how much more frequent its terms are in this prompt than in ordinary text, on average,
//     which is the contribution of each term to the Kullback-Leibler divergence of the two
//     distributions; and its position: headings and the first sentences of blocks represent what
//     follows.
//   - alarm: how rare its cues are in this prompt. The rarest typical properties of instructions
//     mark the piece that differs from the rest, whatever the rest is.

const (
	mostBits     = 12.0 // maximum weight of a term or a cue
	fewTerms     = 3.0  // n terms are weighted n/(n+fewTerms): the mean of few is weak evidence
	headingBits  = 1.5
	leadBits     = 0.75
	boilerBits   = -4.0
	rarityWeight = 0.25 // weight of names and numbers
	foreign      = 0.4  // weight of a language other than that of the prompt
)

// score is stage 3. It reports whether it was completed.
func (f *funnel) score() bool {
	self, mask := f.selfInformation()
	cues, tongues, mean := f.rarities()
	for i := range f.pieces {
		if f.ended() {
			return false
		}
		p := &f.pieces[i]
		if p.marks&out != 0 {
			continue
		}
		var sum float32
		for _, t := range f.terms[p.terms.from:p.terms.to] {
			sum += min(max(backgroundBits(uint32(t))-self[mix(uint32(t))&mask], 0), mostBits)
		}
		p.topic = sum / (float32(p.terms.to-p.terms.from) + fewTerms)
		if p.marks&heading != 0 {
			p.topic += headingBits
		}
		if p.marks&leads != 0 {
			p.topic += leadBits
		}
		if p.cues&boiler != 0 {
			p.topic += boilerBits
		}
		for c := p.cues & (named | figures); c != 0; c &= c - 1 {
			p.topic += rarityWeight * cues[bits.TrailingZeros32(uint32(c))]
		}
		// A longer piece than most contains any cue with a higher probability.
		long := float32(math.Log2(max(float64(p.tokens)/mean, 1)))
		for c := p.cues; c != 0; c &= c - 1 {
			k := bits.TrailingZeros32(uint32(c))
			p.alarm += strengthOf[k] * max(cues[k]-long, 0)
		}
		p.alarm += foreign * tongues[p.language]
	}
	return true
}

// selfInformation returns -log2 of the relative frequency of the terms in this prompt, in slots by
// hash: the slot of term t is mix(t) & mask.
func (f *funnel) selfInformation() (self []float32, mask uint32) {
	size := 1 << min(max(bits.Len(uint(2*len(f.terms))), 8), 17)
	mask = uint32(size - 1)
	counts := make([]uint32, size)
	for _, t := range f.terms {
		counts[mix(uint32(t))&mask]++
	}
	self = make([]float32, size)
	total := math.Log2(float64(len(f.terms) + 1))
	for i, n := range counts {
		if n > 0 {
			// Half a count less: a term that occurs once need not be typical of the prompt.
			self[i] = float32(total - math.Log2(float64(n)-0.5))
		}
	}
	return self, mask
}

// rarities returns -log2 of the share of the pieces that have each cue, and of those in each
// language, with one piece added to both counts, so that the bits grow with the length of the
// prompt; and the mean number of tokens per piece.
func (f *funnel) rarities() (cues [cueCount]float32, tongues [len(languages) + 1]float32, mean float64) {
	var have [cueCount]int
	var speak [len(languages) + 1]int
	all, tokens := 0, 0
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.marks&out != 0 {
			continue
		}
		all++
		tokens += int(p.tokens)
		speak[p.language]++
		for c := p.cues; c != 0; c &= c - 1 {
			have[bits.TrailingZeros32(uint32(c))]++
		}
	}
	rarity := func(n int) float32 {
		return float32(min(math.Log2(float64(all+1)/float64(n+1)), mostBits))
	}
	for i, n := range have {
		cues[i] = rarity(n)
	}
	for i, n := range speak[1:] {
		tongues[i+1] = rarity(n)
	}
	return cues, tongues, float64(tokens) / float64(max(all, 1))
}
