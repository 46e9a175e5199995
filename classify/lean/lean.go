// Package lean estimates how far a turn of a conversation depends on the turns before it: "why?",
// "now in Python" and "and for Germany?" mean nothing by themselves, a new question is complete.
//
// # How
//
// A logistic model over properties of a turn (its length, pronouns, words that begin a reply, words
// that refer to an answer), over the number of its words that occurred before, and over the cosine
// between its embedding and those of the turns before. The word lists are in English, German,
// French, Spanish, Italian, Portuguese, Dutch, Russian, Chinese and Japanese; in other languages
// only the cosine and repeated words are used.
//
// The weights are those of two logistic regressions, with the cosine and without, on the dialogues
// of MT-Bench-101 with an even id (Apache-2.0), the training topics of TREC CAsT 2019 (MIT), and
// changes of subject made by joining turns of different conversations. ADR 31 has the results on
// other data.
//
// If a bundle has a Head for its embeddings, that combines the same features with the embeddings
// themselves, and replaces the regression with the cosine.
//
// Only the first 4 KiB of a turn are read. Everything here is safe for concurrent use.
package lean

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// maxBytes is the maximum number of bytes read of a turn.
const maxBytes = 4 << 10

// Turn holds the properties of a user message. It is immutable.
type Turn struct {
	words    int
	pronouns int
	pointers int // words that refer to an answer
	opens    bool
	asksOn   bool // "what about", "how about"
	returns  bool // "your answer", "that previous explanation"
	says     bool // it has a word that is in none of the lists
	content  map[string]bool
}

// stemLength is the number of initial characters in which equal words must agree.
const stemLength = 5

// leadWords is the number of initial words in which a turn shows a dependency: later, a pronoun
// refers to something in the turn itself.
const leadWords = 20

// ownedWords is the maximum distance between a possessive such as "your" and the word for an
// answer.
const ownedWords = 2

// leastContent is the minimum length of a content word, in characters.
const leastContent = 4

// Read computes the properties of a turn.
func Read(text string) *Turn {
	text = head(text)
	t := &Turn{content: map[string]bool{}}
	first, two := "", ""
	owned := -ownedWords // the last possessive
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

// add adds a content word, if it is long enough.
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

// NoCosine is an unknown cosine.
const NoCosine = -2

// most is the maximum weight of earlier turns: a turn with a clear subject of its own counts even
// if it depends on them.
const most = .95

// Weight returns the share of the conversation's subject that a turn with the given log-odds keeps,
// in [0,most].
func Weight(logOdds float64) float64 {
	const steepness = 4
	return most / (1 + math.Exp(-steepness*logOdds))
}

// LogOdds returns the log-odds that t depends on the turns before it, as opposed to a change of
// subject. near are the nearest of these turns. cosine, in [-1,1], is the greatest between its
// embedding and theirs, or NoCosine if none is known: embeddings of a model for English say nothing
// about other languages.
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

// least raises log-odds to at least bare if the turn has no content word.
func (t *Turn) least(z float64) float64 {
	if !t.says && t.words > 0 {
		return math.Max(z, bare)
	}
	return z
}

// bare is the minimum log-odds of a turn without content words, such as "why?", "and then?" or
// "please answer in German": it cannot change the subject. The training data has too few of them
// for a weight.
const bare = 2

// NumFeatures is the number of features of a turn.
const NumFeatures = 12

// Features returns the features of LogOdds. The last is the cosine, 0 for none.
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

// head returns the beginning of a text, in whole characters.
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

// lower returns a word in the form used by the lists.
func lower(word string) string { return strings.ReplaceAll(strings.ToLower(word), "’", "'") }

// cueOf returns the cues of a lower-case word, given the words after it as written.
func cueOf(word string, behind []string) cue {
	if len(behind) > 0 && isArticle(word, behind[0]) {
		return filler
	}
	return cues[word]
}

// isArticle reports whether a German word that may be a pronoun is the article of the next noun.
func isArticle(word, next string) bool {
	switch word {
	case "das", "die", "der", "den", "dem", "des":
		r, _ := utf8.DecodeRuneInString(next)
		return unicode.IsUpper(r)
	}
	return false
}

// words yields the words of a text: runs of letters and digits including apostrophes inside them.
// In scripts without spaces each pair of consecutive characters is a word.
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

// wordEnd returns the end of the word at the start of text.
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
