package numeric

import "signalbox/stream/numeric/quantity"

// agree compares the number being judged with number k of the evidence. A day may shift by one if
// its time of day is in another time zone: 23:30 UTC on 3 December is 00:30 CET on the 4th.
func (c *checker) agree(v *quantity.Value, k int32) quantity.Agreement {
	e := &c.x.known[k]
	if v.Kind == quantity.Date && v.Day != 0 && e.value.Day != 0 && c.zoned {
		if days := c.overMidnight(k); days != 0 {
			day := e.value.Shifted(days)
			if a := quantity.Compare(v, &day); a != quantity.Differs {
				return quantity.Converted
			}
			return quantity.Differs
		}
	}
	counted := e.value.Kind == quantity.Count && e.noun != 0
	if v.Kind == quantity.Ordinal && (counted || e.value.Kind == quantity.Date && c.reading.noun(c.claim, v) != 0) {
		return quantity.Differs // the 12th house, with twelve rooms or 12 November
	}
	return quantity.Compare(v, &e.value)
}

// overMidnight returns by how many days date k of the evidence shifts when the time of day next to
// it is converted to the time zone of that next to the claim's date. It returns 0 if they are not
// the same time.
func (c *checker) overMidnight(k int32) int {
	e := &c.x.known[k]
	said := clockBeside(len(c.values), c.at, func(i int) (*quantity.Value, bool) {
		return &c.values[i], c.homes[i] == c.homes[c.at]
	})
	in := &c.x.sentences[e.sentence]
	held := clockBeside(int(in.knownEnd-in.known), int(k-in.known), func(i int) (*quantity.Value, bool) {
		o := &c.x.known[int(in.known)+i]
		return &o.value, o.clause == e.clause
	})
	if said == nil || held == nil {
		return 0
	}
	return quantity.DaysApart(said, held)
}

// clockBeside returns the time of day with a time zone that is next to value at of n values,
// preferably in its clause, or nil. The function value returns value i and whether it is in the
// clause of value at.
func clockBeside(n, at int, value func(i int) (*quantity.Value, bool)) *quantity.Value {
	var best *quantity.Value
	for _, i := range [...]int{at - 1, at + 1} {
		if i < 0 || i >= n {
			continue
		}
		v, near := value(i)
		if v.Kind == quantity.Clock && v.Zone != 0 && (best == nil || near) {
			if best = v; near {
				break
			}
		}
	}
	return best
}

// hasZone reports whether one of the values is a time of day with a time zone.
func (r *reading) hasZone() bool {
	for i := range r.values {
		if r.values[i].Kind == quantity.Clock && r.values[i].Zone != 0 {
			return true
		}
	}
	return false
}
