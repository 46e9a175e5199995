package question

import "slices"

// swap is two pairs of words that stand in one order in a and in the other in b.
type swap struct {
	a, b *Reading
	i, k int // words of a, i first
	j, l int // their partners in b, l first
}

// words returns the words in question: two of a, and their partners in b.
func (s *swap) words() (x, y, p, q *token) {
	return &s.a.words[s.i], &s.a.words[s.k], &s.b.words[s.j], &s.b.words[s.l]
}

// fronted reports whether the words are swapped because one question begins with where it is
// about: "in Excel, how do I freeze a row".
func (s *swap) fronted() bool {
	x, y, p, q := s.words()
	return s.i < s.a.fronted && s.k >= s.a.fronted && placed(x, p) && y.chain == q.chain ||
		s.l < s.b.fronted && s.j >= s.b.fronted && placed(q, y) && p.chain == x.chain
}

// placed reports whether a word at the beginning stands elsewhere behind the same preposition:
// "in Python", or "Python: how".
func placed(front, back *token) bool {
	return back.chain != noRole && (front.chain == back.chain || front.chain == noRole && back.chain == loose)
}

// superlative reports whether the words are a noun and what is beside it in both: "the biggest
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

// nominalised reports whether the last word of one is a verb with its subject in front, and a noun
// "of" that subject in the other: "when does the semester start", "the start of the semester".
// Where the thing asked for may be the subject or the object, that is not known.
func (s *swap) nominalised() bool {
	x, y, p, q := s.words()
	return y.chain == of && s.b.subjectless() && s.j == len(s.b.words)-1 && q.chain == noRole ||
		p.chain == of && s.a.subjectless() && s.k == len(s.a.words)-1 && x.chain == noRole
}

// subjectless reports whether the thing asked for is nobody who does anything: a time, a reason, a
// price.
func (r *Reading) subjectless() bool {
	if !r.inverts {
		return false
	}
	return r.kind == When || r.kind == Why || r.kind == Where || r.words[0].asked
}

// genitive reports whether a possessive stands for "of": "Chad's capital".
func (s *swap) genitive() bool {
	x, y, p, q := s.words()
	return y.chain == of && q.owner && s.j == s.l+1 || p.chain == of && x.owner && s.k == s.i+1
}

// compound reports whether two nouns stand for one with "of" or "for": "measles symptoms". Where
// the question has a verb of its own, one of them may be it, and who does what is another matter.
func (s *swap) compound() bool {
	if s.a.inverts || s.b.inverts || s.a.owns() && s.b.owns() {
		return false
	}
	joined := func(r role) bool { return r == of || r == forr || r == loose }
	x, y, p, q := s.words()
	const near = 3
	return joined(y.chain) && q.chain == noRole && s.j-s.l <= near ||
		joined(p.chain) && x.chain == noRole && s.k-s.i <= near
}

// owns reports whether a possessive stands in the question.
func (r *Reading) owns() bool {
	return slices.ContainsFunc(r.words, func(t token) bool { return t.owner })
}

// parted reports whether the thing asked for does something in one question and has it done to it
// in the other. Without a passive or a case, the order of words tells that.
func (r *Reading) parted(other *Reading) bool {
	if r.dangling != other.dangling && !r.passive && !other.passive { // leave from, leave to
		return true
	}
	if r.part == anyPart || other.part == anyPart || r.part == other.part || r.kind != Who && r.kind != Thing {
		return false
	}
	return r.passive != other.passive || r.passive && other.passive || r.byCase || other.byCase
}

// turned reports whether a word stands behind another preposition: to and from, with and for.
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

// against reports whether two prepositions say different things. What is behind "to" or "for" may
// as well be the verb of a purpose.
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

// voiced reports whether one question is passive, the other is not, and the same word stands in
// front of the verb: whom the company sued, and who sued the company.
func (m *match) voiced() bool {
	if m.a.passive == m.b.passive || m.a.kind == Who || m.a.kind == Thing {
		return false
	}
	if m.a.passive {
		return sameSubject(m.a, m.b, &m.left)
	}
	return sameSubject(m.b, m.a, &m.right)
}

// sameSubject reports whether the word in front of the verb of the passive r stands in front of it
// in other, too. partner holds 1 + the words of other.
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
