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

// force is how certain or binding a sentence is.
type force uint8

const (
	asIs    force = iota
	perhaps       // "may", "might", "plans to", "almost": the statement need not be true
	surely        // "must", "required", "always": no alternative
)

// forces maps English words, by hash, to how certain or binding they make a sentence.
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

// Weights of the words, by hash, that make a statement conditional on a time, a condition or an
// exception. A claim that omits a binding word says more than its evidence.
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

// turns lists differences that may reverse the meaning of a claim although it uses the words of the
// best matching sentence. A small language model often overlooks word order and sometimes small
// words.
type turns struct {
	firmer   bool // uncertain became certain, or required became optional
	terms    bool // the claim has other conditions, or lacks one
	reversed bool // three or more words are in reverse order without a passive to explain it
	contrary bool // a word of the claim is the opposite of one it omits
	mixed    bool // a predicate is moved to the subject of another clause
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

// isMonth reports whether a word is the month of May: a number is next to it, or "in" before it.
func isMonth(list []words.Word, i int) bool {
	if list[i].Hash != may || !list[i].Has(words.Capital) {
		return false
	}
	return i > 0 && (list[i-1].Has(words.Number) || list[i-1].Hash == in) ||
		i+1 < len(list) && list[i+1].Has(words.Number)
}

// firmer reports whether the claim is more certain than the stretch it takes its words from, or
// makes a requirement optional. It also reports true if the claim states a requirement that no
// premise has.
func firmer(claim, stretch, premises []words.Word) bool {
	said, there := forceOf(claim), forceOf(stretch)
	return there[perhaps] != said[perhaps] && (there[perhaps] || there[surely]) ||
		said[surely] && !forceOf(premises)[surely]
}

// termsDiffer reports whether the claim has a condition that no premise has, or lacks a binding
// condition of the stretch it takes its words from.
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

// amountTurned reports whether the claim has a quantity word that the stretch lacks, or lacks one
// of the stretch that means less than all.
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

// reversed reports whether the claim exchanges subject and object. Either three of its content
// words are in reverse order in the sentence without a word that explains it ("The builder sued the
// city" against "The city sued the builder"), or the order is the same although only one of the two
// is in the passive voice.
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

// differ reports whether only one of two lists contains a word.
func differ(a, b []words.Word, hash uint64) bool {
	return (indexOf(a, hash) >= 0) != (indexOf(b, hash) >= 0)
}

// agent reports whether "by" precedes a content word that other also contains.
func agent(list, other []words.Word) bool {
	at := indexOf(list, by)
	for i := max(at, 0) + 1; at >= 0 && i < len(list); i++ {
		if !list[i].Has(words.Stop) {
			return indexOf(other, list[i].Hash) >= 0
		}
	}
	return false
}

// falls reports whether the positions in m.at contain a decreasing subsequence of three.
func (m *matcher) falls() bool {
	m.run = slices.Grow(m.run[:0], len(m.at))[:len(m.at)]
	// run[i] is the length of the longest decreasing subsequence that ends at i.
	for i := range m.at {
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

// contraries returns, for each word by hash, the words of opposite meaning: those of opposites,
// some for prices and settings, and those of WordNet. The fusion was fitted with opposites only.
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

// contrary reports whether the sentence contains the opposite of a word that only the claim has.
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

// clausesOf appends the clause number of each word of a sentence to dst. A comma, a semicolon, a
// colon, a bracket or a conjunction begins a new clause.
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

// clause is what a claim shares with one clause of a sentence.
type clause struct {
	subject [2]uint64 // its first content words
	led     [2]bool   // whether the claim has them
	took    int       // later words that the claim shares with this clause only
	meant   int       // 1 if a pronoun may stand for a word of an earlier clause
}

// mixed reports whether the claim combines the first word of one clause with other words of a
// clause whose first word it omits: "Petra plays the trumpet" against "Petra plays the cello and
// Jonas plays the trumpet". If both clauses begin with the same word, their second words are
// compared: flights to Oslo, and flights to Rome.
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

// tell adds word i of the sentence to its clause.
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

// givesTo reports whether the claim has the subject of a, not that of b, and more words of b than
// the pronouns in a may stand for.
func (b *clause) givesTo(a *clause, meant int) bool {
	at := 0
	if a.subject[0] == b.subject[0] {
		at = 1
	}
	return a.led[at] && !b.led[at] && b.took > meant && b.subject[at] != 0 && a.subject[at] != b.subject[at]
}

// pronouns stand for something named earlier: "premium accounts keep them for a year".
//
//nolint:gochecknoglobals // constant table
var pronouns = hashes(`it them they`)

// maxClauses is the maximum number of clauses that are compared; a sentence with more is a list.
const maxClauses = 6

// once reports whether word i of the sentence occurs in only one of its clauses.
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

// compared reports whether the claim makes a comparison that the evidence does not: it has "than"
// and no premise has, or its number is a calculated difference (worked) and nothing shows which
// value is greater.
func (m *matcher) compared(worked bool) bool {
	if indexOf(m.claim, than) >= 0 {
		return indexOf(m.premise, than) < 0
	}
	return worked && slices.ContainsFunc(m.claim, func(w words.Word) bool {
		return less[w.Hash] && indexOf(m.premise, w.Hash) < 0
	})
}

// English words, by hash, for ranges and their ends.
//
//nolint:gochecknoglobals // constant tables
var (
	until  = hashes(`to until till through`)
	begins = hashes(`start starts started begin begins began open opens opened`)
	ends   = hashes(`end ends ended close closes closed finish finishes finished last`)
	lowest = hashes(`least minimum`)
)

// ended reports whether the claim uses the wrong end of a range in the sentence: that a course
// "from 2 March to 24 April" starts on 24 April, or that 3 to 5 days are at least 5.
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

// endWords is the maximum number of words at each end of a range: "2 March 2026", "9 am".
const endWords = 3

// fullHour is how half of all times of day end.
var fullHour = hashOf("00") //nolint:gochecknoglobals // constant

// numbered reports whether a list contains a number of the claim or, if the claim has none, a name
// such as a month.
func (m *matcher) numbered(list []words.Word) bool {
	class := words.Name
	if slices.ContainsFunc(m.claim, func(w words.Word) bool { return w.Has(words.Number) }) {
		class = words.Number
	}
	return slices.ContainsFunc(m.claim, func(w words.Word) bool {
		return w.Has(class) && w.Hash != fullHour && indexOf(list, w.Hash) >= 0
	})
}

// compares reports whether the claim says which of two things is more in a word of its own: "Hotel
// Sol costs 30 euros more", given two prices. The difference alone does not show which price is
// higher.
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

// kinds are general words, by hash, for a person, an animal or a thing. They may refer to anyone
// named in the evidence.
//
//nolint:gochecknoglobals // constant table
var kinds = hashes(`person people someone somebody human man woman men women boy girl child children kid kids adult adults individual individuals animal animals
	group team company firm building place vehicle thing something`)

// otherSubject reports whether the claim differs only in its first content word, the subject: "The
// tenant pays for the repair" against "The landlord pays for the repair".
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

// elsewhere reports whether a number of the claim was found in a heading that is not above the
// sentence that fits the rest of the claim best: "added on 2 March" for an entry under another
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

// bet reports whether an entailment by the Judge can be trusted: there is none of the differences
// between the claim and the best sentence that a small model overlooks. It also sets s.stale.
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
	// something with a start and a length has an end
	t.contrary = t.contrary && !s.reasoned(numeric.Reached)
	return !t.any()
}
