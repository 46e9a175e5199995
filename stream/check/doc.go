// Package check decides what evidence says of a claim: one claim in, one verdict out.
//
// Three readers look at a claim, cheapest first. The sentinel tells whether there is anything to
// check. The numbers are compared with those of the evidence (package numeric). What is left goes
// to models behind two interfaces: a Judge reads a premise and a claim together, a Marker reads
// evidence, question and answer and marks what the evidence does not carry. A Fusion, data that
// comes with a model, weighs all of it; without one the judge's probabilities are compared with
// fixed thresholds.
//
// The rules, in this order; the first that fits decides:
//
//   - no evidence, and something to check: unchecked;
//   - code, or nothing to check: not checkable;
//   - a sentence that the evidence says word for word: supported; one that begins with a word that
//     points back is never worse than unchecked;
//   - a number that the evidence gives another value: contradicted, whatever a model says;
//   - headings, questions and talk about the conversation ("Let me know ...") state nothing besides
//     their numbers: not checkable;
//   - a number that stands nowhere in the evidence: unsupported, whatever a model says;
//   - marked by a Marker: unsupported, or contradicted when the judge says so;
//   - entailed: supported;
//   - contradicted by the judge: contradicted; but when the numbers had to be rounded, converted or
//     worked out, which a judge of language cannot do, it counts as neutral;
//   - contradicted by the judge or neutral, where a number lies within a bound of the evidence or a
//     day of the week follows from those that the evidence names: unchecked;
//   - neutral: supported when such numbers settle the claim (they are all supported, nothing turns
//     it against its premises, and those hold its names and most of its words), else unsupported
//     when it carries a number, a date or a name, else not checkable;
//   - no judge and no marker, or they failed: supported when all numbers are and the premises hold
//     every other word of the claim as well, else unchecked. Nothing becomes supported for want of
//     a model.
//
// With Options.English, a claim that is not English, or stands beside evidence that is not, is told
// by numbers and names alone: a name that the evidence does not hold makes it unsupported, a
// negation more or less in an otherwise equal sentence contradicted; it is supported only where it
// is entailed and has the words of the evidence; else it is unchecked, never neutral.
//
// A claim without a sign of anything checkable (package numeric, Signs) is read by models only when
// the evidence speaks of the same things, so that small talk costs nothing. In scripts without
// letter case names do not show: there a neutral claim without a number is not checkable.
//
// A judge reads the best premises of a claim, and where fewer than Options.Premises share a word
// with it, windows from the start of the sources besides, so that a claim in other words is read as
// well. Such a claim costs the judge all of its pairs, where its share of words alone would cost
// less or none. The order of facts changes none of this. Where the best premise is of a page, a
// source of more than 150 words, the judge reads one that is put together of the page's sentences
// that hold most of the claim between them as well, for what a claim states may stand in several
// places; of pages that fit equally well that is the first.
//
// The package does no I/O and starts no goroutine; everything exported is safe for concurrent use
// where not said otherwise.
package check
