package numeric

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/numeric/quantity"
)

// reckoned reports whether v is calculated within the claim itself, or from a percentage. Such a
// number needs no evidence beyond its operands, which are judged separately.
func (c *checker) reckoned(v *quantity.Value) bool {
	return v.Hedge <= quantity.Nearly && !v.Range() && (c.ofOwnTwo(v) || c.ofOwnShare(v) || c.points(v))
}

// ofOwnTwo reports whether v is the result of two numbers of the claim, or the distance between
// them: times of day, dates, amounts that the evidence has, or the ends of a range ("pages 329 to
// 338 are ten pages"). If the claim has many numbers, v needs more digits, because two of many
// yield another by chance.
func (c *checker) ofOwnTwo(v *quantity.Value) bool {
	own, at := c.ownNear()
	if len(own) > ownBeside && digitsOf(v) < digitsTogether {
		return false
	}
	for i := range own {
		if i == at {
			continue
		}
		if ofRange(v, &own[i]) {
			return true
		}
		for j := range own[:i] {
			c.left -= comparing
			a, b := &own[j], &own[i]
			if j == at || !c.liesBetween(v, a, b) && (digitsOf(v) < digitsTogether || !worksOut(v, a, b) && !worksOut(v, b, a)) {
				continue
			}
			if c.held(a) && c.held(b) {
				return true
			}
		}
	}
	return false
}

// ofRange reports whether v is the size of a range. Counted things may include both ends.
func ofRange(v, a *quantity.Value) bool {
	return a.Range() && a.Kind == quantity.Count && v.Kind == a.Kind && a.Dim == v.Dim &&
		(v.Says(a.Hi-a.Lo) || v.Dim == quantity.Plain && v.Says(a.Hi-a.Lo+1))
}

// liesBetween reports whether v is the distance between two numbers.
func (c *checker) liesBetween(v, a, b *quantity.Value) bool {
	switch {
	case v.Kind == quantity.Date:
		return c.yearsBack(v, a, b) || c.yearsBack(v, b, a)
	case v.Kind != quantity.Count || a.Kind != b.Kind || a.Range() || b.Range():
		return false
	case a.Kind == quantity.Clock:
		return elapsed(v, a.Lo, b.Lo)
	case a.Kind == quantity.Date:
		return c.datesApart(v, a, b)
	}
	if a.Kind != quantity.Count || a.Dim != b.Dim || !v.Says(math.Abs(a.Lo-b.Lo)+v.Offset) {
		return false
	}
	if a.Dim == quantity.Percent {
		return v.Dim == quantity.Plain || v.Dim == a.Dim && c.cues&cueDiff != 0
	}
	return a.Dim == v.Dim && (v.Dim != quantity.Plain || c.noun == 0 || c.cues&cueDiff != 0 ||
		c.reading.noun(c.claim, a) == c.noun || c.reading.noun(c.claim, b) == c.noun)
}

// worksOut reports whether v is the sum, product or quotient of two amounts, a percentage b of a,
// or a as a percentage of b: "14 nights at 95 euros are 1,330".
func worksOut(v, a, b *quantity.Value) bool {
	counts := v.Kind == quantity.Count && a.Kind == quantity.Count && b.Kind == quantity.Count
	if !counts || a.Range() || b.Range() || b.Lo <= 0 {
		return false
	}
	switch {
	case v.Dim != quantity.Plain && b.Dim == v.Dim && a.Dim == v.Dim:
		return v.Says(a.Lo + b.Lo)
	case a.Dim == b.Dim && v.Dim == quantity.Percent:
		return closely(v, 100*a.Lo/b.Lo)
	case a.Dim != v.Dim:
		return false
	case b.Dim == quantity.Percent:
		return partOf(v, a.Lo, b.Lo/100)
	}
	return howMany(b) && b.Raw > 1 && (v.Says(a.Lo*b.Raw) || v.Says(a.Lo/b.Raw))
}

// yearsBack reports whether v is the year of a date minus or plus a number of years, allowing for
// an incomplete last year: someone who died in 2018 at 76 was born in 1941 or 1942.
func (c *checker) yearsBack(v, date, n *quantity.Value) bool {
	if v.Month != 0 || v.Year != v.YearTo || date.Kind != quantity.Date || date.Year == 0 || date.Year != date.YearTo ||
		n.Kind != quantity.Count || n.Raw <= 0 {
		return false
	}
	if n.Dim == quantity.Plain && c.reading.noun(c.claim, n) != 0 || n.Dim != quantity.Plain && n.Factor != quantity.Year {
		return false // "three children" is not an age
	}
	back := float64(date.Year - v.Year)
	return back == n.Raw || back == n.Raw+1 || back == -n.Raw
}

// datesApart reports whether v is the number of years or days between two dates.
func (c *checker) datesApart(v, a, b *quantity.Value) bool {
	years := math.Abs(float64(a.Year - b.Year))
	inYears := v.Dim == quantity.Duration && v.Says(years*quantity.Year) ||
		v.Dim == quantity.Plain && c.noun == 0 && v.Says(years)
	if a.Year != 0 && b.Year != 0 && years > 0 && inYears {
		return true
	}
	from, known := dayOfAny(a)
	to, both := dayOfAny(b)
	known = known && (a.Year == 0) == (b.Year == 0)
	return known && both && v.Dim == quantity.Duration && v.Says(math.Abs(float64(to-from))*secondsOfDay)
}

// conclusions introduce a conclusion, conditionals a hypothetical result; outcomes are words next
// to a conditional. English, German, French and Spanish.
//
//nolint:gochecknoglobals // constant tables
var (
	conclusions  = hashSet("so therefore thus hence daher somit folglich demnach donc entonces")
	conditionals = hashSet("would you'd würde würden")
	outcomes     = hashSet("you sie ihr have be come leave cost pay get need take remain save")
)

// concluded reports whether v follows a word for a conclusion at the head of a clause ("Eight are
// done, so eleven remain") or a word for a hypothetical result ("you would hear 45 minutes"). If no
// step of arithmetic is found that leads to such a number, it is right as often as wrong.
func (c *checker) concluded(v *quantity.Value) bool {
	from := strings.LastIndexByte(c.claim[:v.Start], ';') + 1
	for i := c.wordFrom(v.Start) - 1; i >= 0 && c.words[i].Start >= from; i-- {
		c.left--
		w := &c.words[i]
		if conclusions[w.Hash] {
			if next := c.claim[w.End:]; strings.HasPrefix(next, " far") || strings.HasPrefix(next, " that") {
				return false
			}
			head := strings.TrimRight(c.claim[:w.Start], " *_")
			last, _ := utf8.DecodeLastRuneInString(head)
			return head == "" || strings.HasSuffix(head, " and") || strings.ContainsRune(",;:(.–—", last)
		}
		if conditionals[w.Hash] {
			return strings.ContainsAny(c.claim[w.Start:w.End], "'’") || i > 0 && outcomes[c.words[i-1].Hash] ||
				i+1 < len(c.words) && outcomes[c.words[i+1].Hash]
		}
	}
	return false
}

// ofOwnShare reports whether v is an evidence amount multiplied by a percentage of the claim, or
// the remainder: "74 % of it, $41,500".
func (c *checker) ofOwnShare(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Dim == quantity.Percent {
		return false
	}
	own, at := c.ownNear()
	for i := range own {
		w := &own[i]
		if i == at || w.Dim != quantity.Percent || w.Range() {
			continue
		}
		if slices.ContainsFunc(c.numbersNear(), func(k int32) bool {
			c.left -= comparing
			e := &c.x.known[k].value
			return e.Kind == quantity.Count && e.Dim == v.Dim && partOf(v, e.Lo, w.Lo/100)
		}) {
			return true
		}
	}
	return false
}

// points reports whether v is the difference in percentage points between two percentages near the
// claim, in the evidence or in the claim.
func (c *checker) points(v *quantity.Value) bool {
	rest := strings.TrimLeft(c.claim[v.End:], " -\u00a0")
	i := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) })
	if i < 0 {
		i = len(rest)
	}
	if v.Kind != quantity.Count || !pointWords[rest[:i]] {
		return false
	}
	var list [2 * maxNear]float64
	n := 0
	for _, k := range c.numbersNear() {
		if e := &c.x.known[k].value; e.Dim == quantity.Percent && n < len(list) {
			list[n], n = e.Raw, n+1
		}
	}
	own, _ := c.ownNear()
	for i := range own {
		if own[i].Dim == quantity.Percent && n < len(list) {
			list[n], n = own[i].Raw, n+1
		}
	}
	for i := range n {
		for _, other := range list[:i] {
			if c.left -= comparing; math.Abs(math.Abs(list[i]-other)-v.Raw) < v.Step/2 {
				return true
			}
		}
	}
	return false
}

// pointWords are words for percentage points.
//
//nolint:gochecknoglobals // constant table
var pointWords = map[string]bool{
	"points": true, "percentage": true, "Punkte": true, "Prozentpunkte": true, "Prozentpunkten": true, "puntos": true,
}

// held reports whether the evidence has amount w of the claim. A bare number may be an assumption,
// so it always counts.
func (c *checker) held(w *quantity.Value) bool {
	if w.Kind != quantity.Count || w.Dim == quantity.Plain {
		return true
	}
	for _, k := range c.x.byDim[w.Dim] {
		if c.left -= comparing; c.left < 0 || w.Says(c.x.known[k].value.Lo) {
			return true
		}
	}
	return false
}
