package numeric

import (
	"math"
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// maxOperands is the maximum number of values that arithmetic may combine. The more there are, the
// likelier a false number equals the sum of two of them by chance.
const maxOperands = 8

// fewSentences is the maximum number of evidence sentences that a claim may refer to without
// sharing a word with them.
const fewSentences = 4

var allSentences = [fewSentences]int32{0, 1, 2, 3} //nolint:gochecknoglobals // constant

// derive looks for v among sums, differences, ratios, shares and counts of evidence values. Each
// needs a matching word in the claim.
func (c *checker) derive(v *quantity.Value, other candidate) (candidate, Reason) {
	if v.Kind != quantity.Count && v.Kind != quantity.Fraction || v.Range() {
		return nobody, NoSuchNumber
	}
	for _, way := range [...]func(*checker, *quantity.Value) candidate{
		(*checker).between, (*checker).days, (*checker).hours, (*checker).age, (*checker).times, (*checker).often,
		(*checker).others, (*checker).reduced, (*checker).ofRecord, (*checker).whole, (*checker).takenOff, (*checker).lots,
	} {
		if by := way(c, v); by.sentence >= 0 {
			return by, Derived
		}
	}
	if other.sentence >= 0 && other.score >= c.limit.Stated && c.cues&(cueDiff|cueSum|cueMean|cueRatio) == 0 {
		return nobody, NoSuchNumber
	}
	if by := c.workedOut(v); by.sentence >= 0 {
		return by, Derived
	}
	if v.Dim == quantity.Plain && v.Raw >= 2 && v.Raw <= 20 && v.Step == 1 {
		if by := c.count(v); by.sentence >= 0 {
			return by, Counted
		}
	}
	return nobody, NoSuchNumber
}

// workedOut tries the arithmetic that the words of the claim allow.
func (c *checker) workedOut(v *quantity.Value) candidate {
	relative := v.Dim == quantity.Percent || v.Dim == quantity.Multiple || v.Kind == quantity.Fraction
	if relative || v.Dim == quantity.Plain && c.cues&(cueRatio|cueShare) != 0 {
		if by := c.relate(v); by.sentence >= 0 {
			return by
		}
	}
	if c.cues&(cueSum|cueDiff|cueMean) != 0 && v.Kind == quantity.Count {
		return c.combine(v)
	}
	return nobody
}

// workedOutApart tries v as a sum, a difference or a mean, in case another subject has the same
// number by chance.
func (c *checker) workedOutApart(v *quantity.Value, match candidate) candidate {
	if c.cues&(cueSum|cueDiff|cueMean) == 0 || v.Dim == quantity.Plain || c.x.sentences[match.sentence].row {
		return nobody
	}
	by := c.workedOut(v)
	if by.sentence == match.sentence {
		return nobody
	}
	return by
}

// ratio tries v as the ratio of two numbers ("ten times as many") before it is compared with single
// numbers, which may equal it by chance.
func (c *checker) ratio(v *quantity.Value) candidate {
	if v.Dim != quantity.Multiple {
		return nobody
	}
	return c.workedOut(v)
}

// operands collects the numbers nearest to the claim that pass want, best first, into c.near. The
// result is valid until the next call.
func (c *checker) operands(want func(e *quantity.Value) bool) []candidate {
	c.near = c.near[:0]
	top := c.top
	if len(top) == 0 && len(c.x.sentences) <= fewSentences {
		top = allSentences[:len(c.x.sentences)] // nothing else can be meant
	}
	for _, s := range top {
		in := &c.x.sentences[s]
		for k := in.known; k < in.knownEnd; k++ {
			if c.left--; c.left < 0 {
				return c.near
			}
			if !want(&c.x.known[k].value) {
				continue
			}
			c.insert(c.by(k, c.affinity(k)))
		}
	}
	return c.near
}

func (c *checker) insert(n candidate) {
	if len(c.near) == maxOperands {
		if n.score <= c.near[maxOperands-1].score {
			return
		}
		c.near = c.near[:maxOperands-1]
	}
	at := len(c.near)
	for at > 0 && c.near[at-1].score < n.score {
		at--
	}
	c.near = append(c.near, candidate{})
	copy(c.near[at+1:], c.near[at:])
	c.near[at] = n
}

// combine tries sums, differences and means of numbers with the dimension of v.
func (c *checker) combine(v *quantity.Value) candidate {
	ops := c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Count && (e.Dim == v.Dim || large(v) && large(e)) && !e.Range()
	})
	sum := 0.0
	for i, a := range ops {
		for _, b := range ops[:i] {
			if c.ofTwo(v, a, b) {
				return a
			}
		}
		sum += c.x.known[a.known].value.Lo
		if i > 1 && (c.cues&cueSum != 0 && v.Says(sum) || c.cues&cueMean != 0 && v.Says(sum/float64(i+1))) {
			return a
		}
	}
	return c.combineSentence(v)
}

// ofTwo reports whether v is the sum, the difference or the mean of two numbers, as the words of
// the claim require.
func (c *checker) ofTwo(v *quantity.Value, a, b candidate) bool {
	x, y := c.x.known[a.known].value.Lo, c.x.known[b.known].value.Lo
	return c.cues&cueSum != 0 && v.Says(x+y) && !c.oneOf(a.known) && !c.oneOf(b.known) ||
		c.cues&cueMean != 0 && v.Says((x+y)/2) ||
		c.cues&cueDiff != 0 && (c.went(a.known, b.known) || c.went(b.known, a.known)) && v.Says(math.Abs(x-y))
}

// oneOf reports whether number k of the evidence is the price of one of several items, which is not
// part of a total.
func (c *checker) oneOf(k int32) bool {
	e := &c.x.known[k]
	return e.lot.amount > e.value.Lo
}

// large reports whether an amount is written with "thousand", "million" or more, after which the
// currency may be omitted: "3.1 million more than in 2023".
func large(v *quantity.Value) bool {
	return v.Scale >= 1e3 && v.Factor == 1 && (v.Dim == quantity.Plain || v.Dim.IsCurrency())
}

// combineSentence tries the sum and the mean of all numbers of one sentence, and of all top
// sentences if there are few numbers.
func (c *checker) combineSentence(v *quantity.Value) candidate {
	all := 0.0
	count, last := 0, int32(-1)
	for _, s := range c.top {
		in := &c.x.sentences[s]
		sum, n := 0.0, 0
		c.left -= int(in.knownEnd - in.known)
		for k := in.known; k < in.knownEnd; k++ {
			if e := &c.x.known[k].value; e.Kind == quantity.Count && e.Dim == v.Dim && !e.Range() {
				sum += e.Lo
				n++
				last = k
			}
		}
		all += sum
		count += n
		if n > 2 && c.total(v, sum, n) {
			return c.by(last, 0)
		}
	}
	if count > 2 && count <= 2*maxOperands && c.total(v, all, count) {
		return c.by(last, 0)
	}
	return c.combineUnit(v)
}

// combineUnit tries the sum and the mean of all evidence numbers written in the unit of v, or of
// all bare numbers if there are few. It supports claims that sum up a list without naming its
// items.
func (c *checker) combineUnit(v *quantity.Value) candidate {
	sum, n, last := 0.0, 0, int32(-1)
	if c.left -= len(c.x.byDim[v.Dim]); c.left < 0 {
		return nobody
	}
	if v.Dim == quantity.Plain && len(c.x.byDim[v.Dim]) > maxOperands {
		return nobody
	}
	several := false
	for _, k := range c.x.byDim[v.Dim] {
		if e := &c.x.known[k].value; e.Kind == quantity.Count && e.Factor == v.Factor && !e.Range() {
			sum += e.Lo
			n++
			last = k
			several = several || c.oneOf(k)
		}
	}
	if several && c.cues&cueMean == 0 {
		return nobody
	}
	if n < 2 || n > 2*maxOperands || !c.total(v, sum, n) {
		return nobody
	}
	return c.by(last, 0)
}

func (c *checker) total(v *quantity.Value, sum float64, n int) bool {
	return c.cues&cueSum != 0 && v.Says(sum) || c.cues&cueMean != 0 && v.Says(sum/float64(n))
}

// relate tries ratios, shares and relative changes of two numbers of the same dimension.
func (c *checker) relate(v *quantity.Value) candidate {
	ops := c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Count && e.Dim != quantity.Multiple && !e.Range() && e.Lo > 0 &&
			// rates also change by a percentage
			(e.Dim != quantity.Percent || v.Dim == quantity.Percent && c.trend != 0)
	})
	scale := 1.0
	if v.Dim == quantity.Percent {
		scale = 100
	}
	by := v.Kind == quantity.Fraction && c.trend != 0 &&
		hasAnySuffix(c.claim[:v.Start], "by ", "um ", "by about ", "um etwa ")
	for i, a := range ops {
		x := &c.x.known[a.known].value
		for j, b := range ops {
			y := &c.x.known[b.known].value
			if i == j || x.Dim != y.Dim {
				continue
			}
			ratio := x.Lo / y.Lo
			if (c.trend == 0 || v.Dim != quantity.Percent && !by) && v.Says(scale*ratio) ||
				(v.Dim == quantity.Percent || by) && c.went(a.known, b.known) && v.Says(scale*math.Abs(ratio-1)) {
				return a
			}
		}
	}
	return nobody
}

// between tries the years between two dates of the evidence.
func (c *checker) between(v *quantity.Value) candidate {
	if v.Dim != quantity.Duration || c.cues&(cueSpan|cueDiff) == 0 {
		return nobody
	}
	ops := c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Date && e.Year != 0 && e.Year == e.YearTo })
	for i, a := range ops {
		x := c.x.known[a.known].value.Year
		for _, b := range ops[:i] {
			y := c.x.known[b.known].value.Year
			if v.Says(math.Abs(float64(x-y))*quantity.Year) && !fitsBetter(ops, a, b) {
				return a
			}
		}
	}
	return nobody
}

// aLittle is the lead in score that one date needs over another to be the one meant; our choice.
const aLittle = 0.05

// fitsBetter reports whether another date in the same sentence fits the claim better than a or b.
// Example: the claim "led it for 17 years" against "joined in 1961, left in 1978 to direct the
// school, which he led until 1999".
func fitsBetter(ops []candidate, a, b candidate) bool {
	return a.sentence == b.sentence && slices.ContainsFunc(ops, func(o candidate) bool {
		return o.sentence == a.sentence && o.known != a.known && o.known != b.known &&
			o.score > min(a.score, b.score)+aLittle
	})
}

// others tries a bare number in a negated claim as the difference between two counts of one
// sentence: "150 were not invited" from "of 200 applicants, 50 were invited".
func (c *checker) others(v *quantity.Value) candidate {
	if v.Dim != quantity.Plain || !c.negated {
		return nobody
	}
	ops := c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Count && e.Dim == v.Dim && !e.Range() })
	for i, a := range ops {
		for _, b := range ops[:i] {
			x, y := &c.x.known[a.known], &c.x.known[b.known]
			if x.sentence == y.sentence && v.Says(math.Abs(x.value.Lo-y.value.Lo)) {
				return a
			}
		}
	}
	return nobody
}

// whole tries a total ("of the 128 tests 126 passed") as the sum of two counts in one sentence, one
// of which the claim also states.
func (c *checker) whole(v *quantity.Value) candidate {
	if v.Dim != quantity.Plain || !hasAnySuffix(c.claim[:v.Start], "of the ", "Of the ", "out of ", "of ") {
		return nobody
	}
	ops := c.operands(func(e *quantity.Value) bool { return e.Kind == quantity.Count && e.Dim == v.Dim && !e.Range() })
	for i, a := range ops {
		for _, b := range ops[:i] {
			x, y := &c.x.known[a.known], &c.x.known[b.known]
			if x.sentence == y.sentence && v.Says(x.value.Lo+y.value.Lo) && (c.states(&x.value) || c.states(&y.value)) {
				return a
			}
		}
	}
	return nobody
}

// states reports whether the claim contains an evidence value.
func (c *checker) states(e *quantity.Value) bool {
	return slices.ContainsFunc(c.values, func(v quantity.Value) bool { return v.Dim == e.Dim && v.Says(e.Lo) })
}

// statesNear is states for the claim's numbers around the one being judged.
func (c *checker) statesNear(e *quantity.Value) bool {
	own, _ := c.ownNear()
	return slices.ContainsFunc(own, func(v quantity.Value) bool { return v.Dim == e.Dim && v.Says(e.Lo) })
}

// takings are beginnings of words for deductions from a price, and takingWords whole words.
//
//nolint:gochecknoglobals // constant tables
var (
	takings = strings.Fields(`discount save saving reduc rabatt nachlass spar erspar gespar ermäßig remise rabais
		réduc économis descuento rebaja ahorr sconto risparmi desconto скидк 割引 優惠 优惠 減 减 할인 خصم`)
	takingWords = hashSet("off less")
)

// takenOff compares a deduction in the claim with a negative amount in the evidence: "15 % off"
// with "SUMMER: -15 %".
func (c *checker) takenOff(v *quantity.Value) candidate {
	ops := c.operands(func(e *quantity.Value) bool { return e.Dim == v.Dim && e.Lo < 0 && !e.Range() })
	at := slices.IndexFunc(ops, func(n candidate) bool { return v.Says(-c.x.known[n.known].value.Lo) })
	if at < 0 {
		return nobody
	}
	deducts := func(w words.Word) bool {
		text := strings.ToLower(c.claim[w.Start:w.End])
		return takingWords[w.Hash] || slices.ContainsFunc(takings, func(t string) bool { return strings.HasPrefix(text, t) })
	}
	if !slices.ContainsFunc(c.words, deducts) {
		return nobody
	}
	return ops[at]
}

// hashSet returns the hashes of the words in a list.
func hashSet(list string) map[uint64]bool {
	m := map[uint64]bool{}
	for _, w := range words.Scan(nil, list) {
		m[w.Hash] = true
	}
	return m
}

// limits are words, by hash, of claims that are about a bound itself.
//
//nolint:gochecknoglobals // constant table
var limits = hashSet("limit limits limited maximum minimum max min cap capped threshold deadline period window " +
	"most least")

// instanceWords is the maximum number of words from the article of an example to its amount.
const instanceWords = 4

// instance reports whether a number of the claim belongs to an example: "an invoice of 4,000
// euros", "a 10-year-old".
func (c *checker) instance(v *quantity.Value) bool {
	at, _ := slices.BinarySearchFunc(c.words, v.Start, func(w words.Word, start int) int { return w.Start - start })
	return !c.limited && slices.ContainsFunc(c.words[max(0, at-instanceWords):at], func(w words.Word) bool {
		text := c.claim[w.Start:w.End]
		switch strings.ToLower(text) {
		case "a", "an", "one", "each", "every", "un", "une", "una", "um", "uma", "ein", "eine", "einem", "einer":
			return true
		}
		return false
	})
}

// conditionWords is the maximum number of words from a conjunction such as "if" to the amount.
const conditionWords = 8

// supposed reports whether a number of the claim is in a condition: "if you are ill for four days".
func (c *checker) supposed(v *quantity.Value) bool {
	at, _ := slices.BinarySearchFunc(c.words, v.Start, func(w words.Word, start int) int { return w.Start - start })
	from, _ := c.reading.clauseAround(v.Start)
	return !c.limited && slices.ContainsFunc(c.words[max(0, at-conditionWords):at], func(w words.Word) bool {
		switch text := c.claim[w.Start:w.End]; text {
		case "Anyone", "anyone", "Whoever", "wer", "Wer", "if", "If", "when", "When", "wenn", "Wenn", "falls", "Falls", "si", "Si":
			return w.Start >= from
		}
		return false
	})
}

// bounded reports whether an amount of the claim is on the permitted side of a bound or inside a
// range in the evidence: "an invoice of 4,000 euros" for "invoices of up to 5,000 euros". The rule
// may apply to it, but the number itself cannot be verified.
func (c *checker) bounded(v *quantity.Value) bool {
	if v.Kind != quantity.Count || v.Side != quantity.NoSide || v.Range() || v.Hedge != quantity.Exact {
		return false
	}
	supposed := c.instance(v) || c.supposed(v)
	aged := v.Dim == quantity.Duration && v.Factor == quantity.Year
	ops := c.operands(func(e *quantity.Value) bool {
		return e.Kind == quantity.Count && (e.Dim == v.Dim || aged && e.Dim == quantity.Plain || ofYears(v, e))
	})
	for _, o := range ops {
		// Consider the number nearest to the claim, those in the same sentence, and those that fit
		// about as well.
		e := &c.x.known[o.known].value
		near := o.sentence == ops[0].sentence || o.score > ops[0].score-aLittle || aged || ofYears(v, e) ||
			e.Range() && v.Dim != quantity.Plain
		mayBe := supposed || e.Range() && !c.limited && !c.x.sentences[o.sentence].row
		if near && mayBe && within(v, e) {
			return true
		}
	}
	return false
}

// ofYears reports whether v is a bare number that may be an age and e is a length of time in years.
func ofYears(v, e *quantity.Value) bool {
	return v.Dim == quantity.Plain && v.Raw <= maxAge && e.Dim == quantity.Duration && e.Factor == quantity.Year
}

// within reports whether v is on the permitted side of bound e or inside range e.
func within(v, e *quantity.Value) bool {
	if ofYears(v, e) && e.Range() {
		return e.Raw <= v.Raw && v.Raw <= e.RawHi // a child of eight for "from 6 to 12 years"
	}
	lo := e.Lo
	if e.Dim != v.Dim {
		lo *= v.Factor // an age: "under 12" for "a 10-year-old"
	}
	if e.Range() {
		// a child of 10 for "children from 6 to 15 years"
		return e.Dim == v.Dim && e.Lo <= v.Lo && v.Lo <= e.Hi
	}
	return e.Side == quantity.Downwards && v.Lo <= lo || e.Side == quantity.Upwards && v.Lo >= lo
}

// maxAge is the largest bare number that is read as an age, in years.
const maxAge = 120

// adverbs maps words of frequency, by hash, to the interval in seconds.
//
//nolint:gochecknoglobals // constant table
var adverbs = func() map[uint64]float64 {
	const day = quantity.Year / 365.25
	m := map[uint64]float64{}
	for list, seconds := range map[string]float64{
		"hourly stündlich": day / 24, "daily nightly täglich quotidien quotidienne diario diaria diariamente": day,
		"weekly wöchentlich hebdomadaire semanal semanalmente": 7 * day, "fortnightly vierzehntägig": 14 * day,
		"monthly monatlich mensuel mensuelle mensual mensualmente":                       quantity.Year / 12,
		"quarterly vierteljährlich trimestriel trimestrielle trimestral trimestralmente": quantity.Year / 4,
		"semiannually halbjährlich semestriel semestrielle semestral":                    quantity.Year / 2,
		"yearly annually annual jährlich annuel annuelle anual anualmente":               quantity.Year, //nolint:misspell // Spanish
	} {
		for h := range hashSet(list) {
			m[h] = seconds
		}
	}
	return m
}()

// often compares frequencies and intervals: "three times a day" with "every 8 hours", and both with
// adverbs such as "hourly".
func (c *checker) often(v *quantity.Value) candidate {
	period, rest := 0.0, c.claim[v.End:]
	switch {
	case v.Dim == quantity.Duration && !v.Range() &&
		hasAnySuffix(c.claim[:v.Start], "very ", "lle ", "ous les ", "outes les ", "ada "):
		return c.adverb(func(between float64) bool { return math.Abs(v.Lo-between) <= between/1000 })
	case v.Dim.Top() == quantity.Multiple && v.Dim != quantity.Multiple:
		period = 1 // "par heure"
	case v.Dim != quantity.Multiple:
	case hasAnyPrefix(rest, " a day", " per day", " daily", " each day", " every day", " am Tag", " par jour", " al día"):
		period = quantity.Year / 365.25
	case hasAnyPrefix(rest, " a week", " per week", " weekly", " each week", " every week"):
		period = 7 * quantity.Year / 365.25
	case hasAnyPrefix(rest, " a year", " per year", " each year", " every year", " im Jahr", " par an", " al año"):
		period = quantity.Year
	default:
		period = v.Period
	}
	if period == 0 {
		return nobody
	}
	for _, n := range c.operands(func(e *quantity.Value) bool { return e.Dim == quantity.Duration && e.Lo > 0 && !e.Range() }) {
		if v.Says(period / c.x.known[n.known].value.Lo) {
			return n
		}
	}
	return c.adverb(func(between float64) bool { return math.Abs(v.Raw*between-period) <= period/1000 })
}

// adverb returns a sentence that fits the claim about as well as the best one and has an adverb of
// frequency whose interval, in seconds, passes fits.
func (c *checker) adverb(fits func(between float64) bool) candidate {
	if len(c.x.sentences) == 0 {
		return nobody
	}
	c.left -= len(c.scores)
	best := slices.Max(c.scores)
	for s, in := range c.x.sentences {
		if c.scores[s] == 0 || c.scores[s] < best/2 {
			continue
		}
		if c.left -= int(in.termEnd - in.terms); c.left < 0 {
			break
		}
		for _, t := range c.x.terms[in.terms:in.termEnd] {
			if between := adverbs[t.hash]; between > 0 && fits(between) {
				return candidate{known: -1, sentence: int32(s)}
			}
		}
	}
	return nobody
}

func hasAnySuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(p string) bool { return strings.HasSuffix(s, p) })
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// count compares v with the number of items that a sentence about the same subject lists.
func (c *checker) count(v *quantity.Value) candidate {
	for _, s := range c.top {
		if float64(c.x.sentences[s].list) == v.Raw {
			return candidate{sentence: s}
		}
	}
	return c.countList(v)
}

// countList compares v with the entries of a source that is only a list, if the evidence has no
// word for what v counts: "three open issues" for three lines.
func (c *checker) countList(v *quantity.Value) candidate {
	noun := c.reading.noun(c.claim, v)
	if _, known := c.x.idf[noun]; known || noun == 0 {
		return nobody
	}
	c.left -= len(c.x.sentences)
	for s := range c.x.sentences {
		if c.x.sentences[s].listed > 1 && float64(c.x.sentences[s].listed) == v.Raw {
			return candidate{known: -1, sentence: int32(s)}
		}
	}
	return nobody
}
