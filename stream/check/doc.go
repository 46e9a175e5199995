// Package check decides whether evidence supports a claim: one claim in, one verdict out.
//
// Three readers look at a claim, cheapest first:
//
//   - The sentinel detects whether there is anything to check.
//   - The numbers are compared with those of the evidence (package numeric).
//   - What is left goes to models behind two interfaces. A Judge reads a premise and a claim
//     together. A Marker reads evidence, question and answer, and marks what the evidence does not
//     support.
//
// A Fusion, data that comes with a model, combines all results. Without one, the judge's
// probabilities are compared with fixed thresholds.
//
// # Rules
//
// The first rule that applies decides:
//
//   - There is no evidence, but something to check: unchecked.
//   - The claim is code, or there is nothing to check: not checkable.
//   - The evidence contains the sentence word for word: supported. If the sentence begins with a
//     word that refers back, it is not supported by this rule, but its verdict is never worse than
//     unchecked.
//   - The evidence has another value for a number: contradicted, whatever a model says.
//   - Headings, questions and talk about the conversation ("Let me know ...") state nothing besides
//     their numbers: not checkable.
//   - A number is nowhere in the evidence: unsupported, whatever a model says.
//   - A Marker marks the claim: unsupported, or contradicted if the judge says so.
//   - Entailed: supported.
//   - Contradicted by the judge: contradicted. If the numbers had to be rounded, converted or
//     calculated, which a language model cannot do, it counts as neutral.
//   - Contradicted by the judge or neutral, and a number is within a bound of the evidence or a
//     weekday follows from those that the evidence names: unchecked.
//   - Neutral: supported if such numbers settle the claim (all are supported, nothing reverses it,
//     and the premises contain its names and most of its words); otherwise unsupported if it has a
//     number, a date or a name; otherwise not checkable.
//   - No judge and no marker, or they failed: supported if all numbers are and the premises also
//     contain every other word of the claim, otherwise unchecked. Nothing becomes supported because
//     a model is missing.
//
// # Other languages
//
// With Options.English, a claim that is not in English, or whose evidence is not, is decided by
// numbers and names:
//
//   - A name that is not in the evidence makes it unsupported.
//   - One negation more or fewer in an otherwise equal sentence makes it contradicted.
//   - It is supported only if it is entailed and has the words of the evidence.
//   - Otherwise it is unchecked, never neutral.
//
// # What models read
//
// A claim without a sign of anything checkable (package numeric, Signs) is read by models only if
// the evidence is about the same things, so that small talk costs nothing. In scripts without
// letter case names cannot be recognised; there, a neutral claim without a number is not checkable.
//
// A judge reads the best premises of a claim. If fewer than Options.Premises share a word with it,
// it also reads windows from the start of the sources, so that claims in other words are read as
// well. Such a claim costs the judge all of its pairs. The order of facts does not affect the
// result.
//
// If the best premise is from a page, a source of more than 150 words, the judge also reads a
// premise assembled from the sentences of the page that together contain most of the claim, because
// a claim may combine several places. If several pages fit equally well, the first one is used.
//
// The package does no I/O and starts no goroutine. Everything exported is safe for concurrent use
// unless stated otherwise.
package check
