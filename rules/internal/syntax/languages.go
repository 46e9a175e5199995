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

// languages maps names of languages, in lower case, to their codes.
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

// language is the value of what for which Known compares language codes.
const language = "language"

// leastName is the minimum length of a language name for which misspellings are recognised, in
// bytes: shorter names are close to many others.
const leastName = 4

// Language returns the language code in known that a word most likely means: a code in another case
// or with a region, the language's name, or a misspelling of the name. It is empty if no code is
// close.
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

// languageSuggestion is Suggestion for a language. Codes are not compared by edit distance, because
// each is close to many others.
func languageSuggestion(word string, known []string) string {
	if code := Language(word, known); code != "" {
		return fmt.Sprintf("; did you mean %q?", code)
	}
	if len(known) == 0 {
		return Suggestion(word, known)
	}
	return expected(known)
}
