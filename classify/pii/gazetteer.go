package pii

import (
	_ "embed" // of the names
	"strings"
	"unicode/utf8"
)

// entry tells what a word or a name of several words is; it may be several things.
type entry uint8

const (
	entryPlace  entry = 1 << iota
	entryState        // of the United States
	entryGroup        // nationality, religious or political group
	entryTitle        // before a person's name
	entryLegal        // legal form behind a company's name
	entryPrefix       // the first words of a longer entry
)

// maxEntryWords is the most words that an entry has.
const maxEntryWords = 4

// lexicon holds names by their spelling.
type lexicon struct {
	words map[string]entry
	// first holds a bit for each pair of first letters and length (up to 31) of a word in words, so
	// that most words of a text need no hashing.
	first [26][26]uint32
}

// mayHave reports whether words could hold w, which begins with a capital.
func (l *lexicon) mayHave(w string) bool {
	if len(w) < 2 {
		return false
	}
	b := w[1] | 0x20
	if b-'a' > 'z'-'a' || w[1] >= utf8.RuneSelf {
		return w[1] >= utf8.RuneSelf
	}
	return l.first[w[0]-'A'][b-'a']>>min(len(w), 31)&1 != 0
}

//go:embed gazetteer.txt
var names string

var gazetteer = newLexicon() //nolint:gochecknoglobals // constant table

func newLexicon() *lexicon {
	l := &lexicon{words: make(map[string]entry, 2048)}
	kinds := map[string]entry{
		"place": entryPlace, "state": entryPlace | entryState, "group": entryGroup, "title": entryTitle, "legal": entryLegal,
	}
	var kind entry
	for line := range strings.Lines(names) {
		line = strings.TrimSpace(line)
		if word, ok := strings.CutPrefix(line, "= "); ok {
			kind = kinds[word]
		} else if line != "" && kind != 0 {
			for name := range strings.SplitSeq(line, ", ") {
				l.add(name, kind)
			}
		}
	}
	return l
}

func (l *lexicon) add(name string, kind entry) {
	l.words[name] |= kind
	first := name
	for k := range len(name) {
		if name[k] == ' ' || name[k] == '-' {
			l.words[name[:k]] |= entryPrefix
			first = first[:min(len(first), k)]
		}
	}
	if len(first) >= 2 && isUpper(first[0]) && isLetter(first[1]) {
		l.first[first[0]-'A'][first[1]|0x20-'a'] |= 1 << min(len(first), 31)
	}
}

// stateCodes are the two letters that the US Postal Service gives to states and the federal
// district (USPS Publication 28, appendix B).
var stateCodes = func() map[string]bool { //nolint:gochecknoglobals // constant table
	m := make(map[string]bool)
	for c := range strings.FieldsSeq("AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY PR") {
		m[c] = true
	}
	return m
}()
