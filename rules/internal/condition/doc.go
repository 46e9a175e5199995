// Package condition is the logic of rules: what a condition is, what it can still become for a
// request of which not everything is known, and what follows from it about other conditions. It
// knows neither YAML nor routes and actions. Package rules tells what it requires of signals.
//
// # Values
//
// Logic is three-valued (Kleene): true, false, unknown; all is the minimum, any the maximum, not
// the flip. A leaf over a signal that was not extracted yet is pending: it may become anything. A
// leaf over a signal whose extraction failed is unknown for good. A condition therefore has Bounds,
// the least and the greatest value that it can still take, and everything else follows from them. A
// Matcher joins a condition with the OnUnknown that says what an unknown value comes to.
//
// # Simplification
//
// Simplifier brings a condition into negation normal form, folds constants, flattens nested
// operators of one sort, shares equal leaves, intersects or unites label sets and ranges of one
// signal, and joins tests that exclude or imply each other: x with not x becomes a leaf that is
// settled as soon as the signal is known. Each step holds for unknown, too, because all tests of
// one signal are unknown together.
//
// # Proofs
//
// Implies and Reach are sound and incomplete: what they say holds for every request, failed signals
// included, and where they cannot tell they say nothing. Tests of one signal are compared two by
// two.
//
// # Concurrency
//
// Conditions and matchers never change once made and any number of goroutines may use them. A
// Simplifier belongs to one goroutine. Node.Eval and Node.Holds do not allocate.
package condition
