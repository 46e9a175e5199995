package pii

import (
	_ "embed" // of the words
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed common.txt
var commonWords string

// commons are words that alone are nobody's name, by what they are.
//
//nolint:gochecknoglobals // constant table
var commons = func() map[string]map[string]struct{} {
	m, kind := map[string]map[string]struct{}{}, ""
	for line := range strings.Lines(commonWords) {
		line = strings.TrimSpace(line)
		if k, ok := strings.CutPrefix(line, "= "); ok {
			kind = k
			m[kind] = map[string]struct{}{}
		} else if line != "" && line[0] != '#' {
			for w := range strings.FieldsSeq(line) {
				m[kind][w] = struct{}{}
			}
		}
	}
	return m
}()

// The minimum probabilities of names in lower case. Set by hand on some forty chat sentences: names
// written so had at least .6, most of them .97; other words .5 to .6; those of the list up to .8.
const (
	lowerName  = 0.6
	lowerGiven = 0.95
)

// common reports whether a name found by the model is only a common word or words: the, universe,
// HR. It is not applied after a key or a title that announces a name.
func common(p *Span, value string) bool {
	for _, kind := range [...]string{"abbreviation", "german", "label"} {
		if _, ok := commons[kind][value]; ok {
			return true
		}
	}
	if closesLetter(value) || greets.has(value) {
		return true
	}
	if !lowerCase(value) {
		return false
	}
	if first, _ := nextToken(value); greets.has(first) {
		return true
	}
	words, joining := 0, 0
	for w := range strings.FieldsSeq(value) {
		words++
		if _, ok := commons["function"][w]; ok {
			joining++
		}
	}
	if joining == words {
		return true
	}
	if _, usual := commons["everyday"][value]; usual && p.Score < plainLower || inflected(value) && p.Score < plainLower {
		return true
	}
	_, noun := commons["noun"][value]
	return words == 1 && (p.Score < lowerName || noun && p.Score < lowerGiven)
}

// inflected reports a Turkish word with an ending that no name has, or an article of Romance
// languages elided before the next word: dell', sull'.
func inflected(word string) bool {
	switch word {
	case "dell", "sull", "nell", "dall", "coll", "all", "quell", "bell", "un", "qu", "lorsqu", "jusqu":
		return true
	}
	const least = 7 // minimum length with the ending
	if utf8.RuneCountInString(word) < least {
		return false
	}
	for _, ending := range turkishEndings {
		if strings.HasSuffix(word, ending) {
			return true
		}
	}
	return false
}

//nolint:gochecknoglobals // constant table
var turkishEndings = strings.Fields("lar ler ları leri ların lerin larla lerle lara lere larda lerde lardan lerden " +
	"larını lerini larına lerine larında lerinde larından lerinden ması mesi masını mesini masına mesine ıyor iyor " +
	"uyor üyor yorum yorsun ecek acak ecektir acaktır maktadır mektedir ildi ıldı lığı liği luğu lüğü lığın liğin " +
	"lükte lukta daki deki ndaki ndeki sında sinde sından sinden sını sini sıyla siyle")

// greets are words that letters open with, in several languages.
//
//nolint:gochecknoglobals // constant table
var greets = newWordIndex("hallo hello grüezi servus moin grüß buongiorno buonasera gentile egregio salve ciao hola estimado " +
	"estimada querido querida olá prezado prezada caro cara bonjour bonsoir salut chère cher merhaba selam " +
	"sayın szanowny " +
	"szanowna witam cześć beste geachte hoi hej hejsan dear guten lieber liebe sehr")

// lowerCase reports whether a value has letters with case, all of them in lower case.
func lowerCase(value string) bool {
	lower := false
	for _, c := range value {
		if unicode.IsUpper(c) || unicode.IsTitle(c) {
			return false
		}
		lower = lower || unicode.IsLower(c)
	}
	return lower
}
