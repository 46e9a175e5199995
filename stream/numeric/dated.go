package numeric

import (
	"slices"

	"signalbox/stream/numeric/quantity"
)

// dateOf returns the index of the date that number k applies to, or -1. That is the only date in
// its clause, or its neighbour where numbers and dates alternate ("from 61 % in 2018 to 67 % in
// 2022").
func (c *checker) dateOf(k int32) int32 {
	e := &c.x.known[k]
	if e.value.Kind != quantity.Count {
		return -1
	}
	in := &c.x.sentences[e.sentence]
	c.left -= int(in.knownEnd - in.known)
	first, last, dates, alternate, date := int32(-1), int32(-1), 0, true, int32(-1)
	for i := in.known; i < in.knownEnd; i++ {
		o := &c.x.known[i]
		if o.clause != e.clause {
			continue
		}
		isDate := o.value.Kind == quantity.Date
		if first < 0 {
			first = i
		} else {
			alternate = alternate && isDate != (c.x.known[last].value.Kind == quantity.Date)
		}
		if isDate {
			dates, date = dates+1, i
		}
		last = i
	}
	switch {
	case dates == 1:
		return date
	case dates < 2 || !alternate || int(last-first+1) != 2*dates:
		return -1
	case c.x.known[first].value.Kind == quantity.Date:
		return k - 1
	}
	return k + 1
}

// ofOtherDate returns the number of the same sentence that the evidence gives for the claim's date,
// if match is for a different date. Example: the claim "67 % in 2018" against "61 % in 2018 and 67
// % in 2022".
func (c *checker) ofOtherDate(v *quantity.Value, match candidate) candidate {
	in := &c.x.sentences[match.sentence]
	said := c.onlyDate()
	if match.known < 0 || in.mixed || in.row || said == nil || v.Kind != quantity.Count {
		return nobody
	}
	date := c.dateOf(match.known)
	if date < 0 || quantity.Compare(said, &c.x.known[date].value) != quantity.Differs {
		return nobody
	}
	if in.knownEnd-in.known < 4 {
		return c.ofTwin(v, said, match)
	}
	best := nobody
	for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
		e := &c.x.known[k]
		c.left -= comparing
		if !quantity.Commensurable(v, &e.value) {
			continue
		}
		at := c.dateOf(k)
		if at < 0 || quantity.Compare(said, &c.x.known[at].value) == quantity.Differs {
			continue
		}
		if c.agree(v, k) != quantity.Differs {
			return nobody // the number holds for that date as well
		}
		if e.noun == c.x.known[match.known].noun || e.value.Dim != quantity.Plain {
			best = c.by(k, c.affinity(k))
		}
	}
	return best
}

// yearAlone returns the year of a quarter or half-year in the claim, if the evidence has no
// quarters or half-years: it may give days without a year. If an amount of the claim is stated for
// the whole year, it does not hold for a part, and yearAlone returns nobody.
func (c *checker) yearAlone(v *quantity.Value) candidate {
	best := nobody
	if v.Kind != quantity.Date || v.Month < quantity.Quarters {
		return best
	}
	// "2006 tour dates" may be read as a plain number
	for _, dim := range [...]quantity.Dim{v.Dim, quantity.Plain} {
		for _, k := range c.x.byDim[dim] {
			e := &c.x.known[k].value
			if c.left -= comparing; c.left < 0 || e.Month >= quantity.Quarters {
				return nobody
			}
			if e.Lo != v.Lo {
				continue
			}
			if score := c.affinity(k); best.sentence < 0 || score > best.score {
				best = c.by(k, score)
			}
		}
	}
	if best.sentence >= 0 && c.ofWholeYear(best.known) {
		return nobody
	}
	return best
}

// ofWholeYear reports whether the sentence of a year in the evidence gives, for that whole year, an
// amount from the clause of the date being judged.
func (c *checker) ofWholeYear(year int32) bool {
	in := &c.x.sentences[c.x.known[year].sentence]
	for i := range c.values {
		v := &c.values[i]
		if v.Kind != quantity.Count || v.Weak || c.homes[i] != c.homes[c.at] {
			continue
		}
		for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
			c.left -= comparing
			e := &c.x.known[k].value
			if e.Kind == quantity.Count && quantity.Compare(v, e) != quantity.Differs &&
				(in.row || c.dateOf(k) == year) {
				return true
			}
		}
	}
	return false
}

// ofTwin returns the number of another sentence with the same words but the claim's date. Example:
// "revenue in Q2 was 3.9 million" next to "revenue in Q3 was 4.2 million".
func (c *checker) ofTwin(v, said *quantity.Value, match candidate) candidate {
	best := nobody
	for _, s := range c.top {
		in := &c.x.sentences[s]
		if s == match.sentence || in.knownEnd-in.known != 2 || in.row || !c.twins(s, match.sentence) {
			continue
		}
		for k := in.known; k < in.knownEnd && c.left >= 0; k++ {
			e := &c.x.known[k]
			c.left -= comparing
			at := c.dateOf(k)
			if at < 0 || !quantity.Commensurable(v, &e.value) ||
				quantity.Compare(said, &c.x.known[at].value) == quantity.Differs {
				continue
			}
			if c.agree(v, k) != quantity.Differs {
				return nobody
			}
			best = c.by(k, c.affinity(k))
		}
	}
	return best
}

// twins reports whether two sentences have the same words, apart from dates.
func (c *checker) twins(a, b int32) bool {
	return c.within(a, b) && c.within(b, a)
}

// within reports whether sentence b has all words of sentence a, apart from dates.
func (c *checker) within(a, b int32) bool {
	of, in := &c.x.sentences[a], &c.x.sentences[b]
	c.left -= int(of.termEnd-of.terms) * int(in.termEnd-in.terms)
	if c.left < 0 {
		return false
	}
	all := c.x.terms[in.terms:in.termEnd]
	return !slices.ContainsFunc(c.x.terms[of.terms:of.termEnd], func(t term) bool {
		return !t.date && !slices.ContainsFunc(all, func(o term) bool { return o.hash == t.hash })
	})
}

// onlyDate returns the only date in the clause of the number being judged, or nil.
func (c *checker) onlyDate() *quantity.Value {
	var date *quantity.Value
	for i := range c.values {
		if c.homes[i] != c.homes[c.at] || c.values[i].Kind != quantity.Date {
			continue
		}
		if date != nil {
			return nil
		}
		date = &c.values[i]
	}
	return date
}
