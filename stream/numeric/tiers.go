package numeric

import (
	"math"

	"signalbox/stream/numeric/quantity"
)

// otherTier returns the number of the table row that the claim identifies by a number of the first
// column, if match is in another row. Example: the claim "over 50,000 euros the fee is 1.1 %"
// against a row "between 10,001 and 50,000 euros: 1.1 %". A number inside a row's range also
// identifies it: 70 for "50 to 99.99 euros".
func (c *checker) otherTier(v *quantity.Value, match candidate) candidate {
	if match.known < 0 || !c.x.sentences[match.sentence].row || c.x.known[match.known].clause == 0 {
		return nobody
	}
	row := int32(-1)
	for i := range c.values {
		if i == c.at || c.values[i].Kind != quantity.Count || c.values[i].Weak {
			continue
		}
		switch at := c.tier(&c.values[i], match.sentence); {
		case at < 0:
		case row >= 0 && row != at, at == match.sentence:
			return nobody
		default:
			row = at
		}
	}
	if row < 0 {
		return nobody
	}
	in := &c.x.sentences[row]
	for k := in.known; k < in.knownEnd; k++ {
		e := &c.x.known[k]
		c.left -= comparing
		if e.clause != c.x.known[match.known].clause || !quantity.Commensurable(v, &e.value) {
			continue
		}
		if c.agree(v, k) != quantity.Differs {
			return nobody
		}
		return c.by(k, c.affinity(k))
	}
	return nobody
}

// tiered reports whether a number of the claim only selects a table row by lying in its range, and
// therefore is not in the evidence: the 70 of "an order of 70 euros" for "50 to 99.99 euros".
func (c *checker) tiered(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Range() || v.Side != quantity.NoSide {
		return false
	}
	for _, s := range c.top {
		in := &c.x.sentences[s]
		if !in.row || in.known == in.knownEnd {
			continue
		}
		c.left -= comparing
		k := &c.x.known[in.known]
		if k.clause == 0 && k.value.Kind == quantity.Count && k.value.Dim == v.Dim && inTier(v.Lo, &k.value) &&
			c.namesTier(v, s) && c.left >= 0 {
			return true
		}
	}
	return false
}

// namesTier reports whether a number in the range of a row really selects that row: the claim has
// another number of the row, or the row has none that this number could stand for. The 4.90 of "an
// order of 70 euros costs 4.90 euros" does not select the row "under 50 euros: 6.90 euros".
func (c *checker) namesTier(v *quantity.Value, row int32) bool {
	in, alone := &c.x.sentences[row], true
	for k := in.known; k < in.knownEnd; k++ {
		e := &c.x.known[k]
		if e.clause == 0 {
			continue
		}
		alone = alone && !quantity.Commensurable(v, &e.value)
		for i := range c.values {
			o := &c.values[i]
			c.left -= comparing
			if i != c.at && quantity.Commensurable(o, &e.value) &&
				quantity.Compare(o, &e.value) != quantity.Differs {
				return true
			}
		}
	}
	return alone
}

// tier returns the only row of the table whose first cell equals v or, failing that, contains it.
// It returns -1 if there is no such row or several.
func (c *checker) tier(v *quantity.Value, row int32) int32 {
	group, same, holds := c.x.sentences[row].group, int32(-1), int32(-1)
	equal, held := 0, 0
	for s := c.groupHead(row); int(s) < len(c.x.sentences) && c.x.sentences[s].group == group; s++ {
		in := &c.x.sentences[s]
		if in.known == in.knownEnd || !in.row || c.x.known[in.known].clause != 0 {
			continue
		}
		if c.left -= comparing; c.left < 0 {
			return -1
		}
		e := &c.x.known[in.known].value
		switch {
		case e.Dim != v.Dim || e.Kind != quantity.Count:
		case e.Lo == v.Lo && e.Hi == v.Hi && (e.Side == v.Side || v.Side == quantity.NoSide):
			same, equal = s, equal+1
		case !v.Range() && v.Side == quantity.NoSide && inTier(v.Lo, e):
			holds, held = s, held+1
		}
	}
	switch {
	case equal == 1:
		return same
	case equal == 0 && held == 1:
		return holds
	}
	return -1
}

// inTier reports whether a number is strictly inside a range or beyond a bound of the evidence.
func inTier(n float64, e *quantity.Value) bool {
	from, to := e.Lo, e.Hi
	switch e.Side {
	case quantity.Upwards:
		to = math.Inf(1)
	case quantity.Downwards:
		from = math.Inf(-1)
	case quantity.NoSide:
		if !e.Range() {
			return false
		}
	}
	return from < n && n < to
}
