package numeric

import (
	"slices"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// standing says where a word is relative to a number of its sentence.
type standing uint8

const (
	absent     standing = iota
	beside              // a name in the previous sentence, but this one has its own subject
	distant             // a name in the group's first sentence, with another subject since
	neighbour           // a name in the previous sentence; this one names nothing
	meant               // a name in the previous sentence, which this one refers to by a pronoun
	ahead               // a name before the colon of the list that the sentence belongs to
	inOther             // in the clause of another number of this dimension
	inSentence          // in a clause without a number of this dimension
	inClause            // in the clause of the number
)

// neighbourName is the weight of a name in the previous sentence. Nearer names weigh up to as much
// as one in the same sentence; our choice.
const neighbourName = 0.5

// together returns the weight of a shared word, in [0,1], by its places in the claim and in the
// evidence. A word that is in the clause of another number on one side only indicates that the
// numbers belong to different things.
func together(claim, evidence standing) float64 {
	switch {
	case evidence == absent:
		return 0
	case evidence == beside:
		return 0.15
	case evidence == distant:
		return 0.25
	case evidence == neighbour:
		return neighbourName
	case evidence == meant:
		return 0.75
	case evidence == ahead:
		return 0.9
	case claim == evidence:
		return 1
	case claim == inOther || evidence == inOther:
		return 0.3
	}
	return 0.9
}

// affinity returns the weighted share of the claim's words that occur with number k of the
// evidence, in [0,1].
func (c *checker) affinity(k int32) float64 {
	if c.all == 0 {
		return 0
	}
	e := &c.x.known[k]
	got := 0.0
	for i := range c.terms {
		if c.left < 0 {
			break
		}
		if t := &c.terms[i]; t.at != absent {
			got += t.weight * together(t.at, c.place(t, e))
		}
	}
	return got / c.all
}

// locate records where the words of the claim are relative to its number v.
func (c *checker) locate(v *quantity.Value) {
	home := c.clause(v.Start)
	c.all = 0
	c.left -= len(c.terms)
	for i := range c.terms {
		t := &c.terms[i]
		t.at = inSentence
		switch {
		case t.date && v.Kind == quantity.Date:
			t.at = absent // other dates do not describe a subject
			continue
		case t.clause == home:
			t.at = inClause
		case t.clause >= 0 && c.claimed(t.clause, v):
			t.at = inOther
		}
		c.all += t.weight
	}
}

// reach returns an upper bound of affinity for the numbers of sentence s.
func (c *checker) reach(s int32) float64 {
	if c.all == 0 {
		return 0
	}
	held, around := float64(c.scores[s]), neighbourName
	if as := c.x.sentences[s].as; as > neighbour {
		around = together(inSentence, as)
	}
	return (held + max(0, c.all-held)*around) / c.all
}

// claimed reports whether a clause of the claim contains another number that v could be confused
// with.
func (c *checker) claimed(clause int32, v *quantity.Value) bool {
	c.left -= len(c.values)
	for i := range c.values {
		if o := &c.values[i]; c.homes[i] == clause && o.Dim.Top() == v.Dim.Top() && o != v {
			return true
		}
	}
	return false
}

// place returns where word t is relative to number e.
func (c *checker) place(t *claimTerm, e *known) standing {
	in := &c.x.sentences[e.sentence]
	best := absent
	c.left -= int(in.termEnd - in.terms)
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if w.hash != t.hash {
			continue
		}
		if c.left < 0 {
			return best
		}
		switch {
		case w.clause == e.clause || in.mixed:
			return inClause
		case e.bare && w.class&words.Name == 0:
			return inClause
		case c.taken(in, w.clause, e) && !c.replacedIn(w.clause, e):
			best = max(best, inOther)
		default:
			best = max(best, inSentence)
		}
	}
	if best == absent && c.replacedBefore(t, e) {
		return meant
	}
	if best == absent {
		return c.placeAround(t, e, in)
	}
	return best
}

// replacedBefore reports whether word t occurs in another sentence, with the number that e
// replaced: "The old price was 30; it is now 20".
func (c *checker) replacedBefore(t *claimTerm, e *known) bool {
	if e.partner < 0 || e.phase != since || c.x.known[e.partner].sentence == e.sentence {
		return false
	}
	in := &c.x.sentences[c.x.known[e.partner].sentence]
	c.left -= int(in.termEnd - in.terms)
	return slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool { return w.hash == t.hash })
}

// replacedIn reports whether a clause contains the other value of e's change, which has the same
// subject.
func (c *checker) replacedIn(clause int32, e *known) bool {
	return e.partner >= 0 && c.x.known[e.partner].clause == clause && c.x.known[e.partner].sentence == e.sentence
}

// placeAround looks for word t, as a name, in the sentence whose subject number e's sentence
// continues, and in the first of its group. A sentence with a subject of its own takes nothing from
// one with a comparable number, because that one is about something else.
func (c *checker) placeAround(t *claimTerm, e *known, in *indexed) standing {
	switch {
	case in.from < 0:
		return absent
	case c.holdsName(in.from, t.hash):
		if in.as == beside && c.rivals(in.from, e) {
			return absent
		}
		return in.as
	}
	head := c.groupHead(e.sentence)
	if head == in.from || !c.holdsName(head, t.hash) || in.as == beside && c.rivals(head, e) {
		return absent
	}
	return min(in.as, distant)
}

// holdsName reports whether sentence s contains the word as a name.
func (c *checker) holdsName(s int32, hash uint64) bool {
	in := &c.x.sentences[s]
	c.left -= int(in.termEnd - in.terms)
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if w.hash == hash && isName(w.class) && !w.date {
			return true
		}
	}
	return false
}

// rivals reports whether sentence s contains a number of the dimension of e.
func (c *checker) rivals(s int32, e *known) bool {
	in := &c.x.sentences[s]
	c.left -= int(in.knownEnd - in.known)
	for k := in.known; k < in.knownEnd; k++ {
		if c.x.known[k].value.Dim.Top() == e.value.Dim.Top() {
			return true
		}
	}
	return false
}

func (c *checker) groupHead(s int32) int32 {
	group := c.x.sentences[s].group
	lo, hi := 0, int(s)
	// Groups are consecutive and ascending.
	for lo < hi {
		mid := (lo + hi) / 2
		if c.x.sentences[mid].group < group {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return int32(lo)
}

// foreignSubject reports whether a sentence continues the subject of another, and the claim has
// none of that sentence's names.
func (c *checker) foreignSubject(in *indexed) bool {
	if in.from < 0 || in.as < neighbour {
		return false
	}
	near, foreign := &c.x.sentences[in.from], false
	for _, w := range c.x.terms[near.terms:near.termEnd] {
		if isName(w.class) && !w.date {
			if c.says(w.hash) {
				return false
			}
			foreign = true
		}
	}
	return foreign
}

// apart is the affinity from which names alone can distinguish a number from the matching one.
const apart = 0.9

// namedApart reports whether only the claim's names distinguish two numbers: other has them, and
// match belongs to something that the claim does not name. This holds however common the name is in
// the evidence.
func (c *checker) namedApart(match, other candidate) bool {
	margin := c.limit.SwapMargin * c.limit.SwapMargin
	if other.score < apart || other.score-match.score < margin || match.sentence == other.sentence || !c.foreignName(match.known) {
		return false
	}
	here := false
	for i := range c.terms {
		t := &c.terms[i]
		if !t.name || t.at == absent {
			continue
		}
		if c.place(t, &c.x.known[match.known]) > distant {
			return false
		}
		here = here || c.place(t, &c.x.known[other.known]) >= ahead
	}
	return here
}

// taken reports whether a clause of a sentence contains another number of the dimension of e.
func (c *checker) taken(in *indexed, clause int32, e *known) bool {
	c.left -= int(in.knownEnd - in.known)
	for k := in.known; k < in.knownEnd; k++ {
		o := &c.x.known[k]
		if o.clause == clause && o.value.Dim.Top() == e.value.Dim.Top() && o != e {
			return true
		}
	}
	return false
}
