// Package syntax reads the YAML of rules value by value. A Cursor is a place in the tree, and each
// of its methods reads one type of value. Errors become a Problem with line, column, path, the
// value found, what was expected and the closest known word. The package knows the keys of the
// language and the words of other routers that users may try; package rules defines their meaning.
//
// Reading never stops at a problem, so that one run reports them all. A report may be used by one
// goroutine at a time.
package syntax
