package language

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// script is a writing system. In those from hangul on, a character is a syllable or a word.
type script uint8

const (
	latin script = iota
	cyrillic
	arabic
	devanagari
	greek
	hebrew
	armenian
	georgian
	bengali
	gurmukhi
	gujarati
	odia
	tamil
	telugu
	kannada
	malayalam
	sinhala
	thai
	lao
	tibetan
	myanmar
	khmer
	ethiopic
	hangul
	han
	kana
	scripts
)

// scriptCodes holds the language of scripts that only one language uses, or nearly so: Hebrew
// letters may be Yiddish, Bengali ones Assamese, Ethiopic ones Tigrinya.
var scriptCodes = [scripts]string{ //nolint:gochecknoglobals // constant table
	greek: "el", hebrew: "he", armenian: "hy", georgian: "ka", bengali: "bn", gurmukhi: "pa", gujarati: "gu", odia: "or",
	tamil: "ta", telugu: "te", kannada: "kn", malayalam: "ml", sinhala: "si", thai: "th", lao: "lo", tibetan: "bo",
	myanmar: "my", khmer: "km", ethiopic: "am", hangul: "ko",
}

// block is a range of code points of one script (Unicode 16, Blocks.txt). The value scripts means
// none.
type block struct {
	first, last rune
	script      script
}

var blocks = [...]block{ //nolint:gochecknoglobals // constant table, ascending
	{0x0041, 0x02AF, latin},
	{0x0370, 0x03FF, greek},
	{0x0400, 0x052F, cyrillic},
	{0x0531, 0x058F, armenian},
	{0x0591, 0x05FF, hebrew},
	{0x0600, 0x06FF, arabic},
	{0x0750, 0x077F, arabic},
	{0x0900, 0x097F, devanagari},
	{0x0980, 0x09FF, bengali},
	{0x0A00, 0x0A7F, gurmukhi},
	{0x0A80, 0x0AFF, gujarati},
	{0x0B00, 0x0B7F, odia},
	{0x0B80, 0x0BFF, tamil},
	{0x0C00, 0x0C7F, telugu},
	{0x0C80, 0x0CFF, kannada},
	{0x0D00, 0x0D7F, malayalam},
	{0x0D80, 0x0DFF, sinhala},
	{0x0E00, 0x0E7F, thai},
	{0x0E80, 0x0EFF, lao},
	{0x0F00, 0x0FFF, tibetan},
	{0x1000, 0x109F, myanmar},
	{0x10A0, 0x10FF, georgian},
	{0x1100, 0x11FF, hangul},
	{0x1200, 0x139F, ethiopic},
	{0x1780, 0x17FF, khmer},
	{0x1C90, 0x1CBF, georgian},
	{0x1E00, 0x1EFF, latin},
	{0x1F00, 0x1FFF, greek},
	{0x3041, 0x30FF, kana},
	{0x3131, 0x318F, hangul},
	{0x31F0, 0x31FF, kana},
	{0x3400, 0x4DBF, han},
	{0x4E00, 0x9FFF, han},
	{0xAC00, 0xD7A3, hangul},
	{0xF900, 0xFAFF, han},
	{0xFB50, 0xFDFF, arabic},
	{0xFE70, 0xFEFC, arabic},
	{0xFF66, 0xFF9F, kana},
	{0x20000, 0x323AF, han},
}

// scriptOf returns the script of a letter, or scripts if it is not known here.
func scriptOf(r rune) script {
	if r <= blocks[0].last {
		return latin
	}
	i := sort.Search(len(blocks), func(i int) bool { return blocks[i].last >= r })
	if i < len(blocks) && blocks[i].first <= r {
		return blocks[i].script
	}
	return scripts
}

// otherLetters is the minimum number of letters of non-Latin scripts in a text that counts as
// partly written in one: about a short sentence. Letters are weighted as in Tell, so that ten
// Chinese characters are enough.
const otherLetters = 30

// HoldsOtherScript reports whether a text contains about a sentence in another script than Latin,
// whatever else it contains. A letter without a neighbour of its script, as in formulas, does not
// count. It is safe for concurrent use, allocates nothing, and reads a megabyte of English in less
// than a millisecond.
func HoldsOtherScript(text string) bool {
	n, run, last := 0, 0, scripts
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			last = scripts
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		s := scriptOf(r)
		if run++; s != last {
			run = 1
		}
		switch last = s; {
		case s == latin || s == scripts:
		case s >= hangul:
			n += syllabic
		case run == 2: // the first letter of a word is counted with the second
			n += 2
		case run > 2:
			n++
		}
		if n >= otherLetters {
			return true
		}
	}
	return false
}

// countScripts adds the letters of text to count.
func countScripts(text string, count *[scripts]int) {
	for _, r := range text {
		if !isLetter(r) {
			continue
		}
		if s := scriptOf(r); s < scripts {
			count[s]++
		}
	}
}

// Frequent words of languages in Devanagari, between spaces.
var (
	hindiWords   = [...]string{" है ", " हैं ", " का ", " की ", " के ", " में ", " और ", " को ", " से ", " क्या ", " नहीं "} //nolint:gochecknoglobals // constant table
	marathiWords = [...]string{" आहे ", " आहेत ", " आणि ", " नाही ", " मी ", " काय ", " मला ", " चा ", " होते "}             //nolint:gochecknoglobals // constant table
	nepaliWords  = [...]string{" छ ", " छन् ", " हो ", " छैन ", " मलाई ", " गर्न ", " हुन्छ ", " र ", " लाई "}               //nolint:gochecknoglobals // constant table
)

// indic distinguishes languages in Devanagari by their frequent words. Without any, Hindi is by far
// the most common.
func indic(head, tail string) (code string, probability float64) {
	hits := func(words []string) (n int) {
		for _, w := range words {
			n += strings.Count(head, w) + strings.Count(tail, w)
		}
		return n
	}
	hi, mr, ne := hits(hindiWords[:]), hits(marathiWords[:]), hits(nepaliWords[:])
	switch {
	case mr > hi && mr >= ne:
		return "mr", 0.9
	case ne > hi:
		return "ne", 0.9
	case hi > mr && hi > ne:
		return "hi", 0.95
	}
	return "hi", 0.7
}
