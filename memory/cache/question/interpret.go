package question

// interpret looks up the raw words and keeps those that matter.
func (r *Reading) interpret(l *lexicon) {
	first, ahead := true, noRole
	for i := 0; i < len(r.raw); {
		w := &r.raw[i]
		form := r.arena[w.from:w.to]
		if p, n := l.phraseAt(r, i); n > 0 {
			r.takePhrase(p, w.quoted, ahead)
			ahead, first = noRole, first && p.kind == anyKind && len(p.out) == 0
			i += n
			continue
		}
		i++
		if first && !w.sign {
			first = false
			if orders(form) {
				continue
			}
			if auxiliary(form) {
				r.kind, r.strict = Whether, true
			}
		}
		if next := direction(form); next != noRole && !w.quoted {
			ahead = next
		}
		r.strict = r.strict || directed(form)
		r.owner(form)
		if r.take(l.find(form), w) {
			r.words[len(r.words)-1].role = ahead
			ahead = noRole
		}
	}
	r.long = r.long || len(r.words) > MaxWords
	r.raw = r.raw[:0]
}

// owner notes whose things the question is about.
func (r *Reading) owner(form []byte) {
	switch string(form) {
	case "my", "mine", "our", "ours":
		r.mine = true
	case "your", "yours":
		r.yours = true
	}
}

// takePhrase keeps what a phrase is read as.
func (r *Reading) takePhrase(p *phrase, quoted bool, ahead role) {
	if p.kind != anyKind && (r.kind == anyKind || p.force && r.kind == Thing) {
		r.kind = p.kind
		r.strict = r.strict || p.kind == Whether
	}
	for _, o := range p.out {
		r.literal = r.literal || o.literal
		r.words = append(r.words, token{form: o.form, concepts: o.concepts, class: o.class, quoted: quoted, meta: o.literal, role: ahead})
		if o.class == filler {
			r.words = r.words[:len(r.words)-1]
		}
	}
}

// take keeps a word if it matters, and reports whether it does. e is nil for a word that the
// lexicon does not know.
func (r *Reading) take(e *word, w *rawWord) bool {
	t := token{form: r.arena[w.from:w.to], name: w.capital, quoted: w.quoted}
	switch {
	case w.sign:
		t.class = sign
	case w.digits:
		t.class = number
	case e == nil || w.label || w.quoted:
	case e.negates:
		r.negations++
		return false
	case w.acronym: // IT is no pronoun
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

// phraseAt returns the longest phrase that begins at raw word i, and how many raw words it covers;
// 0 for none. Quoted words are nobody's phrase.
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

// follows reports how many raw words a phrase covers of which the rest stands from i on; 0 when it
// does not.
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

// orders reports whether a text that begins with the word orders what a question with "what" asks
// for.
func orders(form []byte) bool {
	switch string(form) {
	case "list", "name", "calculate", "compute", "define", "state":
		return true
	}
	return false
}

// auxiliary reports whether a question that begins with the word is answered by yes or no.
func auxiliary(form []byte) bool {
	switch string(form) {
	case "is", "are", "was", "were", "am", "do", "does", "did", "has", "have", "had", "can", "could", "may", "might", "will", "would",
		"should", "shall", "must", "isn", "aren", "ist", "sind", "hat", "haben", "kann", "darf", "soll", "muss", "wird", "wurde", "peut", "puis",
		"est", "puedo", "puede", "hay", "es", "está", "son":
		return true
	}
	return false
}

// direction returns the role that a word gives the one behind it.
func direction(form []byte) role {
	switch string(form) {
	case "from", "von", "de", "desde":
		return from
	case "to", "into", "nach", "in", "à", "en", "a":
		return to
	case "than", "als":
		return than
	case "by", "durch", "par", "por":
		return by
	}
	return noRole
}

// directed reports whether a word makes the order of the others matter.
func directed(form []byte) bool {
	switch string(form) {
	case "from", "into", "than", "before", "after", "versus", "vs", "convert", "translate", "exchange", "power", "transfer", "copy",
		"move", "compare", "compared", "owes", "by", "from_a", "von", "nach", "als", "vor", "desde", "antes", "después", "avant", "après":
		return true
	}
	return false
}

// measure makes "how much" a word that may be left out where a number or a word of measure says as
// much.
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
	case "cost", "costs", "price", "weigh", "weighs", "weight", "worth", "pay", "salary", "fee", "charge", "interest", "earn", "spend", "sleep":
		return true
	}
	return false
}
