// Package lean tells how far a turn of a conversation leans on the turns before it: "why?", "now in
// Python" and "and for Germany?" say nothing by themselves, a new question says it all.
//
// # How
//
// A logistic model over what can be read in a turn (its length, pronouns, words that begin a reply,
// words that point at an answer), over how many of its words were said before, and over the cosine
// between its embedding and those of the turns before. Words are those of English, German, French,
// Spanish, Italian, Portuguese, Dutch, Russian, Chinese and Japanese; in other languages the
// cosine and the words that come again are what is left.
//
// The weights are those of two logistic regressions, with the cosine and without, on the dialogues
// of MT-Bench-101 with an even id (Apache-2.0), the training topics of TREC CAsT 2019 (MIT), and
// changes of subject made by joining turns of different conversations. ADR 31 has the figures on
// others.
//
// Where a bundle has a Head for its embeddings, that weighs the same features together with the
// embeddings themselves, and takes the place of the regression with the cosine.
//
// It reads the first 4 KiB of a turn. Everything here is safe for concurrent use.
package lean

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// maxBytes is how much of a turn is read.
const maxBytes = 4 << 10

// Turn is what is read in a message of a user. It is immutable.
type Turn struct {
	words    int
	pronouns int
	pointers int // words that point at an answer
	opens    bool
	asksOn   bool // "what about", "how about"
	returns  bool // "your answer", "that previous explanation"
	says     bool // it has a word that is in none of the lists
	content  map[string]bool
}

// stemLength is how much of a word has to agree for it to be the same one, in characters.
const stemLength = 5

// leadWords is in how many words a turn shows that it leans: further on, a pronoun stands for
// something in the turn itself.
const leadWords = 20

// ownedWords is how far behind a word that says whose answer is meant the answer is named.
const ownedWords = 2

// leastContent is the length of the shortest word that says something by itself, in characters.
const leastContent = 4

// Read reads a turn.
func Read(text string) *Turn {
	text = head(text)
	t := &Turn{content: map[string]bool{}}
	first, two := "", ""
	owned := -ownedWords // the last word that says whose answer is meant
	said := slices.Collect(words(text))
	for i, written := range said {
		word := lower(written)
		t.words++
		cue := cueOf(word, said[i+1:])
		t.says = t.says || cue == 0
		if t.words > leadWords {
			cue &= filler | pronoun
		}
		switch t.words {
		case 1:
			first = word
			t.opens = cue&opener != 0
		case 2:
			two = word
		case 3:
			t.asksOn = asksOn(first, two) || asksOn(two, word)
		}
		t.returns = t.returns || cue&reply != 0 && t.words-owned <= ownedWords
		if cue&owner != 0 {
			owned = t.words
		}
		if cue&pronoun != 0 && t.words <= leadWords {
			t.pronouns++
		}
		if cue&pointer != 0 {
			t.pointers++
		}
		if cue&(pronoun|filler) == 0 {
			t.add(word)
		}
	}
	if t.words == 2 {
		t.asksOn = asksOn(first, two)
	}
	return t
}

// add takes a word for one that says something, if it is long enough.
func (t *Turn) add(word string) {
	n := utf8.RuneCountInString(word)
	if n < leastContent && !ideographic(word) {
		return
	}
	cut := 0
	for i := range word {
		if cut == stemLength {
			word = word[:i]
			break
		}
		cut++
	}
	t.content[word] = true
}

func asksOn(a, b string) bool { return slices.Contains(askWith, a) && slices.Contains(askAbout, b) }

// NoCosine stands for a cosine that is not known.
const NoCosine = -2

// most is the greatest weight of what was said before: a turn that says clearly what it is about is
// heard even where it leans.
const most = .95

// Weight is how much of the subject of the conversation a turn of the given log-odds keeps, in
// [0,most].
func Weight(logOdds float64) float64 {
	const steepness = 4
	return most / (1 + math.Exp(-steepness*logOdds))
}

// LogOdds are those of t leaning on the turns before it, the nearest of them in near, against a
// change of the subject. cosine, in [-1,1], is the greatest between its embedding and theirs, or
// NoCosine where none is known: embeddings of a model for English say nothing of other languages.
func (t *Turn) LogOdds(near []*Turn, cosine float64) float64 {
	x := t.Features(near, cosine)
	w := &withCosine
	if cosine == NoCosine {
		w = &without
	}
	z := w[NumFeatures]
	for i, v := range x {
		z += w[i] * v
	}
	return t.least(z)
}

// least raises log-odds to bare where the turn has no word of its own.
func (t *Turn) least(z float64) float64 {
	if !t.says && t.words > 0 {
		return math.Max(z, bare)
	}
	return z
}

// bare are the least log-odds of a turn without a word of its own, such as "why?", "and then?" or
// "please answer in German": it cannot change the subject. Data has too few of them for a weight.
const bare = 2

// NumFeatures is how many features a turn has.
const NumFeatures = 12

// Features returns the values that LogOdds weighs. The last is the cosine, 0 for none.
func (t *Turn) Features(near []*Turn, cosine float64) [NumFeatures]float64 {
	said, again := 0, 0
	for w := range t.content {
		said++
		for _, e := range near {
			if e.content[w] {
				again++
				break
			}
		}
	}
	n := float64(max(min(t.words, leadWords), 1))
	if cosine == NoCosine {
		cosine = 0
	}
	x := [NumFeatures]float64{
		0: math.Log1p(float64(t.words)), 1: math.Log1p(float64(said)),
		3: float64(t.pronouns) / n, 6: math.Min(float64(t.pointers), 4) / 4,
		9: float64(again) / float64(max(said, 1)), 10: math.Log1p(float64(said - again)),
		11: cosine,
	}
	for i, holds := range map[int]bool{
		2: t.pronouns > 0, 4: t.opens, 5: t.pointers > 0, 7: t.asksOn, 8: t.returns,
	} {
		if holds {
			x[i] = 1
		}
	}
	return x
}

// head is the front of a text, whole characters of it.
func head(text string) string {
	if len(text) <= maxBytes {
		return text
	}
	n := maxBytes
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// lower is a word as the lists have it.
func lower(word string) string { return strings.ReplaceAll(strings.ToLower(word), "’", "'") }

// cueOf is what a word in lower case does, with those behind it as they are written.
func cueOf(word string, behind []string) cue {
	if len(behind) > 0 && isArticle(word, behind[0]) {
		return filler
	}
	return cues[word]
}

// isArticle reports whether a German word that may be a pronoun is the article of the noun behind it.
func isArticle(word, next string) bool {
	switch word {
	case "das", "die", "der", "den", "dem", "des":
		r, _ := utf8.DecodeRuneInString(next)
		return unicode.IsUpper(r)
	}
	return false
}

// words yields the words of a text: runs of letters and digits with the apostrophes inside of them.
// Where a script has no spaces each two characters that follow each other are one.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			r, n := utf8.DecodeRuneInString(text)
			switch {
			case script.IsIdeograph(r):
				next, m := utf8.DecodeRuneInString(text[n:])
				if !script.IsIdeograph(next) {
					m = 0
				}
				if !yield(text[:n+m]) {
					return
				}
			case unicode.IsLetter(r) || unicode.IsDigit(r):
				n = wordEnd(text)
				if !yield(text[:n]) {
					return
				}
			}
			text = text[n:]
		}
	}
}

// wordEnd returns where the word that begins text ends.
func wordEnd(text string) int {
	for i, r := range text {
		switch {
		case unicode.IsLetter(r) && !script.IsIdeograph(r), unicode.IsDigit(r), unicode.IsMark(r):
		case r == '\'' || r == '’':
			next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			if !unicode.IsLetter(next) {
				return i
			}
		default:
			return i
		}
	}
	return len(text)
}

func ideographic(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return script.IsIdeograph(r)
}
