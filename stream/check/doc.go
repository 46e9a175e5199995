// Package check decides what evidence says of a claim: one claim in, one verdict out.
//
// Three readers look at a claim, cheapest first. The sentinel tells whether there is anything to check. The numbers are
// compared with those of the evidence (package numeric). What is left goes to models behind two interfaces: a Judge reads
// a premise and a claim together, a Marker reads evidence, question and answer and marks what the evidence does not
// carry. A Fusion, data that comes with a model, weighs all of it; without one the judge's probabilities are compared with
// fixed thresholds.
//
// The rules, in this order; the first that fits decides:
//
//   - no evidence, and something to check: unchecked;
//   - code, or nothing to check: not checkable;
//   - a number that the evidence gives another value: contradicted, whatever a model says;
//   - headings and questions state nothing besides their numbers: not checkable;
//   - a marked span of a Marker: unsupported;
//   - a number that stands nowhere in the evidence: contradicted when the judge says so, else unsupported;
//   - entailed: supported; contradicted: contradicted, unless all numbers are supported and some were rounded, converted or
//     worked out, for a judge cannot calculate;
//   - neutral: supported when the numbers settle the claim (see below), else unsupported when it carries a number, a date
//     or a name, else not checkable;
//   - no judge and no marker, or they failed: what the numbers settle is supported, a number that stands nowhere is
//     unsupported, the rest is unchecked. Nothing becomes supported for want of a model.
//
// Numbers settle a claim when all of them are supported and nothing else in it is left to check: its names and most of
// its other words stand beside those numbers, and it has neither a negation nor a quantity word that is missing there.
//
// The package does no I/O and starts no goroutine; everything exported is safe for concurrent use where not said
// otherwise.
package check
