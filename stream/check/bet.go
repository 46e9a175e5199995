package check

import (
	_ "embed" // of the table of opposites
	"maps"
	"slices"
	"strings"
	"sync"

	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
)

// force is how firmly a sentence puts something.
type force uint8

const (
	asIs    force = iota
	perhaps       // may, might, plans to, almost: what is said need not be so
	surely        // must, required, always: nothing else can be
)

// forces are words that tell how firmly something is put, of English, by hash.
//
//nolint:gochecknoglobals // constant table
var forces = func() map[uint64]force {
	m := map[uint64]force{}
	lists := [...]string{
		perhaps: `may might could can perhaps possibly possible probably likely unlikely should ought expected plans planned plan hopes hope hoped
			suspect suspects suspected suspicion believed believes claimed claims claim alleged allegedly reportedly rumoured rumored considering
			considered consider intends intended intend aims proposed proposes trying tries tried attempted seeks almost nearly promised promises
			optional allowed allows permitted free advised recommended refused failed denied going would`,
		surely: "must required requires require obliged obliges oblige mandatory compulsory necessary certain certainly definitely proved proven guaranteed forced",
	}
	for f, list := range lists {
		for w := range strings.FieldsSeq(list) {
			if h := hashOf(w); m[h] == 0 {
				m[h] = force(f)
			}
		}
	}
	return m
}()

// Words that a statement depends on, of English, by hash: when, on what condition, with what
// exception. Without one that is binding it says more.
const (
	loose   = 1
	binding = 2
)

//nolint:gochecknoglobals // constant table
var terms = func() map[uint64]int {
	m := map[uint64]int{}
	for w := range strings.FieldsSeq("since during while even already still again ago") {
		m[hashOf(w)] = loose
	}
	for w := range strings.FieldsSeq(`if unless until till except without only before after
		wenn falls sofern solange außer nur bevor nachdem si sauf seulement avant après excepto solo antes después
		salvo prima dopo exceto apenas depois если кроме только`) {
		m[hashOf(w)] = binding
	}
	return m
}()

// turns tells what of a claim may turn it round although its words are those of the sentence that
// fits it best. A judge of language this small hardly sees the order of words, and not always a
// small word.
type turns struct {
	firmer   bool // what may be is, or what must be may be
	terms    bool // the claim depends on something else, or on nothing
	reversed bool // three words or more stand the other way round, and no passive tells why
	contrary bool // a word of the claim is the opposite of one that it leaves out
	mixed    bool // what one clause says is said of the subject of another
}

func (t turns) any() bool { return t.firmer || t.terms || t.reversed || t.mixed || t.contrary }

// turned compares the claim with the sentence that fits it best.
func (m *matcher) turned(sentence []words.Word, text string) turns {
	return turns{
		firmer:   firmer(m.claim, sentence[m.stretch[0]:m.stretch[1]], m.premise),
		terms:    m.termsDiffer(sentence[m.stretch[0]:m.stretch[1]]) || amountTurned(m.claim, sentence[m.stretch[0]:m.stretch[1]]),
		reversed: m.reversed(sentence),
		mixed:    m.mixed(sentence, text),
		contrary: m.contrary(sentence),
	}
}

func forceOf(list []words.Word) (has [3]bool) {
	for i := range list {
		if !isMonth(list, i) {
			has[forces[list[i].Hash]] = true
		}
	}
	return has
}

//nolint:gochecknoglobals // constants
var (
	may = hashOf("may")
	in  = hashOf("in")
)

// isMonth reports whether a word is the month of May: a number stands beside it, or "in" before it.
func isMonth(list []words.Word, i int) bool {
	if list[i].Hash != may || !list[i].Has(words.Capital) {
		return false
	}
	return i > 0 && (list[i-1].Has(words.Number) || list[i-1].Hash == in) ||
		i+1 < len(list) && list[i+1].Has(words.Number)
}

// firmer reports whether the claim is put more firmly than the stretch that it takes its words
// from, or what must be only may be: the stretch says that something may be, or no premise says
// that it must.
func firmer(claim, stretch, premises []words.Word) bool {
	said, there := forceOf(claim), forceOf(stretch)
	return there[perhaps] != said[perhaps] && (there[perhaps] || there[surely]) ||
		said[surely] && !forceOf(premises)[surely]
}

// termsDiffer reports whether the claim has a condition that no premise has, or lacks one of the
// stretch that it takes its words from, without which that does not hold.
func (m *matcher) termsDiffer(stretch []words.Word) bool {
	for i := range m.claim {
		if terms[m.claim[i].Hash] != 0 && indexOf(m.premise, m.claim[i].Hash) < 0 {
			return true
		}
	}
	for i := range stretch {
		if terms[stretch[i].Hash] == binding && indexOf(m.claim, stretch[i].Hash) < 0 {
			return true
		}
	}
	return false
}

// amountTurned reports whether the claim has another quantity word than the stretch: one that it
// lacks, or none for one that says less than all.
func amountTurned(claim, stretch []words.Word) bool {
	said, there := amountsOf(claim), amountsOf(stretch)
	const full = 1<<allOf | 1<<manyOf
	return said&^there != 0 || there&^said&^full != 0
}

//nolint:gochecknoglobals // constants
var (
	by    = hashOf("by")
	from  = hashOf("from")
	to    = hashOf("to")
	joint = [...]uint64{hashOf("and"), hashOf("or")}
)

// reversed reports whether who does it to whom is another: three content words of the claim stand
// in the sentence the other way round ("The builder sued the city" of "The city sued the builder")
// without a word that tells why, or they stand in the same order though one of both is in the
// passive.
func (m *matcher) reversed(sentence []words.Word) bool {
	m.at = m.at[:0]
	for i, w := range m.claim {
		if m.content[i] {
			if j := indexOf(sentence, w.Hash); j >= 0 {
				m.at = append(m.at, int32(j))
			}
		}
	}
	turned := m.falls()
	if agent(m.claim, sentence) != agent(sentence, m.claim) {
		return !turned
	}
	return turned && !differ(m.claim, sentence, by) && !differ(m.claim, sentence, from) && !differ(m.claim, sentence, to)
}

// differ reports whether one of both alone has a word.
func differ(a, b []words.Word, hash uint64) bool {
	return (indexOf(a, hash) >= 0) != (indexOf(b, hash) >= 0)
}

// agent reports whether "by" stands before a word that other has as well.
func agent(list, other []words.Word) bool {
	at := indexOf(list, by)
	for i := max(at, 0) + 1; at >= 0 && i < len(list); i++ {
		if !list[i].Has(words.Stop) {
			return indexOf(other, list[i].Hash) >= 0
		}
	}
	return false
}

// falls reports whether three of the places in m.at come one before the other.
func (m *matcher) falls() bool {
	m.run = slices.Grow(m.run[:0], len(m.at))[:len(m.at)]
	for i := range m.at { // run[i]: the longest fall that ends at i
		m.run[i] = 1
		for k := range i {
			if m.at[k] > m.at[i] {
				m.run[i] = max(m.run[i], m.run[k]+1)
			}
		}
		if m.run[i] >= 3 {
			return true
		}
	}
	return false
}

//go:embed opposites.txt
var antonyms string

// contraries holds, for a word by hash, the words of opposite meaning: those of opposites, a few
// of prices and settings and those of WordNet. The fusion was fitted with opposites alone.
//
//nolint:gochecknoglobals // constant table
var contraries = sync.OnceValue(func() map[uint64][]uint64 {
	m := maps.Clone(opposites)
	for _, pair := range [...][2]string{
		{"including", "plus"},
		{"including", "extra"},
		{"included", "extra"},
		{"included", "plus"},
		{"enabled", "off"},
		{"enabled", "disabled"},
		{"active", "off"},
		{"activated", "off"},
		{"disabled", "on"},
		{"deactivated", "on"},
	} {
		a, b := hashOf(pair[0]), hashOf(pair[1])
		m[a], m[b] = append(slices.Clip(m[a]), b), append(slices.Clip(m[b]), a)
	}
	for line := range strings.Lines(antonyms) {
		a, b, ok := strings.Cut(strings.TrimSpace(line), "/")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		left, right := hashOf(a), hashOf(b)
		m[left], m[right] = append(slices.Clip(m[left]), right), append(slices.Clip(m[right]), left)
	}
	return m
})

// contrary reports whether the sentence has, in the place of a word of the claim, one of opposite
// meaning.
func (m *matcher) contrary(sentence []words.Word) bool {
	table := contraries()
	for _, w := range m.claim {
		if indexOf(sentence, w.Hash) >= 0 {
			continue
		}
		for _, other := range table[w.Hash] {
			if indexOf(sentence, other) >= 0 && indexOf(m.claim, other) < 0 {
				return true
			}
		}
	}
	return false
}

// clausesOf numbers the clauses of a sentence: a comma, a semicolon, a colon, a bracket or a
// joining word begins another.
func clausesOf(dst []int32, sentence []words.Word, text string) []int32 {
	n := int32(0)
	for i := range sentence {
		w := &sentence[i]
		if i > 0 && sentence[i-1].End < w.Start && strings.ContainsAny(text[sentence[i-1].End:w.Start], ",;:()—，、；：（）،") ||
			i > 0 && joins(text[w.Start:w.End]) {
			n++
		}
		dst = append(dst, n)
	}
	return dst
}

func joins(s string) bool {
	switch s {
	case "and", "while", "whereas", "but", "although", "though",
		"und", "et", "y", "e", "и", "aber", "mais", "pero", "ma", "но":
		return true
	}
	return false
}

// clause is what a claim has of a clause.
type clause struct {
	subject [2]uint64 // its first content words
	led     [2]bool   // whether the claim has them
	took    int       // words behind the first that the claim has and no other clause
	meant   int       // 1 where a pronoun may stand for a word of a clause before
}

// mixed reports whether the claim, one clause, takes the first word of one clause of the sentence
// and other words of another whose first word it leaves out: "Petra plays the trumpet" of "Petra
// plays the cello and Jonas plays the trumpet". Of two clauses that begin alike the second words
// count: flights to Oslo, and flights to Rome.
func (m *matcher) mixed(sentence []words.Word, text string) bool {
	m.clauses = clausesOf(m.clauses[:0], sentence, text)
	last := m.clauses[max(0, len(m.clauses)-1):]
	if len(last) == 0 || last[0] == 0 || last[0] > maxClauses {
		return false
	}
	for _, h := range joint {
		if indexOf(m.claim, h) >= 0 {
			return false
		}
	}
	var clauses [maxClauses + 1]clause
	told := clauses[:]
	for i := range sentence {
		m.tell(&told[m.clauses[i]], sentence, i)
	}
	for i := range told {
		a := &told[i]
		for k := range told {
			b, meant := &told[k], 0
			if k < i {
				meant = a.meant
			}
			if i != k && b.givesTo(a, meant) {
				return true
			}
		}
	}
	return false
}

// tell notes what word i of the sentence says of its clause.
func (m *matcher) tell(c *clause, sentence []words.Word, i int) {
	w := &sentence[i]
	if pronouns[w.Hash] {
		c.meant = 1
	}
	if w.Has(words.Stop) || w.Has(words.Negation) {
		return
	}
	said := indexOf(m.claim, w.Hash) >= 0
	first := c.subject[0] == 0
	if at := slices.Index(c.subject[:], 0); at >= 0 {
		c.subject[at], c.led[at] = w.Hash, said
	}
	if !first && said && m.once(sentence, i) {
		c.took++
	}
}

// givesTo reports whether the claim has the subject of a and not that of b, but words of b, more than
// pronouns of a may stand for.
func (b *clause) givesTo(a *clause, meant int) bool {
	at := 0
	if a.subject[0] == b.subject[0] {
		at = 1
	}
	return a.led[at] && !b.led[at] && b.took > meant && b.subject[at] != 0 && a.subject[at] != b.subject[at]
}

// pronouns stand for something that was named before: premium accounts keep them for a year.
//
//nolint:gochecknoglobals // constant table
var pronouns = hashes(`it them they`)

// maxClauses bounds the clauses that are compared; a sentence of more is a list.
const maxClauses = 6

// once reports whether word i of the sentence stands in no other clause of it.
func (m *matcher) once(sentence []words.Word, i int) bool {
	for k := range sentence {
		if sentence[k].Hash == sentence[i].Hash && m.clauses[k] != m.clauses[i] {
			return false
		}
	}
	return true
}

//nolint:gochecknoglobals // constants
var (
	than = hashOf("than")
	less = hashes(`more less fewer higher lower cheaper dearer longer shorter older younger bigger smaller heavier lighter faster slower earlier later`)
)

// compared reports whether the claim compares two things that the evidence does not: it has "than"
// and no premise has, or its number is a difference that was worked out, of which nothing tells
// whose is the greater.
func (m *matcher) compared(worked bool) bool {
	if indexOf(m.claim, than) >= 0 {
		return indexOf(m.premise, than) < 0
	}
	return worked && slices.ContainsFunc(m.claim, func(w words.Word) bool {
		return less[w.Hash] && indexOf(m.premise, w.Hash) < 0
	})
}

// Words of ranges and their ends, of English, by hash.
//
//nolint:gochecknoglobals // constant tables
var (
	until  = hashes(`to until till through`)
	begins = hashes(`start starts started begin begins began open opens opened`)
	ends   = hashes(`end ends ended close closes closed finish finishes finished last`)
	lowest = hashes(`least minimum`)
)

// ended reports whether the claim says of one end of a range of the sentence what the other one
// tells: that a course "from 2 March to 24 April" starts on 24 April, or that 3 to 5 days are at
// least 5.
func (m *matcher) ended(sentence []words.Word) bool {
	has := func(set map[uint64]bool) bool {
		return slices.ContainsFunc(m.claim, func(w words.Word) bool { return set[w.Hash] })
	}
	first, last := has(begins) || has(lowest), has(ends)
	if first == last {
		return false
	}
	for i := 1; i+1 < len(sentence); i++ {
		if !until[sentence[i].Hash] {
			continue
		}
		low, high := m.numbered(sentence[max(0, i-endWords):i]), m.numbered(sentence[i+1:min(len(sentence), i+1+endWords)])
		if first && high && !low || last && low && !high {
			return true
		}
	}
	return false
}

// endWords bounds the words of an end of a range: "2 March 2026", "9 am".
const endWords = 3

// fullHour is what half of all times of day end in.
var fullHour = hashOf("00") //nolint:gochecknoglobals // constant

// numbered reports whether a number of the claim is among some words; of a claim without one, a name,
// as that of a month.
func (m *matcher) numbered(list []words.Word) bool {
	class := words.Name
	if slices.ContainsFunc(m.claim, func(w words.Word) bool { return w.Has(words.Number) }) {
		class = words.Number
	}
	return slices.ContainsFunc(m.claim, func(w words.Word) bool {
		return w.Has(class) && w.Hash != fullHour && indexOf(list, w.Hash) >= 0
	})
}

// compares reports whether the claim tells by a word of its own which of two things is the more,
// "Hotel Sol costs 30 euros more" of the prices of two: their difference does not tell whose it is.
func (s *sight) compares() bool {
	if len(s.premises) == 0 {
		return false
	}
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	m.read(s.claim.Text, s.premises, s.findings)
	if !m.compared(true) {
		return false
	}
	others := 0 // sentences about something else
	for _, in := range m.parts {
		if head := headOf(m.premise[in.from:in.to]); head != 0 && !back[m.premise[in.from].Hash] {
			others++
		}
	}
	return others > 1
}

// kinds are words for a person, an animal or a thing of any kind, by hash: who is named in the
// evidence may be called so.
//
//nolint:gochecknoglobals // constant table
var kinds = hashes(`person people someone somebody human man woman men women boy girl child children kid kids adult adults individual individuals animal animals
	group team company firm building place vehicle thing something`)

// otherSubject reports whether all that the claim has of its own is the first word of what it
// speaks of: "The tenant pays for the repair" of "The landlord pays for the repair".
func (m *matcher) otherSubject(o *overlap) bool {
	if o.missing != 1 || o.content < 3 {
		return false
	}
	for i := range m.claim {
		if m.content[i] {
			return !m.found[i] && !kinds[m.claim[i].Hash]
		}
	}
	return false
}

// elsewhere reports whether a number of the claim was found in a heading whose section does not hold
// the sentence that fits the rest of the claim best: "added on 2 March" of what stands under another
// release.
func (s *sight) elsewhere(e *evidence.Evidence, premises []evidence.Premise) bool {
	return slices.ContainsFunc(s.findings, func(f numeric.Finding) bool {
		if f.Verdict != numeric.Supported || f.Sentence < 0 || !e.IsHeading(f.Sentence) {
			return false
		}
		at := slices.IndexFunc(premises, func(p evidence.Premise) bool {
			return p.Sentence >= 0 && !e.IsHeading(p.Sentence)
		})
		return at >= 0 && !e.Heads(f.Sentence, premises[at].Sentence)
	})
}

// bet reports whether a reader who finds the claim entailed should believe it: nothing that a small
// judge overlooks tells the claim from the sentence that fits it best.
func (s *sight) bet(e *evidence.Evidence, premises []evidence.Premise) bool {
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	o := m.read(s.claim.Text, premises, s.findings)
	s.stale = m.outdated(s.claim.Text, premises)
	if len(premises) == 0 || o.negated > 0 || o.denied > 0 || s.untold() {
		return false
	}
	if s.elsewhere(e, premises) || s.misplaced(e, premises) >= 0 {
		return false
	}
	if m.otherSubject(&o) || m.crossed() || m.compared(s.calculated()) {
		return false
	}
	if m.ended(m.premise[m.best.from:m.best.to]) {
		return false
	}
	t := m.turned(m.premise[m.best.from:m.best.to], premises[m.best.of].Text)
	t.contrary = t.contrary && !s.reasoned(numeric.Reached) // what begins and lasts has an end
	return !t.any()
}
