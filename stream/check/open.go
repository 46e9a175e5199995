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

// detailedFrom is the number of words of a source from which a neutral opinion alone does not flag
// a claim without an unknown name, unless its support is below Thresholds.Alone. For evidence of
// one or two sentences the opinion is useful: it flags 38 % of the false sentences of dev_real and
// 3 % of the true ones. In faithful answers about 71 real texts of 180 to 420 words it flagged 3 %
// of the sentences, and 6 % of those that were made false: if one sentence in ten is false, four
// such flags of five are wrong.
const detailedFrom = 60

// detailed reports whether the best source is more than a fact or two.
func (r *reading) detailed() bool { return len(r.found) > 0 && r.found[0].Page >= detailedFrom }

// mostReply is the maximum number of content words in a claim that only denies the question; our
// choice.
const mostReply = 3

//nolint:gochecknoglobals // constant tables
var (
	denials = hashes("not nicht pas")
	nothing = hashes("none nothing keine keiner nichts aucun aucune rien ninguno ninguna nada")
)

// replies reports whether the claim only denies what was asked without naming it ("Not
// necessarily", "Not in any real sense"), or says that there is none, possibly after a title ("Open
// questions: None").
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

// mostTitle is the maximum number of words in a title before its content; our choice.
const mostTitle = 7

// forms are words, by hash, in the titles of an answer that is a form, such as a report or a
// session summary.
//
//nolint:gochecknoglobals // constant table
var forms = hashes("answer assessment background code concepts conclusion conclusions current details error errors " +
	"example examples files findings fixes goal goals idea implementation intent issue issues key limitations " +
	"next notes optional outcome overall overview pending plan point points primary problem problems pros cons " +
	"purpose question questions reasoning recommendation recommendations request requirements result results " +
	"risk risks section sections solution solving status step steps summary takeaway takeaways task tasks " +
	"technical timeline topic topics work aufgaben ergebnis ergebnisse fazit fragen hinweise nächste offene " +
	"risiken schritte status zusammenfassung étapes questions résumé risques pasos preguntas resumen riesgos")

// titleOf returns the length, in bytes, of a title that begins a text and ends in a colon, as in an
// answer that is a form: "Files and Code Sections:". Its words must be capitalised, except function
// words, and one of them must be in forms. It returns 0 if there is no title.
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

// mostRunIn is the maximum number of words in a run-in head; our choice.
const mostRunIn = 6

// isRunIn reports whether a text is a short head in bold print that ends like a sentence: "**Keep
// it light and short.**".
func isRunIn(text string) bool {
	const bold = "**"
	text, ok := strings.CutPrefix(strings.TrimLeft(text, "- \n"), bold)
	if !ok {
		return false
	}
	head, rest, ok := strings.Cut(text, bold)
	return ok && strings.Trim(rest, " .:\n") == "" && strings.Count(head, " ") < mostRunIn
}

// announces reports whether the claim ends in a colon and states no number, so that its content
// follows.
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

// subjectWords is how many words at the start of a claim may name its subject, and the maximum
// distance in words between a negation and what it denies; our choice.
const subjectWords = 4

// tellsNothing reports whether the claim denies that the text says something, which no part of the
// text could show: "The text does not say whether there is a bus".
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

// Endings of the names of places and of their inhabitants.
//
//nolint:gochecknoglobals // constant tables
var (
	places  = strings.Fields("a y o e en ia land and")
	peoples = strings.Fields("n ns an ans ian ians ese ish i is er ers erner erners ic tish")
	// lands groups places with their inhabitants if their names share too little.
	lands = groups("france french / poland polish pole poles / spain spanish spaniards / greece greek greeks / " +
		"denmark danish danes / finland finnish finns / norway norwegian norwegians / turkey turkish turks / " +
		"wales welsh / ireland irish / switzerland swiss / netherlands dutch / britain british uk / " +
		"america american americans us usa / europe european europeans eu / thailand thai / iraq iraqi")
)

// groups maps each word to the number of its group, from 1. Slashes separate the groups.
func groups(list string) map[string]int {
	m := map[string]int{}
	for i, group := range strings.Split(list, " / ") {
		for word := range strings.FieldsSeq(group) {
			m[word] = i + 1
		}
	}
	return m
}

// leastAlike is the number of common initial bytes from which two words may be forms of one name;
// our choice.
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

// livesIn reports whether the different endings of two words can be those of inhabitants and of
// their place.
func livesIn(people, place string) bool {
	return slices.Contains(peoples, people) && (place == "" || slices.Contains(places, place))
}

// holdsName reports whether the evidence has a name: as written, possibly inside another word such
// as a URL; in the form for inhabitants; or, if it is all capitals, as the initials of a phrase.
func (m *matcher) holdsName(name string, e *evidence.Evidence, premises []evidence.Premise) bool {
	letters := utf8.RuneCountInString(name)
	if letters >= leastAlike &&
		slices.ContainsFunc(e.Texts(), func(text string) bool { return strings.Contains(text, name) }) {
		return true
	}
	short := letters > 1 && letters < leastAlike && strings.ToUpper(name) == name
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

// spells reports whether a name consists of the initials of the first words of a list.
func spells(list []words.Word, text, name string) bool {
	n := 0
	for _, r := range name {
		if n == len(list) || list[n].Has(words.Stop) || firstLetter(text, list[n]) != r {
			return false
		}
		n++
	}
	return n > 0
}

// firstLetter returns the first letter of a word, as a capital.
func firstLetter(text string, w words.Word) rune {
	r, _ := utf8.DecodeRuneInString(text[w.Start:])
	return unicode.ToUpper(r)
}

// shortened reports whether the evidence has the initials of two or more words of the claim: NHS
// for the National Health Service.
func shortened(name []words.Word, claim string, e *evidence.Evidence) bool {
	if len(name) < 2 {
		return false
	}
	initials := make([]rune, len(name))
	for i, w := range name {
		initials[i] = firstLetter(claim, w)
	}
	return slices.ContainsFunc(e.Texts(), func(text string) bool { return holdsWord(text, string(initials)) })
}

// holdsWord reports whether a text contains a word with no letter directly before or after it.
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

// ordinals begin names that others write with a number: the Second World War.
//
//nolint:gochecknoglobals // constant table
var ordinals = hashes("first second third fourth fifth")

// strangerName returns the span of the first name in the claim that the evidence lacks, with
// adjacent unknown parts. Names at the end of the question do not count, unless the question asks
// whether something is so. The span is empty if there is none.
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
		from, to := first, last+1 // include adjacent parts that the evidence has
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

// suppositions begin a claim that assumes something from the question: "At $6,000 a year you need
// no bid".
//
//nolint:gochecknoglobals // constant table
var suppositions = []string{
	"at", "if", "for", "with", "when", "since", "given", "suppose", "assuming", "as", "bei", "wenn", "mit",
	"für", "falls", "angenommen", "à", "si", "pour", "avec", "con", "para", "cuando",
}

// maxAsked is how much of the end of a question is read, in bytes.
const maxAsked = 2 << 10

// suppositionWords is the maximum number of words before an assumed number in a claim without a
// comma: "At about $6,000 a year it goes to Operations".
const suppositionWords = 2

// yesOrNo begin questions that ask whether something is so; what they assume is what they ask.
//
//nolint:gochecknoglobals // constant table
var yesOrNo = []string{
	"is", "are", "was", "were", "does", "do", "did", "has", "have", "had", "can", "could", "will", "would", "should", "may",
	"isn't", "aren't", "doesn't", "ist", "sind", "war", "hat", "haben", "kann", "darf", "muss", "gilt", "gibt", "stimmt",
	"est-ce", "es", "son", "fue", "puede", "puedo",
}

// asksWhether reports whether a question, or its last sentence, asks whether something is so.
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

// given accepts numbers of the question if the claim begins with a clause that assumes them; they
// need no evidence.
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

// mostTold is the maximum number of things that a line counts before it lists them; our choice.
const mostTold = 20

// tally reads the only number of a line that ends in a colon as the number of items that follow, if
// the evidence lacks it: "3 pages stand out:", or in words "The speaker points to four people:".
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

// bare does not check a claim that is only a number in brackets, such as "(1965)" after a title
// with a full stop, because its subject is unknown.
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
