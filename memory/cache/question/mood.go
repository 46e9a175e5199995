package question

import "strings"

// mood is the information in auxiliaries and verb forms, as a set of bits.
type mood uint32

// The moods. Those of lexicon/moods.txt have the names of moodNames.
const (
	past mood = 1 << iota
	future
	can
	could
	may
	might
	must
	should
	would
	be         // a form of be
	do         // a form of do
	have       // a form of have
	modal      // any other auxiliary
	wasForm    // a finite past form
	participle // a participle
	maker      // a noun for the creator of something
)

// tenses and modals must agree between two questions.
const (
	tenses = past | future
	modals = can | could | may | might | must | should | would
)

//nolint:gochecknoglobals // constant table
var moodNames = [...]string{
	"past", "future", "can", "could", "may", "might", "must", "should", "would",
	"be", "do", "have", "modal", "was_form", "participle", "maker",
}

func parseMood(name string) (mood, bool) {
	for i, n := range moodNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// mood reads a line of moods.txt: the name of a mood and the words that have it.
func (l *lexicon) mood(line string) {
	name, words, _ := strings.Cut(line, " ")
	m, ok := parseMood(name)
	if !ok {
		panic("lexicon of questions: unknown mood in " + line)
	}
	for w := range strings.FieldsSeq(words) {
		l.moods[w] |= m
	}
}

// moodOf returns the moods that a raw word expresses. A quoted word, a name, and May express none.
func (r *Reading) moodOf(l *lexicon, i int) mood {
	w := &r.raw[i]
	if w.quoted || w.sign || w.digits || w.capital {
		return 0
	}
	form := r.arena[w.from:w.to]
	m := l.moods[string(form)]
	if m == 0 && regularPast(form) {
		m = wasForm | participle
	}
	return m
}

// regularPast reports whether a word has the ending of a regular past form.
func regularPast(form []byte) bool {
	stem, ok := cutSuffix(form, "ed")
	if !ok || len(stem) < 2 || stem[len(stem)-1] == 'e' {
		return false
	}
	switch string(form) {
	case "hundred", "sacred", "shed", "sled", "bred":
		return false
	}
	return true
}

// verbs determines tense and voice of a question from its raw words, before they are interpreted.
func (r *Reading) verbs(l *lexicon) {
	var seen, last mood // the auxiliaries so far, and the last one
	for i := range r.raw {
		m := r.moodOf(l, i)
		if begins(r.form(i)) {
			last = 0
		}
		if aux := m & (be | do | have | modal); aux != 0 {
			seen, last = seen|aux, aux
			r.inverts = r.inverts || aux&be == 0 && !r.speakerAt(i+1)
		}
		if last&(be|have) != 0 && m&participle != 0 {
			m &^= wasForm
		}
		r.tense(i, m, seen)
		if m&participle != 0 && last&be != 0 && !r.passive && !r.nominal(i) {
			r.passive, r.verb = true, i
		}
		if m&maker != 0 {
			r.maybe |= past
		}
	}
	r.auxiliaries = seen
	if seen == 0 && r.finite {
		r.mood |= past
	} else if r.formed {
		r.maybe |= past
	}
}

// german reports whether "was" before the word is a German question word.
func german(form []byte) bool {
	switch string(form) {
	case "ist", "sind", "hat", "haben", "wird", "kann", "muss", "soll", "darf", "bedeutet", "kostet",
		"heißt", "macht", "passiert", "tun":
		return true
	}
	return false
}

// firstWords is the number of words of a question that are searched for its verb if no auxiliary
// determines the tense: "which of them painted".
const firstWords = 5

// tense records what raw word i shows about the tense; seen are the auxiliaries up to it.
func (r *Reading) tense(i int, m, seen mood) {
	form := r.form(i)
	switch {
	case i == 0 && string(form) == "was" && len(r.raw) > 1 && german(r.form(1)):
	case string(form) == "will" && i+1 < len(r.raw) && string(r.form(i+1)) == "you": // a wish
	case string(form) == "going" && i+1 < len(r.raw) && string(r.form(i+1)) == "to" && seen&be != 0:
		r.mood |= future
	default:
		r.mood |= m & tenses
	}
	if m&participle != 0 && seen&have != 0 && seen&do == 0 {
		r.mood |= past
	}
	if m&wasForm != 0 {
		r.formed = true
		r.finite = r.finite || i < firstWords
	}
}

// begins reports whether a word begins a new clause.
func begins(form []byte) bool {
	switch string(form) {
	case "who", "that", "which", "if", "when", "because", "while", "and", "but", "or":
		return true
	}
	return false
}

// speakerAt reports whether raw word i is the speaker or a generic person.
func (r *Reading) speakerAt(i int) bool {
	if i >= len(r.raw) {
		return false
	}
	switch string(r.form(i)) {
	case "i", "we", "you", "one":
		return true
	}
	return false
}

// nominal reports whether raw word i has the position of an adjective: after an article, a
// possessive or a preposition.
func (r *Reading) nominal(i int) bool {
	if i == 0 {
		return true
	}
	switch string(r.form(i - 1)) {
	case "a", "an", "the", "my", "your", "our", "his", "her", "their", "its", "of", "for", "with", "in",
		"on", "to", "from", "this", "these", "some", "any", "how", "most", "more":
		return true
	}
	return false
}

// form returns the letters of raw word i.
func (r *Reading) form(i int) []byte { return r.arena[r.raw[i].from:r.raw[i].to] }

// part is the grammatical role of the thing asked for: subject or object.
type part uint8

const (
	anyPart part = iota
	doer
	done
)

// parts determines the role of the thing asked for: subject in "who sued X", object in "who was
// sued by X" and "who did X sue". Raw word i is the question word.
func (r *Reading) parts(l *lexicon, i int) {
	switch string(r.form(i)) {
	case "wer":
		r.part, r.byCase = doer, true
		return
	case "wen", "wem":
		r.part, r.byCase = done, true
		return
	}
	behind := i > 0 && string(r.form(i-1)) == "by"
	switch {
	case r.passive && (behind || string(r.form(r.lastWord())) == "by"):
		r.part = doer
	case r.passive && r.verb > i:
		r.part = done
	case r.auxiliaries&do != 0:
		r.part = done
	case r.auxiliaries == 0:
		r.part = doer
	case r.auxiliaries&(be|do|modal) == 0: // who has sued X, whom has X sued
		r.part = done
		if i+1 < len(r.raw) && r.moodOf(l, i+1)&have != 0 && i+2 < len(r.raw) && r.moodOf(l, i+2)&participle != 0 {
			r.part = doer
		}
	}
}

// lastWord returns the index of the last raw word that is not a sign.
func (r *Reading) lastWord() int {
	i := len(r.raw) - 1
	for i > 0 && r.raw[i].sign {
		i--
	}
	return i
}

// object records a pronoun used as an object: what the bank owes me is not what I owe it.
func (r *Reading) object(i int) {
	if r.raw[i].capital || r.raw[i].acronym || r.raw[i].quoted {
		return
	}
	switch string(r.form(i)) {
	case "me", "us", "mich", "mir":
		if i == 0 || !gives(r.form(i-1)) {
			r.objects |= 1
		}
	case "them":
		r.objects |= 2
	}
}

// gives reports whether "me" after the word means the person who wants the answer.
func gives(form []byte) bool {
	switch string(form) {
	case "tell", "show", "give", "explain", "recommend", "suggest", "help", "helps", "let", "send",
		"find", "teach", "remind", "get", "for", "to", "make", "write", "bring":
		return true
	}
	return false
}

// agrees reports whether two questions agree in tense and mood.
func (r *Reading) agrees(other *Reading) bool {
	return r.mood&(tenses|modals)&^(other.mood|other.maybe) == 0 && other.mood&(tenses|modals)&^(r.mood|r.maybe) == 0
}
