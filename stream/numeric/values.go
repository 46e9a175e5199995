package numeric

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"signalbox/stream/numeric/quantity"
)

// values finds, by amount, the evidence numbers that a number of a claim could agree with.
type values struct {
	written []amount                  // single amounts by number as written: a unit may be omitted
	base    map[quantity.Dim][]amount // those with a unit by the amount in its base unit
	rates   []int32                   // those with a period; ascending
	rest    []int32                   // dates, ranges, ambiguous numbers such as "1.234"; ascending
}

type amount struct {
	at    float64
	known int32
}

func newValues(list []known) values {
	x := values{base: make(map[quantity.Dim][]amount)}
	for k := range list {
		v := &list[k].value
		if v.Period != 0 {
			x.rates = append(x.rates, int32(k))
		}
		if !single(v) || !math.IsNaN(v.Alt) {
			x.rest = append(x.rest, int32(k))
			continue
		}
		x.written = append(x.written, amount{v.Raw, int32(k)})
		if v.Dim != quantity.Plain {
			x.base[v.Dim] = append(x.base[v.Dim], amount{v.Lo, int32(k)})
		}
	}
	byAmount := func(a, b amount) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.known, b.known)) }
	slices.SortFunc(x.written, byAmount)
	for _, list := range x.base {
		slices.SortFunc(list, byAmount)
	}
	return x
}

func single(v *quantity.Value) bool { return v.Kind == quantity.Count && !v.Range() }

// inside returns the amounts of a sorted list that are in [lo, hi].
func inside(list []amount, lo, hi float64) []amount {
	from := sort.Search(len(list), func(i int) bool { return list[i].at >= lo })
	to := from + sort.Search(len(list)-from, func(i int) bool { return list[from+i].at > hi })
	return list[from:to]
}

// match is the best agreeing number so far.
type match struct {
	candidate

	how Reason
}

// bestMatch returns the evidence value that agrees with v and whose words agree best, the first one
// of several equals, and how it agrees. It returns nobody if there is none.
func (c *checker) bestMatch(v *quantity.Value) (candidate, Reason) {
	m := match{nobody, NoSuchNumber}
	if !single(v) {
		for k := range c.x.known {
			if !c.try(&m, v, int32(k)) {
				break
			}
		}
		return m.candidate, m.how
	}
	reach := v.Reach()
	c.tryAll(&m, v, inside(c.x.values.written, v.Raw-reach, v.Raw+reach))
	c.tryAll(&m, v, inside(c.x.values.base[v.Dim], (v.Raw-reach)*v.Factor+v.Offset, (v.Raw+reach)*v.Factor+v.Offset))
	if !math.IsNaN(v.Alt) {
		c.tryAll(&m, v, inside(c.x.values.written, v.Alt-reach, v.Alt+reach))
		if v.Dim != quantity.Plain {
			c.tryAll(&m, v, inside(c.x.values.base[v.Dim], (v.Alt-reach)*v.Factor+v.Offset, (v.Alt+reach)*v.Factor+v.Offset))
		}
	}
	for _, k := range c.x.values.rest {
		if !c.try(&m, v, k) {
			break
		}
	}
	if v.Period != 0 && m.sentence < 0 {
		for _, k := range c.x.values.rates {
			if !c.try(&m, v, k) {
				break
			}
		}
	}
	return m.candidate, m.how
}

func (c *checker) tryAll(m *match, v *quantity.Value, list []amount) {
	for i := range list {
		if !c.try(m, v, list[i].known) {
			return
		}
	}
}

// try compares number k of the evidence with v and updates m. It reports whether the budget allows
// more.
func (c *checker) try(m *match, v *quantity.Value, k int32) bool {
	e := &c.x.known[k]
	c.left--
	if c.left&(pause-1) == 0 && c.spent() || c.left < 0 {
		return false
	}
	if m.sentence >= 0 {
		if most := c.reach(e.sentence); most < m.score || most == m.score && k > m.known {
			return true
		}
	}
	c.left -= comparing
	a := c.agree(v, k)
	if a == quantity.Differs || c.denies(v, e) {
		return true
	}
	if c.forOther(e) {
		if score := c.affinity(k); c.other.sentence < 0 || score > c.other.score {
			c.other = c.by(k, score)
		}
		return true
	}
	if score := c.affinity(k); m.sentence < 0 || score > m.score || score == m.score && k < m.known {
		m.candidate, m.how = c.by(k, score), reasons(a)
	}
	return true
}

func reasons(a quantity.Agreement) Reason {
	switch a {
	case quantity.Rounded:
		return Rounded
	case quantity.Converted:
		return Converted
	case quantity.Equal, quantity.Differs:
	}
	return SameValue
}
