package check

import (
	_ "embed" // of the words
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/evidence/words"
)

// continues reports whether a claim begins with a word that refers back: a pronoun, a demonstrative
// or a possessive. Such a claim is read together with the previous one.
func continues(claim string) bool {
	start := strings.IndexFunc(claim, unicode.IsLetter)
	if start < 0 {
		return false
	}
	rest := claim[start:]
	end := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(rest)
	}
	var form [16]byte
	if end > len(form) {
		return false
	}
	n := 0
	for _, r := range rest[:end] {
		if n+utf8.UTFMax > len(form) {
			return false
		}
		n += utf8.EncodeRune(form[n:], unicode.ToLower(r))
	}
	return pointers[string(form[:n])]
}

// pointers are English, German, French and Spanish words that refer to something said before. Words
// that are also articles in one of these languages ("die", "la") are omitted.
//
//nolint:gochecknoglobals // constant table
var pointers = words.Set(`it he she they its his her their him them this that these those both former latter such
	er sie es sein seine ihr ihre dieser diese dieses dies diesen diesem
	il elle ils elles ce cet cette ces cela son sa leur leurs
	él ella ellos ellas esto este esta estos estas eso ese esa su sus`)

// amount is the kind of a quantity word.
type amount uint8

const (
	noAmount amount = iota
	allOf           // all, every, always
	mostOf          // most, majority, usually
	manyOf          // many, often
	someOf          // some, several, sometimes
	fewOf           // few, rarely
	noneOf          // none, never
	justOf          // only, exclusively
)

// amounts maps English, German, French and Spanish quantity words, by hash, to their kinds.
//
//nolint:gochecknoglobals // constant table
var amounts = func() map[uint64]amount {
	m := map[uint64]amount{}
	lists := [...]string{
		allOf:  "all every each always entire entirely whole both everyone everything alle jeder jede immer tous toutes toujours todos todas siempre",
		mostOf: "most mostly majority usually generally meisten meistens plupart mayoría",
		manyOf: "many much often frequently numerous viele oft beaucoup souvent muchos muchas",
		someOf: "some several sometimes certain occasionally einige manche manchmal quelques parfois algunos algunas",
		fewOf:  "few rarely seldom hardly minority wenige selten rarement pocos pocas",
		noneOf: "none never no nobody nothing neither kein keine niemals aucun aucune jamais ninguno ninguna nunca",
		justOf: "only exclusively solely merely nur ausschließlich seulement uniquement solo únicamente",
	}
	for a, list := range lists {
		for w := range strings.FieldsSeq(list) {
			m[hashOf(w)] = amount(a)
		}
	}
	return m
}()

// opposites maps a word, by hash, to the words of opposite meaning.
//
//nolint:gochecknoglobals // constant table
var opposites = func() map[uint64][]uint64 {
	m := map[uint64][]uint64{}
	add := func(a, b uint64) {
		if !slices.Contains(m[a], b) {
			m[a] = append(m[a], b)
		}
	}
	for line := range strings.Lines(oppositePairs) {
		for pair := range strings.FieldsSeq(line) {
			left, right, _ := strings.Cut(pair, "/")
			for a := range strings.SplitSeq(left, "|") {
				for b := range strings.SplitSeq(right, "|") {
					add(hashOf(a), hashOf(b))
					add(hashOf(b), hashOf(a))
				}
			}
		}
	}
	return m
}()

// oppositePairs are common words that reverse a statement, as left|left/right|right.
//
//go:embed pairs.txt
var oppositePairs string

func hashOf(word string) uint64 {
	list := words.Scan(nil, word)
	if len(list) != 1 {
		return 0
	}
	return list[0].Hash
}
