package question

import "slices"

// swap is two pairs of words whose order differs between a and b.
type swap struct {
	a, b *Reading
	i, k int // words of a, i first
	j, l int // their partners in b, l first
}

// words returns the words concerned: two of a, and their counterparts in b.
func (s *swap) words() (x, y, p, q *token) {
	return &s.a.words[s.i], &s.a.words[s.k], &s.b.words[s.j], &s.b.words[s.l]
}

// fronted reports whether the words are swapped because one question begins with a place or topic:
// "in Excel, how do I freeze a row".
func (s *swap) fronted() bool {
	x, y, p, q := s.words()
	return s.i < s.a.fronted && s.k >= s.a.fronted && placed(x, p) && y.chain == q.chain ||
		s.l < s.b.fronted && s.j >= s.b.fronted && placed(q, y) && p.chain == x.chain
}

// placed reports whether a word at the beginning of one question follows the same preposition
// elsewhere in the other: "in Python", or "Python: how".
func placed(front, back *token) bool {
	return back.chain != noRole && (front.chain == back.chain || front.chain == noRole && back.chain == loose)
}

// superlative reports whether the words are a noun and its superlative in both: "the biggest
// desert", "which desert is the biggest".
func (s *swap) superlative() bool {
	x, y, _, _ := s.words()
	if s.k != s.i+1 || s.j != s.l+1 {
		return false
	}
	_, first := cutSuffix(x.form, "est")
	_, second := cutSuffix(y.form, "est")
	return first != second
}

// nominalised reports whether one question ends with a verb after its subject, and the other has a
// noun "of" that subject: "when does the semester start", "the start of the semester". If the thing
// asked for may be the subject or the object, this cannot be decided.
func (s *swap) nominalised() bool {
	x, y, p, q := s.words()
	return y.chain == of && s.b.subjectless() && s.j == len(s.b.words)-1 && q.chain == noRole ||
		p.chain == of && s.a.subjectless() && s.k == len(s.a.words)-1 && x.chain == noRole
}

// subjectless reports whether the thing asked for cannot be a subject: a time, a reason, a price.
func (r *Reading) subjectless() bool {
	if !r.inverts {
		return false
	}
	return r.kind == When || r.kind == Why || r.kind == Where || r.words[0].asked
}

// genitive reports whether a possessive replaces "of": "Chad's capital".
func (s *swap) genitive() bool {
	x, y, p, q := s.words()
	return y.chain == of && q.owner && s.j == s.l+1 || p.chain == of && x.owner && s.k == s.i+1
}

// compound reports whether a pair of nouns replaces one with "of" or "for": "measles symptoms". If
// the question has a verb of its own, one of them may be it, and then the order shows who does
// what. The other noun must follow the same preposition in both questions: feet in inches are not
// inches in feet.
func (s *swap) compound() bool {
	if s.a.inverts || s.b.inverts || s.a.owns() && s.b.owns() {
		return false
	}
	joined := func(r role) bool { return r == of || r == forr || r == loose }
	x, y, p, q := s.words()
	const near = 3
	return joined(y.chain) && q.chain == noRole && p.chain == x.chain && s.j-s.l <= near ||
		joined(p.chain) && x.chain == noRole && q.chain == y.chain && s.k-s.i <= near
}

// owns reports whether the question contains a possessive.
func (r *Reading) owns() bool {
	return slices.ContainsFunc(r.words, func(t token) bool { return t.owner })
}

// parted reports whether the thing asked for is the subject in one question and the object in the
// other. Without a passive or a case, the word order shows that.
func (r *Reading) parted(other *Reading) bool {
	if r.dangling != other.dangling && !r.passive && !other.passive { // leave from, leave to
		return true
	}
	if r.part == anyPart || other.part == anyPart || r.part == other.part || r.kind != Who && r.kind != Thing {
		return false
	}
	return r.passive != other.passive || r.passive && other.passive || r.byCase || other.byCase
}

// turned reports whether a word follows another preposition: to and from, with and for.
func (m *match) turned() bool {
	for i := range m.a.words {
		if m.left[i] == 0 {
			continue
		}
		x, y := &m.a.words[i], &m.b.words[m.left[i]-1]
		if x.class == soft && y.class == soft || !against(x.role, y.role) {
			continue
		}
		if m.a.passive != m.b.passive && (x.role == by || y.role == by) {
			continue
		}
		return true
	}
	return false
}

// against reports whether two prepositions have different meanings. A word after "to" or "for" may
// also be a verb of purpose.
func against(r, s role) bool {
	if r == s {
		return false
	}
	strong := func(r role) bool { return r != noRole && r != of && r != loose }
	open := func(r role) bool { return r == to || r == forr }
	switch {
	case strong(r) && strong(s):
		return true
	case strong(r):
		return !open(r)
	case strong(s):
		return !open(s)
	}
	return false
}

// voiced reports whether one question is passive, the other is not, and the same word precedes the
// verb: whom the company sued, and who sued the company.
func (m *match) voiced() bool {
	if m.a.passive == m.b.passive || m.a.kind == Who || m.a.kind == Thing {
		return false
	}
	if m.a.passive {
		return sameSubject(m.a, m.b, &m.left)
	}
	return sameSubject(m.b, m.a, &m.right)
}

// sameSubject reports whether the word before the verb of the passive r also precedes it in other.
// partner holds 1 + the words of other.
func sameSubject(r, other *Reading, partner *[MaxWords]int8) bool {
	for i := 1; i < len(r.words); i++ {
		w := &r.words[i]
		if !w.verb || partner[i] == 0 || partner[i-1] == 0 || w.class == soft {
			continue
		}
		subject, verb := partner[i-1]-1, partner[i]-1
		if r.words[i-1].asked || r.words[i-1].class == soft || !other.inverts {
			continue
		}
		if subject < verb {
			return true
		}
	}
	return false
}
