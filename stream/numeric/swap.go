package numeric

import (
	"slices"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// swapped reports whether the number of the claim belongs to another subject: other fits the claim
// better than match, and match stands with words that the claim lacks.
func (c *checker) swapped(v *quantity.Value, match, other candidate) bool {
	if other.sentence < 0 || c.tense == since && other.known >= 0 && c.x.known[other.known].partner == match.known {
		return false
	}
	if v.Dim == quantity.Plain && match.sentence != other.sentence && c.oneOfMany(other.known) {
		return false
	}
	if c.otherCell(match, other) || c.otherKind(v, match, other) {
		return true
	}
	if other.score < c.limit.SwapFloor || c.belongs(v, match, other) {
		return false
	}
	margin := c.limit.SwapMargin
	if v.Kind == quantity.Date {
		margin = c.limit.DateMargin
	}
	if other.score-match.score < margin && !c.namedApart(match, other) && !c.otherSection(match, other) {
		return false
	}
	if c.sameNoun(match) && !c.sameNoun(other) {
		return false // both count the same things, the other number counts something else
	}
	in := &c.x.sentences[other.sentence]
	for k := in.known; k < in.knownEnd; k++ {
		c.left -= comparing
		e := &c.x.known[k]
		if c.agree(v, k) != quantity.Differs && !c.denies(v, e) && !c.forOther(e) && !c.foreignClause(k) {
			return false // the sentence about the subject has the number as well
		}
	}
	return c.foreignClause(match.known) || match.sentence != other.sentence && c.foreignName(match.known)
}

// belongs reports whether the claim's number belongs where match stands, however well its words fit
// other.
func (c *checker) belongs(v *quantity.Value, match, other candidate) bool {
	return c.sameSubject(match, other) || c.saysBoth(match, other) || c.saysMore(match) || c.goesOn(match, other) ||
		c.ofPronoun(v, match, other) || c.inTime(match, other) || c.ofItsPart(v, other) ||
		v.Kind == quantity.Clock && c.namedHere(match, other) ||
		v.Side != quantity.NoSide && c.besideIt(other)
}

// saysMore reports whether another amount of the claim, with a unit, stands in the sentence of match: "1,200
// mg in 24 hours".
func (c *checker) saysMore(match candidate) bool {
	in := &c.x.sentences[match.sentence]
	if in.row {
		return false
	}
	own, at := c.ownNear()
	for i := range own {
		v := &own[i]
		if i == at || v.Kind != quantity.Count || v.Dim == quantity.Plain || v.Dim == own[at].Dim {
			continue
		}
		for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
			c.left -= comparing
			if e := &c.x.known[k].value; e.Dim == v.Dim && quantity.Compare(v, e) == quantity.Equal {
				return true
			}
		}
	}
	return false
}

// cellFloor is how well a cell must fit those words of the claim that stand with it or the other one;
// our choice.
const cellFloor = 0.5

// otherCell reports whether match and other are cells of a table and the claim tells that it means
// the latter: by the head of its column in one row, else by what names its row. Words of the claim
// that stand with neither tell nothing.
func (c *checker) otherCell(match, other candidate) bool {
	m, o := &c.x.sentences[match.sentence], &c.x.sentences[other.sentence]
	if !m.row || !o.row || m.group != o.group || match.known < 0 || other.known < 0 {
		return false
	}
	if match.sentence == other.sentence {
		return c.headed(match.known, other.known)
	}
	all, here, there := 0.0, 0.0, 0.0
	for i := range c.terms {
		t := &c.terms[i]
		if c.left < 0 {
			return false
		}
		if t.at == absent || t.at == inOther {
			continue
		}
		in, out := together(t.at, c.place(t, &c.x.known[match.known])), together(t.at, c.place(t, &c.x.known[other.known]))
		if in > 0 || out > 0 {
			all, here, there = all+t.weight, here+t.weight*in, there+t.weight*out
		}
	}
	return all > 0 && there >= cellFloor*all && there-here >= c.limit.SwapMargin*all
}

// oneOfMany reports whether the row of number k has another without a unit, and the claim has no word
// of what k is: "2 open pull requests" means neither the additions nor the deletions of one.
func (c *checker) oneOfMany(k int32) bool {
	e, many := &c.x.known[k], false
	in := &c.x.sentences[e.sentence]
	if !in.row || e.value.Dim != quantity.Plain {
		return false
	}
	for i := in.known; i < in.knownEnd; i++ {
		c.left -= comparing
		o := &c.x.known[i].value
		many = many || i != k && o.Kind == quantity.Count && o.Dim == quantity.Plain
	}
	if !many {
		return false
	}
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if w.clause == e.clause && w.class&words.Number == 0 && c.says(w.hash) {
			return false
		}
	}
	return true
}

// otherKind reports whether match is of another kind than v, told by its unit or by what it counts, and
// other of its own: 5 GB is not the 5 of "5 users and 20 GB". A unit alone does not tell what is meant
// by a number in a sentence that fits better.
func (c *checker) otherKind(v *quantity.Value, match, other candidate) bool {
	if match.known < 0 || other.known < 0 {
		return false
	}
	m, o := &c.x.known[match.known], &c.x.known[other.known]
	if m.value.Kind != quantity.Count || o.value.Kind != quantity.Count ||
		m.value.Dim == o.value.Dim || v.Dim != o.value.Dim {
		return false
	}
	if v.Dim == quantity.Plain {
		return c.sameNoun(other)
	}
	return m.value.Dim == quantity.Plain && m.noun != 0 && !c.x.sentences[match.sentence].row &&
		(match.sentence == other.sentence || other.score > match.score)
}

// otherSection reports whether match and other stand under two headings of which the claim has words
// of the latter alone.
func (c *checker) otherSection(match, other candidate) bool {
	return match.sentence != other.sentence && other.score > match.score &&
		c.saysOfHeading(other.sentence, match.sentence) && !c.saysOfHeading(match.sentence, other.sentence)
}

// saysOfHeading reports whether the claim has a word of the heading of one sentence that another
// sentence and its heading lack, which has one as well.
func (c *checker) saysOfHeading(of, without int32) bool {
	a, b := &c.x.sentences[of], &c.x.sentences[without]
	lacking := c.x.terms[b.terms:b.termEnd]
	if len(lacking) == 0 || lacking[len(lacking)-1].clause != inHeading {
		return false
	}
	for i := a.termEnd - 1; i >= a.terms && c.x.terms[i].clause == inHeading; i-- {
		hash := c.x.terms[i].hash
		if c.left -= len(lacking); c.left < 0 {
			return false
		}
		if c.says(hash) && !slices.ContainsFunc(lacking, func(t term) bool { return t.hash == hash }) {
			return true
		}
	}
	return false
}

// headed reports whether the clause of the number that is being judged has all words of one cell of a
// row that another cell lacks, and none that it has alone.
func (c *checker) headed(without, with int32) bool {
	m, o := &c.x.known[without], &c.x.known[with]
	in, all := &c.x.sentences[o.sentence], false
	c.left -= 2 * int(in.termEnd-in.terms)
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		switch {
		case c.left < 0:
			return false
		case w.class&words.Number != 0:
		case w.clause == m.clause && w.clause != o.clause && c.saysHere(w.hash):
			if there, _ := c.stands(w.hash, o); !there {
				return false
			}
		case w.clause == o.clause && w.clause != m.clause:
			if here, _ := c.stands(w.hash, m); here {
				continue
			}
			if !c.saysHere(w.hash) {
				return false
			}
			all = true
		}
	}
	return all
}

// otherPart is the number of the same sentence that the claim means, where match is one of another part
// of it: "deleted after 10 days" beside "suspended after 10 days and deleted after 60". The claim has
// words of that part, and none that match's part has alone; what it has of the subject at the head of
// the sentence tells nothing.
func (c *checker) otherPart(v *quantity.Value, match candidate) candidate {
	in := &c.x.sentences[match.sentence]
	if match.known < 0 || in.row || in.mixed || in.changes || in.knownEnd-in.known < 2 || c.comparesMore(v) {
		return nobody
	}
	m := &c.x.known[match.known]
	for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
		o := &c.x.known[k]
		c.left -= comparing
		if o.clause != m.clause && o.value.Kind == m.value.Kind && o.value.Dim == m.value.Dim &&
			o.value.Side == m.value.Side && c.agree(v, k) == quantity.Differs &&
			!c.sameSubject(match, c.by(k, 0)) && c.meansPart(m, o, in) {
			return c.by(k, c.affinity(k))
		}
	}
	return nobody
}

// sameSubject reports whether match stands in a clause without a subject of its own, behind that of
// other, and the claim has words of the latter at its head alone: those of the subject. Of a clause
// without a verb of its own it may have all.
func (c *checker) sameSubject(match, other candidate) bool {
	if match.sentence != other.sentence || match.known < 0 || other.known < 0 {
		return false
	}
	m, o := &c.x.known[match.known], &c.x.known[other.known]
	dated := m.value.Kind == quantity.Date || m.value.Kind == quantity.Clock
	if m.takes == nothing || m.takes == unclear && !dated || !c.goesOnFrom(m, o) {
		return false
	}
	if m.takes == predicate {
		return true
	}
	if m.takes == sentence || m.takes == unclear {
		return !c.saysPredicate(o)
	}
	return c.saysHead(m, o)
}

// goesOnFrom reports whether the clause of m is the next one with words behind that of o, or those
// between them take their subject from it as well.
func (c *checker) goesOnFrom(m, o *known) bool {
	in := &c.x.sentences[m.sentence]
	c.left -= int(in.termEnd-in.terms) + int(in.knownEnd-in.known)
	taken, said := o.clause, o.clause // the last clause that is one of them, and that has words
	k := in.known
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if w.clause <= said || w.clause >= m.clause {
			continue
		}
		if said != taken {
			return false
		}
		said = w.clause
		for ; k < in.knownEnd && c.x.known[k].clause <= said; k++ {
			if c.x.known[k].clause == said && c.x.known[k].takes >= sentence {
				taken = said
			}
		}
	}
	return o.clause < m.clause && said == taken
}

// saysHead reports whether the claim has words at the head of the clause of o, which stands in the
// sentence of m, and none behind them that the clause of m lacks.
func (c *checker) saysHead(m, o *known) bool {
	in, head := &c.x.sentences[o.sentence], true
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if c.left < 0 {
			return false
		}
		if w.clause != o.clause {
			continue
		}
		said := c.says(w.hash)
		if said && !head {
			if here, _ := c.stands(w.hash, m); !here {
				return false
			}
		}
		head = head && said
	}
	return !head
}

// saysPredicate reports whether the claim has a word of the clause of a number behind its subject,
// that is its first word and what stands there up to the first word of the claim, where it has one.
// Names and months tell nothing.
func (c *checker) saysPredicate(of *known) bool {
	in, first := &c.x.sentences[of.sentence], of.takes != sentence
	subject := c.firstOf(of)
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if w.clause != of.clause {
			continue
		}
		if !first && w.class&(words.Capital|words.Number) == 0 && !w.date && !monthWords[w.hash] && c.says(w.hash) {
			return true
		}
		first = first && subject != 0 && w.hash != subject
	}
	return false
}

// firstOf is the first word of the claim that stands in the clause of a number; 0 where none does.
func (c *checker) firstOf(k *known) uint64 {
	for i := range c.terms {
		if t := &c.terms[i]; t.clause >= 0 && !t.date {
			if in, _ := c.stands(t.hash, k); in {
				return t.hash
			}
		}
	}
	return 0
}

// ofPronoun reports whether the sentence of a date goes on, with a pronoun, about what that of
// another names, and the claim has no more of the latter than its subject: "The contract begins on
// 1 April" of "The contract was signed on 3 March. It starts on 1 April.".
func (c *checker) ofPronoun(v *quantity.Value, match, other candidate) bool {
	in := &c.x.sentences[match.sentence]
	return (v.Kind == quantity.Date || v.Kind == quantity.Clock) && other.known >= 0 && match.known >= 0 &&
		in.as == meant && in.from == other.sentence && !c.saysPredicate(&c.x.known[other.known])
}

// saysBoth reports whether the clause of the claim has number other as well, which stands in another sentence than
// match: "126 of 128 tests passed" where one says that 128 were found and another that 126 passed.
func (c *checker) saysBoth(match, other candidate) bool {
	if match.sentence == other.sentence {
		return false
	}
	for i := range c.values {
		if c.left -= comparing; i != c.at && c.homes[i] == c.homes[c.at] &&
			quantity.Compare(&c.values[i], &c.x.known[other.known].value) != quantity.Differs {
			return true
		}
	}
	return false
}

// comparesMore reports whether the clause of the claim has another number that could be compared
// with v: it may tell how two parts of a sentence stand to each other.
func (c *checker) comparesMore(v *quantity.Value) bool {
	for i := range c.values {
		if i != c.at && c.homes[i] == c.homes[c.at] && quantity.Commensurable(v, &c.values[i]) {
			return true
		}
	}
	return false
}

// meansPart reports whether the clause of the number that is being judged has words of the clause of
// with alone, and none of the clause of without alone. Of two clauses the first may share its subject,
// the words at its head, with the other. Where nothing tells the first apart but its subject, the
// claim must have all words of the other.
func (c *checker) meansPart(without, with *known, in *indexed) bool {
	some, all, apart, head := false, true, false, true
	c.left -= 2 * int(in.termEnd-in.terms)
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		if c.left < 0 {
			return false
		}
		said := c.saysHere(w.hash) && !c.takesIn(w.hash)
		switch c.alone(w, without, with) {
		case without.clause:
			if head = head && said && !some; head {
				continue
			}
			if said {
				return false
			}
			apart = true
		case with.clause:
			some, all = some || said, all && said
		}
	}
	return some && (apart || all && without.value.Start < with.value.Start)
}

// takesIn reports whether the claim has a word right behind one that says that its amount takes it in:
// "including VAT" is no amount of VAT.
func (c *checker) takesIn(hash uint64) bool { return slices.Contains(c.takenIn, hash) }

// mostTaken is how many such words of a claim count; our choice.
const mostTaken = 8

// inclusive are words before what an amount takes in.
//
//nolint:gochecknoglobals // constant table
var inclusive = hashSet("including incl inclusive inkl inklusive einschließlich inclus compris incluyendo")

// alone is the clause of the one of two numbers that a word, which is no number, stands with alone, or
// inHeading where it is none of them.
func (c *checker) alone(w term, a, b *known) int32 {
	if w.class&words.Number != 0 || w.date {
		return inHeading
	}
	other := a
	if w.clause == a.clause {
		other = b
	} else if w.clause != b.clause {
		return inHeading
	}
	if there, _ := c.stands(w.hash, other); there {
		return inHeading
	}
	return w.clause
}

// saysHere reports whether the clause of the number that is being judged has a word.
func (c *checker) saysHere(hash uint64) bool {
	c.left -= len(c.words)
	return slices.ContainsFunc(c.words, func(w words.Word) bool {
		return w.Hash == hash && c.clause(w.Start) == c.homes[c.at]
	})
}

// goesOn reports whether the sentence of match goes on, with a pronoun, about a change that the sentence
// of other tells, and nothing says that the claim means the latter: no number of it stands there alone.
// What a fee was raised to in 2022 and what it was raised to in 2024 are of one subject.
func (c *checker) goesOn(match, other candidate) bool {
	in := &c.x.sentences[match.sentence]
	if in.as != meant || in.from != other.sentence || !in.changes || !c.x.sentences[other.sentence].changes {
		return false
	}
	for i := range c.values {
		if i == c.at || c.chained(i, match) {
			continue
		}
		if c.holds(i, other.sentence) && !c.holds(i, match.sentence) {
			return false
		}
	}
	return true
}

// besideIt reports whether the clause of the number that is being judged has number other of the
// evidence as well: "up to 80 dollars delivery costs 5" of "Up to 80 dollars it costs something.
// Delivery costs 5 dollars." says on what the amount depends.
func (c *checker) besideIt(other candidate) bool {
	c.left -= comparing * len(c.values)
	for i := range c.values {
		if i != c.at && c.homes[i] == c.homes[c.at] && c.values[i].Side == quantity.NoSide &&
			quantity.Compare(&c.values[i], &c.x.known[other.known].value) != quantity.Differs {
			return true
		}
	}
	return false
}

// holds reports whether a sentence of the evidence has number i of the claim.
func (c *checker) holds(i int, sentence int32) bool {
	in := &c.x.sentences[sentence]
	c.left -= comparing * int(in.knownEnd-in.known)
	for k := in.known; k < in.knownEnd; k++ {
		if quantity.Compare(&c.values[i], &c.x.known[k].value) != quantity.Differs {
			return true
		}
	}
	return false
}

// chained reports whether number i of the claim is the other one of a change whose end is match, in
// several steps: from 10 to 12, and from 12 to 15.
func (c *checker) chained(i int, match candidate) bool {
	m := &c.x.known[match.known]
	if c.partners[c.at] != int32(i) || m.partner < 0 {
		return false
	}
	step := &c.x.known[m.partner].value
	in := &c.x.sentences[c.x.sentences[match.sentence].from]
	c.left -= comparing * int(in.knownEnd-in.known)
	for k := in.known; k < in.knownEnd; k++ {
		if e := &c.x.known[k]; e.partner >= 0 && quantity.Compare(step, &e.value) != quantity.Differs &&
			quantity.Compare(&c.values[i], &c.x.known[e.partner].value) != quantity.Differs {
			return true
		}
	}
	return false
}

// sameNoun reports whether the number that is being judged counts what a number of the evidence
// counts: the word behind both is the same.
func (c *checker) sameNoun(by candidate) bool {
	return c.noun != 0 && by.known >= 0 && c.x.known[by.known].noun == c.noun
}
