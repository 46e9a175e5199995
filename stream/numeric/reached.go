package numeric

import (
	"math"
	"slices"
	"strings"
	"time"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// reached compares a day or a time of day with one of the evidence plus or minus a length of time
// from the evidence. Examples: a payment due within 30 days of 14 March is due by 13 April; a
// contract for three years from 1 July 2024 ends on 30 June 2027; someone who is 20 minutes early
// for 10:15 is there at 9:55.
func (c *checker) reached(v *quantity.Value) candidate {
	if v.Range() || !begins(v, v) {
		return nobody
	}
	var starts, lengths [maxOperands]int32
	n, m := 0, 0
	c.nearby(func(k int32, e *known) {
		switch {
		case n < maxOperands && begins(&e.value, v) && !slices.Contains(starts[:n], k):
			starts[n], n = k, n+1
		case m < maxOperands && wholeLength(&e.value) && !slices.Contains(lengths[:m], k):
			lengths[m], m = k, m+1
		}
	})
	for _, length := range lengths[:m] {
		for _, start := range starts[:n] {
			s, l := &c.x.known[start], &c.x.known[length]
			if c.x.sentences[s.sentence].group == c.x.sentences[l.sentence].group && lasts(&s.value, l, v) &&
				!c.tells(s, l) {
				return c.by(start, c.affinity(start))
			}
		}
	}
	return nobody
}

// tells reports whether the claim is about the start date itself rather than a date calculated from
// it. That is the case if the claim has no other words than the clause of the date, or says that
// something was signed or issued, which the clause of the length does not mention. If both are in
// one clause ("due within 30 days of 14 March"), its words tell nothing.
func (c *checker) tells(start, length *known) bool {
	told, some, of := true, false, *start
	together := start.sentence == length.sentence && start.clause == length.clause
	if !c.ownWordsOf(start) {
		of.clause-- // "Invoice date: 14 March 2025"
	}
	for _, w := range c.words {
		if w.Has(words.Stop) && families[w.Hash] == 0 || c.inValue(w, true) {
			continue
		}
		here := c.relatesTo(w.Hash, &of)
		switch outside := fromOutside[family(w.Hash)]; {
		case together && (outside || strings.HasPrefix(c.claim[w.Start:w.End], "dated")),
			outside && !here && !c.relatesTo(w.Hash, length):
			return true
		}
		told, some = told && (here || w.Has(words.Stop)), true
	}
	return told && some && !together
}

// begins reports whether e is a day or time of day from which a length of time may lead to v.
func begins(e, v *quantity.Value) bool {
	switch {
	case e.Kind != v.Kind || e.Range():
		return false
	case e.Kind == quantity.Date:
		return e.Day > 0 && e.Month >= 1 && e.Month <= 12 && e.Year == e.YearTo && (v.Year == 0 || e.Year != 0)
	}
	return e.Kind == quantity.Clock
}

// wholeLength reports whether a number is a length of time in whole units.
func wholeLength(e *quantity.Value) bool {
	return e.Kind == quantity.Count && e.Dim == quantity.Duration && !e.Range() &&
		e.Raw >= 1 && e.Raw == math.Trunc(e.Raw)
}

// Lengths of time in seconds.
const (
	oneDay   = quantity.Year / 365.25
	oneMonth = quantity.Year / 12
)

// lasts reports whether a length of time after start, or before it, leads to v. Months and years
// may end one day earlier.
func lasts(start *quantity.Value, length *known, v *quantity.Value) bool {
	n, early := int(min(length.value.Raw, 1e5)), false
	if length.early {
		n = -n
	}
	if v.Kind == quantity.Clock {
		const half, full = 12 * 60, 24 * 60
		minutes := start.Lo + float64(n)*length.value.Factor/60
		apart := math.Mod(math.Abs(minutes-v.Lo), full)
		return length.value.Lo < oneDay && (apart == 0 || apart == half && (v.Half || start.Half))
	}
	year := start.Year
	if year == 0 {
		year = 2001 // any year without a leap day
	}
	day := time.Date(year, time.Month(start.Month), int(start.Day), 0, 0, 0, 0, time.UTC)
	switch length.value.Factor {
	case oneDay:
		day = day.AddDate(0, 0, n)
	case 7 * oneDay:
		day = day.AddDate(0, 0, 7*n)
	case oneMonth:
		last := time.Date(year, time.Month(start.Month)+time.Month(n)+1, 0, 0, 0, 0, 0, time.UTC)
		if day.AddDate(0, 0, 1).Day() == 1 && onDay(last, v, start) {
			return true // from the end of a month to the end of another
		}
		if day, early = day.AddDate(0, n, 0), n > 0; day.After(last) {
			day = last
		}
	case quantity.Year:
		day, early = day.AddDate(n, 0, 0), n > 0
	default:
		return false
	}
	return onDay(day, v, start) || early && onDay(day.AddDate(0, 0, -1), v, start)
}

// before reports whether the word after a length of time says that it lies before something.
func (r *reading) before(text string, v *quantity.Value) bool {
	i := r.wordFrom(v.End)
	if v.Kind != quantity.Count || v.Dim != quantity.Duration || i == len(r.words) {
		return false
	}
	switch text[r.words[i].Start:r.words[i].End] {
	case "before", "early", "earlier", "prior", "ahead", "vor", "vorher", "früher", "avant", "antes":
		return true
	}
	return false
}

// onDay reports whether v is the given day. The year is ignored if v or start has none.
func onDay(day time.Time, v, start *quantity.Value) bool {
	return int(v.Month) == int(day.Month()) && int(v.Day) == day.Day() &&
		(v.Year == 0 || start.Year == 0 || v.Year == day.Year())
}

// bound is the side of a date or time of day on which the subject lies: 1 after, -1 before, 0
// unknown.
type bound int8

// boundOf returns the side that the word before a date or time of day of the reading indicates.
func (r *reading) boundOf(text string, v *quantity.Value) bound {
	if v.Kind != quantity.Date && v.Kind != quantity.Clock {
		return 0
	}
	i := r.wordFrom(v.Start) - 1
	if i >= 0 && r.words[i].Hash == theWord {
		i--
	}
	if i < 0 {
		return 0
	}
	switch text[r.words[i].Start:r.words[i].End] {
	case "after", "After", "from", "From", "since", "Since", "ab", "Ab", "nach", "Nach", "seit", "Seit", "vom":
		return 1
	case "before", "Before", "until", "Until", "till", "vor", "Vor", "bis", "Bis":
		return -1
	case "by", "By":
		if v.Kind == quantity.Clock {
			return -1
		}
	}
	return 0
}

var theWord = words.Scan(nil, "the")[0].Hash //nolint:gochecknoglobals // constant

// datedWithin reports whether a date of the claim is on the valid side of a date in the evidence,
// and the claim has a number that the evidence gives for that side. Example: "bought in March 2025
// has a warranty of 36 months" for "36 months for devices bought after 1 January 2025".
func (c *checker) datedWithin(v *quantity.Value) bool {
	for _, s := range c.top {
		in := &c.x.sentences[s]
		for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
			c.left -= comparing
			if c.lies(v, &c.x.known[k]) > 0 && c.sharesCount(k) {
				return true
			}
		}
	}
	return false
}

// lies returns 1 if a date of the claim is on the valid side of date e of the evidence, -1 if it is
// on the other, and 0 if that is unknown.
func (c *checker) lies(v *quantity.Value, e *known) int {
	if e.bound == 0 || !oneDate(&e.value) || !oneDate(v) || c.boundOf(c.claim, v) != 0 {
		return 0
	}
	return sign(dayNumber(v)-dayNumber(&e.value)) * int(e.bound)
}

// oneDate reports whether v is a day, a month or a year, with its year stated.
func oneDate(v *quantity.Value) bool {
	return v.Kind == quantity.Date && v.Year != 0 && v.Year == v.YearTo && v.Month < quantity.Quarters
}

// boundFor returns the bounding date that applies to number k: the one in the nearest clause of its
// sentence, the first of two, or -1 if there is none.
func (c *checker) boundFor(k int32) int32 {
	e := &c.x.known[k]
	in, best, apart := &c.x.sentences[e.sentence], int32(-1), int32(math.MaxInt32)
	c.left -= int(in.knownEnd - in.known)
	for b := in.known; b < in.knownEnd && c.left >= 0; b++ {
		o := &c.x.known[b]
		if d := max(o.clause-e.clause, e.clause-o.clause); o.bound != 0 && d < apart {
			best, apart = b, d
		}
	}
	return best
}

// inTime reports whether the claim's date is on the valid side of the bound for match and on the
// wrong side of that for other: "in 2024 it was 15" for "from 2025 on the fee is 20, before 2025 it
// was 15".
func (c *checker) inTime(match, other candidate) bool {
	date := c.onlyDate()
	if date == nil || match.known < 0 || other.known < 0 || c.values[c.at].Kind != quantity.Count {
		return false
	}
	m, o := c.boundFor(match.known), c.boundFor(other.known)
	return m >= 0 && o >= 0 && c.lies(date, &c.x.known[m]) > 0 && c.lies(date, &c.x.known[o]) < 0
}

// dayNumber returns a number by which days, months and years can be ordered.
func dayNumber(v *quantity.Value) int { return v.Year*10000 + int(v.Month)*100 + int(v.Day) }

func sign(n int) int {
	switch {
	case n > 0:
		return 1
	case n < 0:
		return -1
	}
	return 0
}

// sharesCount reports whether the claim has an amount to which date k of the evidence applies as a
// bound.
func (c *checker) sharesCount(k int32) bool {
	in := &c.x.sentences[c.x.known[k].sentence]
	return slices.ContainsFunc(c.values, func(v quantity.Value) bool {
		if v.Kind != quantity.Count || v.Weak {
			return false
		}
		c.left -= comparing * int(in.knownEnd-in.known)
		for n := in.known; n < in.knownEnd && c.left >= 0; n++ {
			e := &c.x.known[n].value
			if e.Kind == quantity.Count && quantity.Compare(&v, e) != quantity.Differs && c.boundFor(n) == k {
				return true
			}
		}
		return false
	})
}

// mostTimes is the largest factor that needs no matching word in the claim; our choice.
const mostTimes = 31

// multiplied reports whether an amount is an evidence amount multiplied by a number or percentage
// of the evidence: "a deposit of 1,900 euros" from "two monthly rents" and "the monthly rent is 950
// euros". It is not certain that the claim means this calculation. If stated, the claim has the
// words of another amount, and the factor must count something that the claim names or that the
// amount is per: "the monthly rent is 1,900 euros" does not multiply by the flat's two rooms.
func (c *checker) multiplied(v *quantity.Value, stated bool) bool {
	if v.Kind != quantity.Count || v.Dim == quantity.Plain || v.Dim == quantity.Duration || relative(v) || v.Range() ||
		c.unit != 0 || c.one() || c.x.lots > 0 && c.sums() {
		return false
	}
	var amounts, factors [maxOperands]int32 // numbers and percentages
	n, m := 0, 0
	c.nearby(func(k int32, e *known) {
		switch e := &e.value; {
		case slices.Contains(amounts[:n], k) || slices.Contains(factors[:m], k):
		case n < maxOperands && e.Kind == quantity.Count && e.Dim == v.Dim && !e.Range() && e.Lo > 0:
			amounts[n], n = k, n+1
		case m < maxOperands && (e.Dim == quantity.Percent && !e.Range() ||
			(e.Dim == quantity.Plain || e.Dim == quantity.Multiple) && several(e) && e.Raw <= mostTimes):
			factors[m], m = k, m+1
		}
	})
	for _, a := range amounts[:n] {
		for _, f := range factors[:m] {
			by, of := &c.x.known[f], &c.x.known[a]
			meant := !stated || by.value.Dim == quantity.Percent ||
				by.noun != 0 && (by.noun == of.each || c.says(by.noun))
			if meant && c.makes(of, by, v) {
				return true
			}
		}
	}
	return false
}

// makes reports whether v is amount times a number, a percentage of it, or amount with the
// percentage added or subtracted.
func (c *checker) makes(amount, factor *known, v *quantity.Value) bool {
	if c.x.sentences[amount.sentence].group != c.x.sentences[factor.sentence].group {
		return false
	}
	by := factor.value.Raw
	if factor.value.Dim != quantity.Percent {
		return v.Says(amount.value.Lo * by)
	}
	by /= 100
	return v.Says(amount.value.Lo*by) || v.Says(amount.value.Lo*(1+c.signedBy(factor, by)))
}

// signedBy returns a share with a negative sign if its sentence says that it is subtracted.
func (c *checker) signedBy(e *known, part float64) float64 {
	in := &c.x.sentences[e.sentence]
	c.left -= int(in.termEnd - in.terms)
	if slices.ContainsFunc(c.x.terms[in.terms:in.termEnd], func(w term) bool { return takenOff[w.hash] }) {
		return -part
	}
	return part
}

// nearby calls take for each number in the sentences that share most with the claim and in those
// next to them, except rows and records. It may pass a number twice.
func (c *checker) nearby(take func(k int32, e *known)) {
	last := int32(-1)
	top := c.top[:min(len(c.top), fewSentences)]
	if len(top) == 0 && len(c.x.sentences) <= fewSentences {
		top = allSentences[:len(c.x.sentences)]
	}
	for _, s := range top {
		for i := max(0, s-1); i < min(int32(len(c.x.sentences)), s+2); i++ {
			in := &c.x.sentences[i]
			if in.row || in.group != c.x.sentences[s].group || i == last {
				continue
			}
			last = i
			c.left -= int(in.knownEnd - in.known)
			for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
				take(k, &c.x.known[k])
			}
		}
	}
}

// one reports whether the claim has a word for a single thing.
func (c *checker) one() bool {
	return slices.ContainsFunc(c.words, func(w words.Word) bool { return oneNames[w.Hash] })
}
