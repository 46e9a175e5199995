package numeric

import (
	"math"
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// dayMinutes is the number of minutes in a day.
const dayMinutes = 24 * 60

// hours compares a length of time with the time between the two times of day in one sentence or
// row. Example: "arr. 06:33 | dep. 06:35" supports "stops for two minutes".
func (c *checker) hours(v *quantity.Value) candidate {
	if v.Dim != quantity.Duration || c.cues&(cueSpan|cueDiff) == 0 {
		return nobody
	}
	for _, n := range c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Clock }) {
		first, last, times := int32(-1), int32(-1), 0
		in := &c.x.sentences[n.sentence]
		for k := in.known; k < in.knownEnd; k++ {
			if c.x.known[k].value.Kind != quantity.Clock {
				continue
			}
			if times++; first < 0 {
				first = k
			}
			last = k
		}
		if times == 2 && v.Says(c.apart(first, last)) && (in.row || c.oneSpan(first, last)) {
			return n
		}
	}
	return nobody
}

// oneSpan reports whether two times of day are the ends of one event ("from 8:00 to 20:00", "leaves
// at 21:30 and arrives at 6:45") rather than two events ("opens at 10:00 and the tour starts at
// 11:30").
func (c *checker) oneSpan(first, last int32) bool {
	a, b := &c.x.known[first], &c.x.known[last]
	return b.to || b.takes > nothing && b.takes < unclear ||
		c.relatesTo(leaving, a) && (c.relatesTo(arriving, b) || c.relatesTo(reaching, b))
}

// Words, by hash, for the ends of a journey.
//
//nolint:gochecknoglobals // constants
var (
	leaving  = words.Scan(nil, "leave")[0].Hash
	arriving = words.Scan(nil, "arrive")[0].Hash
	reaching = words.Scan(nil, "reaches")[0].Hash
)

// otherEndOf reports whether value i is the end of a span of time that starts at the value before
// it: "from 8:00 to 20:00", "between 8:00 and 10:00".
func (r *reading) otherEndOf(text string, i int) bool {
	if i == 0 || r.values[i].Kind != quantity.Clock || r.values[i-1].Kind != quantity.Clock ||
		r.values[i-1].End > r.values[i].Start {
		return false
	}
	from := &r.values[i-1]
	switch strings.TrimSpace(text[from.End:r.values[i].Start]) {
	case "to", "until", "till", "-", "–", "—", "bis", "bis um", "à", "a", "a las", "hasta", "hasta las":
		return true
	case "and", "und", "et", "y", "y las":
		return hasAnySuffix(text[:from.Start], "between ", "Between ", "zwischen ", "Zwischen ", "entre ", "entre las ")
	}
	return false
}

// apart returns the seconds from time of day a of the evidence to b. If b is earlier in the day, it
// counts as the next day.
func (c *checker) apart(a, b int32) float64 {
	const minute = 60
	return minute * math.Mod(c.x.known[b].value.Lo-c.x.known[a].value.Lo+dayMinutes, dayMinutes)
}

// fromRowToRow reports whether v may be the time between two consecutive times of day, or between
// those of two sentences or rows, each with a name of the claim that the other lacks.
func (c *checker) fromRowToRow(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Dim != quantity.Duration || v.Range() || c.cues&(cueSpan|cueDiff) == 0 {
		return false
	}
	before, follow := int32(-1), false
	c.nearby(func(k int32, e *known) {
		if e.value.Kind == quantity.Clock {
			follow = follow || before >= 0 && (v.Says(c.apart(before, k)) || v.Says(c.apart(k, before)))
			before = k
		}
	})
	if follow {
		return true
	}
	ops := c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Clock })
	for i, a := range ops {
		for _, b := range ops[:i] {
			if a.sentence != b.sentence && v.Says(c.apart(min(a.known, b.known), max(a.known, b.known))) &&
				c.namesOf(a.sentence, b.sentence) && c.namesOf(b.sentence, a.sentence) {
				return true
			}
		}
	}
	return false
}

// namesOf reports whether the claim contains a name of sentence a that b lacks.
func (c *checker) namesOf(a, b int32) bool {
	in, out := &c.x.sentences[a], &c.x.sentences[b]
	lacking := c.x.terms[out.terms:out.termEnd]
	c.left -= int(in.termEnd-in.terms) + len(lacking)
	return slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool {
		return isName(w.class) && !w.date && c.says(w.hash) &&
			!slices.ContainsFunc(lacking, func(o term) bool { return o.hash == w.hash })
	})
}

// clockedWithin reports whether a time of day in the claim is an example on the permitted side of
// the nearest one in the evidence. Example: "a pupil who comes at 8:45" against "pupils who arrive
// after 8:40".
func (c *checker) clockedWithin(v *quantity.Value) bool {
	if v.Kind != quantity.Clock || c.boundOf(c.claim, v) != 0 || !c.supposes(v) {
		return false
	}
	ops := c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Clock })
	if len(ops) == 0 {
		return false
	}
	k := ops[0].known
	e, in := &c.x.known[k], &c.x.sentences[ops[0].sentence]
	if k+1 < in.knownEnd && c.x.known[k+1].to {
		k++
	}
	if c.x.known[k].to {
		a, b := c.x.known[k-1].value.Lo, c.x.known[k].value.Lo
		return a <= v.Lo && v.Lo <= b || a > b && (a <= v.Lo || v.Lo <= b) // may span midnight
	}
	return e.bound != 0 && sign(int(v.Lo)-int(e.value.Lo)) == int(e.bound)
}

// supposes reports whether a word before v marks the claim as one case of several, such as "if" or
// "a".
func (c *checker) supposes(v *quantity.Value) bool {
	return slices.ContainsFunc(c.words, func(w words.Word) bool {
		if w.Start > v.Start {
			return false
		}
		switch strings.ToLower(c.claim[w.Start:w.End]) {
		case "can", "may", "kann", "a", "an", "if", "when", "who", "whoever", "anyone", "someone", "arriving",
			"ein", "eine", "wenn", "wer":
			return true
		}
		return false
	})
}

// namedHere reports whether a name of the claim, such as a weekday, occurs with match and not with
// other, and none the other way round. It also reports true if other has a name that the claim
// lacks while match has none of those.
func (c *checker) namedHere(match, other candidate) bool {
	if match.known < 0 || other.known < 0 {
		return false
	}
	m, o := c.namesWith(match.known), c.namesWith(other.known)
	c.left -= len(m) * len(o)
	lone := func(list, of []term) bool {
		return slices.ContainsFunc(list, func(w term) bool {
			return c.says(w.hash) && !slices.ContainsFunc(of, func(t term) bool { return t.hash == w.hash })
		})
	}
	if lone(m, o) && !lone(o, m) {
		return true
	}
	said := func(w term) bool { return c.says(w.hash) }
	strange := func(w term) bool { return !c.says(w.hash) }
	row := c.x.sentences[match.sentence].row
	return !lone(o, m) && slices.ContainsFunc(o, strange) && slices.ContainsFunc(m, said) &&
		(row || !slices.ContainsFunc(m, strange))
}

// dayNames are words, by hash, for kinds of days or several weekdays that are not capitalised.
//
//nolint:gochecknoglobals // constant table
var dayNames = hashSet("weekday weekdays weekend weekends holiday holidays workday workdays werktags wochenende " +
	"sonntags samstags feiertags montags dienstags mittwochs donnerstags freitags")

// namesWith returns the names that apply to number k: those of its row, or those of its clause and
// of earlier clauses back to another time of day.
func (c *checker) namesWith(k int32) []term {
	e := &c.x.known[k]
	in := &c.x.sentences[e.sentence]
	from := e.clause
	for before := k - 1; before >= in.known-1; before-- {
		if before < in.known {
			from = 0
		} else if o := &c.x.known[before]; o.value.Kind == quantity.Clock && o.clause < e.clause {
			from = o.clause + 1
			break
		}
	}
	c.left -= int(in.termEnd - in.terms)
	var out []term
	for _, w := range c.x.terms[in.terms:in.termEnd] {
		named := in.row && isName(w.class) || from <= w.clause && w.clause <= e.clause && dayNames[w.hash] ||
			from <= w.clause && w.clause <= e.clause && w.class&(words.Name|words.Uncased) != 0
		if named && !w.date && w.class&words.Number == 0 {
			out = append(out, w)
		}
	}
	return out
}
