package numeric

import (
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// standing tells where a word stands with respect to a number of its sentence.
type standing uint8

const (
	absent     standing = iota
	beside              // a name in a sentence beside one with a name of its own
	neighbour           // a name in the sentence before, or the first of the group: a pronoun may stand for it
	inOther             // in the clause of another number of this dimension
	inSentence          // in a clause with no number of this dimension
	inClause            // in the clause of the number
)

// together weighs a shared word by where it stands in the claim and in the evidence. A word in the clause of another
// number on one side only tells that the numbers belong to different things.
func together(claim, evidence standing) float64 {
	switch {
	case evidence == absent:
		return 0
	case evidence == beside:
		return 0.15
	case evidence == neighbour:
		return 0.5
	case claim == evidence:
		return 1
	case claim == inOther || evidence == inOther:
		return 0.3
	}
	return 0.9
}

// affinity is the share of the claim's words, weighted, that stand with number k of the evidence.
func (c *checker) affinity(k int32) float64 {
	if c.all == 0 {
		return 0
	}
	e := &c.x.known[k]
	got := 0.0
	for i := range c.terms {
		if t := &c.terms[i]; t.at != absent {
			got += t.weight * together(t.at, c.place(t, e))
		}
	}
	return got / c.all
}

// stand notes where the words of the claim stand with respect to its number v.
func (c *checker) stand(v *quantity.Value) {
	home := c.clause(v.Start)
	c.all = 0
	for i := range c.terms {
		t := &c.terms[i]
		t.at = inSentence
		switch {
		case t.date && v.Kind == quantity.Date:
			t.at = absent // other dates tell no subject
			continue
		case t.clause == home:
			t.at = inClause
		case t.clause >= 0 && c.claimed(t.clause, v):
			t.at = inOther
		}
		c.all += t.weight
	}
}

// reach is the most that affinity can be for a number of sentence s.
func (c *checker) reach(s int32) float64 {
	if c.all == 0 {
		return 0
	}
	held := float64(c.scores[s])
	beyond := max(0, c.all-held)
	return (held + beyond/2) / c.all
}

// claimed reports whether a clause of the claim holds a number that v could be taken for.
func (c *checker) claimed(clause int32, v *quantity.Value) bool {
	for i := range c.values {
		if o := &c.values[i]; o.Dim.Top() == v.Dim.Top() && o != v && c.clause(o.Start) == clause {
			return true
		}
	}
	return false
}

// place tells where word t stands with respect to number e.
func (c *checker) place(t *claimTerm, e *known) standing {
	in := &c.x.sentences[e.sentence]
	best := absent
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if w.hash != t.hash {
			continue
		}
		switch {
		case w.clause == e.clause || in.mixed:
			return inClause
		case e.bare && w.class&words.Name == 0:
			return inClause
		case c.taken(in, w.clause, e):
			best = max(best, inOther)
		default:
			best = max(best, inSentence)
		}
	}
	if best == absent {
		return c.placeAround(t, e, in)
	}
	return best
}

// placeAround looks for word t, as a name, in the sentence before that of number e and in the first of its group.
func (c *checker) placeAround(t *claimTerm, e *known, in *indexed) standing {
	for _, s := range [...]int32{e.sentence - 1, c.groupHead(e.sentence)} {
		if s < 0 || s == e.sentence || c.x.sentences[s].group != in.group {
			continue
		}
		near := &c.x.sentences[s]
		for _, w := range c.x.terms[near.terms:near.termEnd] {
			if w.hash == t.hash && w.class&(words.Capital|words.Uncased) != 0 {
				if in.named {
					return beside
				}
				return neighbour
			}
		}
	}
	return absent
}

func (c *checker) groupHead(s int32) int32 {
	group := c.x.sentences[s].group
	lo, hi := 0, int(s)
	for lo < hi { // groups are consecutive and ascending
		mid := (lo + hi) / 2
		if c.x.sentences[mid].group < group {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return int32(lo)
}

// taken reports whether a clause of a sentence holds another number of the dimension of e.
func (c *checker) taken(in *indexed, clause int32, e *known) bool {
	for k := in.known; k < in.knownEnd; k++ {
		o := &c.x.known[k]
		if o.clause == clause && o.value.Dim.Top() == e.value.Dim.Top() && o != e {
			return true
		}
	}
	return false
}
