package rules

import "signalbox/rules/internal/syntax"

// Problem is one finding of Compile. Errors keep the program from being made, warnings do not. Its
// String is line:col: path: message.
type Problem = syntax.Problem

// HasErrors reports whether one of the problems is not a warning.
func HasErrors(problems []Problem) bool { return syntax.Errors(problems) > 0 }

// Language returns the one of some codes of languages that a word most likely means: the code in
// other letters or with a region, the language's name, or a slip in that. It is empty where no code
// is near.
func Language(word string, codes []string) string { return syntax.Language(word, codes) }
