// Package numeric checks the numbers of a claim against evidence without a model.
//
// Look (the sentinel) tells in microseconds whether a claim holds anything checkable. Parse reads numbers, dates, times
// and quantities as people write them: several notations of thousands and decimals, magnitudes, money, percentages,
// units with conversion, ranges, hedges ("about", "at least"), words for numbers in English and the common ones of
// German, French and Spanish, dates in many forms. An Index holds the numbers of the evidence with the words around
// them; Index.Check compares.
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
