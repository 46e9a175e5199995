package numeric

import (
	"math"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// reachWords is how many words on each side of a number describe its place.
const reachWords = 3

// around holds what is next to a number, nearest first: words by hash, other numbers by value, and
// the ends of the text.
type around struct{ left, right [reachWords]mark }

// mark identifies a word, a number or an end of the text.
type mark uint64

// Kinds of marks, encoded in the highest bits.
const (
	edge    mark = 1
	isValue mark = 1 << 63
	isWord  mark = 1 << 62
	isPlain mark = 1 << 61 // a function word
)

// content reports whether m is a number or a word other than a function word.
func (m mark) content() bool { return m&isValue != 0 || m&isWord != 0 && m&isPlain == 0 }

func markOf(w words.Word) mark {
	m := isWord | mark(w.Hash>>3)
	if w.Has(words.Stop) && !w.Has(words.Negation) {
		m |= isPlain
	}
	return m
}

func valueMark(v *quantity.Value) mark {
	bits := math.Float64bits(v.Raw)*31 + math.Float64bits(v.RawHi) + uint64(v.Kind)<<32 + uint64(v.Month)<<40 + uint64(v.Day)<<48
	return isValue | mark(bits>>2)
}

// placesOf appends the surroundings of each value of the reading to dst, in order.
func (r *reading) placesOf(dst []around) []around {
	w := 0
	for i := range r.values {
		v := &r.values[i]
		for w < len(r.words) && r.words[w].End <= v.Start {
			w++
		}
		after := w
		for after < len(r.words) && r.words[after].Start < v.End {
			after++
		}
		dst = append(dst, around{r.side(w-1, i-1, -1), r.side(after, i+1, 1)})
	}
	return dst
}

// side collects the marks starting at word w and value v. step is -1 (leftwards) or 1 (rightwards).
func (r *reading) side(w, v, step int) (side [reachWords]mark) {
	for k := range side {
		switch {
		case w < 0 || w >= len(r.words):
			side[k] = edge
			return side
		case v >= 0 && v < len(r.values) && r.words[w].Start < r.values[v].End && r.values[v].Start < r.words[w].End:
			side[k] = valueMark(&r.values[v])
			for w >= 0 && w < len(r.words) && r.words[w].Start < r.values[v].End && r.values[v].Start < r.words[w].End {
				w += step
			}
			v += step
		default:
			side[k] = markOf(r.words[w])
			w += step
		}
	}
	return side
}

// alike compares the places of two numbers. Common words and numbers raise the score; different
// numbers in the same position lower it, except where one of the two compared numbers (said, held)
// takes the other's position. told reports whether the places share more than function words.
func alike(claim, evidence *around, said, held mark) (score int, told bool) {
	left, tellsLeft := alikeOn(&claim.left, &evidence.left, said, held)
	right, tellsRight := alikeOn(&claim.right, &evidence.right, said, held)
	return left + right, tellsLeft || tellsRight
}

// alikeOn is alike for one side.
func alikeOn(claim, evidence *[reachWords]mark, said, held mark) (score int, told bool) {
	for k, a := range claim {
		b := evidence[k]
		numbers := a&isValue != 0 && b&isValue != 0
		switch {
		case numbers && (b == said || a == held): // swapped with its neighbour
			continue
		case a != b && numbers:
			return score - 2, told
		case a != b:
			return score, told
		case numbers:
			score++
		}
		score++
		told = told || a.content()
		if a == edge {
			break
		}
	}
	return score, told
}

// The minimum score at which two places count as the same, and the lead it needs over the best
// place of the equal number. Both were chosen on training pages with swapped numbers.
const (
	samePlace  = 4
	placeAhead = 3
)

// exchanged returns the evidence number whose place number i of the claim occupies, if the evidence
// has the claim's own value only in a different place. It returns nobody if there is none.
func (c *checker) exchanged(i int, match candidate) candidate {
	v, place := &c.values[i], &c.places[i]
	said := valueMark(v)
	best, most := nobody, samePlace-1
	own := c.alikeTo(place, match.known, said)
	for _, s := range c.top {
		in := &c.x.sentences[s]
		for k := in.known; k < in.knownEnd; k++ {
			if c.left -= comparing; c.left < 0 {
				return nobody
			}
			e := &c.x.known[k]
			if quantity.Compare(v, &e.value) != quantity.Differs {
				own = max(own, c.alikeTo(place, k, said))
				continue
			}
			if !quantity.Commensurable(v, &e.value) {
				continue
			}
			if score, told := alike(place, &c.x.places[k], said, valueMark(&e.value)); told && score > most {
				best, most = c.by(k, 1), score
			}
		}
	}
	if best.sentence < 0 || most < own+placeAhead || c.tellsApart(i, match.known, best.known) || c.goesOn(match, best) ||
		v.Kind == quantity.Clock && c.namedHere(match, best) || c.ofItsPart(v, best) {
		return nobody
	}
	return best
}

// tellsApart reports whether words in the clause of claim number i occur with one evidence number
// (match) and not with other, and no words occur the other way round. Example: the claim "in its
// second week it sold 420" against "310 in its first week and 420 in its second". Words before the
// first number of a clause may also apply to later clauses, so they do not distinguish.
func (c *checker) tellsApart(i int, match, other int32) bool {
	if match < 0 || other < 0 {
		return false
	}
	m, o := &c.x.known[match], &c.x.known[other]
	if m.sentence == o.sentence && m.clause == o.clause {
		return false
	}
	own := false
	for _, w := range c.words {
		if w.Has(words.Stop) || c.clause(w.Start) != c.homes[i] || c.inValue(w, true) {
			continue
		}
		here, _ := c.stands(w.Hash, m)
		there, behind := c.stands(w.Hash, o)
		switch {
		case there && !here && (behind || m.sentence != o.sentence):
			return false
		case here && !there:
			own = true
		}
	}
	for k := range c.values {
		if n := &c.values[k]; k != i && c.homes[k] == c.homes[i] && n.Kind == quantity.Ordinal {
			own = own || c.besides(n, m) && !c.besides(n, o)
		}
	}
	return own
}

// besides reports whether the clause of evidence number k contains a number compatible with v.
func (c *checker) besides(v *quantity.Value, k *known) bool {
	s := &c.x.sentences[k.sentence]
	c.left -= comparing * int(s.knownEnd-s.known)
	for i := s.known; i < s.knownEnd; i++ {
		if n := &c.x.known[i]; n.clause == k.clause && quantity.Compare(v, &n.value) != quantity.Differs {
			return true
		}
	}
	return false
}

// stands reports whether a word occurs in the clause of number k, and whether a number precedes it
// there.
func (c *checker) stands(hash uint64, k *known) (in, behind bool) {
	s := &c.x.sentences[k.sentence]
	c.left -= int(s.termEnd - s.terms)
	for i := s.terms; i < s.termEnd; i++ {
		if t := &c.x.terms[i]; t.hash == hash && t.clause == k.clause {
			in, behind = true, behind || t.behind
		}
	}
	return in, behind
}

func (c *checker) alikeTo(place *around, k int32, said mark) int {
	if k < 0 {
		return 0
	}
	score, _ := alike(place, &c.x.places[k], said, valueMark(&c.x.known[k].value))
	return score
}
