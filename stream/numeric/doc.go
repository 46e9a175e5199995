// Package numeric checks the numbers of a claim against evidence without a model.
//
// Look (the sentinel) tells in microseconds whether a claim holds anything checkable. Package
// quantity reads numbers, dates and times as people write them, and compares two of them. An Index
// holds the numbers of the evidence with the words around them; Index.Check finds the ones that a
// number of a claim has to agree with, and says whether it does.
//
// A number is supported when the evidence holds it: equal, rounded by no more than the digits it is
// written with, in another unit, or, when the claim has a word for it ("total", "percent",
// "longer"), worked out from others of the same dimension. It is contradicted when the evidence
// gives the same subject another value, or the value to another subject, and unsupported when no
// such number stands anywhere. A number that may follow from values near the claim by one step
// (derivable.go), or that lies within a bound or a range of the evidence, is neither: it is not
// checkable, for that is how answers use the numbers of a text. What subject a number belongs to is
// judged by the words around it, clause by clause; there is no grammar behind it. In a row of a table and a record in JSON a cell is
// a clause, and the words of a heading go for all that stands below it. Numbers that are no facts
// (list numbers, versions, identifiers, citations, labels such as "step 2", code) are not looked at,
// but tell apart what is called by them.
//
// # Known limits
//
// Words meet by their stems, without synonyms: "creado" is not "creó". A true number of a claim
// whose other words the evidence does not have can lose to another value of the same subject. Where
// a list gives two groups a value each in one sentence, a swap is seen only when the words of its
// clause outweigh those that both share. A bound much wider than that of the evidence ("for
// children under 15" for "under 12") is flagged though it follows. Small numbers in words count
// only when the same noun stands behind both. Changes in percent are found wherever two values give
// them: a false one meets other values by chance in some 7 of 100 cases. Currencies are not
// converted. Numbers in ideographs need two of them, or a unit behind one; 百分之 reads as the bare
// number. Words for numbers of Hindi, Korean and Thai are not read.
//
// The package starts no goroutine and does no I/O.
package numeric
