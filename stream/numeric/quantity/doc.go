// Package quantity reads the numbers of a text, and tells whether two of them say the same.
//
// Parse finds numbers, dates, times and quantities as people write them: several notations of
// thousands and decimals, magnitudes, money, percentages, units, ranges, hedges ("about", "at
// least"), words for numbers in English and the common ones of German, French, Spanish and Portuguese,
// dates in many forms, numbers of Chinese, Japanese and Korean with their marks, units, hours and eras
// (3億5000万円, 午後3時, 令和7年, 3억 5천만 원), and months, magnitudes and common units of Portuguese,
// Russian, Arabic and Hindi. Numbers that are no facts (list numbers, versions, identifiers,
// citations, labels such as "step 2", code) are left out. Compare
// says whether a number of a claim agrees with one of its evidence: equal, rounded by no more than
// the digits it is written with, or in another unit.
//
// A text is cut into tokens once (lex.go, numeral.go), words are looked up in one lexicon for all
// languages (lexicon.go, units.go), and a parser tries what a token may begin: a date, a time, a
// share, a rank, an amount.
//
// The package knows no subjects and no evidence, starts no goroutine and does no I/O.
package quantity
