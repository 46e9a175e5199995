package numeric

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxOperands bounds the values that arithmetic may combine: the more there are, the likelier a false number is the sum
// of two of them by chance.
const maxOperands = 8

// stated is how well a comparable number must fit the claim to stand in the way of arithmetic: the evidence says what
// the subject has, and it is another number. Claims of differences are exempt, for they name the subject of a number
// and mean another.
const stated = 0.75

// cuesOf collects the hints of a claim that its numbers were worked out.
func cuesOf(claim string) cue {
	var found cue
	var form [48]byte
	for start, inWord := 0, false; start < len(claim); {
		end := strings.IndexFunc(claim[start:], func(r rune) bool { return unicode.IsLetter(r) != inWord })
		if end < 0 {
			end = len(claim) - start
		}
		if inWord && end > 0 && end < len(form) {
			found |= lexicon[string(appendLower(form[:0], claim[start:start+end]))].cue
		}
		start += end
		inWord = !inWord
	}
	if strings.Contains(claim, "%") {
		found |= cueShare
	}
	return found
}

// derive looks for v among sums, differences, ratios, shares and counts of values of the evidence, each only when the
// claim has a word for it.
func (c *checker) derive(v *Value, other candidate) (candidate, Reason) {
	if v.Kind != Count && v.Kind != Fraction || v.Range() {
		return nobody, NoSuchNumber
	}
	if v.Dim == duration && c.cues&(cueSpan|cueDiff) != 0 {
		if by := c.between(v); by.sentence >= 0 {
			return by, Derived
		}
	}
	if other.sentence >= 0 && other.score >= stated && c.cues&(cueDiff|cueSum|cueMean|cueRatio) == 0 {
		return nobody, NoSuchNumber
	}
	if by := c.workedOut(v); by.sentence >= 0 {
		return by, Derived
	}
	if v.Dim == plain && v.Raw >= 2 && v.Raw <= 20 && v.Step == 1 {
		if by := c.count(v); by.sentence >= 0 {
			return by, Counted
		}
	}
	return nobody, NoSuchNumber
}

// workedOut tries the arithmetic that the words of the claim allow.
func (c *checker) workedOut(v *Value) candidate {
	relative := v.Dim == percent || v.Dim == multiple || v.Kind == Fraction
	if relative || v.Dim == plain && c.cues&(cueRatio|cueShare) != 0 {
		if by := c.relate(v); by.sentence >= 0 {
			return by
		}
	}
	if c.cues&(cueSum|cueDiff|cueMean) != 0 && v.Kind == Count {
		return c.combine(v)
	}
	return nobody
}

// operands collects the numbers nearest to the claim that pass want, best first, into c.near.
func (c *checker) operands(want func(e *Value) bool) []candidate {
	c.near = c.near[:0]
	for _, s := range c.top {
		in := &c.x.sentences[s]
		for k := in.known; k < in.knownEnd; k++ {
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

// gives reports whether v says base, a value worked out from the evidence in base units, by the precision of v.
func (*checker) gives(v *Value, base float64) bool {
	e := *v
	e.Hedge = Exact
	e.Raw = (base - v.Offset) / v.Factor
	e.RawHi, e.Alt = e.Raw, math.NaN()
	e.Step = v.Step / 1000
	e.scaled()
	return amounts(v, &e) != differs
}

// combine tries sums, differences and means of numbers of the dimension of v.
func (c *checker) combine(v *Value) candidate {
	ops := c.operands(func(e *Value) bool { return e.Kind == Count && e.Dim == v.Dim && !e.Range() })
	sum := 0.0
	for i, a := range ops {
		x := c.x.known[a.known].value.Lo
		for _, b := range ops[:i] {
			y := c.x.known[b.known].value.Lo
			if c.cues&cueSum != 0 && c.gives(v, x+y) || c.cues&cueDiff != 0 && c.gives(v, math.Abs(x-y)) || c.cues&cueMean != 0 && c.gives(v, (x+y)/2) {
				return a
			}
		}
		sum += x
		if i > 1 && (c.cues&cueSum != 0 && c.gives(v, sum) || c.cues&cueMean != 0 && c.gives(v, sum/float64(i+1))) {
			return a
		}
	}
	return c.combineSentence(v)
}

// combineSentence tries the sum and the mean of all numbers of one sentence, and of all the evidence when it is small.
func (c *checker) combineSentence(v *Value) candidate {
	all := 0.0
	count, last := 0, int32(-1)
	for _, s := range c.top {
		in := &c.x.sentences[s]
		sum, n := 0.0, 0
		for k := in.known; k < in.knownEnd; k++ {
			if e := &c.x.known[k].value; e.Kind == Count && e.Dim == v.Dim && !e.Range() {
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

// combineUnit tries the sum and the mean of all numbers of the evidence that are written in the unit of v. It helps
// claims that sum up a list without naming what is in it.
func (c *checker) combineUnit(v *Value) candidate {
	sum, n, last := 0.0, 0, int32(-1)
	for _, k := range c.x.byDim[v.Dim] {
		if e := &c.x.known[k].value; v.Dim != plain && e.Kind == Count && e.Factor == v.Factor && !e.Range() {
			sum += e.Lo
			n++
			last = k
		}
	}
	if n < 2 || n > 2*maxOperands || !c.total(v, sum, n) {
		return nobody
	}
	return c.by(last, 0)
}

func (c *checker) total(v *Value, sum float64, n int) bool {
	return c.cues&cueSum != 0 && c.gives(v, sum) || c.cues&cueMean != 0 && c.gives(v, sum/float64(n))
}

// relate tries ratios, shares and relative changes of two numbers of one dimension.
func (c *checker) relate(v *Value) candidate {
	ops := c.operands(func(e *Value) bool {
		return e.Kind == Count && e.Dim != percent && e.Dim != multiple && !e.Range() && e.Lo > 0
	})
	scale := 1.0
	if v.Dim == percent {
		scale = 100
	}
	for i, a := range ops {
		x := &c.x.known[a.known].value
		for j, b := range ops {
			y := &c.x.known[b.known].value
			if i == j || x.Dim != y.Dim {
				continue
			}
			ratio := x.Lo / y.Lo
			if c.gives(v, scale*ratio) || v.Dim == percent && c.gives(v, scale*math.Abs(ratio-1)) {
				return a
			}
		}
	}
	return nobody
}

// between tries the years between two dates of the evidence.
func (c *checker) between(v *Value) candidate {
	ops := c.operands(func(e *Value) bool { return e.Kind == Date && e.Year != 0 && e.Year == e.YearTo })
	for i, a := range ops {
		x := c.x.known[a.known].value.Year
		for _, b := range ops[:i] {
			y := c.x.known[b.known].value.Year
			if c.gives(v, math.Abs(float64(x-y))*year) {
				return a
			}
		}
	}
	return nobody
}

// count compares v with the number of things that a sentence about the same subject lists.
func (c *checker) count(v *Value) candidate {
	for _, s := range c.top {
		if float64(c.x.sentences[s].list) == v.Raw {
			return candidate{sentence: s}
		}
	}
	return nobody
}

func appendLower(dst []byte, s string) []byte {
	for _, r := range s {
		if len(dst)+4 > cap(dst) {
			break
		}
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
	}
	return dst
}
