// Package numeric checks the numbers of a claim against evidence without a model.
//
// Look (the sentinel) tells in microseconds whether a claim holds anything checkable. Package quantity reads numbers,
// dates and times as people write them, and compares two of them. An Index holds the numbers of the evidence with the
// words around them; Index.Check finds the ones that a number of a claim has to agree with, and says whether it does.
//
// A number is supported when the evidence holds it: equal, rounded by no more than the digits it is written with, in
// another unit, or, when the claim has a word for it ("total", "percent", "longer"), worked out from others of the same
// dimension. It is contradicted when the evidence gives the same subject another value, or the value to another
// subject, and unsupported when no such number stands anywhere. What subject a number belongs to is judged by the words
// around it, clause by clause; there is no grammar behind it. Numbers that are no facts (list numbers, versions,
// identifiers, citations, labels such as "step 2", code) are not looked at.
//
// The package starts no goroutine and does no I/O.
package numeric
