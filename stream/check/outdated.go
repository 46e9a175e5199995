package check

import (
	"slices"

	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
)

// outdated reports whether the claim states as present what the evidence says was replaced: "The
// office is in Bonn" for "The office moved from Bonn to Cologne". Numbers are not considered here,
// because numeric.Index handles replaced numbers.
func (r *reading) outdated() bool {
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	m.read(r.claim.Text, r.found, r.findings)
	return m.outdated(r.claim.Text, r.found)
}

// outdated is reading.outdated; read must have been called.
func (m *matcher) outdated(claim string, premises []evidence.Premise) bool {
	sentence := m.premise[m.best.from:m.best.to]
	if len(premises) == 0 || len(sentence) == 0 {
		return false
	}
	first := sentence[0].Start
	was, is, ok := numeric.Moved(premises[m.best.of].Text[first:sentence[len(sentence)-1].End])
	if !ok || !numeric.Present(claim) {
		return false
	}
	held := false
	for _, w := range sentence {
		at := w.Start - first
		before, after := was.Start <= at && at < was.End, is.Start <= at && at < is.End
		said := !w.Has(words.Stop) && indexOf(m.claim, w.Hash) >= 0
		if before && w.Has(words.Number) || after && said {
			return false
		}
		held = held || before && said && !twice(sentence, w, was.Start+first, was.End+first)
	}
	return held
}

// twice reports whether a word of a sentence also occurs outside [from, to).
func twice(sentence []words.Word, w words.Word, from, to int) bool {
	return slices.ContainsFunc(sentence, func(o words.Word) bool {
		return o.Hash == w.Hash && (o.Start < from || to <= o.Start)
	})
}

// replaced returns the result for an outdated claim.
func (r *reading) replaced(support float64) Result {
	p := &r.found[0]
	return Result{
		Verdict: Contradicted, Score: min(support, refutedNumber), Source: p.Source, ID: p.ID, Premise: p.Text,
		By: NLI, Reason: "what was, before it changed",
	}
}
