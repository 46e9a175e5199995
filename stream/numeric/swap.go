package numeric

import (
	"slices"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// swapped reports whether the claim's number belongs to another subject: other fits the claim
// better than match, and match occurs with words that the claim lacks.
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
		return false // match counts the claim's things, other does not
	}
	in := &c.x.sentences[other.sentence]
	for k := in.known; k < in.knownEnd; k++ {
		c.left -= comparing
		e := &c.x.known[k]
		if c.agree(v, k) != quantity.Differs && !c.denies(v, e) && !c.forOther(e) && !c.foreignClause(k) {
			return false // the sentence about the subject also has the number
		}
	}
	return c.foreignClause(match.known) || match.sentence != other.sentence && c.foreignName(match.known)
}

// belongs reports whether match is the right number, however well the words fit other.
func (c *checker) belongs(v *quantity.Value, match, other candidate) bool {
	return c.sameSubject(match, other) || c.saysBoth(match, other) || c.saysMore(match) || c.goesOn(match, other) ||
		c.ofPronoun(v, match, other) || c.inTime(match, other) || c.ofItsPart(v, other) ||
		v.Kind == quantity.Clock && c.namedHere(match, other) ||
		v.Side != quantity.NoSide && c.besideIt(other)
}

// saysMore reports whether another amount of the claim, with a different unit, is in the sentence
// of match: "1,200 mg in 24 hours".
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

// cellFloor is the minimum score of a cell, relative to the claim's words that occur with it or
// with the other cell; our choice.
const cellFloor = 0.5

// otherCell reports whether match and other are cells of a table and the claim refers to other.
// Within a row the column heads decide, otherwise the words that name the row. Words of the claim
// that occur with neither do not count.
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

// oneOfMany reports whether the row of number k has another number without a unit, and the claim
// has no word for what k is: "2 open pull requests" refers neither to the additions nor to the
// deletions of one.
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

// otherKind reports whether match differs from v in its unit or in what it counts, while other
// agrees: 5 GB is not the 5 of "5 users and 20 GB". A unit alone does not decide if the sentence of
// match fits better.
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

// otherSection reports whether match and other are under two headings, and the claim has words only
// of the heading of other.
func (c *checker) otherSection(match, other candidate) bool {
	return match.sentence != other.sentence && other.score > match.score &&
		c.saysOfHeading(other.sentence, match.sentence) && !c.saysOfHeading(match.sentence, other.sentence)
}

// saysOfHeading reports whether the claim has a word from the heading of one sentence that the
// other sentence and its heading lack. Both must have a heading.
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

// headed reports whether the clause of the number being judged has all words that are only in cell
// with, and none that are only in cell without. Both are cells of one row.
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

// otherPart returns the number of the same sentence that the claim refers to, if match belongs to
// another part of it: "deleted after 10 days" against "suspended after 10 days and deleted after
// 60". The claim must have words of that part and none that only the part of match has. Words of
// the shared subject at the head of the sentence do not count.
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

// sameSubject reports whether match is in a clause without a subject of its own, after that of
// other, and the claim has only the subject's words from the clause of other. If the clause of
// match has no verb of its own either, the claim may have all of them.
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

// goesOnFrom reports whether the clause of m is the next one with words after that of o, or whether
// those between them also take their subject from it.
func (c *checker) goesOnFrom(m, o *known) bool {
	in := &c.x.sentences[m.sentence]
	c.left -= int(in.termEnd-in.terms) + int(in.knownEnd-in.known)
	taken, said := o.clause, o.clause // the last clause that continues it, and the last with words
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

// saysHead reports whether the claim has words from the head of o's clause and, after the head,
// none that the clause of m lacks.
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

// saysPredicate reports whether the claim has a word of a number's clause after its subject. The
// subject ends with the clause's first word or, if there is one, the first word that it shares with
// the claim. Names and months do not count.
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

// firstOf returns the first word of the claim that occurs in the clause of a number, or 0.
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

// ofPronoun reports whether the sentence of a date continues, with a pronoun, about the subject of
// the sentence of other, and the claim has nothing from the latter but its subject: "The contract
// begins on 1 April" for "The contract was signed on 3 March. It starts on 1 April.".
func (c *checker) ofPronoun(v *quantity.Value, match, other candidate) bool {
	in := &c.x.sentences[match.sentence]
	return (v.Kind == quantity.Date || v.Kind == quantity.Clock) && other.known >= 0 && match.known >= 0 &&
		in.as == meant && in.from == other.sentence && !c.saysPredicate(&c.x.known[other.known])
}

// saysBoth reports whether the clause of the claim also has number other, which is in another
// sentence than match: "126 of 128 tests passed" if one sentence says that 128 were found and
// another that 126 passed.
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

// comparesMore reports whether the clause of the claim has another number comparable with v. It may
// then relate two parts of a sentence to each other.
func (c *checker) comparesMore(v *quantity.Value) bool {
	for i := range c.values {
		if i != c.at && c.homes[i] == c.homes[c.at] && quantity.Commensurable(v, &c.values[i]) {
			return true
		}
	}
	return false
}

// meansPart reports whether the clause of the number being judged has words that are only in the
// clause of with, and none that are only in that of without. The first clause may share the subject
// at its head with the second. If only the subject distinguishes the first clause, the claim must
// have all words of the second.
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

// takesIn reports whether a word of the claim directly follows one such as "including": the amount
// in "including VAT" is not an amount of VAT.
func (c *checker) takesIn(hash uint64) bool { return slices.Contains(c.takenIn, hash) }

// mostTaken is the maximum number of such words; our choice.
const mostTaken = 8

// inclusive are words, by hash, before something that an amount includes.
//
//nolint:gochecknoglobals // constant table
var inclusive = hashSet("including incl inclusive inkl inklusive einschließlich inclus compris incluyendo")

// alone returns the clause of the only one of two numbers that a word occurs with. It returns
// inHeading for numbers, dates and words that occur with both or neither.
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

// saysHere reports whether the clause of the number being judged contains a word.
func (c *checker) saysHere(hash uint64) bool {
	c.left -= len(c.words)
	return slices.ContainsFunc(c.words, func(w words.Word) bool {
		return w.Hash == hash && c.clause(w.Start) == c.homes[c.at]
	})
}

// goesOn reports whether the sentence of match continues, with a pronoun, about a change in the
// sentence of other, and no number of the claim is only in the latter. What a fee was raised to in
// 2022 and in 2024 has one subject.
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

// besideIt reports whether the clause of the number being judged also contains number other, as the
// condition of the amount. An example is "up to 80 dollars delivery costs 5" for "Up to 80 dollars
// it costs something. Delivery costs 5 dollars", taken together.
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

// holds reports whether a sentence of the evidence contains number i of the claim.
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

// chained reports whether number i of the claim is the start of a change in several steps that ends
// at match: from 10 to 12, and from 12 to 15.
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

// sameNoun reports whether the number being judged and a number of the evidence count the same
// thing: the same word follows both.
func (c *checker) sameNoun(by candidate) bool {
	return c.noun != 0 && by.known >= 0 && c.x.known[by.known].noun == c.noun
}
