package numeric

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// newer reports whether a number of the claim is a version on the supported side of a bound in the
// evidence: "PostgreSQL 14" for "PostgreSQL 12 or later". Version parts are compared one by one:
// 3.11 is later than 3.9.
func (c *checker) newer(v *quantity.Value) bool {
	name := c.reading.name(c.claim, v)
	if name == 0 || v.Range() || c.limited || v.Side != quantity.NoSide || v.Hedge != quantity.Exact || c.demanded(v) {
		return false
	}
	for _, s := range c.top {
		for k := c.x.sentences[s].known; k < c.x.sentences[s].knownEnd; k++ {
			e := &c.x.known[k]
			if c.left--; c.left < 0 {
				return false
			}
			if e.name != name {
				continue
			}
			said := c.claim[v.Start:v.End]
			order := versions(said, e.dotted)
			up, down := c.sideOf(e)
			if up && order > 0 || down && order < 0 || order > 0 && e.until != "" && versions(said, e.until) <= 0 {
				return true
			}
		}
	}
	return false
}

// demanded reports whether the claim states that a version is required: "needs at least iOS 16".
func (c *checker) demanded(v *quantity.Value) bool {
	at, _ := slices.BinarySearchFunc(c.words, v.Start, func(w words.Word, start int) int { return w.Start - start })
	return slices.ContainsFunc(c.words[max(0, at-conditionWords):at], func(w words.Word) bool { return demands[w.Hash] })
}

//nolint:gochecknoglobals // constant table
var demands = hashSet("require requires required need needs needed minimum least moins menos mindestens benötigt " +
	"braucht erfordert exige requiert nécessite requiere necesita falta")

// sideOf returns on which sides of version e the supported versions lie: "12 or later", "the
// minimum version is now 3.9".
func (c *checker) sideOf(e *known) (up, down bool) {
	if e.value.Side != quantity.NoSide {
		return e.value.Side == quantity.Upwards, e.value.Side == quantity.Downwards
	}
	in := &c.x.sentences[e.sentence]
	return in.least && !in.most, in.most && !in.least
}

// Words, by hash, for the lowest and the highest supported version.
//
//nolint:gochecknoglobals // constant tables
var (
	leastWords = hashSet("minimum minimal oldest lowest mindestens")
	mostWords  = hashSet("maximum maximal newest höchstens")
)

// versions compares two dotted versions part by part, as cmp.Compare does. Parts that are missing
// or not numbers count as 0.
func versions(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		if m != n {
			return cmp.Compare(m, n)
		}
	}
	return 0
}
