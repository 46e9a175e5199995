package rules

import "signalbox/rules/internal/syntax"

// Problem is one finding of Compile. Errors keep the program from being made, warnings do not. Its
// String is line:col: path: message.
type Problem = syntax.Problem

// HasErrors reports whether one of the problems is not a warning.
func HasErrors(problems []Problem) bool { return syntax.Errors(problems) > 0 }
