package question

import "slices"

// Difference is the reason why two questions may not share an answer.
type Difference uint8

// The differences, in the order in which they are tested.
const (
	Same     Difference = iota // none was found
	Long                       // one of them is too long, or has no meaningful words
	Asked                      // they ask for different kinds of things: when, why
	Owner                      // one is about the speaker's things, the other about the listener's
	Negation                   // one negates what the other does not
	Number                     // another number, or sign
	Word                       // a word of one has no counterpart in the other
	Order                      // the same words in another order or role, where that matters
	Mood                       // they differ in tense or mood: was, may be, must be
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

// maxSoft is the maximum number of optional words without a counterpart on one side.
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
	case a.all != b.all && a.either != b.either:
		return Word
	}
	m := match{a: a, b: b, literal: a.literal || b.literal}
	m.run()
	if d := m.leftovers(); d != Same {
		return d
	}
	if m.moved() {
		return Negation
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
	left    [MaxWords]int8 // for word i of a: 1 + its counterpart in b, or 0
	right   [MaxWords]int8 // for word i of b: 1 + its counterpart in a, or 0
	keys    int            // number of paired key words
}

// round is a round of pairing.
type round uint8

const (
	equals round = iota // equal words
	needed              // words that may replace each other and need a counterpart
	rest                // words that may replace each other
)

// run pairs equal words first, and optional words last.
func (m *match) run() {
	for n := equals; n <= rest; n++ {
		for i := range m.a.words {
			if m.left[i] == 0 {
				m.pair(i, n)
			}
		}
	}
}

// pair looks for an unpaired word of b for word i of a.
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

// same reports whether two different words may replace each other.
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

// leftovers judges the words without a counterpart.
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

// spare returns the number of optional words that may lack a counterpart: zero if only one other
// pair of words supports the match, or if one of the two is not a question.
func (m *match) spare() int {
	if m.keys < 2 || m.a.bare != m.b.bare {
		return 0
	}
	return maxSoft
}

// empty reports whether a word adds nothing to the question word: "what does it mean", "how does it
// work".
func empty(form []byte) bool {
	switch string(form) {
	case "mean", "means", "meaning", "meant", "work", "works", "possible", "available", "located":
		return true
	}
	return false
}

// unpaired counts the optional words of r without a counterpart, or returns the difference for a
// word that needs one.
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

// says reports whether the reading contains exactly this word.
func (r *Reading) says(w *token) bool {
	return slices.ContainsFunc(r.words, func(x token) bool { return x.is(w) })
}

// moved reports whether, of two words that both questions contain, a negates one and b the other.
func (m *match) moved() bool {
	var only [2]bool
	for i := range m.a.words {
		if m.left[i] == 0 {
			continue
		}
		if x, y := &m.a.words[i], &m.b.words[m.left[i]-1]; x.denied != y.denied {
			only[0], only[1] = only[0] || x.denied, only[1] || y.denied
		}
	}
	return only[0] && only[1]
}

// swapped reports whether two words have another order in a way that matters.
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

// mutual reports whether both ask for a symmetric property of two things: a distance, a difference.
func (m *match) mutual() bool {
	for i := range m.a.words {
		switch string(m.a.words[i].form) {
		case "distance", "difference", "differ", "differs":
			return m.left[i] != 0
		}
	}
	return false
}

// matters reports whether it matters that words i and k of a have the opposite order in b.
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
