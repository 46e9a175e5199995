// Package quantity reads the numbers of a text and compares them.
//
// Parse finds numbers, dates, times and quantities as people write them:
//
//   - several notations of thousands and decimals, magnitudes, money, percentages, units, ranges,
//     and hedges ("about", "at least");
//   - number words in English and the common ones of German, French, Spanish and Portuguese;
//   - dates in many formats;
//   - Chinese, Japanese and Korean numbers with their marks, units, hours and eras (3億5000万円, 午後3時,
//     令和7年, 3억 5천만 원);
//   - months, magnitudes and common units of Portuguese, Russian, Arabic and Hindi.
//
// Numbers that state no fact (list numbers, versions, identifiers, citations, labels such as "step
// 2", code) are omitted.
//
// Compare decides whether a number of a claim agrees with one of its evidence: equal, rounded to
// the digits it is written with, or in another unit.
//
// A text is split into tokens once (lex.go, numeral.go), words are looked up in one lexicon for all
// languages (lexicon.go, units.go), and a parser tries what a token may begin: a date, a time, a
// share, a rank, an amount.
//
// The package knows no subjects and no evidence, starts no goroutine and does no I/O.
package quantity
