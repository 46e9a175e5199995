package numeric

import (
	"slices"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// standing tells where a word stands with respect to a number of its sentence.
type standing uint8

const (
	absent     standing = iota
	beside              // a name in a sentence that goes before one with a subject of its own
	distant             // a name in the first sentence of the group, where another subject came since
	neighbour           // a name in the sentence before one that names nothing: it may go on about it
	meant               // a name in the sentence before one with a pronoun, which stands for it
	ahead               // a name before the colon of the list that the sentence is an item of
	inOther             // in the clause of another number of this dimension
	inSentence          // in a clause with no number of this dimension
	inClause            // in the clause of the number
)

// neighbourName weighs a name of the sentence before. Names nearer than that are weighed up to one
// in the same sentence; our choice.
const neighbourName = 0.5

// together weighs a shared word by where it stands in the claim and in the evidence. A word in the
// clause of another number on one side only tells that the numbers belong to different things.
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

// affinity is the share of the claim's words, weighted, that stand with number k of the evidence.
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

// locate notes where the words of the claim stand with respect to its number v.
func (c *checker) locate(v *quantity.Value) {
	home := c.clause(v.Start)
	c.all = 0
	c.left -= len(c.terms)
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
	held, around := float64(c.scores[s]), neighbourName
	if as := c.x.sentences[s].as; as > neighbour {
		around = together(inSentence, as)
	}
	return (held + max(0, c.all-held)*around) / c.all
}

// claimed reports whether a clause of the claim holds a number that v could be taken for.
func (c *checker) claimed(clause int32, v *quantity.Value) bool {
	c.left -= len(c.values)
	for i := range c.values {
		if o := &c.values[i]; c.homes[i] == clause && o.Dim.Top() == v.Dim.Top() && o != v {
			return true
		}
	}
	return false
}

// place tells where word t stands with respect to number e.
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

// replacedBefore reports whether word t stands in another sentence, with the number that e took the
// place of: "The old price was 30; it is now 20".
func (c *checker) replacedBefore(t *claimTerm, e *known) bool {
	if e.partner < 0 || e.phase != since || c.x.known[e.partner].sentence == e.sentence {
		return false
	}
	in := &c.x.sentences[c.x.known[e.partner].sentence]
	c.left -= int(in.termEnd - in.terms)
	return slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool { return w.hash == t.hash })
}

// replacedIn reports whether a clause tells what number e took the place of, or what took its place:
// that is the same thing.
func (c *checker) replacedIn(clause int32, e *known) bool {
	return e.partner >= 0 && c.x.known[e.partner].clause == clause && c.x.known[e.partner].sentence == e.sentence
}

// placeAround looks for word t, as a name, in the sentence whose subject goes on in that of number
// e, and in the first of its group. A sentence with a subject of its own takes nothing from one
// that says the same kind of thing of another.
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

// holdsName reports whether sentence s holds the word as a name.
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

// rivals reports whether sentence s holds a number of the dimension of e.
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

// foreignSubject reports whether a sentence goes on about what another names, and the claim has
// none of those names.
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

// apart is how much of the claim must stand with a number for names alone to tell it from one that
// matches.
const apart = 0.9

// namedApart reports whether two numbers have the words of the claim but not its names: other has
// them, and match is that of something the claim does not name. However common a name is in the
// evidence, it tells the two apart.
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

// taken reports whether a clause of a sentence holds another number of the dimension of e.
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
