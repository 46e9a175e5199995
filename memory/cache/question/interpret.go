package question

// interpret looks up the raw words and keeps the meaningful ones.
func (r *Reading) interpret(l *lexicon) {
	r.verbs(l)
	in := interpreter{r: r, l: l, first: true, asking: -1}
	for i := 0; i < len(r.raw); {
		i += in.next(i)
	}
	if len(r.raw) > 0 && direction(r.form(r.lastWord())) != noRole {
		r.dangling = in.ahead
	}
	if r.kind == How && r.passive { // "how can it be done" means "how to do it"
		r.mood &^= can | could | should
	}
	r.long = r.long || len(r.words) > MaxWords
	r.raw = r.raw[:0]
}

// interpreter is the state of looking up the words of a reading.
type interpreter struct {
	r      *Reading
	l      *lexicon
	first  bool // no meaningful word so far
	ahead  role // the preceding preposition
	chain  role // the preposition of the directly preceding words
	asking int  // the raw word that asks; -1 before it
	denies bool // the next content word is negated
}

// next processes the word or the phrase at raw word i, and returns the number of words it covers.
func (in *interpreter) next(i int) int {
	r, w := in.r, &in.r.raw[i]
	form := r.form(i)
	in.ask(i)
	if p, n := in.l.phraseAt(r, i); n > 0 {
		r.takePhrase(p, w.quoted, in.ahead)
		in.ahead, in.chain, in.first = noRole, noRole, in.first && p.kind == anyKind && len(p.out) == 0
		if n > 1 {
			in.ahead = p.direction(r.form(i + n - 1))
		}
		return n
	}
	w.label = w.label || i > 0 && article(r.form(i-1)) && joining(form)
	if in.first && !w.sign {
		in.first = false
		if orders(form) {
			return 1
		}
		if auxiliary(form) {
			r.kind, r.strict = Whether, true
		}
	}
	if next := direction(form); next != noRole && !w.quoted && !w.label {
		in.ahead, in.chain = next, noRole
	}
	r.strict = r.strict || directed(form)
	r.owner(form)
	r.joint(form)
	r.object(i)
	r.mood |= r.moodOf(in.l, i) & modals
	if !r.take(in.l.find(form), w) {
		in.denies = in.denies || denies(form)
		in.chain = noRole
		return 1
	}
	t := &r.words[len(r.words)-1]
	if in.ahead != noRole {
		in.chain = in.ahead
	}
	t.role, t.chain, t.verb, t.denied = in.ahead, in.chain, r.passive && r.verb == i, in.denies
	in.ahead, in.denies = noRole, false
	return 1
}

// ask records raw word i if it is the first question word.
func (in *interpreter) ask(i int) {
	r := in.r
	if in.asking >= 0 || r.raw[i].quoted || !asksFor(r.form(i)) {
		return
	}
	in.asking = i
	r.things = string(r.form(i)) == "what" && i+1 < len(r.raw) && r.moodOf(in.l, i+1)&do != 0
	r.parts(in.l, i)
	if len(r.words) == 1 || len(r.words) > 1 && r.words[0].role != noRole {
		r.fronted = len(r.words)
	}
}

// asksFor reports whether a word asks for a person, a thing or an amount.
func asksFor(form []byte) bool {
	switch string(form) {
	case "who", "whom", "whose", "what", "which", "how", "when", "where", "why", "wer", "wen", "wem",
		"welche", "welcher", "welches", "wie", "wann", "wo", "warum":
		return true
	}
	return false
}

// owner records whose things the question is about.
func (r *Reading) owner(form []byte) {
	switch string(form) {
	case "my", "mine", "our", "ours":
		r.mine = true
	case "your", "yours":
		r.yours = true
	}
}

// joint records whether the question joins things by "and" or by "or".
func (r *Reading) joint(form []byte) {
	switch string(form) {
	case "and", "und", "et":
		r.all = true
	case "or", "oder", "ou":
		r.either = true
	}
}

// takePhrase stores the words by which a phrase is replaced.
func (r *Reading) takePhrase(p *phrase, quoted bool, ahead role) {
	if p.kind != anyKind && (r.kind == anyKind || p.force && r.kind == Thing) {
		r.kind = p.kind
		r.strict = r.strict || p.kind == Whether
	}
	r.mood |= p.mood
	r.maybe |= p.maybe
	for _, o := range p.out {
		r.literal = r.literal || o.literal
		r.words = append(r.words, token{
			form: o.form, concepts: o.concepts, class: o.class, quoted: quoted, meta: o.literal,
			asked: p.kind != anyKind, role: ahead, chain: ahead,
		})
		if o.class == filler {
			r.words = r.words[:len(r.words)-1]
		}
	}
}

// take stores a word if it is meaningful, and reports whether it is. e is nil for a word that is
// not in the lexicon.
func (r *Reading) take(e *word, w *rawWord) bool {
	t := token{form: r.arena[w.from:w.to], name: w.capital, quoted: w.quoted, owner: w.owner, capitals: w.capitals}
	switch {
	case w.sign:
		t.class = sign
	case w.digits:
		t.class = number
	case e == nil || w.label || w.quoted:
	case e.negates:
		r.negations++
		return false
	case w.capital && month(t.form):
	case w.acronym: // IT is not a pronoun
		t.concepts = e.concepts
	case e.class == filler:
		return false
	case e.number != "":
		t.class, t.form = number, []byte(e.number)
	default:
		t.class, t.concepts, t.meta = e.class, e.concepts, e.literal
		if t.class == soft && t.name { // New York
			t.class = key
		}
	}
	r.literal = r.literal || t.meta
	r.words = append(r.words, t)
	return true
}

// phraseAt returns the longest phrase that begins at raw word i, and the number of raw words it
// covers; 0 for none. Quoted words are never part of a phrase.
func (l *lexicon) phraseAt(r *Reading, i int) (*phrase, int) {
	w := &r.raw[i]
	if w.quoted || w.sign || w.digits {
		return nil, 0
	}
	list := l.phrases[string(r.arena[w.from:w.to])]
	for k := range list {
		if n := r.follows(i+1, list[k].rest); n > 0 {
			return &list[k], n
		}
	}
	return nil, 0
}

// follows returns the number of raw words covered if the words of rest follow from i on, else 0.
func (r *Reading) follows(i int, rest []string) int {
	covered := 1
	for _, want := range rest {
		for ; ; i++ {
			if i >= len(r.raw) || r.raw[i].quoted || r.raw[i].sign {
				return 0
			}
			covered++
			form := r.arena[r.raw[i].from:r.raw[i].to]
			if string(form) == want {
				break
			}
			if r.raw[i].label || !skippedForm(form) {
				return 0
			}
		}
		i++
	}
	return covered
}

func skippedForm(form []byte) bool {
	switch string(form) {
	case "a", "an", "the", "my", "your", "our":
		return true
	}
	return false
}

// article reports whether a word is an English article. No clause begins after one.
func article(form []byte) bool {
	switch string(form) {
	case "a", "an", "the":
		return true
	}
	return false
}

// joining reports whether a word is a conjunction, a preposition or a pronoun. After an article it
// is a name: an or gate, the this keyword.
func joining(form []byte) bool {
	switch string(form) {
	case "and", "or", "if", "then", "for", "in", "on", "at", "of", "to", "as", "with", "from", "by", "into",
		"do", "is", "am", "it", "this", "here":
		return true
	}
	return false
}

// denies reports whether a word negates the word after it, and not the whole sentence.
func denies(form []byte) bool {
	switch string(form) {
	case "no", "without", "kein", "keine", "keinen", "keinem", "ohne", "sans", "aucun", "aucune", "sin", "ningún",
		"ninguna":
		return true
	}
	return false
}

// orders reports whether a text that begins with the word is a command equivalent to a question
// with "what".
func orders(form []byte) bool {
	switch string(form) {
	case "list", "name", "calculate", "compute", "define", "state":
		return true
	}
	return false
}

// auxiliary reports whether a question that begins with the word is a yes-no question.
func auxiliary(form []byte) bool {
	switch string(form) {
	case "is", "are", "was", "were", "am", "do", "does", "did", "has", "have", "had", "can", "could",
		"may", "might", "will", "would",
		"should", "shall", "must", "isn", "aren", "ist", "sind", "hat", "haben", "kann", "darf", "soll",
		"muss", "wird", "wurde", "peut", "puis",
		"est", "puedo", "puede", "hay", "es", "está", "son":
		return true
	}
	return false
}

// month reports whether an auxiliary is a name when capitalised: in May.
func month(form []byte) bool { return string(form) == "may" || string(form) == "will" }

// direction returns the role that a word gives the word after it.
func direction(form []byte) role {
	switch string(form) {
	case "from", "von", "vom", "de", "desde":
		return from
	case "to", "into", "nach", "à", "zu", "zum", "zur":
		return to
	case "than", "als":
		return than
	case "by", "durch", "par", "por":
		return by
	case "with", "mit", "avec", "con":
		return with
	case "for", "für", "pour", "para":
		return forr
	case "of":
		return of
	case "in", "on", "at", "about", "en", "im", "am":
		return loose
	}
	return noRole
}

// direction returns the role that a phrase gives the word after it; last is its last word.
func (p *phrase) direction(last []byte) role {
	if len(p.out) > 0 && string(p.out[0].form) == "instead_of" {
		return instead
	}
	return direction(last)
}

// directed reports whether a word makes the order of the others matter.
func directed(form []byte) bool {
	switch string(form) {
	case "from", "into", "than", "before", "after", "versus", "vs", "convert", "translate", "exchange",
		"power", "transfer", "copy",
		"move", "compare", "compared", "owes", "from_a", "von", "nach", "als", "vor", "desde", "antes",
		"después", "avant", "après":
		return true
	}
	return false
}

// measure makes "how much" optional if a number or a word of measure already expresses it.
func (r *Reading) measure() {
	told := false
	for i := range r.words {
		told = told || r.words[i].class == number || measures(r.words[i].form)
	}
	if !told {
		return
	}
	for i := range r.words {
		if string(r.words[i].form) == "howmuch" {
			r.words[i].class = soft
		}
	}
}

// measures reports whether a word asks for an amount by itself.
func measures(form []byte) bool {
	switch string(form) {
	case "cost", "costs", "price", "weigh", "weighs", "weight", "worth", "pay", "salary", "fee", "charge",
		"interest", "earn", "spend", "sleep":
		return true
	}
	return false
}
