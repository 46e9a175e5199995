// Package language tells which language a text is in, fast enough to ask for every request.
//
// # How
//
// The script decides where one language uses it (Hangul, Thai, Hebrew, Greek and others), kana
// decides between Japanese and Chinese, and a few frequent words between the languages written in
// Devanagari. Texts in Latin, Cyrillic and Arabic letters are scored by a linear model over hashed
// character n-grams and words, among the languages of their script:
//
//   - Latin: Albanian, Catalan, Croatian (which stands for Bosnian and Serbian in Latin letters
//     too), Czech, Danish, Dutch, English, Estonian, Finnish, French, German, Hungarian, Indonesian
//     (Malay), Italian, Latvian, Lithuanian, Norwegian, Polish, Portuguese, Romanian, Slovak,
//     Slovene, Spanish, Swahili, Swedish, Tagalog, Turkish, Vietnamese
//   - Cyrillic: Belarusian, Bulgarian, Macedonian, Russian, Serbian, Ukrainian
//   - Arabic: Arabic, Persian, Urdu
//
// A text in another language of these scripts gets the nearest of them, mostly with a low
// probability; there is no class for the rest.
//
// Of a text longer than 4 KiB only the two ends are read, 48 words at most.
//
// # Why this and not a library
//
// On 6,055 texts held out of the sets that the model was trained on (STS benchmark, EXAMS, JNLI and
// kin, CLINC150, generated ones; at most 400 a language, 55 letters in the median), one core of an
// AMD EPYC:
//
//	                      whole texts  first 6 words  time a text  heap     binary
//	this package          .991         .977           13 us        none     0.6 MB
//	lingua-go 1.4.0       .958         -              4.9 ms       1.2 GB   some 130 MB
//	the same, fast mode   .905         -              1.0 ms       63 MB    some 130 MB
//	whatlanggo (fork)     .850         .749           0.3 ms       -        -
//	whatlanggo 1.0.1      .779         .687           0.3 ms       -        -
//
// The last four know none of the sets, and more languages, which costs them some of the difference
// (whatlanggo has no Albanian, 116 texts; lingua was asked for every fifth text). Of the first 3
// words the language is right for .891 of the texts; where an answer is given, in .965. The
// calibration error is .009 for whole texts and .043 for 3 words. Time: 9 us for 77 letters, 40 us
// for 1 MiB.
//
// Belarusian, Catalan, Czech, Danish, Estonian, Finnish, Latvian, Norwegian, Romanian, Slovak,
// Slovene, Swahili, Tagalog, Ukrainian and Urdu are known from 14 to 38 lines each, written for the
// purpose: right for 56 of their 67 held-out lines, which is too few for a figure of each.
// Belarusian, Danish, Slovak, Slovene and Ukrainian are the weakest.
package language

import (
	_ "embed" // the table
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxBytes = 4 << 10 // of a longer text, half of it from either end
	maxWords = 48      // scored; of a long text, half of them from either end
	// minLetters is how many letters an alphabetic text must have: two letters are in every
	// language.
	minLetters = 3
	// fewWords and fewLetters are from where on 1 less the probability of English says something of a
	// text in Latin letters: of 50 English messages of one to three words, such as "vim normal mode", 60 %
	// passed 0.8 before, and none does; of sentences in other languages seven in eight that did still do.
	fewWords, fewLetters = 4, 16
	// minProbability is what the best language must have: below, another one is as likely.
	minProbability = 0.5
	// syllabic is how many letters a character of Chinese, Japanese or Korean counts for beside an
	// alphabet: about what their words are shorter by.
	syllabic = 3
)

// Told is what can be told of the language of a text.
type Told struct {
	// Code is the ISO 639-1 code of the most likely language, and Probability that it is this one, in
	// [0.5,1]: that of the language among those of its script, times the script's share of the letters.
	// Code is empty and Probability 0 where nothing can be said: no or too few letters, or no language
	// that is more likely than all others together. Programs and formulas are letters too: they are
	// mostly "en".
	Code        string
	Probability float64
	// Foreign is the probability of another language than English, in [0,1], whichever that is: of a
	// sentence that may be Spanish as well as Portuguese it can be told. Of fewer than fewWords words in
	// Latin letters English has next to nothing, as any language: of these it is the probability of the
	// most likely one. It is 0 where nothing can be said.
	Foreign float64
}

// Tell tells the language of a text. It is safe for concurrent use and allocates nothing.
func Tell(text string) (t Told) {
	head, tail := ends(text)
	var count [scripts]int
	s, share, ok := scriptIn(head, tail, &count)
	if !ok {
		return t
	}
	code, p, english := within(s, head, tail, &count)
	p *= share
	switch {
	case code == "":
		return t
	case s != latin || count[latin] >= fewLetters && hasWords(head, fewWords):
		t.Foreign = (1 - english) * share
	case code != "en":
		t.Foreign = p
	}
	if p >= minProbability {
		t.Code, t.Probability = code, p
	}
	return t
}

// hasWords reports whether text has n words between spaces.
func hasWords(text string, n int) bool {
	for range strings.FieldsSeq(text) {
		if n--; n == 0 {
			return true
		}
	}
	return false
}

// scriptIn counts the letters of a text by script and returns the one of most, with its share. ok is
// false where they are too few.
func scriptIn(head, tail string, count *[scripts]int) (best script, share float64, ok bool) {
	countScripts(head, count)
	countScripts(tail, count)
	letters := 0
	for s, n := range count {
		if script(s) >= hangul {
			n *= syllabic
			count[s] = n
		}
		letters += n
	}
	for s, n := range count {
		if n > count[best] {
			best = script(s)
		}
	}
	// Japanese is written in three scripts, one of which is that of Chinese.
	if best == han || best == kana {
		count[best] = count[han] + count[kana]
	}
	if letters < minLetters || count[best] == 0 {
		return best, 0, false
	}
	return best, float64(count[best]) / float64(letters), true
}

// Codes returns every code that Tell can return, in alphabetical order.
func Codes() []string {
	out := []string{"hi", "ja", "mr", "ne", "zh"}
	for _, of := range [][]string{latinCodes[:], cyrillicCodes[:], arabicCodes[:], scriptCodes[:]} {
		for _, code := range of {
			if code != "" {
				out = append(out, code)
			}
		}
	}
	slices.Sort(out)
	return out
}

// ends returns text in one or two parts of maxBytes together.
func ends(text string) (head, tail string) {
	if len(text) <= maxBytes {
		return text, ""
	}
	from, to := maxBytes/2, len(text)-maxBytes/2
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return text[:from], text[to:]
}

// within returns the most probable language of a script, and the probability of English.
func within(s script, head, tail string, count *[scripts]int) (code string, probability, english float64) {
	switch s { //nolint:exhaustive // the other scripts have one language
	case latin:
		return score(latin, latinCodes[:], 0, head, tail)
	case cyrillic:
		return score(cyrillic, cyrillicCodes[:], len(latinCodes), head, tail)
	case arabic:
		return score(arabic, arabicCodes[:], len(latinCodes)+len(cyrillicCodes), head, tail)
	case devanagari:
		code, probability = indic(head, tail)
	case han, kana:
		code, probability = sinitic(count)
	default:
		code, probability = scriptCodes[s], 1
	}
	return code, probability, 0
}

// sinitic tells Japanese, which has kana in every clause, from Chinese, which has none. Few
// characters without kana may be either.
func sinitic(count *[scripts]int) (code string, probability float64) {
	const few = 5 * syllabic
	switch {
	case count[kana]*10 >= count[han]+count[kana]:
		return "ja", 1
	case count[han] < few:
		return "zh", 0.75
	}
	return "zh", 0.95
}

// The columns of the table, in its order.
var (
	latinCodes = [...]string{ //nolint:gochecknoglobals // constant table
		"ca", "cs", "da", "de", "en", "es", "et", "fi", "fr", "hr", "hu", "id", "it", "lt", "lv", "nl", "no", "pl", "pt",
		"ro", "sk", "sl", "sq", "sv", "sw", "tl", "tr", "vi",
	}
	cyrillicCodes = [...]string{"be", "bg", "mk", "ru", "sr", "uk"} //nolint:gochecknoglobals // constant table
	arabicCodes   = [...]string{"ar", "fa", "ur"}                   //nolint:gochecknoglobals // constant table
)

const (
	columns = len(latinCodes) + len(cyrillicCodes) + len(arabicCodes)
	bits    = 14
	buckets = 1 << bits
	maxGram = 4
	// header is the length of what stands before the table: magic, bits, the codes with a count a
	// script, and the scale, a little-endian float32.
	header = 7 + 1 + 3 + 2*columns + 4
)

// model is made by training/fixtures/language.py. Behind the header, the table is [buckets,
// columns] int8, row-major.
//
//go:embed model.bin
var model string

// scale is what an entry of the table is multiplied by.
func scale() float64 {
	s := model[header-4 : header]
	return float64(math.Float32frombits(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24))
}

// sums adds up the rows of the table for the features of a text.
type sums struct {
	column [columns]int32
	n      int // features
}

// score returns the most probable of codes, whose first column is at, and the probability of English.
func score(s script, codes []string, at int, head, tail string) (code string, probability, english float64) {
	var t sums
	words := maxWords
	if tail != "" {
		words /= 2
	}
	t.add(s, head, words)
	t.add(s, tail, words)
	if t.n == 0 {
		return "", 0, 0
	}
	f := scale() / math.Sqrt(float64(t.n))
	best, total := 0, 0.0
	for i := range codes {
		if t.column[at+i] > t.column[at+best] {
			best = i
		}
	}
	for i := range codes {
		each := math.Exp(f * float64(t.column[at+i]-t.column[at+best]))
		if total += each; codes[i] == "en" {
			english = each
		}
	}
	return codes[best], 1 / total, english / total
}

// add counts the words of text that are in the script, up to a limit.
func (t *sums) add(s script, text string, limit int) {
	var word [maxWord]rune
	n, own := 0, false
	flush := func() {
		if n > 0 && own && limit > 0 {
			t.word(word[:n])
			limit--
		}
		n, own = 0, false
	}
	for _, r := range text {
		if !isLetter(r) {
			if n > 0 {
				flush()
			}
			if limit == 0 {
				return
			}
			continue
		}
		if n == maxWord {
			continue
		}
		own = own || scriptOf(r) == s
		word[n] = lower(r)
		n++
	}
	flush()
}

// maxWord is how much of a longer word is read, in letters.
const maxWord = 30

// word adds the n-grams of a word between spaces, and the word itself when it is longer than those.
func (t *sums) word(word []rune) {
	size := len(word) + 2
	at := func(i int) uint64 {
		if i == 0 || i == size-1 {
			return ' '
		}
		return uint64(word[i-1])
	}
	for i := range size {
		// FNV-1a over code points (http://www.isthe.com/chongo/tech/comp/fnv/), folded.
		h := uint64(14695981039346656037)
		for n := 1; i+n <= size; n++ {
			h = (h ^ at(i+n-1)) * 1099511628211
			switch {
			case n == 1 && at(i) == ' ':
			case n <= maxGram, i == 0 && n == size:
				t.row(int((h ^ h>>bits ^ h>>(2*bits) ^ h>>(3*bits)) & (buckets - 1)))
			case i > 0:
				n = size
			}
		}
	}
}

func (t *sums) row(bucket int) {
	row := model[header+bucket*columns:][:columns]
	for i := range t.column {
		t.column[i] += int32(int8(row[i]))
	}
	t.n++
}

// isLetter takes marks for letters, since some letters are written with one.
func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.Is(unicode.M, r)
}

func lower(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(r)
}
