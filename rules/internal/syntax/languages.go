package syntax

import (
	_ "embed" // of the words
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed languages.txt
var languageList string

// languages are the names of languages, in small letters, and the codes that stand for them.
var languages = func() map[string]string { //nolint:gochecknoglobals // constant table
	m := map[string]string{}
	for line := range strings.Lines(languageList) {
		code, names, _ := strings.Cut(line, ": ")
		if len(code) != 2 { // a comment
			continue
		}
		for name := range strings.FieldsSeq(names) {
			m[name] = code
		}
	}
	return m
}()

// language is what Known is asked for where codes of languages are known.
const language = "language"

// leastName is the length of the shortest name of a language of which a slip is recognised, in
// bytes: of two or three letters each is near many others.
const leastName = 4

// Language returns the code among known that a word for a language most likely means: the code in
// other letters or with a region, the language's name, or a slip in that. It is empty where no code
// is near.
func Language(word string, known []string) string {
	word = strings.ToLower(word)
	if i := strings.IndexAny(word, "-_"); i >= 0 {
		word = word[:i]
	}
	code := word
	if !slices.Contains(known, word) {
		code = languages[word]
	}
	if code == "" && len(word) >= leastName {
		name, _ := nearest(word, slices.Sorted(maps.Keys(languages)))
		code = languages[name]
	}
	if !slices.Contains(known, code) {
		return ""
	}
	return code
}

// languageSuggestion is Suggestion for a language. Codes are not compared letter by letter: each is
// near many others.
func languageSuggestion(word string, known []string) string {
	if code := Language(word, known); code != "" {
		return fmt.Sprintf("; did you mean %q?", code)
	}
	if len(known) == 0 {
		return Suggestion(word, known)
	}
	return expected(known)
}
