package numeric

import (
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// mostCounted is the largest number of things that an answer may have counted itself; our choice.
const mostCounted = 99

// tally reports whether v may be a number of things that an answer counted itself.
func tally(v *quantity.Value) bool {
	return v.Kind == quantity.Count && v.Dim == quantity.Plain && v.Step == 1 && v.Raw >= 2 &&
		v.Raw <= mostCounted && !v.Range()
}

// wordsCounted is how many words after a number may name what it counts, as in "five of the core
// handlers"; our choice.
const wordsCounted = 4

// listsAsMany reports whether the evidence has a list with at least as many entries as v says,
// which the claim may be counting in whole or in part. A word after the number must occur in the
// list's introduction or its first entry. A different number for the same noun in the evidence
// takes precedence.
func (c *checker) listsAsMany(v *quantity.Value, other candidate) bool {
	if !tally(v) || other.known >= 0 && c.sameNoun(other) {
		return false
	}
	from := c.wordFrom(v.End)
	c.left -= len(c.x.lists)
	for _, l := range c.x.lists {
		if l.entries < int32(v.Raw) {
			continue
		}
		for _, w := range c.words[from:min(len(c.words), from+wordsCounted)] {
			if c.left < 0 {
				return false
			}
			if !w.Has(words.Stop) && c.introduces(l, w.Hash) {
				return true
			}
		}
	}
	return false
}

// introduces reports whether a word occurs in the sentence before a list, in the heading above it,
// or in its first entry.
func (c *checker) introduces(l list, word uint64) bool {
	for s := max(0, l.first-1); s <= l.first; s++ {
		in := &c.x.sentences[s]
		c.left -= int(in.termEnd - in.terms)
		if in.group == c.x.sentences[l.first].group &&
			slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(t term) bool { return t.hash == word }) {
			return true
		}
	}
	return false
}

// listsItself reports whether the claim itself lists as many things as v says, directly after a
// colon: "four fields: a, b, c and d".
func (c *checker) listsItself(v *quantity.Value, other candidate) bool {
	_, list, ok := strings.Cut(c.claim[v.End:], ": ")
	if !ok || !tally(v) || c.sameNoun(other) || strings.ContainsAny(c.claim[v.End:len(c.claim)-len(list)-2], ",;.") {
		return false
	}
	list, _, _ = strings.Cut(list, "; ")
	parts := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '、' })
	n := 0
	for i, part := range parts {
		if strings.TrimSpace(part) == "" {
			return false
		}
		n++
		if i == len(parts)-1 && joinsTwo(part) {
			n++
		}
	}
	return float64(n) == v.Raw
}

// conjunctions precede the last item of a list, sometimes after a comma.
//
//nolint:gochecknoglobals // constant table
var conjunctions = []string{"and ", "or ", "und ", "oder ", "et ", "ou ", "y ", "o "}

// joinsTwo reports whether the last part of a list contains its last two items: "c and d".
func joinsTwo(part string) bool {
	part = strings.TrimLeft(part, " ")
	return !slices.ContainsFunc(conjunctions, func(w string) bool { return strings.HasPrefix(part, w) }) &&
		slices.ContainsFunc(conjunctions, func(w string) bool { return strings.Contains(part, " "+w) })
}

// ofThem are phrases after a number that refer back to what it counts.
//
//nolint:gochecknoglobals // constant table
var ofThem = []string{" of them", " of these", " of those", " davon", " d'entre", " de ellos", " de ellas"}

// eitherOr reports whether v is one of two alternative numbers that refer back to something else:
// "two or three of them".
func (c *checker) eitherOr(v *quantity.Value) bool {
	if !tally(v) {
		return false
	}
	own, at := c.ownNear()
	for _, i := range [...]int{at - 1, at + 1} {
		if i < 0 || i >= len(own) || !tally(&own[i]) {
			continue
		}
		first, last := &own[min(i, at)], &own[max(i, at)]
		switch c.claim[first.End:last.Start] {
		case " or ", " oder ", " ou ", " o ":
			return slices.ContainsFunc(ofThem, func(w string) bool { return strings.HasPrefix(c.claim[last.End:], w) })
		}
	}
	return false
}

// sizeOfName is the minimum length, in bytes, of a number that is identified by its digits alone;
// our choice.
const sizeOfName = 3

// named reports whether v occurs in the evidence as part of a name, address or version. Examples:
// pull request 710 in ".../pull/710"; "5.2 or later" for "version 5.2".
func (c *checker) named(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Dim != quantity.Plain || v.Range() || c.noun != 0 {
		return false
	}
	k := c.wordFrom(v.Start)
	if k == len(c.words) || c.words[k].Start != v.Start {
		return false
	}
	w := &c.words[k]
	if w.End-w.Start < sizeOfName || strings.Trim(c.claim[w.Start:w.End], "0123456789.") != "" {
		return false
	}
	_, known := c.x.idf[w.Hash]
	return known
}

// spans reports whether v is a range whose ends occur one after the other in the evidence, for the
// same thing: "100 to 1000" for "100 and 1000 spans".
func (c *checker) spans(v *quantity.Value) bool {
	if !v.Range() || v.Kind != quantity.Count {
		return false
	}
	for _, s := range c.top {
		in := &c.x.sentences[s]
		for k := in.known; k+1 < in.knownEnd; k++ {
			c.left -= comparing
			low, high := &c.x.known[k], &c.x.known[k+1]
			same := low.value.Dim == v.Dim && high.value.Dim == v.Dim &&
				(low.noun == 0 || low.noun == high.noun) && !low.value.Range() && !high.value.Range()
			if same && low.value.Lo == v.Lo && high.value.Lo == v.Hi {
				return true
			}
		}
	}
	return false
}

// ownSum reports whether the claim presents v as the sum of its preceding numbers with that unit,
// and the sum is right.
func (c *checker) ownSum(v *quantity.Value) bool {
	if c.cues&cueSum == 0 || v.Kind != quantity.Count || v.Dim == quantity.Plain {
		return false
	}
	own, at := c.ownNear()
	sum, n := 0.0, 0
	for i := range own[:at] {
		if own[i].Kind == quantity.Count && own[i].Dim == v.Dim && !own[i].Range() {
			sum, n = sum+own[i].Lo, n+1
		}
	}
	return n > 1 && v.Says(sum)
}

// shared reports whether v, an amount per unit, is an evidence amount divided by a number of those
// units. Example: 4,800 pins per worker from 48,000 pins and 10 workers.
func (c *checker) shared(v *quantity.Value) bool {
	if c.unit == 0 {
		return false
	}
	near := c.numbersNear()
	for _, k := range near {
		n := &c.x.known[k]
		if n.noun != c.unit || n.value.Kind != quantity.Count || n.value.Lo <= 1 {
			continue
		}
		for _, l := range near {
			c.left -= comparing
			if e := &c.x.known[l].value; k != l && e.Kind == quantity.Count && e.Dim == v.Dim && v.Says(e.Lo/n.value.Lo) {
				return true
			}
		}
	}
	return false
}

// timesOwn reports whether v is the ratio of another amount of the claim to an amount of the
// evidence: "4,800, or 240 times as many" with 20 in the evidence.
func (c *checker) timesOwn(v *quantity.Value) bool {
	if v.Dim != quantity.Multiple {
		return false
	}
	own, at := c.ownNear()
	near := c.numbersNear()
	for i := range own {
		for _, k := range near {
			c.left -= comparing
			e := &c.x.known[k].value
			if i != at && own[i].Kind == quantity.Count && own[i].Dim == e.Dim && e.Lo > 0 && v.Says(own[i].Lo/e.Lo) {
				return true
			}
		}
	}
	return false
}

// unitAlone reports whether v is one unit of time that the evidence mentions without a number: "one
// week" for "a week of work".
func (c *checker) unitAlone(v *quantity.Value, other candidate) bool {
	told := other.sentence >= 0 && other.score >= c.limit.Stray
	if told || v.Kind != quantity.Count || v.Dim != quantity.Duration || v.Raw != 1 || v.Range() {
		return false
	}
	k := c.wordFrom(v.Start)
	for k < len(c.words) && c.words[k].End < v.End {
		k++
	}
	if k == len(c.words) {
		return false
	}
	_, known := c.x.idf[c.words[k].Hash]
	return known
}
