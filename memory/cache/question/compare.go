package question

import "slices"

// Difference is why two questions may not share an answer.
type Difference uint8

// The differences, in the order in which they are looked for.
const (
	Same     Difference = iota // none was found
	Long                       // one of them is too long, or says nothing
	Asked                      // they ask for different kinds of things: when, why
	Owner                      // one is about what is mine, the other about what is yours
	Negation                   // one denies what the other does not
	Number                     // another number, or sign
	Word                       // a word of one is not accounted for in the other
	Order                      // the same words in another order or another part, where that matters
	Mood                       // one says what was, may be or must be, the other does not
)

//nolint:gochecknoglobals // constant table
var differences = [...]string{"same", "long", "asked", "owner", "negation", "number", "word", "order", "mood"}

// String returns the name in lower case.
func (d Difference) String() string {
	if int(d) < len(differences) {
		return differences[d]
	}
	return "unknown"
}

// maxSoft is how many words that may stand alone do so on one side.
const maxSoft = 2

// Compare returns why a and b may not share an answer, or Same. It is symmetric and does not
// allocate.
func Compare(a, b *Reading) Difference {
	switch {
	case a.long || b.long || len(a.words) == 0 || len(b.words) == 0:
		return Long
	case !a.kind.meets(b.kind), a.kind != b.kind && (a.things || b.things):
		return Asked
	case a.mine != b.mine && a.yours != b.yours:
		return Owner
	case a.negations != b.negations:
		return Negation
	case !a.agrees(b):
		return Mood
	case a.objects != b.objects, a.parted(b):
		return Order
	}
	m := match{a: a, b: b, literal: a.literal || b.literal}
	m.run()
	if d := m.leftovers(); d != Same {
		return d
	}
	if !m.mutual() && (m.swapped() || m.turned() || m.voiced()) {
		return Order
	}
	return Same
}

// match pairs the words of two readings.
type match struct {
	a, b    *Reading
	literal bool
	left    [MaxWords]int8 // of word i of a: 1 + its word of b, or 0
	right   [MaxWords]int8 // of word i of b: 1 + its word of a, or 0
	keys    int            // pairs of words that matter
}

// round is which words are paired.
type round uint8

const (
	equals round = iota // the same words
	needed              // words that may stand for each other, and may not stand alone
	rest                // words that may stand for each other
)

// run pairs equal words first, and what may stand alone last.
func (m *match) run() {
	for n := equals; n <= rest; n++ {
		for i := range m.a.words {
			if m.left[i] == 0 {
				m.pair(i, n)
			}
		}
	}
}

// pair looks for a free word of b for word i of a.
func (m *match) pair(i int, n round) {
	x := &m.a.words[i]
	for j := range m.b.words {
		if m.right[j] != 0 || !m.pairs(x, &m.b.words[j], n) {
			continue
		}
		y := &m.b.words[j]
		m.left[i], m.right[j] = int8(j+1), int8(i+1)
		if x.class != soft || y.class != soft {
			m.keys++
		}
		return
	}
}

// pairs reports whether two words may be paired in a round.
func (m *match) pairs(x, y *token, n round) bool {
	if n == equals {
		return x.is(y)
	}
	return (n == rest || x.class != soft && y.class != soft) && m.same(x, y)
}

// same reports whether two different words may stand for each other.
func (m *match) same(x, y *token) bool {
	if x.quoted || y.quoted || x.class >= number || y.class >= number || equal(x.form, y.form) && x.clashes(y) {
		return false
	}
	if !m.literal || x.meta && y.meta {
		for _, c := range x.concepts {
			if slices.Contains(y.concepts, c) {
				return true
			}
		}
	}
	return !m.literal && sameForm(x.form, y.form)
}

// leftovers judges the words without a partner.
func (m *match) leftovers() Difference {
	p, d := unpaired(m.a, m.b, &m.left)
	q, e := unpaired(m.b, m.a, &m.right)
	switch {
	case d == Number || e == Number:
		return Number
	case d != Same || e != Same || p > 0 && q > 0 || p+q > m.spare(), m.keys < 2 && m.a.bare != m.b.bare:
		return Word
	}
	return Same
}

// spare is how many words may stand alone: none where only one other word speaks for the pair, or
// where one of the two is no question.
func (m *match) spare() int {
	if m.keys < 2 || m.a.bare != m.b.bare {
		return 0
	}
	return maxSoft
}

// empty reports whether a word says no more than the question word does: "what does it mean", "how
// does it work".
func empty(form []byte) bool {
	switch string(form) {
	case "mean", "means", "meaning", "meant", "work", "works", "possible", "available", "located":
		return true
	}
	return false
}

// unpaired counts the words of r without a partner that may be so, or tells what is wrong with one
// that may not.
func unpaired(r, other *Reading, partner *[MaxWords]int8) (n int, d Difference) {
	for i := range r.words {
		w := &r.words[i]
		switch {
		case partner[i] != 0, w.class == soft && empty(w.form):
		case w.class >= number:
			return 0, Number
		case w.class == soft && !w.quoted:
			n++
		case !other.says(w):
			d = Word
		}
	}
	return n, d
}

// says reports whether the reading holds the very word.
func (r *Reading) says(w *token) bool {
	return slices.ContainsFunc(r.words, func(x token) bool { return x.is(w) })
}

// swapped reports whether two words stand in another order, and that matters.
func (m *match) swapped() bool {
	strict := m.a.strict || m.b.strict
	for i := range m.a.words {
		if m.left[i] == 0 {
			continue
		}
		for k := i + 1; k < len(m.a.words); k++ {
			if m.left[k] == 0 || m.left[k] > m.left[i] {
				continue
			}
			if m.matters(i, k, strict) {
				return true
			}
		}
	}
	return false
}

// mutual reports whether both ask for something that two things have of each other: a distance, a
// difference.
func (m *match) mutual() bool {
	for i := range m.a.words {
		switch string(m.a.words[i].form) {
		case "distance", "difference", "differ", "differs":
			return m.left[i] != 0
		}
	}
	return false
}

// matters reports whether it does that words i and k of a stand the other way round in b.
func (m *match) matters(i, k int, strict bool) bool {
	s := swap{m.a, m.b, i, k, int(m.left[i] - 1), int(m.left[k] - 1)}
	x, y, p, q := s.words()
	if equal(x.form, y.form) {
		return false
	}
	if x.role == p.role && y.role == q.role && x.role != noRole && y.role != noRole && x.role != y.role {
		return false
	}
	if s.fronted() {
		return false
	}
	proper := func(t *token) bool { return t.class >= number || t.name || t.quoted }
	switch {
	case s.genitive(), s.superlative(), s.nominalised():
		return false
	case strict, proper(x) && proper(y):
		return true
	case x.class == soft, y.class == soft, p.class == soft, q.class == soft:
		return false
	case x.asked, y.asked, p.asked, q.asked:
		return false
	case m.a.passive != m.b.passive && (x.verb || y.verb || p.verb || q.verb):
		return false
	}
	return !s.compound()
}
