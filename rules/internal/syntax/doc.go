// Package syntax reads the YAML of rules word by word: a Cursor is a place in the tree, its methods
// read one sort of value each, and what does not fit becomes a Problem with line, column, path,
// what was found, what was expected and the nearest known word. It knows the keys of the language
// and the words that people bring along from elsewhere; what they mean is for package rules to say.
//
// Reading never stops at a problem, so that one run reports them all. A report is for one
// goroutine.
package syntax
