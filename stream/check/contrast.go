package check

import (
	"slices"
	"strings"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
)

//nolint:gochecknoglobals // constant tables
var (
	// ranks turn a superlative into something else: "the second largest".
	ranks        = hashes("second third fourth fifth sixth seventh eighth ninth tenth")
	superlatives = hashes("largest biggest greatest highest tallest longest oldest best most fastest smallest " +
		"lowest shortest youngest worst least richest heaviest deepest busiest strongest " +
		"cheapest latest newest main")
	// hinges change the meaning of a negation: "not until 9".
	hinges = hashes("only but until before unless if except than nur sondern bis seulement mais avant " +
		"sólo solo sino hasta")
	// endings are words that belong to a negation: "no longer".
	endings = hashes("longer mehr")
	// fillers do not affect the meaning.
	fillers = hashes("even also too again only mr mrs ms dr prof auch sogar herr frau aussi même mme " +
		"también incluso")
	// converses describe the same event from two sides: what is sold is bought.
	converses = hashes("buy buys bought purchase purchased sell sells sold rent rented lend lends lent " +
		"borrow borrowed send sends sent receive receives received give gives gave given take " +
		"takes took taken teach teaches taught learn learns learnt kaufen kauft kaufte " +
		"gekauft verkaufen verkauft verkaufte leihen leiht verleiht senden sendet gesendet " +
		"erhalten erhält acheter achète acheté vendre vend vendu prêter prête emprunter " +
		"emprunte envoyer envoie reçoit recevoir comprar compra compró vender vende vendió " +
		"enviar envía recibir recibe")
	// untils precede an end.
	untils = hashes("until till bis jusqu'à hasta até")
	// exceptions introduce something to which the rest of the sentence does not apply.
	exceptions = hashes("except excepting außer ausgenommen sauf hormis excepto salvo")
)

// maxContrast is the maximum number of words of a sentence, and of a claim, that are compared; our
// choice.
const maxContrast = 60

// maxText is the maximum length, in bytes, of a claim that is compared.
const maxText = 10 * maxContrast

// contrasted is the support of a claim that says the opposite of a sentence in the same words.
const contrasted = 0.05

// relation is how a claim relates to the sentence that fits it best, judged by single words.
type relation uint8

const (
	unrelated relation = iota // no conclusion
	contrary                  // it says something else about the same subject
	denied                    // it has one negation more or fewer
	excepted                  // it applies to an exception what holds for the rest
	exchanged                 // two of its words are swapped
	affirmed                  // it denies the opposite ("not open", "closed"), or repeats a clause
)

// contrasts are the reasons of the relations that contradict. It is empty for the others.
//
//nolint:gochecknoglobals // constant table
var contrasts = [...]string{
	affirmed:  "",
	contrary:  "one word is another than in the evidence",
	denied:    "a negation more or less",
	excepted:  "an exception in the evidence",
	exchanged: "two words stand in each other's place",
}

// contradicts reports whether a relation means that the claim conflicts with the evidence.
func (r relation) contradicts() bool { return contrasts[r] != "" }

// contrast relates the claim to the sentence that fits it best. If they conflict, it also returns
// the result: "Turn right at the church" against "Turn left at the church".
func (r *reading) contrast() (out Result, how relation) {
	if strings.HasSuffix(strings.TrimRight(r.claim.Text, " *_\n"), ":") || r.claim.Kind == claims.Cell || r.claim.Kind == claims.Value || r.verbatim >= 0 || len(r.claim.Text) > maxText ||
		r.bounded() {
		return out, unrelated
	}
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	o := m.read(r.claim.Text, r.found, r.findings)
	sentence := m.premise[m.best.from:m.best.to]
	if len(sentence) == 0 || len(sentence) > maxContrast || len(m.claim) > maxContrast {
		return out, unrelated
	}
	p := &r.found[m.best.of]
	how, at := m.relate(&o, r.claim.Text, sentence, p.Text)
	if how == denied && !m.denies(&o, r.found) {
		how = unrelated
	}
	if how == unrelated {
		if again := m.retold(r.found); again >= 0 {
			p, how = &r.found[again], affirmed
		}
	}
	out.name(p)
	if at >= 0 && dayNames[m.claim[at].Hash] != 0 && r.among() {
		how = unrelated
	}
	if how.contradicts() {
		out.Verdict, out.Score, out.By, out.Reason = Contradicted, contrasted, NLI, contrasts[how]
		if at >= 0 {
			out.Span = r.claim.span(m.claim[at].Start, m.claim[at].End)
		}
	}
	return out, how
}

// relate returns how the claim relates to a sentence, and the index of the claim's word that
// decided, or -1.
func (m *matcher) relate(o *overlap, claim string, sentence []words.Word, text string) (relation, int) {
	if how := m.excepts(sentence, text); how != unrelated {
		return how, -1
	}
	w := m.rival(sentence)
	if w < 0 {
		w = m.rivalOf(sentence)
	}
	more := o.negated - o.denied
	if w >= 0 { // an opposing word that is a negation was already counted
		at := slices.IndexFunc(sentence, func(s words.Word) bool { return m.excludes(w, s) })
		if m.claim[w].Has(words.Negation) {
			more--
		}
		if at >= 0 && sentence[at].Has(words.Negation) {
			more++
		}
	}
	switch {
	case w >= 0 && (m.amongDays(claim, w, text) || m.turns(w, sentence)):
		return unrelated, -1
	case w >= 0 && more%2 != 0:
		return affirmed, w
	case w >= 0 && more == 0:
		return contrary, w
	case w < 0 && more == 0 && o.missing == 0 && m.exchanged(sentence):
		return exchanged, -1
	case more%2 != 0 && o.dropped <= o.denied+noLonger(sentence) && o.inserted <= o.negated && o.inverted == 0 &&
		!has(m.claim, hinges) && !has(sentence, hinges) && m.deniesWithin(sentence) &&
		(amountsOf(sentence)|amountsOf(m.claim))&^(1<<noneOf) == 0:
		return denied, -1
	}
	return unrelated, -1
}

// retold returns the index of a premise with a clause that the claim repeats completely, in order
// and with the same negation. Other content words of the claim must occur in other sentences.
// Example: "Child trailers are permitted on the Veltra" for "Child trailers are permitted, child
// seats are not". It returns -1 if there is none.
func (m *matcher) retold(premises []evidence.Premise) int {
	if len(m.parts) > maxSentences || len(m.claim) > maxContrast {
		return -1
	}
	for _, p := range m.parts {
		sentence := m.premise[p.from:p.to]
		m.clauses = clausesOf(m.clauses[:0], sentence, premises[p.of].Text)
		for from := 0; from < len(sentence); {
			to := from + 1
			for to < len(sentence) && m.clauses[to] == m.clauses[from] {
				to++
			}
			if m.retells(sentence, from, to) {
				return p.of
			}
			from = to
		}
	}
	return -1
}

// retells reports whether the claim repeats clause [from, to) of a sentence.
func (m *matcher) retells(sentence []words.Word, from, to int) bool {
	clause := sentence[from:to]
	told, last := 0, -1
	for i := range clause {
		w := &clause[i]
		if terms[w.Hash] == binding && indexOf(m.claim, w.Hash) < 0 {
			return false
		}
		if w.Has(words.Stop) || w.Has(words.Negation) {
			continue
		}
		at := indexOf(m.claim, w.Hash)
		if at <= last {
			return false
		}
		told, last = told+1, at
	}
	if told < 2 || (negations(m.claim)-negations(clause))%2 != 0 {
		return false
	}
	others := 0
	for i := range m.claim {
		w := &m.claim[i]
		switch {
		case !m.content[i] && !w.Has(words.Number) || indexOf(clause, w.Hash) >= 0 || fillers[w.Hash]:
		case !m.found[i] || indexOf(sentence, w.Hash) >= 0:
			return false
		default:
			others++
		}
	}
	return others <= told
}

// turns reports whether word w of the claim and its opposite in the sentence may describe the same
// fact: what is sold is bought, and what is open until 8 closes at 8.
func (m *matcher) turns(w int, sentence []words.Word) bool {
	return has(m.claim, untils) != has(sentence, untils) ||
		converses[m.claim[w].Hash] && (has(m.claim, passives) || has(sentence, passives))
}

func has(list []words.Word, set map[uint64]bool) bool {
	return slices.ContainsFunc(list, func(w words.Word) bool { return set[w.Hash] })
}

// noLonger counts the words that belong to a negation: "no longer".
func noLonger(sentence []words.Word) (n int) {
	for i := 1; i < len(sentence); i++ {
		if sentence[i-1].Has(words.Negation) && endings[sentence[i].Hash] {
			n++
		}
	}
	return n
}

// deniesWithin reports whether all negations of the sentence are within the part that the claim
// shares. They are not in "due once a trip, not once a claim" if the claim has only the first half.
func (m *matcher) deniesWithin(sentence []words.Word) bool {
	first, last := len(sentence), -1
	for _, at := range m.match {
		if at >= 0 {
			first, last = min(first, int(at)), max(last, int(at))
		}
	}
	for i := range sentence {
		if sentence[i].Has(words.Negation) && (i < first-1 || i > last) {
			return false
		}
	}
	return true
}

// excepts handles a claim about the exception in a sentence. If the claim applies the rule to the
// exception, the relation is excepted; if it denies the rule for it, affirmed. If the claim has
// words that no premise has, the result is unrelated.
func (m *matcher) excepts(sentence []words.Word, text string) relation {
	at := slices.IndexFunc(sentence, func(w words.Word) bool { return exceptions[w.Hash] })
	if at < 0 || has(m.claim, exceptions) {
		return unrelated
	}
	m.clauses = clausesOf(m.clauses[:0], sentence, text)
	end := at + 1
	for end < len(sentence) && m.clauses[end] == m.clauses[at] {
		end++
	}
	main := sentence[:at] // a relative clause after the exception belongs to it
	if at == 0 {
		main = sentence[end:]
	}
	inside, rest, turned := 0, 0, negations(m.claim)-negations(main)
	for i := range m.claim {
		w := &m.claim[i]
		switch {
		case !m.content[i] || fillers[w.Hash]:
		case indexOf(sentence[at:end], w.Hash) >= 0:
			inside++
		case indexOf(main, w.Hash) >= 0:
			rest++
		case excluded(w.Hash, main):
			turned++
		case indexOf(sentence, w.Hash) >= 0, !m.found[i]:
			return unrelated
		}
	}
	switch {
	case inside == 0 || rest == 0 && turned == 0 || 2*inside < weighty(sentence[at+1:end]):
		return unrelated
	case turned%2 == 0:
		return excepted
	}
	return affirmed
}

// excluded reports whether a sentence contains a word that excludes the given one.
func excluded(hash uint64, sentence []words.Word) bool {
	return slices.ContainsFunc(rivals()[hash], func(other uint64) bool { return indexOf(sentence, other) >= 0 })
}
