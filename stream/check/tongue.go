package check

import (
	"slices"
	"strings"
	"unicode"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
)

// Function words, by hash, that distinguish English from other languages in Latin script. Words of
// both sides are omitted.
//
//nolint:gochecknoglobals // constant tables
var (
	english = hashes(`the of and is are to has have had with for from by that this it its was were at be been not
		he she they which who will would his her their or but as can may must there than into
		about after before when where what some does did if we you my our each
		only also more most near over between so such both`)
	strange = hashes(`der das den dem des ein eine einen einem einer eines und ist nicht im vom zum zur mit auf
		für von zu bei nach aus auch sich sie wird wurde wurden werden sind haben über unter dass
		wie nur noch als kein keine keinen um bis ab oder aber ihr ihre ihren ihrem ihrer sein
		seine seinen wir er es durch gegen ohne beträgt hat unser unsere unseren unserem unserer
		dein deine deinen deiner euer kommt gibt liegt dauert kostet enthält umfasst besteht gilt
		beginnt endet steht le la les un une du et est sont dans avec au aux ce cette ces qui que
		ne pas il elle ils elles sa ses été se en de ou mais à leur el los las una del y fue era
		por para con su sus lo como están está al sin pero más muy cada desde hasta ha han di che
		è non sono gli nel della dei delle alla uno anche più os um uma da em não com são foi
		pelo pela mais ao dos das seu sua seus suas você pode podem após até sem é alle dal dai dalla sul
		sulla ed questo questa entro può possono viene vengono avete hanno puede pueden debe deben esta
		este vous votre nous peut peuvent doit doivent het een op niet zijn voor te uit naar ook wordt werd aan och att
		det som är av inte ett og til ikke jest się nie że był była oraz przez`)
	// german are words of languages that capitalise every noun.
	german = hashes(`der das den dem des ein eine einen einem einer eines und ist nicht im vom zum zur auf für
		von bei nach aus auch wird wurde wurden werden sind mit sich um als kein keine ab bis man
		oder aber sein seine ihren ihrem ihrer hat sie wir ich ihnen ihm ihn können kann müssen muss
		diese dieser dieses diesen diesem bitte zwischen seit unter über`)
	// possessive are German words that other languages have as well or that only precede nouns. In
	// a text that is not English they also indicate German.
	possessive = hashes(
		`die ihr ihre unser unsere unseren unserem unserer dein deine deinen deiner euer eure am beim haben`,
	)
)

func hashes(list string) map[uint64]bool {
	m := map[uint64]bool{}
	for w := range strings.FieldsSeq(list) {
		m[hashOf(w)] = true
	}
	return m
}

// foreign reports whether a text is not in English, judged by its letters and function words. A
// text without either counts as English.
func foreign(list []words.Word, text string) bool {
	other, latin, votes := 0, 0, 0
	for i := range list {
		w := &list[i]
		s := text[w.Start:w.End]
		switch {
		case w.Has(words.Number):
			continue
		case strings.ContainsFunc(s, elsewhere):
			other++
			continue
		}
		latin++
		if english[w.Hash] {
			votes++
		}
		if strange[w.Hash] && !initial(text, w) || s == "Die" ||
			elided(s) || !w.Has(words.Capital) && strings.ContainsFunc(s, accented) {
			votes--
		}
	}
	return other > latin || votes < 0
}

// initial reports whether a word is the initial of a name or the end of a domain name: J. Y. Cheng,
// example.com.
func initial(text string, w *words.Word) bool {
	return w.End-w.Start == 1 && w.Has(words.Capital) || w.Start > 0 && text[w.Start-1] == '.'
}

// elsewhere reports whether a letter is not Latin.
func elsewhere(r rune) bool { return r > 0x24f && unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }

// accented reports whether a letter is rare in English words.
func accented(r rune) bool { return r > 0x7f && unicode.IsLetter(r) }

// elided reports whether a word begins with an elided article: l'eau, d'accord.
func elided(s string) bool {
	head, rest, found := strings.Cut(strings.ReplaceAll(s, "’", "'"), "'")
	// Articles and pronouns of French and Italian.
	switch strings.ToLower(head) {
	case "l", "d", "qu", "j", "c", "n", "s", "m", "t":
		return found && len(rest) > 1
	}
	return false
}

// tongues says whether a claim and its evidence are in English, as far as an English Judge needs
// it.
type tongues struct {
	alien  bool // at least one is not in English, so the Judge cannot read it
	across bool // exactly one is not in English
}

// tongues compares the languages of a claim and its best premise.
func (m *matcher) tongues(text string, premises []evidence.Premise) (t tongues) {
	claim, premise := foreign(m.claim, text), false
	if len(premises) > 0 {
		at := 0
		for at < len(m.parts) && m.parts[at].of == 0 {
			at++
		}
		if at > 0 {
			premise = foreign(m.premise[:m.parts[at-1].to], premises[0].Text)
		}
	}
	return tongues{alien: claim || premise, across: claim != premise}
}

// alien returns the verdict on a claim that an English Judge was asked about although the claim or
// its evidence is in another language. Numbers and names decide, and words if the evidence has the
// same ones. ok is false if both are in English.
func (r *reading) alien(e *evidence.Evidence, support float64, says opinion) (out Result, ok bool) {
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	o := m.read(r.claim.Text, r.found, r.findings)
	t := m.tongues(r.claim.Text, r.found)
	if !t.alien {
		return out, false
	}
	name, day := m.stranger(&r.claim, t), m.strangeDay(r.claim.states(), e)
	if name == (claims.Span{}) && !t.across {
		name = strangePerson(r.claim.states(), e)
	}
	switch {
	case day != claims.Span{}:
		out = Result{
			Verdict: Unsupported, Score: min(support, halfDoubt), Source: -1, By: NLI,
			Reason: "a day of the week that the evidence does not name", Span: day,
		}
	case name != claims.Span{}:
		out = Result{Verdict: Unsupported, Score: min(support, halfDoubt), Source: -1, By: NLI, Reason: "a name that the evidence does not hold", Span: name}
	case !t.across && m.outdated(r.claim.Text, r.found):
		out = r.replaced(support)
	case !t.across && m.denies(&o, r.found):
		out = Result{Verdict: Contradicted, Score: min(support, halfDoubt), Source: r.found[0].Source, ID: r.found[0].ID, Premise: r.found[0].Text, By: NLI, Reason: "a negation more or less"}
	case says == entailed && !t.across && m.repeats(&o, r.found) && r.bet(e, r.found):
		out = Result{Verdict: Supported, Score: support, Source: -1, By: NLI, Reason: "entailed"}
		r.name(&out, func(p Inference) float32 { return p.Entailment })
	default:
		out = Result{Verdict: Unchecked, Score: max(support, halfDoubt), Source: -1, By: NLI, Reason: "in a language that the model does not read"}
	}
	return out, true
}

// denies reports whether all words of the claim are from the evidence except one negation on either
// side. The negation of the evidence must be in the same clause as words of the claim, unlike
// "sofern es nicht gekündigt wird". read must have been called.
func (m *matcher) denies(o *overlap, premises []evidence.Premise) bool {
	if o.content < 2 || o.missing > 0 || o.best < 1 || o.negated+o.denied != 1 || o.replaced > 0 ||
		o.opposed > 0 || len(premises) == 0 {
		return false
	}
	sentence := m.premise[m.best.from:m.best.to]
	if at := slices.IndexFunc(sentence, func(w words.Word) bool { return exceptions[w.Hash] }); at >= 0 {
		m.partsOf(sentence, premises[m.best.of].Text)
		for i := at + 1; i < len(sentence) && m.clauses[i] == m.clauses[at]; i++ {
			if !sentence[i].Has(words.Stop) && indexOf(m.claim, sentence[i].Hash) >= 0 {
				return false // it is about the exception
			}
		}
	}
	if o.negated == 1 {
		return true
	}
	m.partsOf(sentence, premises[m.best.of].Text)
	for i := range sentence {
		if !sentence[i].Has(words.Negation) {
			continue
		}
		for k := range sentence {
			w := &sentence[k]
			if m.clauses[k] == m.clauses[i] && !w.Has(words.Stop) && !w.Has(words.Negation) && indexOf(m.claim, w.Hash) >= 0 {
				return true
			}
		}
	}
	return false
}

// repeats reports whether the claim only repeats a sentence of the evidence, judged without
// understanding the language: all its words are there, in order and in one clause, and none is a
// negation. A word of its own could mean the opposite. read must have been called.
func (m *matcher) repeats(o *overlap, premises []evidence.Premise) bool {
	return len(premises) > 0 && plainly(o) && o.missing == 0 && o.best == 1 && o.inverted == 0 &&
		negations(m.claim) == 0 && !m.spread(m.premise[m.best.from:m.best.to], premises[m.best.of].Text)
}

// spread reports whether content words of the claim come from several clauses of the sentence.
func (m *matcher) spread(sentence []words.Word, text string) bool {
	m.partsOf(sentence, text)
	from := int32(-1)
	for i := range m.claim {
		w := &m.claim[i]
		at := indexOf(sentence, w.Hash)
		if w.Has(words.Stop) || at < 0 || !m.once(sentence, at) {
			continue
		}
		if from >= 0 && m.clauses[at] != from {
			return true
		}
		from = m.clauses[at]
	}
	return false
}

// partsOf numbers the clauses of a sentence in m.clauses, like clausesOf, but a colon does not
// begin a clause: a field name and its value belong together.
func (m *matcher) partsOf(sentence []words.Word, text string) {
	m.clauses = m.clauses[:0]
	n := int32(0)
	for i := range sentence {
		w := &sentence[i]
		if i > 0 && sentence[i-1].End < w.Start && strings.ContainsAny(text[sentence[i-1].End:w.Start], ",;()—|，、；（）،") ||
			joins(text[w.Start:w.End]) {
			n++
		}
		m.clauses = append(m.clauses, n)
	}
}

// stranger returns the span of a name in the claim that no premise has. If the language capitalises
// nouns, only two adjacent such words count. The same holds if the evidence is in another language,
// which may spell places and countries differently. If both apply, nothing counts.
func (m *matcher) stranger(c *Claim, t tongues) (span claims.Span) {
	text := c.Text
	nouns, perhaps := !t.across && m.germanPremise(), false
	for i := range m.claim {
		nouns = nouns || german[m.claim[i].Hash]
		perhaps = perhaps || possessive[m.claim[i].Hash]
	}
	if t.across && (nouns || perhaps && foreign(m.claim, text)) {
		return span
	}
	for i := range m.claim {
		w := &m.claim[i]
		if w.Start < c.Lead || !m.unknown(i) || nouns && !w.Has(words.Name) {
			continue
		}
		if !nouns && !t.across && w.Has(words.Name) && !m.behindArticle(i) {
			return c.span(w.Start, w.End)
		}
		if next := i + 1; next < len(m.claim) && m.unknown(next) && text[w.End:m.claim[next].Start] == " " {
			return c.span(w.Start, m.claim[next].End)
		}
	}
	return span
}

// germanPremise reports whether the best premise is German and the claim has no function word of
// another language; a claim without function words counts as German then.
func (m *matcher) germanPremise() bool {
	for i := range m.claim {
		if h := m.claim[i].Hash; strange[h] && !german[h] && !possessive[h] {
			return false
		}
	}
	told := 0
	for _, p := range m.parts {
		if p.of > 0 {
			break
		}
		for _, w := range m.premise[p.from:p.to] {
			if german[w.Hash] {
				told++
			}
		}
	}
	return told > 1
}

// unknown reports whether word i of the claim is capitalised like a name and in no premise. German
// words such as "Ihre" do not count.
func (m *matcher) unknown(i int) bool {
	w := &m.claim[i]
	return m.content[i] && w.Has(words.Capital) && !m.found[i] && !german[w.Hash] && !possessive[w.Hash]
}

// behindArticle reports whether word i of the claim is a German noun, judged by the word before it.
func (m *matcher) behindArticle(i int) bool { return i > 0 && possessive[m.claim[i-1].Hash] }
