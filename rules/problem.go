package rules

import "signalbox/rules/internal/syntax"

// Problem is one finding of Compile. Errors prevent the program from being made, warnings do not.
// Its String is line:col: path: message.
type Problem = syntax.Problem

// HasErrors reports whether one of the problems is an error.
func HasErrors(problems []Problem) bool { return syntax.Errors(problems) > 0 }

// Language returns the language code among codes that a word most likely means: a code in another
// case or with a region, the language's name, or a misspelling of the name. It is empty if no code
// is close.
func Language(word string, codes []string) string { return syntax.Language(word, codes) }
