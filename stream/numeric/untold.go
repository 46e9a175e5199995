package numeric

import (
	"slices"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// families maps words for events on a date, by hash, to the first of their line.
//
//nolint:gochecknoglobals // constant table
var families = func() map[uint64]uint64 {
	m := map[uint64]uint64{}
	for _, list := range [...]string{
		"start starts started begin begins began commence commences commenced open opens opened " +
			"effect effective force beginnt begann startet Kraft öffnet",
		"end ends ended expire expires expired close closes closed finish finishes finished deadline due until till " +
			"endet endete schließt schloss abläuft Frist fällig bis",
		"approve approves approved approval grant grants granted adopt adopted adoption resolve resolved " +
			"pass passed vote voted beschlossen genehmigt Beschluss Genehmigung",
		"found founded foundation establish established",
		"sign signs signed signature unterzeichnet unterschrieben",
		"issue issued publish published publication release released releases ausgestellt veröffentlicht",
		"ship shipped ships dispatch dispatched sent send versandt verschickt",
		"deliver delivered delivery arrive arrives arrived arrival geliefert",
		"leave leaves left depart departs departed departure abfahrt",
	} {
		all := words.Scan(nil, list)
		for _, w := range all {
			m[w.Hash] = all[0].Hash
		}
	}
	return m
}()

// fromOutside are the events, by hash, that do not result from a length of time.
//
//nolint:gochecknoglobals // constant table
var fromOutside = hashSet("approve found sign issue")

//nolint:gochecknoglobals // constants
var (
	beginning = words.Scan(nil, "start")[0].Hash
	ending    = words.Scan(nil, "end")[0].Hash
)

// occurs are words, by hash, that only say that something happened.
//
//nolint:gochecknoglobals // constant table
var occurs = hashSet("take takes took place " +
	"happen happens happened occur occurs occurred statt stattfindet fand findet")

// family returns the canonical word for an event.
func family(hash uint64) uint64 {
	if one, ok := families[hash]; ok {
		return one
	}
	return hash
}

// untold reports whether the evidence has another date or time of day near match that the claim may
// mean as well, because none of its words distinguishes the two. The word that distinguishes is the
// one next to the date. Example: "took place on 12 November" for "approved on 12 November and in
// force from 1 December".
func (c *checker) untold(v *quantity.Value, match candidate) bool {
	if match.known < 0 || v.Kind != quantity.Date && v.Kind != quantity.Clock || c.x.sentences[match.sentence].row {
		return false
	}
	for i := range c.values {
		if o := &c.values[i]; i != c.at && (o.Kind == v.Kind || o.Kind == quantity.Count && !o.Weak) {
			return false // other dates or numbers in the claim identify the date
		}
	}
	m := &c.x.known[match.known]
	if c.otherEnd(m) {
		return true
	}
	for s := max(0, match.sentence-1); s < min(int32(len(c.x.sentences)), match.sentence+2); s++ {
		in := &c.x.sentences[s]
		if !c.oneSubject(s, match.sentence) {
			continue
		}
		for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
			if c.rivalDate(v, m, k) {
				return true
			}
		}
	}
	return false
}

// otherEnd reports whether the claim has a word for an end and the clause of number m only one for
// a beginning, or the reverse: "the deadline is 1 September" for "studies begin on 1 September".
func (c *checker) otherEnd(m *known) bool {
	begins, ends := false, false
	for _, w := range c.words {
		f := families[w.Hash]
		begins, ends = begins || f == beginning, ends || f == ending
	}
	if begins == ends {
		return false
	}
	if begins {
		return c.relatesTo(ending, m) && !c.relatesTo(beginning, m)
	}
	return c.relatesTo(beginning, m) && !c.relatesTo(ending, m)
}

// rivalDate reports whether number k is another date than v, in another clause than m, and no word
// of the claim shows that it means m.
func (c *checker) rivalDate(v *quantity.Value, m *known, k int32) bool {
	e := &c.x.known[k]
	c.left -= comparing
	return e.value.Kind == v.Kind && (e.sentence != m.sentence || e.clause != m.clause) &&
		c.agree(v, k) == quantity.Differs && c.ownWordsOf(e) && c.ownWordsOf(m) && !c.tied(v, m, e)
}

// oneSubject reports whether two sentences are the same, or the later one continues the subject of
// the other.
func (c *checker) oneSubject(a, b int32) bool {
	if a == b {
		return true
	}
	in := &c.x.sentences[max(a, b)]
	return in.group == c.x.sentences[min(a, b)].group && !in.row && in.from == min(a, b) && in.as >= neighbour
}

// ownWordsOf reports whether the clause of a number has a word that is not part of a date.
func (c *checker) ownWordsOf(k *known) bool {
	in := &c.x.sentences[k.sentence]
	c.left -= int(in.termEnd - in.terms)
	return slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool {
		return w.clause == k.clause && !w.date
	})
}

// tied reports whether the claim's word next to its date v occurs with number m and not with o. A
// word that occurs with both does not distinguish. After a verb such as "is", all words count.
func (c *checker) tied(v *quantity.Value, m, o *known) bool {
	at := c.wordFrom(v.Start)
	left := c.words[:at]
	if len(left) > 0 && is(c.claim[left[len(left)-1].Start:left[len(left)-1].End]) && !c.strange(m) {
		return c.tiedBy(left, m, o, true)
	}
	if !slices.ContainsFunc(left, func(w words.Word) bool { return !w.Has(words.Stop) }) {
		left = c.words[c.wordFrom(v.End):] // the date comes first
	}
	return c.tiedBy(left, m, o, false)
}

// strange reports whether the claim has a word that is missing from the sentence of a number. Words
// that only bound or introduce a number do not count.
func (c *checker) strange(k *known) bool {
	in := &c.x.sentences[k.sentence]
	return slices.ContainsFunc(c.words, func(w words.Word) bool {
		if w.Has(words.Stop) || c.inValue(w, true) || sides(c.claim[w.Start:w.End]) || amounting[w.Hash] || c.left < 0 {
			return false
		}
		c.left -= int(in.termEnd - in.terms)
		one := families[w.Hash]
		return !slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(t term) bool {
			return t.hash == w.Hash || one != 0 && families[t.hash] == one
		})
	})
}

// tiedBy reports whether the last distinguishing word of list occurs with m and not with o. If
// further is set and that word does not, earlier words count as well.
func (c *checker) tiedBy(list []words.Word, m, o *known, further bool) bool {
	for _, w := range slices.Backward(list) {
		if w.Has(words.Stop) && families[w.Hash] == 0 || c.inValue(w, true) || occurs[w.Hash] {
			continue
		}
		here, there := c.relatesTo(w.Hash, m), c.relatesTo(w.Hash, o)
		switch {
		case here && !there:
			return true
		case here || further:
		default:
			return false
		}
	}
	return false
}

// relatesTo reports whether a word, or one of its family, occurs in the clause of a number.
func (c *checker) relatesTo(hash uint64, k *known) bool {
	in := &c.x.sentences[k.sentence]
	c.left -= int(in.termEnd - in.terms)
	return slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool {
		return w.clause == k.clause && family(w.hash) == family(hash)
	})
}
