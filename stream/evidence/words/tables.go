package words

import (
	_ "embed" // of the words
	"strings"
)

var (
	//go:embed stop.txt
	stopList string
	//go:embed negations.txt
	negationList string
)

// stopWords are function words of English, German, French and Spanish: they say nothing about the
// subject of a sentence. negations deny what their sentence says, in the languages with the most
// traffic.
//
//nolint:gochecknoglobals // constant tables
var stopWords, negations = Set(stopList), Set(negationList)

// Set is the set of the words of a list, which white space separates.
func Set(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}
