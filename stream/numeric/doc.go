// Package numeric checks the numbers of a claim against evidence without a model.
//
// Look (the sentinel) reports within microseconds whether a claim contains anything checkable.
// Package quantity reads numbers, dates and times as people write them and compares two of them. An
// Index holds the numbers of the evidence with the words around them. Index.Check finds the
// evidence numbers that a number of a claim has to agree with, and decides whether it does.
//
// # Verdicts
//
// A number is supported if the evidence contains it: equal, rounded to the digits it is written
// with, in another unit, or calculated from other numbers of the same dimension if the claim has a
// word for it ("total", "percent", "longer").
//
// It is contradicted if the evidence gives the same subject another value, or gives the value to
// another subject.
//
// It is unsupported if no such number occurs anywhere.
//
// It is not checkable if it may follow from values near the claim by one step of arithmetic
// (derivable.go), or lies within a bound or range of the evidence: answers often use the numbers of
// a text like this.
//
// The subject of a number is judged by the words around it, clause by clause, without a grammar. In
// a table row or a JSON record a cell is a clause, and the words of a heading apply to everything
// below it. Numbers that state no fact (list numbers, versions, identifiers, citations, labels such
// as "step 2", code) are not checked, but they distinguish the things they name.
//
// # Known limits
//
//   - Words are compared by stem, without synonyms: "creado" does not match "creó".
//   - A true number can lose to another value of the same subject if the evidence lacks the other
//     words of the claim.
//   - If one sentence lists a value for each of two groups, a swap is detected only if the words of
//     its clause outweigh those that both share.
//   - A bound much wider than that of the evidence ("for children under 15" for "under 12") is
//     flagged although it follows.
//   - Small numbers in words count only if the same noun follows both.
//   - Percentage changes are searched wherever two values yield them. A false percentage matches
//     other values by chance in about 7 of 100 cases.
//   - Currencies are not converted.
//   - Numbers in ideographs need two of them, or one and a unit. 百分之 is read as the bare number.
//   - Hindi, Korean and Thai number words are not read.
//
// The package starts no goroutine and does no I/O.
package numeric
