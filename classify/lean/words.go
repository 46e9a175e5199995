package lean

import (
	_ "embed" // of the words
	"strings"
)

// cue is the role of a word in a turn.
type cue uint8

const (
	pronoun cue = 1 << iota // refers to something said before
	opener                  // begins a reply
	pointer                 // refers to an answer, or asks to change it
	filler                  // has no meaning by itself
	owner                   // says whose answer is meant
	reply                   // an answer
	form                    // says how to answer, not what about
)

//go:embed words.txt
var wordLists string

// cues are the words that have one, in lower case: of English, German, French, Spanish, Italian,
// Portuguese, Dutch, Russian, Chinese and Japanese.
//
//nolint:gochecknoglobals // constant table
var cues = func() map[string]cue {
	sections := map[string]cue{
		"= pronoun": pronoun, "= opener": opener, "= pointer": pointer, "= filler": filler,
		"= owner": owner, "= reply": reply, "= form": form, // of all languages: whose answer, and the answer
	}
	m, what := map[string]cue{}, cue(0)
	for line := range strings.Lines(wordLists) {
		line = strings.TrimSpace(line)
		if section, ok := sections[line]; ok {
			what = section
		} else if !strings.HasPrefix(line, "#") {
			for w := range strings.FieldsSeq(line) {
				m[w] |= what
			}
		}
	}
	return m
}()

// askWith and askAbout begin a question that goes on: "what about", "and how about".
//
//nolint:gochecknoglobals // constant tables
var (
	askWith  = strings.Fields("what how was wie qué que e et y und and quid а и hoe wat")
	askAbout = strings.Fields("about if ist sieht wäre pour para für for in en pasa per se wenn si для с zit als")
)
