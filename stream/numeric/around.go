package numeric

import (
	"math"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// reachWords is how many words on each side of a number tell its place.
const reachWords = 3

// around is what stands next to a number, nearest first: words by hash, other numbers by value, the
// ends of the text.
type around struct{ left, right [reachWords]mark }

// mark is a word, a number or an end.
type mark uint64

// What a mark is, by its highest bits.
const (
	edge    mark = 1
	isValue mark = 1 << 63
	isWord  mark = 1 << 62
	isPlain mark = 1 << 61 // a function word
)

// content reports whether a mark is a word other than a function word, or a number.
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

// placesOf appends what stands around each value of the reading, in order.
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

// side reads the marks from word w and value v on, in a direction.
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

// alike is how far the places of two numbers are the same, and whether more than function words
// are: words and numbers in common count, other numbers in the same place count against it, except
// where one stands for the other.
func alike(claim, evidence *around, said, held mark) (score int, told bool) {
	left, tellsLeft := alikeOn(&claim.left, &evidence.left, said, held)
	right, tellsRight := alikeOn(&claim.right, &evidence.right, said, held)
	return left + right, tellsLeft || tellsRight
}

// alikeOn is alike on one side.
func alikeOn(claim, evidence *[reachWords]mark, said, held mark) (score int, told bool) {
	for k, a := range claim {
		b := evidence[k]
		numbers := a&isValue != 0 && b&isValue != 0
		switch {
		case numbers && (b == said || a == held): // exchanged with its neighbour
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

// Words in common around a number of the claim and one of the evidence from which on they are the
// same place, and by how many more than around the number that has its value. Chosen on exchanged
// numbers in training pages.
const (
	samePlace  = 4
	placeAhead = 3
)

// exchanged finds the number of the evidence in whose place number i of the claim stands, where the
// evidence has that of the claim in another place alone.
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

// tellsApart reports whether the claim has, in the clause of its number i, words that stand with
// one number of the evidence and not with the other, and none the other way: "in its second week it
// sold 420" of "310 in its first week and 420 in its second". What stands before the number of a
// clause may go for the clauses after it as well, and tells nothing.
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

// besides reports whether a number stands in the clause of another.
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

// stands reports whether a word stands in the clause of a number, and behind a number there.
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
