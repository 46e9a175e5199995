package check

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric"
	"signalbox/stream/numeric/quantity"
)

// detailedFrom is how many words a source has at least beside which "neither entailed nor
// contradicted" flags nothing without a name, unless the support is below Thresholds.Alone. Beside
// a fact or two it tells: of sentences about one or two sentences (dev_real) 38 % of the false ones
// are flagged and 3 % of the true. Of faithful answers about 71 real texts of 180 to 420 words it
// flagged 3 % of the sentences, and 6 % of those that were made false: where one sentence in ten is
// false, four such flags of five are wrong.
const detailedFrom = 60

// detailed reports whether the source that fits best tells more than a fact or two.
func (r *reading) detailed() bool { return len(r.found) > 0 && r.found[0].Page >= detailedFrom }

// mostReply bounds the content words of a claim that only denies the question; our choice.
const mostReply = 3

//nolint:gochecknoglobals // constant tables
var (
	denials = hashes("not nicht pas")
	nothing = hashes("none nothing keine keiner nichts aucun aucune rien ninguno ninguna nada")
)

// replies reports whether the claim only denies what was asked, without naming it, as in "Not
// necessarily" and "Not in any real sense", or says that there is none, perhaps behind a title, as in
// "Open questions: None".
func (r *reading) replies() bool {
	said := r.claim.states()
	said = said[titleOf(said):]
	list := words.Scan(make([]words.Word, 0, 2*mostReply), said)
	if len(list) == 1 {
		return nothing[list[0].Hash]
	}
	if r.signs&carried&^numeric.HasNegation != 0 {
		return false
	}
	n := 0
	for _, w := range list {
		if !w.Has(words.Stop) && !w.Has(words.Negation) {
			n++
		}
	}
	return len(list) > 0 && denials[list[0].Hash] && n <= mostReply
}

// mostTitle bounds the words of a title before what it tells of; our choice.
const mostTitle = 7

// forms are words of titles of an answer that is a form, such as a report or the summary of a session.
//
//nolint:gochecknoglobals // constant table
var forms = hashes("answer assessment background code concepts conclusion conclusions current details error errors " +
	"example examples files findings fixes goal goals idea implementation intent issue issues key limitations " +
	"next notes optional outcome overall overview pending plan point points primary problem problems pros cons " +
	"purpose question questions reasoning recommendation recommendations request requirements result results " +
	"risk risks section sections solution solving status step steps summary takeaway takeaways task tasks " +
	"technical timeline topic topics work aufgaben ergebnis ergebnisse fazit fragen hinweise nächste offene " +
	"risiken schritte status zusammenfassung étapes questions résumé risques pasos preguntas resumen riesgos")

// titleOf is how many bytes of a text are a title that ends in a colon, as those of an answer that is
// a form: "Files and Code Sections:". It is 0 where the text begins with none. Its words begin with
// capitals, function words apart, and one of them is of forms.
func titleOf(text string) int {
	end := strings.IndexByte(text[:min(len(text), maxLine)], ':')
	if end < 0 {
		return 0
	}
	var room [mostTitle + 1]words.Word
	list := words.Scan(room[:0], text[:end])
	if len(list) == 0 || len(list) > mostTitle {
		return 0
	}
	form := false
	for _, w := range list {
		if w.Has(words.Number) || !w.Has(words.Capital) && !w.Has(words.Stop) {
			return 0
		}
		form = form || forms[w.Hash]
	}
	if !form {
		return 0
	}
	rest := strings.TrimLeft(text[end+1:], " *_\n")
	return len(text) - len(rest)
}

// mostRunIn is how many words a run-in head has at most; our choice.
const mostRunIn = 6

// isRunIn reports whether a text is a head in bold print that ends like a sentence, of few words:
// "**Keep it light and short.**".
func isRunIn(text string) bool {
	const bold = "**"
	text, ok := strings.CutPrefix(strings.TrimLeft(text, "- \n"), bold)
	if !ok {
		return false
	}
	head, rest, ok := strings.Cut(text, bold)
	return ok && strings.Trim(rest, " .:\n") == "" && strings.Count(head, " ") < mostRunIn
}

// announces reports whether the claim ends in a colon and states no number: what it says is told by what
// comes next.
func (r *reading) announces() bool {
	elsewhere := func(f numeric.Finding) bool { return f.Reason == numeric.Elsewhere }
	quiet := r.numbers == numeric.NotCheckable && !slices.ContainsFunc(r.findings, elsewhere)
	return (r.signs&countable == 0 || quiet) && strings.HasSuffix(strings.TrimRight(r.claim.states(), " *_\n"), ":")
}

//nolint:gochecknoglobals // constant tables
var (
	// texts are words for the evidence itself.
	texts = hashes("text article document section passage excerpt speech proposal report author authors " +
		"interview context summary snippet artikel dokument abschnitt auszug bericht texte extrait " +
		"rapport auteur texto documento artículo pasaje")
	// saying are verbs for what a text does.
	saying = hashes("say says mention mentions state states tell tells specify specifies give gives name names " +
		"list lists describe describes explain explains cover covers include includes provide provides " +
		"sagt nennt erwähnt gibt steht enthält dit mentionne précise indique dice menciona indica")
)

// subjectWords is among how many words at the beginning of a claim what it speaks of stands, and how
// many words behind it at most are between a negation and what is denied; our choice.
const subjectWords = 4

// tellsNothing reports whether the claim denies that the text says something, which no part of it
// could tell: "The text does not say whether there is a bus".
func (r *reading) tellsNothing() bool {
	list := words.Scan(make([]words.Word, 0, 16), r.claim.states())
	for i, w := range list[:min(len(list), subjectWords)] {
		if !texts[w.Hash] {
			continue
		}
		denied := false
		for _, w := range list[i+1 : min(len(list), i+1+subjectWords)] {
			denied = denied || w.Has(words.Negation)
			if denied && saying[w.Hash] {
				return true
			}
		}
		for k := i + 1; k+1 < min(len(list), i+1+subjectWords); k++ {
			if saying[list[k].Hash] && list[k+1].Has(words.Negation) {
				return true // sagt nicht
			}
		}
	}
	return false
}

// Endings of the names of places, and of those who live there.
//
//nolint:gochecknoglobals // constant tables
var (
	places  = strings.Fields("a y o e en ia land and")
	peoples = strings.Fields("n ns an ans ian ians ese ish i is er ers erner erners ic tish")
	// lands are places, and those who live there, whose names share too little.
	lands = groups("france french / poland polish pole poles / spain spanish spaniards / greece greek greeks / " +
		"denmark danish danes / finland finnish finns / norway norwegian norwegians / turkey turkish turks / " +
		"wales welsh / ireland irish / switzerland swiss / netherlands dutch / britain british uk / " +
		"america american americans us usa / europe european europeans eu / thailand thai / iraq iraqi")
)

// groups is the number of the group that a word is of, from groups between slashes.
func groups(list string) map[string]int {
	m := map[string]int{}
	for i, group := range strings.Split(list, " / ") {
		for word := range strings.FieldsSeq(group) {
			m[word] = i + 1
		}
	}
	return m
}

// leastAlike is how many letters two words have in common that may be forms of one name; our choice.
const leastAlike = 4

// alike reports whether two words may be forms of one name: India and Indian, France and French.
func alike(a, b string) bool {
	a, b = strings.TrimSuffix(a, "'s"), strings.TrimSuffix(b, "'s")
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if a == b || n >= leastAlike && (livesIn(a[n:], b[n:]) || livesIn(b[n:], a[n:])) {
		return true
	}
	land := lands[strings.ToLower(a)]
	return land > 0 && land == lands[strings.ToLower(b)]
}

// livesIn reports whether two words that begin alike may be those who live in a place, and the place.
func livesIn(people, place string) bool {
	return slices.Contains(peoples, people) && (place == "" || slices.Contains(places, place))
}

// holdsName reports whether the evidence has a name: as it stands, perhaps inside of another word,
// as in the address of a page; in the form for those who live there; or, of capitals alone, as the
// words that it is the initials of.
func (m *matcher) holdsName(name string, e *evidence.Evidence, premises []evidence.Premise) bool {
	if utf8.RuneCountInString(name) >= leastAlike &&
		slices.ContainsFunc(e.Texts(), func(text string) bool { return strings.Contains(text, name) }) {
		return true
	}
	short := len(name) > 1 && len(name) < leastAlike && strings.ToUpper(name) == name
	for _, p := range m.parts {
		text := premises[p.of].Text
		for i := p.from; i < p.to; i++ {
			w := &m.premise[i]
			if alike(name, text[w.Start:w.End]) || short && spells(m.premise[i:p.to], text, name) {
				return true
			}
		}
	}
	return false
}

// spells reports whether a name is the initials of the first words of a list.
func spells(list []words.Word, text, name string) bool {
	if len(list) < len(name) {
		return false
	}
	for i := range len(name) {
		if list[i].Has(words.Stop) || text[list[i].Start]&^0x20 != name[i] {
			return false
		}
	}
	return true
}

// shortened reports whether the evidence has the initials of two words or more of the claim: NHS for
// the National Health Service.
func shortened(name []words.Word, claim string, e *evidence.Evidence) bool {
	if len(name) < 2 {
		return false
	}
	initials := make([]byte, len(name))
	for i, w := range name {
		initials[i] = claim[w.Start] &^ 0x20
	}
	return slices.ContainsFunc(e.Texts(), func(text string) bool { return holdsWord(text, string(initials)) })
}

// holdsWord reports whether a word stands in a text, with no letter before or behind it.
func holdsWord(text, word string) bool {
	for at := 0; ; {
		n := strings.Index(text[at:], word)
		if n < 0 {
			return false
		}
		from, to := at+n, at+n+len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		behind, _ := utf8.DecodeRuneInString(text[to:])
		if !unicode.IsLetter(before) && !unicode.IsLetter(behind) {
			return true
		}
		at = to
	}
}

// ordinals begin names that others begin with a number: the Second World War.
//
//nolint:gochecknoglobals // constant table
var ordinals = hashes("first second third fourth fifth")

// strangerName is where the claim has a name that the evidence has not, with the parts of it right
// behind the first; names of the end of the question are none, unless that asks whether something is
// so. It is empty where there is none.
func (r *reading) strangerName(e *evidence.Evidence) (span claims.Span) {
	m := matchers.Get().(*matcher) //nolint:forcetypeassert,errcheck // the pool holds nothing else
	defer matchers.Put(m)
	m.read(r.claim.Text, r.found, r.findings)
	title := r.claim.Lead + titleOf(r.claim.states())
	var asked []words.Word
	if !asksWhether(r.claim.Question) {
		asked = words.Scan(nil, r.claim.Question[max(0, len(r.claim.Question)-maxAsked):])
	}
	strange := func(i int) bool {
		w := m.claim[i]
		return m.content[i] && w.Start >= title && r.claim.names(w) && !m.found[i] && !ordinals[w.Hash] &&
			!slices.ContainsFunc(asked, func(a words.Word) bool { return a.Hash == w.Hash && a.Has(words.Capital) }) &&
			!m.holdsName(r.claim.Text[w.Start:w.End], e, r.found)
	}
	for first := 0; first < len(m.claim); first++ {
		if !strange(first) {
			continue
		}
		last := first
		for last+1 < len(m.claim) && strange(last+1) {
			last++
		}
		from, to := first, last+1 // with parts of the name that the evidence has
		for from > 0 && m.claim[from-1].Has(words.Capital) {
			from--
		}
		for to < len(m.claim) && m.claim[to].Has(words.Capital) {
			to++
		}
		if !shortened(m.claim[from:to], r.claim.Text, e) {
			return r.claim.span(m.claim[first].Start, m.claim[last].End)
		}
		first = last
	}
	return span
}

// suppositions begin what an answer supposes with its question: "At $6,000 a year you need no bid".
//
//nolint:gochecknoglobals // constant table
var suppositions = []string{
	"at", "if", "for", "with", "when", "since", "given", "suppose", "assuming", "as", "bei", "wenn", "mit",
	"für", "falls", "angenommen", "à", "si", "pour", "avec", "con", "para", "cuando",
}

// maxAsked is how much of the end of a question is read for numbers, in bytes.
const maxAsked = 2 << 10

// suppositionWords is within how many words of its beginning a claim without a comma supposes a number:
// "At about $6,000 a year it goes to Operations".
const suppositionWords = 2

// yesOrNo begin questions that ask whether something is so: what they suppose is what is asked.
//
//nolint:gochecknoglobals // constant table
var yesOrNo = []string{
	"is", "are", "was", "were", "does", "do", "did", "has", "have", "had", "can", "could", "will", "would", "should", "may",
	"isn't", "aren't", "doesn't", "ist", "sind", "war", "hat", "haben", "kann", "darf", "muss", "gilt", "gibt", "stimmt",
	"est-ce", "es", "son", "fue", "puede", "puedo",
}

// asksWhether reports whether a question, or the last sentence of it, asks whether something is so.
func asksWhether(question string) bool {
	const marks = " \n\"“¿*_-#"
	var form [maxTalk]byte
	text := strings.TrimRight(question, " \n?!.\"”*_")
	last := text[1+max(strings.LastIndex(text, ". "), strings.LastIndex(text, "! "), strings.LastIndex(text, "? "), -1):]
	return beginsWith(foldTo(&form, strings.TrimLeft(question, marks)), yesOrNo) ||
		beginsWith(foldTo(&form, strings.TrimLeft(last, marks)), ifTrue)
}

//nolint:gochecknoglobals // constant table
var ifTrue = []string{
	"is that right", "is that correct", "is that true", "is this right", "is this correct", "is this true",
	"is it right", "is it true", "is it correct", "right", "correct", "stimmt das",
}

// given takes numbers of the question for what they are where the claim begins with a clause
// that supposes them: no evidence has to hold them.
func (s *sight) given() {
	var form [maxTalk]byte
	if s.numbers < numeric.Unsupported || s.claim.Question == "" ||
		!beginsWith(foldTo(&form, strings.TrimLeft(s.claim.Text, " *_-#\"“")), suppositions) {
		return
	}
	end := strings.Index(s.claim.Text, ", ")
	leans := !asksWhether(s.claim.Question)
	asked := quantity.Parse(nil, s.claim.Question[max(0, len(s.claim.Question)-maxAsked):])
	for i := range s.findings {
		f := &s.findings[i]
		near := f.Start < end || leans && strings.Count(s.claim.Text[:f.Start], " ") <= suppositionWords
		if !near || f.Verdict != numeric.Unsupported && (f.Reason != numeric.OtherValue || !leans) {
			continue
		}
		said := quantity.Parse(nil, s.claim.Text[f.Start:f.End])
		if len(said) > 0 && slices.ContainsFunc(asked, func(v quantity.Value) bool {
			return quantity.Commensurable(&said[0], &v) && quantity.Compare(&said[0], &v) != quantity.Differs
		}) {
			*f = numeric.Finding{Start: f.Start, End: f.End, Sentence: -1, Reason: numeric.NoFact}
		}
	}
	s.numbers = worstOf(s.findings)
}

// mostTold is up to how many things a line counts that it tells next; our choice.
const mostTold = 20

// tally takes the only number of a line that ends in a colon for how many things follow, where the
// evidence has no such number: "3 pages stand out:", and in words "The speaker points to four people:".
func (s *sight) tally() {
	if len(s.findings) != 1 || s.numbers != numeric.Unsupported ||
		!strings.HasSuffix(strings.TrimRight(s.claim.Text, " *_\n"), ":") {
		return
	}
	f := &s.findings[0]
	if strings.TrimLeft(s.claim.Text[:f.Start], " *_-#") != "" && !inLetters(s.claim.Text[f.Start:]) {
		return
	}
	v := quantity.Parse(nil, s.claim.Text[f.Start:f.End])
	if len(v) == 1 && v[0].Kind == quantity.Count && v[0].Dim == quantity.Plain && !v[0].Range() && v[0].Raw <= mostTold {
		*f = numeric.Finding{Start: f.Start, End: f.End, Sentence: -1, Reason: numeric.NoFact}
		s.numbers = numeric.NotCheckable
	}
}

func inLetters(number string) bool {
	first, _ := utf8.DecodeRuneInString(number)
	return unicode.IsLetter(first)
}

// bare takes a claim that is nothing but a number, such as "(1965)" behind a title that ends in a
// mark, for no statement: nothing tells what it is of.
func (s *sight) bare() {
	if s.claim.Kind == claims.Cell || s.claim.Kind == claims.Value || len(s.findings) != 1 ||
		s.numbers < numeric.Unsupported {
		return
	}
	f := &s.findings[0]
	if hasWord(s.claim.Text[:f.Start]) || hasWord(s.claim.Text[f.End:]) || !hasBracket(s.claim.Text) {
		return
	}
	*f = numeric.Finding{Start: f.Start, End: f.End, Sentence: -1, Reason: numeric.NoFact}
	s.numbers = numeric.NotCheckable
}

func hasBracket(text string) bool {
	text = strings.Trim(text, " *_.\n")
	return strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")")
}
