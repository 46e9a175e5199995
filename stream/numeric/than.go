package numeric

import (
	"slices"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// than is the comparison in a claim such as "more than in 2023".
type than struct {
	way turn // turnRise if the first is more, turnFall if it is less, or 0
	// from and to are the months of the date after "than" and of the other date; to is 0 if not
	// stated.
	from, to int32
}

// Words of comparison, by hash.
//
//nolint:gochecknoglobals // constant tables
var (
	thanWords = hashSet("than als que")
	moreWords = hashSet("more higher greater larger bigger longer taller heavier warmer hotter stronger mehr höher " +
		"größer länger más mayor")
	lessWords = hashSet("less lower fewer smaller shorter lighter colder cooler weaker weniger niedriger geringer " +
		"kleiner kürzer tiefer menos menor")
)

// thanOf reads a comparison of two dates: a word for more or less, "than", and one date after it.
// It returns the zero value if there is none.
func (c *checker) thanOf() (t than) {
	at := slices.IndexFunc(c.words, func(w words.Word) bool { return thanWords[w.Hash] })
	if at <= 0 || c.negated {
		return t
	}
	for _, w := range c.words[max(0, at-2):at] {
		switch {
		case moreWords[w.Hash]:
			t.way = turnRise
		case lessWords[w.Hash]:
			t.way = turnFall
		}
	}
	for i := range c.values {
		v := &c.values[i]
		switch behind := v.Start > c.words[at].Start; {
		case v.Kind != quantity.Date:
		case behind && t.from == 0:
			t.from = monthOf(v)
		case !behind && t.to == 0:
			t.to = monthOf(v)
		default:
			return than{}
		}
	}
	if t.from == 0 {
		return than{}
	}
	return t
}

// compares reports whether numbers a and b of the evidence are in the relation that the claim
// states between two dates. It reports true if a date is unknown.
func (c *checker) compares(a, b *known) bool {
	if c.than.way == 0 || a.when == 0 || b.when == 0 {
		return true
	}
	return b.when == c.than.from && (a.when == c.than.to || c.than.to == 0 && a.when != b.when) &&
		(a.value.Lo > b.value.Lo) == (c.than.way == turnRise)
}
